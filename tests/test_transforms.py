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


def test_reconstruction_sees_the_observed_frames_twice(make_system):
    data = make_system(num_particles=3, num_steps=20)
    x = data.x.clone()
    out = ReconstructTrajectory(8)(data)
    assert out.x.equal(x[:, :8]) and out.y.equal(x[:, :8])
    assert ReconstructTrajectory.batchwise
    assert not getattr(NearestNeighbours(1), 'batchwise', False)


def turned_systems(make_system, num_systems=200):
    systems = [
        make_system(num_particles=n, num_steps=6)
        for n in (3, 4) * (num_systems // 2)
    ]
    batch = SplitTrajectory(3)(Batch.from_data_list(systems))
    generator = torch.Generator().manual_seed(0)
    return batch, random_symmetries(batch, generator)


def test_symmetries_keep_distances_and_angles(make_system):
    batch, turned = turned_systems(make_system)
    assert turned.edge_index is batch.edge_index
    for first in (slice(0, 2), slice(2, 4)):
        before = torch.cat([batch.x, batch.y], 1)[..., first]
        after = torch.cat([turned.x, turned.y], 1)[..., first]
        sender, receiver = batch.edge_index
        torch.testing.assert_close((before[sender] * before[receiver]).sum(-1),
                                   (after[sender] * after[receiver]).sum(-1))
    # Velocities turn with positions.
    torch.testing.assert_close((batch.x[..., :2] * batch.x[..., 2:]).sum(-1),
                               (turned.x[..., :2] * turned.x[..., 2:]).sum(-1))


def test_symmetries_are_those_of_a_square_all_alike(make_system):
    batch, turned = turned_systems(make_system)
    seen = []
    for data, other in zip(batch.to_data_list(), turned.to_data_list()):
        before = data.x[..., :2].flatten(0, 1)
        after = other.x[..., :2].flatten(0, 1)
        matrix = torch.linalg.lstsq(before, after).solution.round()
        torch.testing.assert_close(before @ matrix, after)
        seen.append(tuple(matrix.flatten().int().tolist()))
    assert len(set(seen)) == 8
    assert max(seen.count(kind) for kind in set(seen)) < 45  # 25 on average.
