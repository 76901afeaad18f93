import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import FakeDataset

from pyg_fnri.data import from_trajectory
from pyg_fnri.transforms import SplitTrajectory


def system(num_steps=99, num_particles=5):
    # Every frame holds its own number.
    frame = torch.arange(float(num_steps)).view(1, -1, 1)
    return from_trajectory(frame.expand(num_particles, num_steps, 4))


def test_first_and_last_frames_are_kept():
    data = SplitTrajectory(49)(system())
    assert data.x[0, :, 0].tolist() == list(range(49))
    assert data.y[0, :, 0].tolist() == list(range(50, 99))
    assert data.x.shape == data.y.shape == (5, 49, 4)
    assert data.num_nodes == 5 and data.validate()


@pytest.mark.parametrize('num_observed, num_predicted, num_steps', [
    (1, 1, 2),
    (3, 5, 8),
    (5, 3, 20),
])
def test_halves_of_other_sizes(num_observed, num_predicted, num_steps):
    split = SplitTrajectory(num_observed, num_predicted)
    data = split(system(num_steps))
    frames = list(range(num_steps))
    assert data.x[0, :, 0].tolist() == frames[:num_observed]
    assert data.y[0, :, 0].tolist() == frames[-num_predicted:]


def test_input_is_left_as_it_was():
    data = system()
    x = data.x.clone()
    SplitTrajectory(49)(data)
    assert torch.equal(data.x, x) and 'y' not in data


def test_batch_of_systems_equals_systems_of_a_batch():
    systems = [system(9, 5), system(9, 3), system(9, 2)]
    split = SplitTrajectory(4)
    whole = split(Batch.from_data_list(systems))
    parts = Batch.from_data_list([split(data) for data in systems])
    assert split.batchwise
    assert torch.equal(whole.x, parts.x) and torch.equal(whole.y, parts.y)


def test_repr_shows_all_parameters():
    assert str(SplitTrajectory(49)) == 'SplitTrajectory(49, num_predicted=49)'
    assert str(SplitTrajectory(4, 7)) == 'SplitTrajectory(4, num_predicted=7)'


def test_too_short_trajectories_are_refused():
    with pytest.raises(ValueError, match='at least 98 steps.*have 97'):
        SplitTrajectory(49)(system(97))
    with pytest.raises(ValueError, match='at least 98 steps'):
        # Applied twice.
        SplitTrajectory(49)(SplitTrajectory(49)(system()))


def test_other_data_is_refused():
    with pytest.raises(ValueError, match='x is missing'):
        SplitTrajectory(2)(Data(num_nodes=3))
    with pytest.raises(ValueError, match=r'x is \[\d+, 64\]'):
        SplitTrajectory(2)(FakeDataset(1)[0])


@pytest.mark.parametrize('number, error', [
    (0, ValueError),
    (-3, ValueError),
    (2.5, TypeError),
    (True, TypeError),
])
def test_wrong_numbers_of_frames_are_refused(number, error):
    with pytest.raises(error, match='num_observed'):
        SplitTrajectory(number)
    with pytest.raises(error, match='num_predicted'):
        SplitTrajectory(3, number)
