from itertools import permutations

import numpy as np
import pytest

from pyg_fnri.simulation import Charge, Newtonian, Spring, graph_keys
from pyg_fnri.simulation.initial_state import draw_edge_types


def relabel(graphs, rng):
    """Each graph with its particles in another random order."""
    out = np.empty_like(graphs)
    for s, graph in enumerate(graphs):
        order = rng.permutation(graphs.shape[-1])
        out[s] = graph[:, order][:, :, order]
    return out


def smallest(graphs):
    """The smallest number that any order of the particles gives."""
    i, j = np.tril_indices(graphs.shape[-1], -1)
    digits = graphs[:, 0] * 4 + graphs[:, 1]
    return np.min([
        (digits[:, order][:, :, order][:, i, j] * 16**np.arange(len(i))).sum(-1)
        for order in map(list, permutations(range(len(digits[0]))))
    ], axis=0)


@pytest.mark.parametrize('num_particles', [3, 5, 10])
def test_keys_do_not_depend_on_the_order(num_particles):
    rng = np.random.default_rng(0)
    graphs = draw_edge_types(0, [3, 2], 200, num_particles)
    # Of either direction by itself, too.
    directed = rng.integers(0, 3, (200, 2) + 2 * (num_particles, ))
    for types in (graphs, directed):
        other = relabel(types, rng)
        assert (other != types).any()
        assert (graph_keys(other) == graph_keys(types)).all()


@pytest.mark.parametrize('graphs', [
    draw_edge_types(0, [3, 2], 3000, 3),
    draw_edge_types(0, [2, 2], 3000, 4),
    Newtonian([Spring(), Charge()]).draw_edge_types(0, 3000, 5),
], ids=['3 particles', '4 particles', '5 particles'])
def test_keys_are_those_of_all_orders(graphs):
    keys, exact = graph_keys(graphs), smallest(graphs)
    both = np.stack([keys, exact.astype(np.uint64)], axis=1)
    assert 20 < len(np.unique(exact)) < 1500
    assert len(np.unique(keys)) == len(np.unique(exact))
    assert len(np.unique(both, axis=0)) == len(np.unique(exact))


def test_there_are_34_graphs_of_five_particles():
    pairs = np.arange(2**10)[:, None] >> np.arange(10) & 1
    graphs = np.zeros((2**10, 1, 5, 5), np.int64)
    graphs[(slice(None), 0, *np.tril_indices(5, -1))] = pairs
    assert len(np.unique(graph_keys(graphs + graphs.swapaxes(2, 3)))) == 34


def test_regular_graphs_are_told_apart():
    ring = np.roll(np.eye(6, dtype=np.int64), 1, axis=1)
    triangles = np.kron(np.eye(2, dtype=np.int64), np.ones((3, 3), np.int64))
    triangles -= np.eye(6, dtype=np.int64)
    keys = graph_keys(np.stack([ring + ring.T, triangles])[:, None])
    assert keys[0] != keys[1]


def test_layers_types_and_directions_matter():
    graph = np.zeros((2, 3, 3), np.int64)
    graph[0, 0, 1] = graph[0, 1, 0] = 1
    others = [graph, graph[::-1], 2 * graph, np.tril(graph), 0 * graph]
    assert len(np.unique(graph_keys(np.stack(others)))) == len(others)
    # Which particles two layers share is a part of it.
    together, apart = graph.copy(), graph.copy()
    together[1] = graph[0]
    apart[1, 0, 2] = apart[1, 2, 0] = 1
    assert np.ptp(graph_keys(np.stack([together, apart]))) != 0


def test_a_directed_ring_is_not_a_path():
    ring = np.roll(np.eye(3, dtype=np.int64), 1, axis=1)
    two = ring.copy()
    two[2, 0], two[0, 2] = 0, 1
    keys = graph_keys(np.stack([ring, ring.T, two])[:, None])
    assert keys[0] == keys[1] != keys[2]


def test_keys_do_not_depend_on_what_is_beside(monkeypatch):
    graphs = draw_edge_types(0, [2], 50, 5)
    keys = graph_keys(graphs)
    monkeypatch.setattr('pyg_fnri.simulation.isomorphism.CHUNK_SIZE', 7)
    assert (graph_keys(graphs) == keys).all()
    assert (graph_keys(graphs[20:30].astype(np.int8)) == keys[20:30]).all()


def test_keys_stay_what_they_are():
    # Splits of existing data sets hang on them.
    graphs = np.zeros((1, 1, 2, 2), np.int64)
    assert graph_keys(graphs).tolist() == [7428546306279552824]
