import itertools

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.datasets import FakeDataset
from torch_geometric.transforms import Compose

from pyg_fnri.data import from_trajectory, fully_connected
from pyg_fnri.transforms import (
    NearestNeighbours,
    ReconstructTrajectory,
    SplitTrajectory,
    WithinRadius,
    closest_approach,
    random_symmetries,
)


def system(num_steps=99, num_particles=5):
    # Every frame holds its own number.
    frame = torch.arange(float(num_steps)).view(1, -1, 1)
    return from_trajectory(frame.expand(num_particles, num_steps, 4))


@pytest.mark.parametrize('split, num_steps, x, y', [
    (SplitTrajectory(49), 99, range(49), range(50, 99)),
    (SplitTrajectory(1, 1), 2, [0], [1]),
    (SplitTrajectory(3, 5), 8, [0, 1, 2], [3, 4, 5, 6, 7]),
    (ReconstructTrajectory(3), 9, [0, 1, 2], [0, 1, 2]),
])
def test_first_and_last_frames_are_kept(split, num_steps, x, y):
    data = system(num_steps)
    out = split(data)
    assert out.x[0, :, 0].tolist() == list(x)
    assert out.y[0, :, 0].tolist() == list(y)
    assert out.x.size(0) == 5 and out.validate() and split.batchwise
    assert data.x.size(1) == num_steps  # The input is left as it was.


def test_batch_of_systems_equals_systems_of_a_batch():
    systems = [system(9, 5), system(9, 3), system(9, 2)]
    split = SplitTrajectory(4)
    whole = split(Batch.from_data_list(systems))
    parts = Batch.from_data_list([split(data) for data in systems])
    assert split.batchwise
    assert torch.equal(whole.x, parts.x) and torch.equal(whole.y, parts.y)


def test_repr_shows_all_parameters():
    assert not getattr(NearestNeighbours(1), 'batchwise', False)
    assert str(SplitTrajectory(49)) == 'SplitTrajectory(49, num_predicted=49)'
    assert str(ReconstructTrajectory(8)) == 'ReconstructTrajectory(8)'
    assert repr(NearestNeighbours(3, 49)) == (
        'NearestNeighbours(num_neighbours=3, num_observed=49, num_dims=None, '
        'force_undirected=False)')


@pytest.mark.parametrize('apply', [
    lambda: SplitTrajectory(49)(system(97)),
    lambda: SplitTrajectory(49)(SplitTrajectory(49)(system())),
    lambda: SplitTrajectory(2)(FakeDataset(1)[0]),
    lambda: SplitTrajectory(3, 0),
    lambda: NearestNeighbours(0),
    lambda: NearestNeighbours(1)(Batch.from_data_list([line(), line()])),
    lambda: WithinRadius(float('nan')),
    lambda: WithinRadius(1.0, num_observed=6)(line()),
    lambda: WithinRadius(1.0)(Data(x=torch.zeros(3, 4, 3))),
])
def test_what_would_give_wrong_numbers_is_refused(apply):
    with pytest.raises(ValueError):
        apply()


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


@pytest.mark.parametrize('num_particles', [2, 3, 4])
def test_masses_stay_with_their_particles(num_particles, make_system):
    # Where there are as many edges as particles, too.
    mass = 1.0 + torch.arange(num_particles)
    data = make_system(num_particles, mass=mass)
    for transform in (NearestNeighbours(1), WithinRadius(1e-6),
                      SplitTrajectory(3), ReconstructTrajectory(3)):
        assert transform(data).mass.equal(mass)
    generator = torch.Generator().manual_seed(0)
    assert random_symmetries(data, generator).mass.equal(mass)


def test_near_edges_look_at_the_frames_that_a_model_observes():
    data = line()
    data.x[3, 4, 0] = 0.1  # Close to particle 0, in the last frame.
    near = WithinRadius(2.0, num_observed=4)(data)
    assert 3 not in near.edge_index
    split = Compose([SplitTrajectory(2), WithinRadius(2.0)])(data)
    assert torch.equal(split.edge_index, near.edge_index)
    assert 3 in WithinRadius(2.0)(data).edge_index


def on_a_line(*positions, num_steps=3):
    """Particles at rest on a line, as candidates of each other."""
    x = torch.zeros(len(positions), num_steps, 2)
    x[:, :, 0] = torch.tensor(positions).unsqueeze(1)
    return from_trajectory(x)


def pairs(data):
    return set(map(tuple, data.edge_index.t().tolist()))


def test_distance_is_the_smallest_over_all_frames():
    x = torch.randn(4, 6, 4)
    distance = closest_approach(x)
    for i, j in itertools.permutations(range(4), 2):
        expected = (x[i, :, :2] - x[j, :, :2]).norm(dim=-1).min()
        assert torch.isclose(distance[i, j], expected)
    assert torch.isinf(distance.diagonal()).all()
    # Near distances far from the origin keep their digits.
    x = on_a_line(1000.0, 1000.0 + 1 / 512).x
    assert closest_approach(x)[0, 1] == 1 / 512


def test_velocities_play_no_part_unless_they_are_said_to_be_positions():
    data = on_a_line(0.0, 1.0, 3.0)
    data.x[0, :, 1] = 10
    assert pairs(WithinRadius(1.5)(data)) == {(0, 1), (1, 0)}
    assert pairs(WithinRadius(1.5, num_dims=2)(data)) == set()


def test_ties_go_to_the_lower_number():
    near = NearestNeighbours(1)(on_a_line(0.0, 1.0, -1.0))
    assert (1, 0) in pairs(near) and (2, 0) not in pairs(near)


@pytest.mark.parametrize(
    'transform',
    [NearestNeighbours(3),
     NearestNeighbours(100),
     WithinRadius(1e6)])
def test_small_systems_are_fully_connected(transform, make_system):
    near = transform(make_system(4))
    assert torch.equal(near.edge_index, fully_connected(4))


def test_a_radius_holds_its_border_and_may_leave_particles_alone():
    data = on_a_line(0.0, 1.0, 3.0)
    assert pairs(WithinRadius(1.0)(data)) == {(0, 1), (1, 0)}
    alone = WithinRadius(0.5)(data)
    assert alone.edge_index.shape == (2, 0) and alone.validate()


def test_symmetries_are_those_of_a_square_all_alike(make_system):
    systems = [make_system(num_particles=n) for n in (3, 4) * 100]
    batch = SplitTrajectory(3)(Batch.from_data_list(systems))
    turned = random_symmetries(batch, torch.Generator().manual_seed(0))
    assert turned.edge_index is batch.edge_index
    # Velocities turn with positions, predictions with observations.
    both = [torch.cat([data.x, data.y], 1) for data in (batch, turned)]
    seen = []
    for system in range(200):
        before, after = (x[batch.batch == system].view(-1, 2) for x in both)
        matrix = torch.linalg.lstsq(before, after).solution.round()
        torch.testing.assert_close(before @ matrix, after)
        seen.append(tuple(matrix.flatten().int().tolist()))
    assert len(set(seen)) == 8
    assert max(seen.count(kind) for kind in set(seen)) < 45  # 25 on average.
