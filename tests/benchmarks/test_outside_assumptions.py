from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from outside_assumptions import CASES, main
from tables import load
from verdicts import Kind, pull

from pyg_fnri import infer
from pyg_fnri.data import from_trajectory
from pyg_fnri.metrics import EdgeAccuracy


def frames(name, graphs=None, **change):
    """Positions and velocities, [S, N, T, D], of three systems."""
    kind = replace(CASES[name].kind, **change)
    if graphs is None:
        graphs = np.zeros((3, len(kind.laws), 4, 4), dtype=np.int64)
    return np.split(kind.simulate(graphs, 0), 2, axis=-1)


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


def test_friction_slows_down():
    _, velocity = frames('friction')
    speed = np.linalg.norm(velocity, axis=-1)
    time = 0.1 * np.arange(speed.shape[-1])
    np.testing.assert_allclose(speed / speed[..., :1],
                               np.exp(-0.2 * time) * np.ones_like(speed),
                               rtol=5e-3)


def test_a_magnetic_field_turns_to_the_left():
    _, velocity = frames('magnetic')
    angle = np.unwrap(np.arctan2(velocity[..., 1], velocity[..., 0]))
    np.testing.assert_allclose(np.diff(angle), 0.02, atol=1e-4)


def test_a_trap_keeps_energy():
    position, velocity = frames('trap')
    energy = (velocity**2).sum(-1) + 0.05 * (position**2).sum(-1)
    np.testing.assert_allclose(energy[..., 1:], energy[..., :-1], rtol=1e-3)


def test_transverse_forces_are_opposite():
    graphs = np.zeros((3, 2, 4, 4), dtype=np.int64)
    graphs[:, 0, 0, 1] = graphs[:, 0, 1, 0] = 1
    _, velocity = frames('transverse', graphs)
    total = velocity[:, :2].sum(1)
    np.testing.assert_allclose(np.diff(total, axis=1), 0, atol=1e-5)


def test_masses_of_a_pair():
    graphs = np.zeros((3, 2, 4, 4), dtype=np.int64)
    graphs[:, 0, 0, 1] = graphs[:, 0, 1, 0] = 1
    kind = CASES['masses'].kind
    _, velocity = frames('masses', graphs)
    told = replace(kind, acts=None, masses=True)
    np.testing.assert_allclose(
        velocity,
        np.split(told.simulate(graphs, 0), 2, axis=-1)[1], atol=1e-6)


def test_velocities_are_those_of_positions():
    graphs = Kind((pull, )).draw_edge_types(0, 2, 4)
    position, velocity = np.split(Kind((pull, )).simulate(graphs, 0), 2, -1)
    slope = (position[:, :, 2:] - position[:, :, :-2]) / 0.2
    np.testing.assert_allclose(slope, velocity[:, :, 1:-1], atol=5e-3)


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
