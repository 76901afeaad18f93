import numpy as np
import pytest
import torch
from parabolas import masses, weighed

from pyg_fnri.datasets.masses import take_masses
from pyg_fnri.datasets.recording import Recording
from pyg_fnri.loader import SystemLoader
from pyg_fnri.transforms import NearestNeighbours, SplitTrajectory


@pytest.fixture
def recording():
    """Three particles of other masses, which are the last feature."""
    x = np.random.default_rng(0).normal(size=(3, 4, 3))
    x[..., 2] = np.array([[2.0], [0.5], [3.0]])
    return Recording('A', ['p', 'q', 'r'], x, 0.5,
                     rows=np.arange(12).reshape(3, 4))


def test_masses_are_no_feature(recording):
    out = take_masses(recording, 'm')
    assert out.mass.tolist() == [2.0, 0.5, 3.0]
    assert np.array_equal(out.x, recording.x[..., :2])
    assert (out.name, out.time_step) == ('A', 0.5)
    assert recording.mass is None and recording.x.shape[2] == 3


def test_frames_that_are_missing_need_no_mass(recording):
    recording.x[1, [0, 2]] = np.nan
    recording.x[2, 1, :2] = np.nan  # Of which the mass is there.
    assert take_masses(recording, 'm').mass.tolist() == [2.0, 0.5, 3.0]


@pytest.mark.parametrize('value, message', [
    (np.nan, "'m' .* is none of system 'A', particle 'q', time 1, row 6"),
    (0.0, "above 0.* is 0.0 of system 'A', particle 'q', time 1, row 6"),
    (-2.0, "is -2.0 of .*particle 'q', time 1, row 6"),
    (1e300, "is 1e\\+300 of .*particle 'q'"),
    (1e-300, 'is 1e-300 of'),
    (np.inf, 'is inf of'),
    (0.51, "same at all times.* is 0.5 of system 'A', particle 'q', time 0, "
     "row 4, and 0.51 of system 'A', particle 'q', time 1, row 6"),
])
def test_what_is_no_mass_is_refused(recording, value, message):
    recording.x[1, 2, 2] = value
    with pytest.raises(ValueError, match=message):
        take_masses(recording, 'm')


def test_masses_belong_to_particles(open_table):
    dataset, plain = open_table(weighed(), mass='m'), open_table(weighed())
    assert dataset.num_node_features == 4 and 'mass' not in plain[0]
    for number, data in enumerate(dataset):
        assert data.mass.tolist() == masses(number, data.num_nodes)
        assert data.mass.dtype == torch.float32 and data.is_node_attr('mass')
        assert torch.equal(data.x, plain[number].x) and data.validate()
    assert open_table(weighed(), mass='m2')[0].mass.equal(2 * dataset[0].mass)
    batch, = SystemLoader(dataset, batch_size=3)
    assert batch.mass.equal(torch.cat([data.mass for data in dataset]))
    again = open_table(weighed(), mass='m')  # As it was kept.
    assert again[2].mass.equal(dataset[2].mass)


@pytest.mark.parametrize('transform', [None, SplitTrajectory(2)])
def test_masses_are_those_of_each_window(open_table, transform):
    near = NearestNeighbours(1)
    dataset = open_table(weighed(), mass='m', window=4, stride=2,
                         transform=transform, pre_transform=near)
    assert dataset.system_names[3:6] == ['B/0', 'B/2', 'B/4']
    for i, data in enumerate(dataset):
        assert data.mass.tolist() == masses(i // 3, data.num_nodes)
        assert near(data).mass.equal(data.mass)
    batch = next(iter(SystemLoader(dataset, batch_size=9)))
    assert batch.mass.equal(torch.cat([data.mass for data in dataset]))


def test_masses_follow_their_systems_into_splits(open_table):
    sizes = {f's{k:02}': 'abcd'[:2 + k % 3] for k in range(20)}
    frame = weighed(3, sizes)
    for split in ('train', 'val', 'test'):
        dataset = open_table(frame, split, seed=1, mass='m')
        for name, data in zip(dataset.system_names, dataset):
            assert data.mass.tolist() == masses(int(name[1:]), data.num_nodes)
    one = weighed(60, {'A': 'abc'}).drop(columns='system')
    for split in ('train', 'val', 'test'):
        for data in open_table(one, split, window=6, mass='m'):
            assert data.mass.tolist() == masses(0, 3)


def test_masses_of_arrays(open_table, tmp_path):
    x = np.random.rand(3, 2, 5, 5)
    x[..., 4] = np.arange(1.0, 7.0).reshape(3, 2, 1)
    assert open_table(x, mass=4)[1].mass.tolist() == [3, 4]
    np.savez(tmp_path / 'a.npz', one=x[0], two=x[1])
    dataset = open_table(tmp_path / 'a.npz', mass=4)
    assert dataset[1].mass.tolist() == [3, 4]
    assert dataset[1].x.shape == (2, 5, 4)


def test_masses_that_change_are_refused(open_table):
    frame = weighed().sort_values(['system', 'particle', 'time'],
                                  ignore_index=True)
    frame.loc[29, 'm'] = 5.0
    with pytest.raises(
            ValueError, match="is 1.5 of system 'B', particle 'b', "
            "time 0, row 24, and 5.0 of .* time 2.5, row 29"):
        open_table(frame, mass='m')
    assert len(open_table(frame)) == 3  # Nobody asks for them.
