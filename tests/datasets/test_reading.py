import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets.reading import Reading
from pyg_fnri.datasets.tables import as_name, content_digest, is_array, load


def table(num_steps=5, systems=None, dt=0.1):
    """Two systems, of 2 and of 3 particles, sorted by system, particle and
    time: 5 rows for each particle."""
    systems = systems or {'A': [1, 2], 'B': [7, 8, 9]}
    return pd.DataFrame(
        [(name, particle, round(frame * dt, 6), 10 * particle + frame, -frame)
         for name, particles in systems.items() for particle in particles
         for frame in range(num_steps)],
        columns=['system', 'particle', 'time', 'x', 'y'])


def read(source, **kwargs):
    return Reading(**kwargs).read(source)[0]


def test_times_may_start_anywhere_and_be_rounded():
    frame = table(60, dt=1 / 30)
    frame['time'] = (frame['time'] + 12).round(3)
    frame.loc[frame.system == 'B', 'time'] += 500
    first, second = read(frame)
    assert first.x.shape == (2, 60, 2) and second.x.shape == (3, 60, 2)
    # Rounding errors of a long recording do not add up to a frame.
    long = table(4000, {'A': [1, 2]}, dt=1 / 30)
    long['time'] = long['time'].round(3)
    assert read(long)[0].x.shape == (2, 4000, 2)


def test_times_may_be_dates_and_numbers_words():
    frame, dates = table(), table()
    dates['time'] = pd.Timestamp('2024-02-29') + pd.to_timedelta(
        frame['time'], unit='s')
    texts = dates.astype({'time': str})
    # Of the first frame of all, only the day is there; as people write it.
    texts['time'] = texts['time'].str.removesuffix(' 00:00:00')
    for other in (dates, texts, frame.astype({'x': str, 'time': str})):
        for one, same in zip(read(other), read(frame)):
            assert np.array_equal(one.x, same.x)
            assert one.time_step == pytest.approx(0.1)


def test_names_are_read_as_they_are_written(tmp_path):
    names = ['001', '1', '2.0', 'ctrl', '-3']
    assert [as_name(n) for n in names] == ['001', 1, 2, 'ctrl', -3]
    frame = table(3, {name: [1, 2] for name in names})
    frame['particle'] = frame.particle.map({1: '01', 2: '1'})
    frame.to_csv(tmp_path / 'a.csv', index=False)
    systems = read(tmp_path / 'a.csv')
    assert [s.name for s in systems] == [-3, 1, 2, '001', 'ctrl']
    assert systems[0].particles == [1, '01']
    # Typed by somebody: text stays text, and whole numbers are numbers.
    systems = read(
        frame.assign(particle=frame.particle.map({
            '01': 2.0,
            '1': 1.0
        })))
    assert [s.name for s in systems] == ['-3', '1', '2.0', '001', 'ctrl']
    assert systems[0].particles == [1, 2]
    frame['system'] = frame.system.map(lambda n: int(n) if n == '1' else n)
    assert [s.name for s in read(frame)] == [-3, 1, 2, '001', 'ctrl']


def test_gaps_are_filled_where_asked_for():
    frame = table(9).drop(index=[2, 3])
    frame.loc[10, 'y'] = np.nan
    first, second = read(frame, max_gap=2)
    assert first.x[0, :, 0].tolist() == [*range(10, 19)]
    assert first.x[1, :, 1].tolist() == [*range(0, -9, -1)]
    assert (first.num_filled, second.num_filled) == (3, 0)
    # Longer ones stay, for windows to leave out.
    first, _ = read(frame, max_gap=1)
    assert np.isnan(first.x[0, :, 0]).nonzero()[0].tolist() == [2, 3]
    assert first.num_filled == 1
    x = np.ma.masked_less(np.arange(40.).reshape(1, 2, 5, 4), 0)
    x[0, 1, 2, 3] = np.ma.masked  # What is behind it plays no part.
    assert np.array_equal(read(x, max_gap=1)[0].x, x.data[0])


def change(row, **cells):
    def apply(frame):
        for name, value in cells.items():
            frame[name] = frame[name].astype(object)
            frame.loc[row, name] = value
        return frame

    return apply


@pytest.mark.parametrize('spoil, message', [
    (change(4, time=1e9), 'few rows'),
    (lambda t: t.assign(x=pd.Timestamp('2024-02-29')), "'x'"),
    (change(13, particle=None), "Row 13 has no 'particle'"),
    (change(13, time=np.nan), "Row 13 has no 'time'"),
    (lambda t: t[:0], 'two times'),
    (lambda t: t.rename(columns={'y': 'x'}), "one column 'x'")
])  # yapf: disable
def test_what_is_wrong_in_a_table_is_said(spoil, message):
    with pytest.raises(ValueError, match=message):
        read(spoil(table()))


