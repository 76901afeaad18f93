from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from outside_assumptions import CASES, main
from tables import load

from pyg_fnri import infer
from pyg_fnri.data import from_trajectory
from pyg_fnri.metrics import EdgeAccuracy


def pair_of(kind):
    """Velocities, [S, N, T, D], of three systems of one pair that interacts."""
    graphs = np.zeros((3, 2, 4, 4), dtype=np.int64)
    graphs[:, 0, 0, 1] = graphs[:, 0, 1, 0] = 1
    return np.split(kind.simulate(graphs, 0), 2, axis=-1)[1]


@pytest.mark.parametrize('name', ['one_way', 'sparse_10_5'])
def test_graphs(name):
    kind = CASES[name].kind
    graphs = kind.draw_edge_types(0, 300, kind.num_particles)
    first, second = graphs[:, 0], graphs[:, 0].swapaxes(-1, -2)
    pairs = kind.num_particles * (kind.num_particles - 1) / 2
    if name == 'one_way':
        assert not (first & second).any()
        assert (first | second).sum() / 600 == pytest.approx(pairs / 2, rel=0.1)
    else:
        assert (first == second).all()
        assert first.sum() / 600 == pytest.approx(0.05 * pairs, rel=0.2)
    assert (graphs[:, 1] == graphs[:, 1].swapaxes(-1, -2)).all()


def test_transverse_forces_are_opposite():
    total = pair_of(CASES['transverse'].kind)[:, :2].sum(1)
    np.testing.assert_allclose(np.diff(total, axis=1), 0, atol=1e-5)


def test_masses_of_a_pair():
    kind = CASES['masses'].kind
    told = replace(kind, acts=None, masses=True)
    np.testing.assert_allclose(pair_of(kind), pair_of(told), atol=1e-6)


@pytest.mark.slow
def test_a_case_from_simulation_to_report(tmp_path):
    main([
        '--cell', 'friction-0', '--scale', 'smoke', '--results',
        str(tmp_path)
    ])
    place = tmp_path / 'smoke' / 'outside_assumptions'
    result = load(place)['friction-0']
    assert 0 <= result['edge_accuracy'] <= 1 and 'drag' in result['terms']
    assert 'friction' in Path(place, 'table.md').read_text()


@pytest.mark.slow
@pytest.mark.parametrize('name, terms', [('linear_15', ['field', 'input']),
                                         ('sparse_5_10', []),
                                         ('gravity', ['gravity'])])
def test_the_right_dynamics_are_found_without_an_option(name, terms):
    kind = replace(CASES[name].kind, num_particles=5)
    systems = kind.systems(150, 0, 0.0).to_data_list()
    result = infer([
        from_trajectory(torch.cat([of.x, of.y], 1), mass=of.get('mass'))
        for of in systems
    ])
    layer, sizes = result.module.model.decoder.layer, [2] * len(kind.laws)
    assert result.check.holds and layer.terms == terms
    assert result.module.model.latent.undirected == (name != 'linear_15')
    accuracy = EdgeAccuracy(sizes, result.module.config.num_edge_types)
    for found, of in zip(result.data, systems):
        accuracy.update(found.edge_type, of.edge_label)
    assert accuracy.compute().combined > 0.999
