import pytest
import torch

from pyg_fnri.candidates import (
    closest_approach,
    nearest_neighbours,
    within_radius,
)
from pyg_fnri.data import from_trajectory, fully_connected


def on_a_line(*positions, num_steps=3):
    """Particles at rest on a line, `[N, T, 2]`: position and velocity."""
    x = torch.zeros(len(positions), num_steps, 2)
    x[:, :, 0] = torch.tensor(positions).unsqueeze(1)
    return x


def pairs(edge_index):
    return set(map(tuple, edge_index.t().tolist()))


def test_distance_is_the_smallest_over_all_frames():
    x = torch.randn(4, 6, 4)
    distance = closest_approach(x)
    for i in range(4):
        for j in range(4):
            if i == j:
                assert distance[i, j] == float('inf')
                continue
            expected = (x[i, :, :2] - x[j, :, :2]).norm(dim=-1).min()
            assert torch.isclose(distance[i, j], expected)


def test_near_distances_far_from_the_origin_keep_their_digits():
    x = on_a_line(1000.0, 1000.0 + 1 / 512)
    assert closest_approach(x)[0, 1] == 1 / 512


def test_only_the_observed_frames_are_looked_at():
    x = on_a_line(0.0, 1.0, 5.0, num_steps=4)
    x[2, 3, 0] = 0.1  # Comes close in the frame that is to be predicted.
    assert pairs(nearest_neighbours(x, 1, 3)) == {(1, 0), (0, 1), (1, 2)}
    assert (2, 0) in pairs(nearest_neighbours(x, 1))
    assert pairs(within_radius(x, 1.5, num_observed=3)) == {(0, 1), (1, 0)}
    assert (2, 0) in pairs(within_radius(x, 1.5))


def test_velocities_play_no_part_unless_they_are_said_to_be_positions():
    x = on_a_line(0.0, 1.0, 3.0)
    x[0, :, 1] = 10
    assert pairs(within_radius(x, 1.5)) == {(0, 1), (1, 0)}
    assert pairs(within_radius(x, 1.5, num_dims=2)) == set()


def test_each_receiver_has_its_nearest_senders():
    x = on_a_line(0.0, 1.0, 3.0, 7.0)
    edge_index = nearest_neighbours(x, 2)
    assert edge_index.tolist() == [[1, 2, 0, 2, 0, 1, 1, 2],
                                   [0, 0, 1, 1, 2, 2, 3, 3]]
    # Accepted as a candidate graph, whose order is the library's.
    data = from_trajectory(x, edge_index=edge_index)
    assert data.validate() and torch.equal(data.edge_index, edge_index)


def test_undirected_neighbours_are_joined_both_ways():
    x = on_a_line(0.0, 1.0, 3.0, 7.0)
    one_way = pairs(nearest_neighbours(x, 1))
    both = pairs(nearest_neighbours(x, 1, force_undirected=True))
    assert (2, 3) in one_way and (3, 2) not in one_way
    assert both == one_way | {(i, j) for j, i in one_way}


def test_ties_go_to_the_lower_number():
    x = on_a_line(0.0, 1.0, -1.0)
    assert (1, 0) in pairs(nearest_neighbours(x, 1))
    assert (2, 0) not in pairs(nearest_neighbours(x, 1))


@pytest.mark.parametrize('num_neighbours', [3, 100])
def test_small_systems_are_fully_connected(num_neighbours):
    x = torch.randn(4, 5, 4)
    assert torch.equal(nearest_neighbours(x, num_neighbours),
                       fully_connected(4))
    assert torch.equal(within_radius(x, 1e6), fully_connected(4))


def test_a_radius_holds_its_border_and_may_leave_particles_alone():
    x = on_a_line(0.0, 1.0, 3.0)
    assert pairs(within_radius(x, 1.0)) == {(0, 1), (1, 0)}
    assert within_radius(x, 0.5).shape == (2, 0)
    assert within_radius(x, 0.5).dtype == torch.int64


@pytest.mark.parametrize('make', [
    lambda x, **kwargs: nearest_neighbours(x, 1, **kwargs),
    lambda x, **kwargs: within_radius(x, 1.0, **kwargs),
])
@pytest.mark.parametrize('x, kwargs, message', [
    (torch.zeros(3, 4), {}, r'shape is \[3, 4\]'),
    (torch.zeros(1, 4, 4), {}, 'at least 2 particles'),
    (torch.zeros(3, 4, 3), {}, 'num_dims'),
    (torch.zeros(3, 4, 4), {
        'num_dims': 5
    }, 'from 1 to the 4 features'),
    (torch.zeros(3, 4, 4), {
        'num_observed': 5
    }, 'from 1 to the 4 frames'),
    (torch.full((3, 4, 4), float('nan')), {}, 'finite'),
])
def test_wrong_trajectories_are_refused(make, x, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(x, **kwargs)


def test_wrong_numbers_are_refused():
    x = torch.zeros(3, 4, 4)
    with pytest.raises(ValueError, match='num_neighbours must be at least 1'):
        nearest_neighbours(x, 0)
    for radius in (0.0, -1.0, float('nan')):
        with pytest.raises(ValueError, match='radius must be above 0'):
            within_radius(x, radius)
