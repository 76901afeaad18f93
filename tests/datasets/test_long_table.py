import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets.columns import Columns
from pyg_fnri.datasets.long_table import read_recordings

COLUMNS = Columns('system', 'time', 'particle', ['x', 'y'])


def table(num_steps=5, systems=None, dt=0.1):
    """Two systems, of 2 and of 3 particles, sorted by system, particle and
    time: 5 rows for each particle."""
    systems = systems or {'A': [1, 2], 'B': [7, 8, 9]}
    return pd.DataFrame(
        [(name, particle, round(frame * dt, 6), 10 * particle + frame, -frame)
         for name, particles in systems.items() for particle in particles
         for frame in range(num_steps)],
        columns=['system', 'particle', 'time', 'x', 'y'])


def read(frame, columns=COLUMNS, **kwargs):
    return read_recordings(frame.reset_index(drop=True), columns, **kwargs)


def test_rows_become_trajectories():
    first, second = read(table())
    assert (first.name, first.particles) == ('A', [1, 2])
    assert (second.name, second.particles) == ('B', [7, 8, 9])
    assert second.x.shape == (3, 5, 2)
    assert second.x[1].tolist() == [[80 + t, -t] for t in range(5)]
    assert second.time_step == pytest.approx(0.1) and second.start == 0.0
    assert second.rows[1].tolist() == [15, 16, 17, 18, 19]


def test_rows_may_be_in_any_order():
    shuffled = table().sample(frac=1, random_state=0)
    for one, other in zip(read(table()), read(shuffled)):
        assert one.name == other.name and one.particles == other.particles
        assert np.array_equal(one.x, other.x)


def test_times_may_start_anywhere_and_be_rounded():
    frame = table(60, dt=1 / 30)
    frame['time'] = (frame['time'] + 12).round(3)
    frame.loc[frame.system == 'B', 'time'] += 500
    first, second = read(frame)
    assert first.x.shape == (2, 60, 2) and second.x.shape == (3, 60, 2)
    assert (first.start, second.start) == (12, 512)
    # Rounding errors of a long recording do not add up to a frame.
    long = table(4000, {'A': [1, 2]}, dt=1 / 30)
    long['time'] = long['time'].round(3)
    assert read(long)[0].x.shape == (2, 4000, 2)


def test_times_may_be_dates():
    frame = table()
    frame['time'] = pd.Timestamp('2024-02-29') + pd.to_timedelta(
        frame['time'], unit='s')
    first, _ = read(frame)
    assert first.time_step == pytest.approx(0.1)
    assert first.start == pd.Timestamp('2024-02-29')
    assert np.array_equal(first.x, read(table())[0].x)
    with pytest.raises(ValueError, match=r'time 2024-02-29 00:00:00.2\d*;'):
        read(frame.drop(index=2))


def test_dates_may_be_texts():
    frame, dates = table(), table()
    dates['time'] = pd.Timestamp('2024-02-29') + pd.to_timedelta(
        frame['time'], unit='s')
    # Of the first frame of all, only the day is there; as people write it.
    frame['time'] = [str(t).removesuffix(' 00:00:00') for t in dates['time']]
    for one, other in zip(read(frame), read(dates)):
        assert np.array_equal(one.x, other.x)
        assert (one.start, one.time_step) == (other.start, other.time_step)
    with pytest.raises(ValueError, match="Column 'when' .* numbers.* row 0"):
        read(frame.assign(when='noon'),
             Columns('system', 'when', 'particle', ['x', 'y']))
    frame.loc[3, 'time'] = 'noon'
    with pytest.raises(ValueError, match="holds dates, but row 3 has 'noon'"):
        read(frame)


def test_numbers_may_be_words():
    frame = table().astype({'x': str, 'time': str})
    assert np.array_equal(read(frame)[1].x, read(table())[1].x)


def test_one_system_needs_no_column():
    columns = Columns(None, 'time', 'particle', ['x'])
    frame = table(systems={'A': [1, 2]}).drop(columns='system')
    recording, = read(frame, columns)
    assert recording.name == 0 and recording.x.shape == (2, 5, 1)


def test_short_gaps_become_nan():
    frame = table().drop(index=[12, 17, 22])  # Time 0.2, of all particles.
    frame.loc[2, 'x'] = np.nan
    first, second = read(frame, max_gap=1)
    assert np.isnan(
        second.x[:, 2]).all() and not np.isnan(second.x[:, [0, 1, 3, 4]]).any()
    assert second.rows[0].tolist() == [10, 11, -1, 12, 13]
    assert np.isnan(first.x[0, 2]).tolist() == [True, False]


def change(row, **cells):
    def apply(frame):
        for name, value in cells.items():
            frame[name] = frame[name].astype(object)
            frame.loc[row, name] = value
        return frame

    return apply


