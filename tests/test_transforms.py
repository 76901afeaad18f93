import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import FakeDataset
from torch_geometric.transforms import Compose

from pyg_fnri.data import from_trajectory, fully_connected
from pyg_fnri.transforms import (NearestNeighbours, ReconstructTrajectory,
                                 SplitTrajectory, WithinRadius)


def system(num_steps=99, num_particles=5):
    # Every frame holds its own number.
    frame = torch.arange(float(num_steps)).view(1, -1, 1)
    return from_trajectory(frame.expand(num_particles, num_steps, 4))


def line(*positions, **kwargs):
    """Particles at rest on a line."""
    x = torch.zeros(len(positions), 5, 4)
    x[:, :, 0] = torch.tensor(positions).unsqueeze(1)
    return from_trajectory(x, **kwargs)


def pairs(data):
    return list(map(tuple, data.edge_index.t().tolist()))


@pytest.mark.parametrize(
    'split, num_steps, x, y',
    [(SplitTrajectory(49), 99, range(49), range(50, 99)),
     (SplitTrajectory(3, 5), 8, [0, 1, 2], [3, 4, 5, 6, 7]),
     (ReconstructTrajectory(3), 9, [0, 1, 2], [0, 1, 2])])
def test_first_and_last_frames_are_kept(split, num_steps, x, y):
    data = system(num_steps)
    out = split(data)
    assert out.x[0, :, 0].tolist() == list(x)
    assert out.y[0, :, 0].tolist() == list(y)
    assert out.x.size(0) == 5 and out.validate() and split.batchwise
    assert data.x.size(1) == num_steps  # The input is left as it was.


@pytest.mark.parametrize('apply', [
    lambda: SplitTrajectory(49)(system(97)), lambda: SplitTrajectory(2)
    (FakeDataset(1)[0]), lambda: SplitTrajectory(3, 0),
    lambda: NearestNeighbours(0), lambda: NearestNeighbours(1)
    (Batch.from_data_list([system(), system()])),
    lambda: WithinRadius(float('nan')),
    lambda: WithinRadius(1.0, num_observed=6)
    (system(5)), lambda: WithinRadius(1.0)(Data(x=torch.zeros(3, 4, 3)))
])
def test_what_would_give_wrong_numbers_is_refused(apply):
    with pytest.raises(ValueError):
        apply()


TRUTH = torch.arange(16).view(1, 4, 4).masked_fill(torch.eye(4).bool(), 0)


@pytest.mark.parametrize(
    'transform, expected',
    [(NearestNeighbours(1), [(1, 0), (0, 1), (1, 2), (2, 3)]),
     (NearestNeighbours(1, force_undirected=True), [(1, 0), (0, 1), (2, 1),
                                                    (1, 2), (3, 2), (2, 3)]),
     (WithinRadius(2.0), [(1, 0), (0, 1), (2, 1), (1, 2)]),
     (WithinRadius(0.5), []),
     (NearestNeighbours(3), pairs(Data(edge_index=fully_connected(4))))])
def test_near_edges_are_kept_with_their_types(transform, expected):
    data = transform(line(0., 1., 3., 7., edge_label=TRUTH))
    assert pairs(data) == expected
    # Row = receiver, column = sender.
    assert data.edge_label.flatten().tolist() == [
        int(TRUTH[0, i, j]) for j, i in expected
    ]
    assert data.x.shape == (4, 5, 4) and data.validate()
    assert not getattr(transform, 'batchwise', False)


def test_near_edges_are_taken_from_the_candidates():
    data = line(0., 1., 3., 7., edge_index=torch.tensor([[0, 3, 1], [1, 0, 2]]))
    assert pairs(WithinRadius(2.0)(data)) == [(0, 1), (1, 2)]
    assert data.edge_index.size(1) == 3  # The input is left as it was.
    # Velocities play no part unless they are said to be positions.
    data.x[1, :, 2] = 10
    assert pairs(WithinRadius(2.0)(data)) == [(0, 1), (1, 2)]
    assert pairs(WithinRadius(2.0, num_dims=3)(data)) == []


def test_masses_stay_with_their_particles(make_system):
    # Where there are as many edges as particles, too.
    mass = torch.tensor([1.0, 2.0])
    data = make_system(2, mass=mass)
    for transform in (NearestNeighbours(1), WithinRadius(1e-6),
                      SplitTrajectory(3), ReconstructTrajectory(3)):
        assert transform(data).mass.equal(mass)


def test_near_edges_look_at_the_frames_that_a_model_observes():
    data = line(0., 1., 3., 7.)
    data.x[3, 4, 0] = 0.1  # Close to particle 0, in the last frame.
    near = WithinRadius(2.0, num_observed=4)(data)
    assert 3 not in near.edge_index
    split = Compose([SplitTrajectory(2), WithinRadius(2.0)])(data)
    assert torch.equal(split.edge_index, near.edge_index)
    assert 3 in WithinRadius(2.0)(data).edge_index


def test_distance_is_the_smallest_over_all_frames():
    x = torch.randn(8, 6, 4)
    offset = x[:, None, :, :2] - x[None, :, :, :2]
    closest = offset.norm(dim=-1).amin(-1) + 100 * torch.eye(8)
    near = NearestNeighbours(1)(from_trajectory(x))
    assert pairs(near) == [(j, i) for i, j in enumerate(closest.argmin(1))]
    # Near distances far from the origin keep their digits.
    assert pairs(WithinRadius(0.99 / 512)(line(1000.0, 1000.0 + 1 / 512))) == []
