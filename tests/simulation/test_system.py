from dataclasses import dataclass

import numpy as np
import pytest

from pyg_fnri.simulation import Kuramoto, NRISprings, SignedCharges, System


@dataclass(frozen=True)
class Still(System):
    layers = {'kind': 3, 'place': 2}

    def simulate(self, edge_types, seed, num_threads=None, progress=False):
        return np.zeros(edge_types.shape[::2] + (4, 2), np.float32)


def test_a_system_is_its_layers_and_one_method():
    system = Still()
    assert system.num_edge_types == [3, 2]
    assert system.frame_interval == 0.1
    graphs = system.draw_edge_types(0, 6, 3)
    assert graphs.shape == (6, 2, 3, 3)
    assert system.simulate(graphs, 0).shape == (6, 3, 4, 2)
    with pytest.raises(TypeError, match='layers'):
        System()


def test_graphs_have_any_type_by_default():
    graphs = Still().draw_edge_types(1, 2000, 4)
    pairs = graphs[(..., *np.tril_indices(4, -1))]  # [S, L, 6]
    assert (graphs == graphs.swapaxes(2, 3)).all()
    # 12,000 pairs: standard errors are below 0.005.
    for layer, num_types in enumerate((3, 2)):
        share = np.bincount(pairs[:, layer].ravel()) / 12_000
        assert np.allclose(share, 1 / num_types, atol=0.02)
    # Independent of each other: the number of pairs is binomial.
    count = pairs[:, 1].sum(1)
    assert abs(count.var() - 6 / 4) < 0.2


@pytest.mark.parametrize('system', [NRISprings(), SignedCharges(), Kuramoto()])
@pytest.mark.parametrize('num_particles',
                         [2, 5, pytest.param(10, marks=pytest.mark.slow)])
def test_nris_systems_keep_the_contract(system, num_particles):
    graphs = system.draw_edge_types(3, 70, num_particles)
    assert graphs.dtype == np.int64
    x = system.simulate(graphs, 3, num_threads=1)
    assert x.shape == (70, num_particles, 99, 4) and x.dtype == np.float32
    assert np.isfinite(x).all()
    # Fewer systems are the first of more, with any number of threads.
    few = system.draw_edge_types(3, 40, num_particles)
    assert (few == graphs[:40]).all()
    assert system.simulate(few, 3, num_threads=2).tobytes() == x[:40].tobytes()
    other = system.simulate(few, 4)
    assert (other != x[:40]).any((1, 2, 3)).all()