def test_arrays_are_taken_as_they_are(tmp_path):
    x = np.random.rand(3, 2, 5, 4)
    np.save(tmp_path / 'a.npy', x)
    np.savez(tmp_path / 'a.npz', x=x, other=np.zeros(3))
    sources = [x, tmp_path / 'a.npy', tmp_path / 'a.npz', x.astype('>f8')]
    for source in sources:
        recordings, derive = Reading().read(source)
        assert [r.name for r in recordings] == [0, 1, 2] and not derive
        assert np.array_equal(recordings[1].x, x[1])
        assert recordings[1].time_step is None
    np.savez(tmp_path / 'b.npz', two=x[1, :, :3], one=x[0])
    two, one = read(tmp_path / 'b.npz')
    assert (two.name, one.name) == ('two', 'one') and two.x.shape == (2, 3, 4)
    integers = (9 * x).astype(int)
    assert np.array_equal(read(integers)[0].x, integers[0])
    with pytest.raises(TypeError):
        read(x + 0j)


def test_features_of_arrays_have_numbers():
    x = np.random.rand(3, 2, 5, 4)
    x[..., 3] = np.arange(1.0, 7.0).reshape(3, 2, 1)
    for kwargs, features, derived in [
        ({}, [0, 1, 2, 3], False),
        ({'position': [2, 0]}, [2, 0], True),
        ({'position': ['2', '0']}, [2, 0], True),  # From a command line.
        ({'position': [1], 'velocity': [2]}, [1, 2], False),
        ({'mass': 3, 'velocity': ()}, [0, 1, 2], False),
        ({'mass': 3, 'position': [0]}, [0], True)
    ]:  # yapf: disable
        recordings, derive = Reading(**kwargs).read(x)
        assert np.array_equal(recordings[2].x, x[2][..., features])
        assert derive == derived
        if 'mass' in kwargs:
            assert recordings[2].mass.tolist() == [5, 6]


@pytest.mark.parametrize('x, kwargs', [
    (np.zeros((3, 2, 5, 2)), {}),  # Positions alone?
    (np.zeros((3, 2, 5, 3)), {'mass': 0}),
    (np.zeros((3, 2, 5, 4)), {'mass': -1}), (np.zeros((2, 4)), {})
])  # yapf: disable
def test_features_of_arrays_are_not_guessed(x, kwargs):
    with pytest.raises(ValueError):
        Reading(**kwargs).read(x)


def test_masses_are_no_feature():
    frame = table().assign(m=lambda t: t.particle / 2)
    frame = frame.astype({'system': 'category'})
    for source in (frame, frame.drop(index=2)):
        first, second = read(source, mass='m', max_gap=1)
        assert first.mass.tolist() == [0.5, 1] and first.x.shape == (2, 5, 2)
        assert second.mass.tolist() == [3.5, 4, 4.5]
    with pytest.raises(ValueError, match='particle 7.* 3.5 to 5'):
        read(change(13, m=5)(frame), mass='m')


def test_files_are_told_apart_by_their_names(tmp_path):
    assert is_array(np.zeros(3)) and is_array('a.npy') and is_array('A.NPZ')
    for other in (table(), 'a.csv', 'a.csv.gz', 'a.parquet'):
        assert not is_array(other)
    for source, error in (('a.xlsx', ValueError), ([[1]], TypeError)):
        with pytest.raises(error):
            is_array(source)
    with pytest.raises(FileNotFoundError):
        load('no/where.csv')
    for name in ('t.csv', 't.csv.gz', 't.npy'):
        (tmp_path / name).write_bytes(b'a,b\n1,2,3\n"')
        with pytest.raises(ValueError, match=f'Cannot read .*{name}'):
            load(tmp_path / name)


def test_digest_is_of_the_content():
    sources = [
        table(), table()[::-1], table().rename(columns={'x': 'z'}),
        change(3, x=0)(table()), np.zeros((2, 3)), np.zeros((3, 2)),
        np.ones((2, 3)), np.ma.masked_array(np.ones((2, 3)), [[0, 1, 0]] * 2)
    ]  # yapf: disable
    digests = [content_digest(source) for source in sources]
    assert len(set(digests)) == len(digests)
    assert content_digest(table().copy()) == digests[0]
