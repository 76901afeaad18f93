from dataclasses import dataclass

import numpy as np
import pytest

from pyg_fnri.simulation import (Charge, Kuramoto, LinearNetwork, Newtonian,
                                 NRICharged, NRISprings, SignedCharges, Spring,
                                 System, simulate)


@dataclass(frozen=True)
class Still(System):
    layers = {'kind': 4, 'place': 2}

    def simulate(self, edge_types, seed, progress=False):
        return np.zeros(edge_types.shape[::2] + (4, 2), np.float32)


def test_a_system_is_its_layers_and_one_method():
    system = Still()
    assert system.num_edge_types == [4, 2] and system.frame_interval == 0.1
    graphs = system.draw_edge_types(0, 3000, 4)
    assert graphs.shape == (3000, 2, 4, 4) and graphs.dtype == np.int64
    assert (graphs == graphs.swapaxes(2, 3)).all()
    assert not graphs.diagonal(axis1=2, axis2=3).any()
    first, second = graphs[(..., *np.tril_indices(4, -1))].swapaxes(0, 1)
    for types, num_types in ((first, 4), (second, 2)):
        # 18,000 pairs: standard errors are below 0.004.
        share = np.bincount(types.ravel()) / types.size
        assert np.allclose(share, 1 / num_types, atol=0.015)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.03
    assert (system.draw_edge_types(0, 35, 4) == graphs[:35]).all()
    assert system.simulate(graphs, 0).shape == (3000, 4, 4, 2)


@pytest.mark.parametrize(
    'system',
    [SignedCharges(),
     NRICharged(), Kuramoto(),
     LinearNetwork()])
def test_nris_systems_keep_the_contract(system):
    graphs = system.draw_edge_types(3, 70, 5)
    assert graphs.dtype == np.int64
    x = system.simulate(graphs, 3)
    assert x.shape[:3] == (70, 5, 99) and x.dtype == np.float32
    assert np.isfinite(x).all()
    # Fewer systems are the first of more.
    few = system.draw_edge_types(3, 40, 5)
    assert (few == graphs[:40]).all()
    assert system.simulate(few, 3).tobytes() == x[:40].tobytes()
    other = system.simulate(few, 4)
    assert (other != x[:40]).any((1, 2, 3)).all()


def test_newtonian_is_the_simulation_of_its_forces():
    forces = [Spring(), Charge()]
    constants = dict(num_dimensions=3, num_steps=60, step_size=0.01,
                     sample_every=20, box_half_width=0.4, position_std=0.2,
                     speed=0.7, max_kick=1e-4)
    system = Newtonian(forces, **constants)
    graphs = system.draw_edge_types(3, 20, 5)
    run = simulate(forces, 20, 5, seed=3, **constants)
    assert (graphs == run.interactions).all()
    x = system.simulate(graphs, 3)
    assert (x == np.concatenate([run.position, run.velocity], -1)).all()
    assert system.frame_interval == pytest.approx(run.time[0])


def test_nris_springs_are_there_or_not_by_themselves():
    count = np.tril(NRISprings().draw_edge_types(0, 4000, 5)).sum((1, 2, 3))
    # Binomial over 10 pairs, where the paper's is uniform (variance 10).
    assert abs(count.mean() - 5) < 0.1
    assert abs(count.var() - 2.5) < 0.2


def energy(graphs, x):
    """Kinetic and potential energy of each system at each frame [S, T]."""
    position, velocity = np.split(x.astype(np.float64), 2, axis=-1)
    square = ((position[:, :, None] - position[:, None])**2).sum(-1)
    distance = np.sqrt(square + 0.1**2)  # [S, N, N, T]
    sign = np.choose(graphs[:, 0], [0, 1, -1])[..., None]
    potential = (sign / distance).sum((1, 2)) / 2
    return 0.5 * (velocity**2).sum((1, 3)), potential


@pytest.fixture(scope='module')
def free():
    """Charges for half the time, without walls."""
    system = SignedCharges(num_steps=10_000, box_half_width=None)
    graphs = system.draw_edge_types(0, 64, 5)
    return graphs, system.simulate(graphs, 0)


def test_types_of_charges_are_products_of_signs():
    graphs = SignedCharges().draw_edge_types(0, 2000, 5)[:, 0]
    assert (graphs == graphs.swapaxes(1, 2)).all()
    off = ~np.eye(5, dtype=bool)
    assert set(np.unique(graphs[:, off])) == {1, 2}
    assert not graphs[:, ~off].any()
    # Friends of friends are friends, as are enemies of enemies.
    sign = np.where(graphs == 2, -1, 1)
    assert (np.einsum('sij,sjk,ski->sijk', sign, sign, sign) > 0).all()
    # 20,000 pairs: the standard error is 0.0035.
    assert abs((graphs[:, off] == 2).mean() - 0.5) < 0.02


def test_like_charges_repel_and_unlike_ones_attract():
    system = SignedCharges(speed=0.0, num_steps=400)
    graphs = np.arange(3)[:, None, None, None] * (1 - np.eye(2, dtype=int))
    x = system.simulate(graphs, 0)
    approach = ((x[:, 0, 0, :2] - x[:, 1, 0, :2]) *
                (x[:, 0, 0, 2:] - x[:, 1, 0, 2:])).sum(-1)
    assert approach[0] == 0 < approach[1] and approach[2] < 0
    for wrong in (2 * graphs, graphs / 2, graphs + 1):
        with pytest.raises(ValueError, match='edge'):
            system.simulate(wrong, 0)


