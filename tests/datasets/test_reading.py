import numpy as np
import pandas as pd
import parabolas
import pytest
import torch

from pyg_fnri.datasets.reading import Reading


def table(names='xy', num_steps=4):
    rng = np.random.default_rng(0)
    rows = [(t, p, *rng.normal(size=len(names))) for t in range(num_steps)
            for p in 'ab']
    return pd.DataFrame(rows, columns=['time', 'particle', *names])


def test_positions_are_found_by_name():
    for names in ('x', 'xy', 'xyz'):
        (recording, ), derive = Reading().read(table(names))
        assert recording.x.shape == (2, 4, len(names)) and derive


def test_velocities_are_found_by_name():
    frame = table('vxyu')
    frame.columns = ['time', 'particle', 'vy', 'x', 'y', 'vx']
    (recording, ), derive = Reading().read(frame)
    assert not derive
    a = frame[frame.particle == 'a']
    assert np.array_equal(recording.x[0], a[['x', 'y', 'vx', 'vy']])


def test_features_can_be_named():
    frame = table('uvw')
    (recording, ), derive = Reading(position=['u'], velocity=['w']).read(frame)
    a = frame[frame.particle == 'a']
    assert np.array_equal(recording.x[0], a[['u', 'w']]) and not derive
    (recording, ), derive = Reading(position=['w', 'u'],
                                    velocity=()).read(frame)
    assert np.array_equal(recording.x[0], a[['w', 'u']]) and not derive
    assert Reading(position=['u']).read(frame)[1]


def test_all_columns_can_be_named():
    frame = table().rename(columns={'time': 't', 'particle': 'id'})
    frame['trial'] = 5
    reading = Reading('trial', 't', 'id')
    assert reading.read(frame)[0][0].name == 5
    # Called as by default, it is found.
    reading = Reading(time='t', particle='id')
    assert reading.read(
        frame.rename(columns={'trial': 'system'}))[0][0].name == 5
    assert reading.read(frame)[0][0].name == 0


def test_arrays_are_taken_as_they_are():
    x = np.random.rand(3, 2, 5, 4)
    recordings, derive = Reading().read(x)
    assert len(recordings) == 3 and not derive
    assert np.array_equal(recordings[1].x, x[1])
    assert recordings[1].time_step == 1


def test_features_of_arrays_have_numbers():
    x = np.random.rand(3, 2, 5, 4)
    recordings, derive = Reading(position=[3, 0], time_step=0.5).read(x)
    assert np.array_equal(recordings[2].x, x[2][..., [3, 0]]) and derive
    assert recordings[2].time_step == 0.5
    recordings, derive = Reading(position=[1], velocity=[2]).read(x)
    assert np.array_equal(recordings[2].x, x[2][..., 1:3]) and not derive


def test_short_gaps_are_filled():
    frame = table().drop(index=2)
    (recording, ), _ = Reading(max_gap=1).read(frame)
    assert recording.num_filled == 1 and np.isfinite(recording.x).all()
    x = np.random.rand(1, 2, 5, 4)
    x[0, 1, 2, 3] = np.nan
    assert Reading(max_gap=1).read(x)[0][0].num_filled == 1
    for source in (frame, x):
        with pytest.raises(ValueError, match='max_gap=1, now 0'):
            Reading().read(source)


@pytest.mark.parametrize('kwargs, source, message', [
    ({}, table('uv'), "none of the columns x, y and z.*'u'.*position"),
    ({}, table('xy').assign(vx=0.0), r"\['vx'\] but not all of .*'vy'"),
    ({
        'system': 'trial'
    }, table(), "one column 'trial'"),
    ({
        'position': ['x', 'q']
    }, table(), "one column 'q'"),
    ({
        'position': [0, 4]
    }, np.zeros((3, 2, 5, 4)), 'numbered 0 to 3'),
    ({
        'position': ['x']
    }, np.zeros((3, 2, 5, 4)), 'numbered 0 to 3'),
    ({
        'mass': 4
    }, np.zeros((3, 2, 5, 4)), r'numbered 0 to 3.*mass name \[4\]'),
    ({
        'mass': 'm'
    }, table(), "one column 'm'.*by mass=NAME"),
])
def test_what_is_not_there_is_said(kwargs, source, message):
    with pytest.raises(ValueError, match=message):
        Reading(**kwargs).read(source)


@pytest.mark.parametrize('kwargs, error, message', [
    ({
        'position': 'xy'
    }, TypeError, 'position must be a sequence'),
    ({
        'position': []
    }, ValueError, 'position is empty'),
    ({
        'velocity': ['vx']
    }, ValueError, 'name those of the position'),
    ({
        'position': ['x', 'y'],
        'velocity': ['vx']
    }, ValueError, 'Each position needs'),
    ({
        'max_gap': -1
    }, ValueError, 'max_gap'),
    ({
        'time_step': 0
    }, ValueError, 'time_step must be above 0'),
    ({
        'mass': ['m']
    }, TypeError, r"mass must name one feature, not \['m'\]"),
    ({
        'mass': True
    }, TypeError, 'mass must name one feature'),
])
def test_wrong_arguments_are_refused(kwargs, error, message):
    with pytest.raises(error, match=message):
        Reading(**kwargs)


