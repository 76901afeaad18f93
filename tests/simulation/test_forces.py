from dataclasses import dataclass

import numpy as np
import pytest

from pyg_fnri.simulation import (Charge, FiniteSpring, SoftCharge, Spring,
                                 graph_keys)
from pyg_fnri.simulation.forces import (draw_interactions, draw_positions,
                                        draw_velocities)


@pytest.mark.parametrize('force, distance, expected',
                         [(Spring(), 2.0, -0.2), (Charge(), 2.0, 0.05),
                          (FiniteSpring(stiffness=3.0, length=0.5), 2.0, -4.5)])
def test_magnitudes_are_the_papers_laws(force, distance, expected):
    assert force.magnitude(distance) == pytest.approx(expected)


def test_a_soft_charge_has_no_pole_and_is_a_charge_from_afar():
    soft = SoftCharge(strength=0.2, softening=0.1)
    distance = np.array([0.3, 1.0, 10.0])
    ratio = soft.magnitude(distance) / Charge(0.2).magnitude(distance)
    assert np.allclose(ratio, [0.8538, 0.9852, 0.99985], atol=1e-4)
    assert soft.magnitude(0.0) == 0.0
    # The force is the slope of the potential energy.
    energy = 0.2 / np.sqrt((0.25 + np.array([-1e-5, 1e-5]))**2 + 0.1**2)
    slope = -np.diff(energy).item() / 2e-5
    assert soft.magnitude(0.25) == pytest.approx(slope, rel=1e-6)


def sample(force, num_systems):
    return force.sample_interactions(np.random.default_rng(0), num_systems, 5)


def test_number_of_springs_is_uniform():
    graphs = sample(Spring(), 22_000)
    frequency = np.bincount(graphs.sum((1, 2)) // 2, minlength=11)
    # 2000 expected of each of 0 ... 10, with a standard deviation of 43.
    assert len(frequency) == 11
    assert (np.abs(frequency - 2000) < 200).all()
    share = graphs.mean(0)[np.tril_indices(5, -1)]
    assert (np.abs(share - 0.5) < 0.02).all()


def test_number_of_charges_is_uniform_and_their_pairs_all_interact():
    graphs = sample(Charge(), 20_000)
    degree = graphs.sum(2)
    charged = degree > 0
    complete = charged[:, :, None] & charged[:, None] & ~np.eye(5, dtype=bool)
    assert (graphs == complete).all()
    # One charge has no pair. 4000 expected of each size, deviation 57.
    frequency = np.bincount(degree.max(1) + 1, minlength=6)[1:]
    assert (np.abs(frequency - 4000) < 300).all()


def test_positions_are_normal_and_velocities_of_one_norm():
    position = draw_positions(0, (4000, 5, 2), 0.5, 5.0)
    # 40,000 coordinates: standard errors are 0.0025 and 0.0018.
    assert abs(position.mean()) < 0.01
    assert abs(position.std() - 0.5) < 0.01
    # A normal variable is within one deviation in 68.27 % of cases.
    assert abs((np.abs(position) < 0.5).mean() - 0.6827) < 0.01
    velocity = draw_velocities(0, (2000, 5, 3), 0.5)
    assert np.allclose(np.linalg.norm(velocity, axis=-1), 0.5)
    assert (np.abs(velocity.mean((0, 1))) < 0.02).all()


def test_a_position_beyond_a_wall_is_reflected():
    free = draw_positions(0, (500, 5, 2), 1.0, np.inf)
    boxed = draw_positions(0, (500, 5, 2), 1.0, 0.7)
    inside = np.abs(free) <= 0.7
    assert (boxed[inside] == free[inside]).all()
    assert (np.abs(boxed) <= 0.7).all()
    once = (free > 0.7) & (free < 2.1)
    assert np.allclose(boxed[once], 1.4 - free[once])
    twice = free < -2.1
    assert twice.any() and np.allclose(boxed[twice], free[twice] + 2.8)


def test_systems_forces_and_seeds_have_streams_of_their_own():
    two = draw_interactions(3, [Spring(), Spring()], 40, 5)
    three = draw_interactions(3, [Spring(), Spring(), Charge()], 40, 5)
    assert (two[:, 0] != two[:, 1]).any()
    assert (two == three[:, :2]).all()
    position = draw_positions(0, (100, 5, 2), 1.0, np.inf)
    assert len(np.unique(position)) == position.size
    assert (position != draw_positions(1, (100, 5, 2), 1.0, np.inf)).all()


@dataclass(frozen=True)
class Chosen(Spring):
    graph: tuple = ()

    def sample_interactions(self, rng, num_systems, num_particles):
        return np.broadcast_to(self.graph, (num_systems, 2, 2))


@pytest.mark.parametrize('graph', [((0, 1), (0, 0)), ((1, 1), (1, 1)),
                                   ((0, 0.5), (0.5, 0))])
def test_an_impossible_graph_of_a_users_force_is_named(graph):
    with pytest.raises(ValueError, match='Chosen.*sample_interactions'):
        draw_interactions(0, [Spring(), Chosen(graph=graph)], 4, 2)


def test_keys_do_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    graphs = rng.integers(0, 3, (200, 2, 10, 10))  # Either direction by itself.
    orders = [rng.permutation(10) for _ in graphs]
    other = np.stack([g[:, o][:, :, o] for g, o in zip(graphs, orders)])
    assert (other != graphs).any()
    assert (graph_keys(other) == graph_keys(graphs)).all()


def test_there_are_156_graphs_of_six_particles():
    # Regular ones among them, which refinement alone does not tell apart.
    pairs = np.arange(2**15)[:, None] >> np.arange(15) & 1
    graphs = np.zeros((2**15, 1, 6, 6), np.int64)
    graphs[(slice(None), 0, *np.tril_indices(6, -1))] = pairs
    assert len(np.unique(graph_keys(graphs + graphs.swapaxes(2, 3)))) == 156


def test_layers_types_and_directions_matter():
    graph = np.zeros((2, 3, 3), np.int64)
    graph[0, 0, 1] = graph[0, 1, 0] = 1
    together, apart = graph.copy(), graph.copy()
    together[1] = graph[0]
    apart[1, 0, 2] = apart[1, 2, 0] = 1
    others = [
        graph, graph[::-1], 2 * graph,
        np.tril(graph), 0 * graph, together, apart
    ]
    assert len(np.unique(graph_keys(np.stack(others)))) == len(others)


def test_keys_stay_what_they_are():
    # Splits of existing data sets hang on them.
    graphs = np.zeros((1, 1, 2, 2), np.int64)
    assert graph_keys(graphs).tolist() == [7428546306279552824]
