import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import FakeDataset
from torch_geometric.transforms import Compose

from pyg_fnri.data import from_trajectory
from pyg_fnri.transforms import (
    NearestNeighbours,
    SplitTrajectory,
    WithinRadius,
)


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


def line(**kwargs):
    """Four particles at rest on a line, at 0, 1, 3 and 7."""
    x = torch.zeros(4, 5, 4)
    x[:, :, 0] = torch.tensor([0.0, 1, 3, 7]).unsqueeze(1)
    return from_trajectory(x, **kwargs)


TRUTH = torch.arange(16).view(1, 4, 4).masked_fill(torch.eye(4).bool(), 0)


@pytest.mark.parametrize('transform, expected', [
    (NearestNeighbours(1), [(1, 0), (0, 1), (1, 2), (2, 3)]),
    (NearestNeighbours(1, force_undirected=True), [(1, 0), (0, 1), (2, 1),
                                                   (1, 2), (3, 2), (2, 3)]),
    (WithinRadius(2.0), [(1, 0), (0, 1), (2, 1), (1, 2)]),
])
def test_near_edges_are_kept_with_their_types(transform, expected):
    data = transform(line(edge_label=TRUTH))
    assert list(map(tuple, data.edge_index.t().tolist())) == expected
    # Row = receiver, column = sender.
    assert data.edge_label.flatten().tolist() == [
        int(TRUTH[0, i, j]) for j, i in expected
    ]
    assert data.x.shape == (4, 5, 4) and data.validate()


def test_near_edges_are_taken_from_the_candidates():
    data = line(edge_index=torch.tensor([[0, 3, 1], [1, 0, 2]]))
    edges = WithinRadius(2.0)(data).edge_index
    assert edges.tolist() == [[0, 1], [1, 2]]
    assert data.edge_index.size(1) == 3  # The input is left as it was.
    edges = WithinRadius(2.0)(Data(x=data.x)).edge_index
    assert edges.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


def test_near_edges_look_at_the_frames_that_a_model_observes():
    data = line()
    data.x[3, 4, 0] = 0.1  # Close to particle 0, in the last frame.
    near = WithinRadius(2.0, num_observed=4)(data)
    assert 3 not in near.edge_index
    split = Compose([SplitTrajectory(2), WithinRadius(2.0)])(data)
    assert torch.equal(split.edge_index, near.edge_index)
    assert 3 in WithinRadius(2.0)(data).edge_index


@pytest.mark.parametrize('transform', [NearestNeighbours(1), WithinRadius(1.0)])
def test_near_edges_are_of_one_system(transform):
    with pytest.raises(ValueError, match='batch of them'):
        transform(Batch.from_data_list([line(), line()]))
    with pytest.raises(ValueError, match='has none'):
        transform(Data(edge_index=torch.tensor([[0], [1]])))


def test_loaders_apply_near_edges_system_by_system():
    assert not getattr(NearestNeighbours(1), 'batchwise', False)


def test_near_edges_show_their_parameters():
    assert repr(NearestNeighbours(
        3, 49, 2,
        True)) == ('NearestNeighbours(3, num_observed=49, num_dims=2, '
                   'force_undirected=True)')
    assert repr(WithinRadius(
        1.5, 49, 2)) == ('WithinRadius(1.5, num_observed=49, num_dims=2)')
    with pytest.raises(ValueError, match='num_neighbours'):
        NearestNeighbours(0)
    with pytest.raises(ValueError, match='radius'):
        WithinRadius(-1.0)