def test_representation_shows_all():
    assert repr(Reading(position=['x'], max_gap=2)) == (
        "Reading(system=None, time='time', particle='particle', "
        "position=('x',), velocity=None, mass=None, time_step=None, "
        "max_gap=2)")


@pytest.mark.parametrize('num_features, message', [
    (2, r'2 features, .*position=\[0, 1\].* or position=\[0\] and velocity='),
    (3, r'odd number of features, 3.*position=\[0, 1, 2\]'),
    (1, r'odd number of features, 1.*position=\[0\]'),
])
def test_features_of_arrays_are_not_guessed(num_features, message):
    x = np.random.rand(3, 2, 5, num_features)
    with pytest.raises(ValueError, match=message):
        Reading().read(x)
    # What is asked for is no guess.
    (recording, *_), derive = Reading(velocity=()).read(x)
    assert np.array_equal(recording.x, x[0]) and not derive
    every = list(range(num_features))
    (recording, *_), derive = Reading(position=every).read(x)
    assert np.array_equal(recording.x, x[0]) and derive


def test_masses_of_tables_are_no_feature():
    frame = table('xym')
    frame['m'] = frame.particle.map({'a': 2.0, 'b': 0.5})
    (recording, ), derive = Reading(mass='m').read(frame)
    assert recording.mass.tolist() == [2.0, 0.5] and derive
    assert recording.x.shape == (2, 4, 2)
    assert Reading().read(frame)[0][0].mass is None
    # Rows that are missing are filled in, as without masses.
    (recording, ), _ = Reading(mass='m', max_gap=1).read(frame.drop(index=2))
    assert recording.mass.tolist() == [2.0, 0.5]
    assert recording.num_filled == 1
    # A cell is not.
    frame.loc[2, 'm'] = None
    with pytest.raises(ValueError, match="'m'.* none of .*'a'.* row 2"):
        Reading(mass='m', max_gap=1).read(frame)


def test_masses_of_arrays_are_a_feature_by_number():
    x = np.random.rand(3, 2, 5, 5)
    x[..., 1] = np.arange(1.0, 7.0).reshape(3, 2, 1)
    rest = x[..., [0, 2, 3, 4]]
    for reading, expected, derived in (
        (Reading(mass=1), rest, False),
        (Reading(mass=1, velocity=()), rest, False),
        (Reading(mass=1, position=[4, 0]), x[..., [4, 0]], True),
        (Reading(mass=1, position=[0], velocity=[3]), x[..., [0, 3]], False),
    ):
        recordings, derive = reading.read(x)
        assert np.array_equal(recordings[2].x, expected[2])
        assert [r.mass.tolist() for r in recordings] == [[1, 2], [3, 4], [5, 6]]
        assert derive == derived
    with pytest.raises(
            ValueError, match=r'2 features, \[0, 2\].*'
            r'position=\[0, 2\].* position=\[0\] and '
            r'velocity=\[2\]'):
        Reading(mass=1).read(x[..., :3])


@pytest.mark.parametrize('kwargs, source', [
    ({
        'mass': 'x'
    }, table()),
    ({
        'mass': 1,
        'position': [0, 1]
    }, np.ones((3, 2, 5, 4))),
    ({
        'mass': 2,
        'position': [0, 1],
        'velocity': [3, 2]
    }, np.ones((3, 2, 5, 4))),
])
def test_masses_are_not_positions_too(kwargs, source):
    with pytest.raises(ValueError, match='a position or a velocity already'):
        Reading(**kwargs).read(source)


@pytest.mark.parametrize('name', ['a.npy', 'a.npz'])
def test_arrays_become_systems_as_they_are(open_table, tmp_path, name):
    x = np.random.rand(4, 3, 6, 4).astype(np.float32)
    path = tmp_path / name
    np.save(path, x) if name == 'a.npy' else np.savez(path, x=x)
    for dataset in (open_table(path), open_table(x)):
        assert np.array_equal(dataset[2].x, x[2])
        assert dataset.system_names == [0, 1, 2, 3]
        assert dataset.particle_names[0] == [0, 1, 2]
    # Velocities of positions alone are derived.
    dataset = open_table(x[..., :2], position=[0, 1], time_step=parabolas.DT)
    expected = np.gradient(x[1, ..., :2].astype(float), parabolas.DT, axis=1,
                           edge_order=2)
    np.testing.assert_allclose(dataset[1].x[..., 2:], expected, atol=1e-6)


def test_velocities_that_are_there_are_kept(open_table):
    frame = parabolas.table().assign(vx=1.5, vy=lambda t: -t.x)
    data = open_table(frame)[0]
    assert torch.equal(data.x[..., 3], -data.x[..., 0])
    assert (data.x[..., 2] == 1.5).all()
    assert open_table(frame, velocity=())[0].x.shape == (3, 8, 2)
