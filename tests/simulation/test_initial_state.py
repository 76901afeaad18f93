from dataclasses import dataclass

import numpy as np
import pytest

from pyg_fnri.simulation import Charge, Force, Spring
from pyg_fnri.simulation.initial_state import (
    SYSTEMS_PER_STREAM,
    draw_edge_types,
    draw_interactions,
    draw_positions,
    draw_velocities,
)


def test_positions_are_normal():
    position = draw_positions(0, (4000, 5, 2), 0.5, 5.0)
    # 40,000 coordinates: standard errors are 0.0025 and 0.0018.
    assert abs(position.mean()) < 0.01
    assert abs(position.std() - 0.5) < 0.01
    # A normal variable is within one deviation in 68.27 % of cases.
    assert abs((np.abs(position) < 0.5).mean() - 0.6827) < 0.01


def test_a_position_beyond_a_wall_is_reflected():
    free = draw_positions(0, (500, 5, 2), 1.0, np.inf)
    boxed = draw_positions(0, (500, 5, 2), 1.0, 0.7)
    inside = np.abs(free) <= 0.7
    assert (boxed[inside] == free[inside]).all()
    assert (np.abs(boxed) <= 0.7).all()
    once = (free > 0.7) & (free < 2.1)
    assert np.allclose(boxed[once], 1.4 - free[once])
    twice = (free < -2.1)
    assert twice.any() and np.allclose(boxed[twice], free[twice] + 2.8)


@pytest.mark.parametrize('num_dimensions', [1, 2, 3])
def test_velocities_have_one_norm_and_any_direction(num_dimensions):
    velocity = draw_velocities(0, (2000, 5, num_dimensions), 0.5)
    assert np.allclose(np.linalg.norm(velocity, axis=-1), 0.5)
    assert (np.abs(velocity.mean((0, 1))) < 0.02).all()


def test_velocities_in_the_plane_have_uniform_angles():
    velocity = draw_velocities(0, (2000, 5, 2), 0.5)
    angle = np.arctan2(velocity[..., 1], velocity[..., 0])
    frequency, _ = np.histogram(angle, bins=8, range=(-np.pi, np.pi))
    # 1250 expected of each, deviation 33.
    assert (np.abs(frequency - 1250) < 150).all()


def test_more_systems_leave_the_first_as_they_are():
    few, many = SYSTEMS_PER_STREAM + 3, 3 * SYSTEMS_PER_STREAM + 1
    forces = [Spring(), Charge()]
    for draw in (lambda n: draw_positions(7, (n, 5, 2), 0.5, 5.0),
                 lambda n: draw_velocities(7, (n, 5, 2), 0.5),
                 lambda n: draw_interactions(7, forces, n, 5),
                 lambda n: draw_edge_types(7, [3, 2], n, 5)):
        assert len(draw(few)) == few
        assert (draw(few) == draw(many)[:few]).all()


def test_systems_streams_and_seeds_differ():
    graphs = draw_interactions(0, [Spring(), Spring()], 100, 5)
    assert (graphs[:, 0] != graphs[:, 1]).any()
    position = draw_positions(0, (100, 5, 2), 1.0, np.inf)
    assert len(np.unique(position)) == position.size
    assert (position != draw_positions(1, (100, 5, 2), 1.0, np.inf)).all()


def test_one_more_force_leaves_the_other_graphs_as_they_are():
    two = draw_interactions(3, [Spring(), Charge()], 40, 5)
    three = draw_interactions(3, [Spring(), Charge(), Spring()], 40, 5)
    assert two.shape == (40, 2, 5, 5)
    assert (two == three[:, :2]).all()


def test_an_invalid_graph_of_a_users_force_is_named():
    @dataclass(frozen=True)
    class OneWay(Force):
        def magnitude(self, distance):
            return 1.0

        def sample_interactions(self, rng, num_systems, num_particles):
            graph = np.tri(num_particles, k=-1)
            return np.broadcast_to(graph, (num_systems, ) + graph.shape)

    with pytest.raises(ValueError, match='OneWay.sample_interactions is not s'):
        draw_interactions(0, [Spring(), OneWay()], 4, 3)


def test_edge_types_are_symmetric_and_each_as_frequent():
    graphs = draw_edge_types(0, [4, 2], 3000, 4)
    assert graphs.shape == (3000, 2, 4, 4) and graphs.dtype == np.int64
    assert (graphs == graphs.swapaxes(2, 3)).all()
    assert not graphs.diagonal(axis1=2, axis2=3).any()
    lower = graphs[(..., *np.tril_indices(4, -1))]
    for layer, num_types in enumerate((4, 2)):
        # 18,000 pairs: standard errors are below 0.004.
        share = np.bincount(lower[:, layer].ravel()) / lower[:, layer].size
        assert np.allclose(share, 1 / num_types, atol=0.015)
    assert abs(np.corrcoef(lower[:, 0].ravel(),
                           lower[:, 1].ravel())[0, 1]) < (0.03)
    more = draw_edge_types(0, [4, 2, 2], 3000, 4)
    assert (more[:, :2] == graphs).all()