@pytest.mark.parametrize(
    'spoil, message',
    [
        # Rows that are missing, inside, at the ends, and for all particles.
        (lambda t: t.drop(index=12),
         r"after row 11 \(system 'B', particle 7, time 0.1\): 1, .*time 0.2; "
         r'the next there is row 12.*max_gap=1, now 0'),
        (lambda t: t.drop(index=[11, 12]),
         r'after row 10 .*\): 2, .*time 0.1;'),
        (lambda t: t.drop(index=10),
         r"first row .* row 10 \(system 'B', particle 7, time 0.1\).* "
         'before that: 1'),
        (lambda t: t.drop(index=[18, 19]),
         r"last row .* row 17 \(system 'B', particle 8, time 0.2\).* "
         'after that: 2'),
        (lambda t: t.drop(index=[2, 7]),
         r"row \d \(system 'A', particle \d, time 0.1\) and row \d .*frames: 1,"
         ),
        # Rows that are there twice.
        (lambda t: pd.concat([t, t.iloc[[13]]]),
         r"two rows .* row 25 \(system 'B', particle 7, time 0.3\) and row 13"),
        # Unequal time steps.
        (change(4, time=0.43),
         r"equal.* row \d \(system 'A', .*to row 4 \(system 'A', particle 1, "
         r"time 0.43\) it is 0.03, and 0.1"),
        # Cells that hold no numbers.
        (change(13, x='a'),
         r"'x' .* row 13 \(system 'B', particle 7, time 0.3\) has 'a'"),
        (change(13, y=np.inf), "'y' .* row 13 .* has inf"),
        (change(13, time='noon'), "'time' .* row 13 has 'noon'"),
        (lambda t: t.assign(x=pd.Timestamp('2024-02-29')), "'x'.*dates"),
        # Names that are missing.
        (change(13, particle=None), "Row 13 has no 'particle'"),
        (change(13, system=None), "Row 13 has no 'system'"),
        (change(13, time=np.nan), "Row 13 has no 'time'"),
        # Too little.
        (lambda t: t[t.particle != 1], "'A' has one particle, 2"),
        (lambda t: t[t.time == 0], 'no trajectories'),
        (lambda t: t[:0], 'no rows'),
        (lambda t: t.drop(columns='y'),
         "one column 'y'.*'x'.*read by position=NAMES"),
        (lambda t: t.rename(columns={'y': 'x'}), "one column 'x'"),
    ])
def test_what_is_wrong_is_said(spoil, message):
    with pytest.raises(ValueError, match=message):
        read(spoil(table()))


def test_times_in_another_unit_are_no_gaps():
    frame = table(dt=1.)  # Numbers of frames.
    with pytest.raises(ValueError, match='said to be 0.1, but .* it is 1 in'):
        read(frame, time_step=0.1, max_gap=8)
    # Unless so many are to be filled in.
    assert read(frame, time_step=0.5, max_gap=1)[0].x.shape == (2, 9, 2)


def test_another_time_step_is_said():
    frame = pd.concat([table(9, {'A': [1, 2]}), table(9, {'B': [1, 2]}, 0.25)])
    with pytest.raises(ValueError, match="system 'B'.*0.25, and 0.1"):
        read(frame)
    # One that is given goes before the most common one.
    with pytest.raises(ValueError, match="system 'A'.*0.1, and 0.25"):
        read(frame, time_step=0.25)


def test_a_far_off_time_takes_no_memory():
    frame = change(4, time=1e12)(table())
    with pytest.raises(ValueError, match='no particle of the system has'):
        read(frame)


def test_gaps_longer_than_asked_for_are_said():
    frame = table(9).drop(index=[2, 3, 4])
    assert np.isnan(read(frame, max_gap=3)[0].x[0, 2:5]).all()
    with pytest.raises(ValueError, match='max_gap=3, now 2'):
        read(frame, max_gap=2)
    # At the ends nothing can be filled in.
    with pytest.raises(ValueError, match='first row'):
        read(table(9).drop(index=0), max_gap=3)


def test_masses_are_the_last_feature():
    frame = table().assign(m=lambda t: t.particle / 2)
    columns = Columns('system', 'time', 'particle', ['x', 'y'], 'm')
    shuffled = frame.sample(frac=1, random_state=0)
    for recording, plain in zip(read(shuffled, columns), read(table())):
        assert np.array_equal(recording.x[..., :2], plain.x)
        assert recording.x[:, 0, 2].tolist() == [
            name / 2 for name in plain.particles
        ]
    frame.loc[13, 'm'] = np.inf
    with pytest.raises(
            ValueError, match="'m' must hold finite numbers, but "
            "row 13 .*'B', particle 7, time 0.3.* has inf"):
        read(frame, columns)