def test_charges_conserve_energy_and_momentum_without_walls(free):
    kinetic, potential = energy(*free)
    assert np.ptp(kinetic, axis=1).max() > 5
    # Bounded, not only small: no more at the end than at the start.
    error = np.abs((kinetic + potential) - (kinetic + potential)[:, :1])
    assert error.max() < 2e-3
    assert error[:, 25:].max() < 3 * error[:, :25].max()
    velocity = free[1][..., 2:].astype(np.float64)
    assert np.ptp(velocity, axis=2).max() > 2
    assert np.ptp(velocity.sum(1), axis=1).max() < 2e-6


def test_velocities_of_charges_are_those_of_the_instant():
    # Every step is a frame: central differences of positions.
    system = SignedCharges(num_steps=100, sample_every=1)
    x = system.simulate(system.draw_edge_types(0, 16, 5), 0).astype(np.float64)
    central = (x[:, :, 2:, :2] - x[:, :, :-2, :2]) / (2 * system.step_size)
    velocity = x[:, :, 1:-1, 2:]
    rounding = 2**-24 * np.abs(x[..., :2]).max() / system.step_size
    assert np.abs(central - velocity).max() < 2 * rounding
    # Half a step behind would be seen.
    assert np.abs(np.diff(velocity, axis=2)).max() / 2 > 4 * rounding


def test_clamped_charges_feel_at_most_100_newton():
    # Every step is a frame: kicks are differences of velocities.
    system = NRICharged(num_steps=500, sample_every=1, position_std=0.05)
    graphs = system.draw_edge_types(0, 16, 5)
    x = system.simulate(graphs, 0).astype(np.float64)
    position, velocity = np.split(x, 2, axis=-1)
    offset = position[:, :, None] - position[:, None]
    square = (offset**2).sum(-1) + np.eye(5)[..., None]
    sign = np.choose(graphs[:, 0], [0, 1, -1])[..., None]
    force = np.einsum('sijt,sijtd->sitd', sign / square**1.5, offset)
    clamped = np.clip(force, -100, 100)
    assert (clamped != force).any()
    kick = np.diff(velocity, axis=2) / 1e-3
    near = np.abs(kick - clamped[:, :, :-1]) < 1e-2 * np.abs(clamped).max()
    assert near.mean() > 0.999


def test_linear_networks_follow_their_matrix():
    system = LinearNetwork()
    graphs = system.draw_edge_types(0, 200, 15)
    assert abs(graphs.sum((1, 3)).mean() - 2) < 0.1
    assert (graphs != graphs.swapaxes(2, 3)).any()
    x = system.simulate(graphs, 0)[..., 0].astype(np.float64)
    # Simpson's rule over two intervals, of the rate.
    rate = 0.4 * np.einsum('sij,sjt->sit', graphs[:, 0], x) - x
    integral = (rate[..., :-2] + 4 * rate[..., 1:-1] + rate[..., 2:]) / 30
    assert np.allclose(x[..., 2:] - x[..., :-2], integral, atol=1e-5)


COUPLED = np.array([[[[0, 1], [1, 0]]]])


def test_features_are_phase_and_rates():
    system = Kuramoto()
    # Only receivers are pulled: row i, column j.
    graphs = np.tril(system.draw_edge_types(0, 40, 5))
    x = system.simulate(graphs, 0).astype(np.float64)
    cos, sin, rate, omega = np.moveaxis(x, -1, 0)
    assert np.allclose(cos**2 + sin**2, 1, atol=1e-6)
    theta = np.arctan2(sin, cos)
    difference = theta[:, None] - theta[:, :, None]  # [S, i, j, T]
    pull = (graphs[:, 0, :, :, None] * np.sin(difference)).sum(2)
    assert np.allclose(rate, omega + pull, atol=5e-6)
    assert (omega == omega[..., :1]).all()
    change = np.diff(np.unwrap(theta)) / 0.1
    assert abs(change - rate[..., 1:]).mean() < 0.5


def test_constants_are_drawn_uniformly():
    system = Kuramoto(num_frames=1, sample_every=1)
    graphs = system.draw_edge_types(0, 2000, 5)
    x = system.simulate(graphs, 0)
    # 10,000 values each: four standard errors.
    omega = x[..., 3]
    assert 1 <= omega.min() < 1.01 and 9.99 < omega.max() < 10
    assert abs(omega.mean() - 5.5) < 4 * 9 / np.sqrt(12 * 10_000)
    assert np.abs(x[..., :2].mean((0, 1, 2))).max() < 4 / np.sqrt(20_000)
    assert abs(np.tril(graphs).sum() / 20_000 - 0.5) < 4 * 0.5 / np.sqrt(20_000)


@pytest.mark.parametrize('coupling', [1.0, -1.0, 0.3])
def test_two_of_equal_pace_meet_as_they_should(coupling):
    # d' = -2 k sin d has tan(d / 2) = tan(d0 / 2) exp(-2 k t).
    system = Kuramoto(coupling, 3.0, 3.0, num_frames=30)
    x = system.simulate(np.repeat(COUPLED, 20, axis=0), 1).astype(np.float64)
    theta = np.arctan2(x[..., 1], x[..., 0])
    difference = theta[:, 0] - theta[:, 1]
    time = 0.1 * np.arange(30)
    expected = 2 * np.arctan(
        np.tan(difference[:, :1] / 2) * np.exp(-2 * coupling * time))
    assert np.abs(np.sin((difference - expected) / 2)).max() < 2e-5
