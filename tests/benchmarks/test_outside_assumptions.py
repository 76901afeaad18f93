import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from outside_assumptions import CASES, Misspecified, main
from tables import load

from pyg_fnri.simulation import Newtonian

SYSTEMS = [
    case.system for case in CASES.values()
    if isinstance(case.system, Misspecified)
]
SHORT = dict(num_steps=200, sample_every=10, step_size=1e-2)


def run(system, num_systems=4, num_particles=3, graphs=None, seed=0):
    """Positions and velocities, [S, N, T, D]."""
    system = replace(system, **SHORT)
    if graphs is None:
        graphs = system.draw_edge_types(seed, num_systems, num_particles)
    return np.split(system.simulate(graphs, seed), 2, axis=-1)


def alone(num_systems=3):
    return np.zeros((num_systems, 2, 4, 4), dtype=np.int64)


@pytest.mark.parametrize('system', SYSTEMS, ids=lambda s: s.term or 'none')
def test_frames(system):
    position, velocity = run(system)
    assert position.shape == velocity.shape == (4, 3, 19, 2)
    assert position.dtype == np.float32
    assert np.isfinite(position).all() and np.isfinite(velocity).all()
    assert list(system.layers) == ['spring', 'soft_charge']
    assert system.frame_interval == pytest.approx(0.1)
    # The first systems are those of fewer; another seed, another motion.
    graphs = system.draw_edge_types(0, 70, 3)
    many = run(system, graphs=graphs)[0]
    np.testing.assert_array_equal(many[:4], position)
    assert not np.allclose(run(system, graphs=graphs[:4], seed=1)[0], position)


@pytest.mark.slow
def test_lawful_systems_are_those_of_the_simulation():
    system = replace(Misspecified(), **SHORT)
    graphs = system.draw_edge_types(0, 4, 3)
    # Finer steps, as its velocities are half a step behind.
    other = Newtonian(system.forces, num_steps=20_000, sample_every=1_000,
                      step_size=1e-4, box_half_width=None)
    np.testing.assert_allclose(system.simulate(graphs, 0),
                               other.simulate(graphs, 0), atol=0.01)


def test_friction_slows_down():
    _, velocity = run(Misspecified(term='friction', friction=0.3),
                      graphs=alone())
    speed = np.linalg.norm(velocity, axis=-1)
    time = 0.1 * np.arange(19)
    np.testing.assert_allclose(speed / speed[..., :1],
                               np.exp(-0.3 * time) * np.ones_like(speed),
                               rtol=1e-3)


def test_magnetic_field_turns_to_the_left():
    _, velocity = run(Misspecified(term='magnetic'), graphs=alone())
    angle = np.unwrap(np.arctan2(velocity[..., 1], velocity[..., 0]))
    np.testing.assert_allclose(np.diff(angle), 0.02, atol=1e-4)
    # Its work is none, that of the steps is small.
    speed = np.linalg.norm(velocity, axis=-1)
    np.testing.assert_allclose(speed, 0.5, rtol=2e-2)


def test_trap_keeps_energy():
    position, velocity = run(Misspecified(term='trap'), graphs=alone())
    energy = (velocity**2).sum(-1) + 0.05 * (position**2).sum(-1)
    np.testing.assert_allclose(energy[..., 1:], energy[..., :-1], rtol=1e-3)


def test_transverse_forces_turn_springs_round():
    graphs = alone()
    graphs[:, 0, 0, 1] = graphs[:, 0, 1, 0] = 1
    position, velocity = run(Misspecified(term='transverse'), graphs=graphs)
    offset = position[:, 0] - position[:, 1]
    relative = velocity[:, 0] - velocity[:, 1]
    spin = offset[..., 0] * relative[..., 1] - offset[..., 1] * relative[..., 0]
    # The torque of a force of 0.1 N on either is 0.2 N times the distance.
    torque = 0.2 * np.linalg.norm(offset, axis=-1)
    change = 0.1 * (torque[:, 1:] + torque[:, :-1]) / 2
    np.testing.assert_allclose(np.diff(spin), change, atol=2e-3)
    # And opposite on the two.
    np.testing.assert_allclose(np.diff(velocity[:, :2].sum(1), axis=1), 0,
                               atol=1e-5)


def test_unequal_masses_feel_the_same_force():
    graphs = alone()
    graphs[:, 0, 0, 1] = graphs[:, 0, 1, 0] = 1
    _, velocity = run(Misspecified(term='masses'), graphs=graphs)
    change = np.diff(velocity, axis=2)
    first, second = (np.linalg.norm(change[:, k], axis=-1) for k in (0, 1))
    ratio = first / second
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones_like(ratio),
                               rtol=1e-2)
    assert (abs(ratio - 1) > 0.05).any() and (ratio < 4).all()


def test_one_end_of_a_spring_feels_it_alone():
    graphs = alone(8)
    graphs[:, 0, :2, :2] = 1 - np.eye(2, dtype=np.int64)
    _, velocity = run(Misspecified(term='one_way'), num_systems=8,
                      graphs=graphs)
    change = np.abs(np.diff(velocity, axis=2)).max((2, 3))
    assert (change[:, 2:] < 1e-6).all()  # Those without a spring.
    assert ((change[:, :2] > 1e-4).sum(1) == 1).all()
    # Charges act both ways.
    graphs[:, 0], graphs[:, 1] = graphs[:, 1], graphs[:, 0].copy()
    momentum = run(Misspecified(term='one_way'), num_systems=8,
                   graphs=graphs)[1].sum(1)
    np.testing.assert_allclose(momentum, momentum[:, :1] + 0 * momentum,
                               atol=1e-4)


RESULTS = Path(__file__).parents[2] / 'results' / 'outside_assumptions'


def test_report_of_the_committed_results(tmp_path):
    shutil.copytree(RESULTS, tmp_path / RESULTS.name)
    main(['--report-only', '--results', str(tmp_path)])
    table = (tmp_path / RESULTS.name / 'table.md').read_text()
    assert table == (RESULTS / 'table.md').read_text()
    assert 'right for 10 of 10 systems' in table


@pytest.mark.slow
def test_a_case_from_simulation_to_verdict(tmp_path):
    main([
        '--cell', 'lawful', '--scale', 'smoke',
        *(word for name in ('root', 'runs', 'results')
          for word in (f'--{name}', str(tmp_path / name)))
    ])
    result = load(tmp_path / 'results' / 'smoke' / RESULTS.name)['lawful']
    assert result['numbers']['laws'] < result['numbers']['linear']
    assert 0 <= result['refined_accuracy'] <= 1
