import numpy as np
import pytest

from pyg_fnri.simulation import SignedCharges

# Half as many steps as by default, for a shorter time, without walls.
FREE = dict(num_steps=10_000, box_half_width=None)


def energy(system, graphs, x):
    """Kinetic and potential energy of each system at each frame [S, T]."""
    position, velocity = np.split(x.astype(np.float64), 2, axis=-1)
    square = ((position[:, :, None] - position[:, None])**2).sum(-1)
    distance = np.sqrt(square + system.softening**2)  # [S, N, N, T]
    sign = np.choose(graphs[:, 0], [0, 1, -1])[..., None]
    potential = system.strength * (sign / distance).sum((1, 2)) / 2
    return 0.5 * (velocity**2).sum((1, 3)), potential


@pytest.fixture(scope='module')
def free():
    system = SignedCharges(**FREE)
    graphs = system.draw_edge_types(0, 64, 5)
    return system, graphs, system.simulate(graphs, 0)


def test_types_are_products_of_signs():
    system = SignedCharges()
    assert system.layers == {'charge': 3}
    graphs = system.draw_edge_types(0, 2000, 5)[:, 0]
    assert (graphs == graphs.swapaxes(1, 2)).all()
    off = ~np.eye(5, dtype=bool)
    assert set(np.unique(graphs[:, off])) == {1, 2}
    assert not graphs[:, ~off].any()
    # Friends of friends are friends, as are enemies of enemies.
    sign = np.where(graphs == 2, -1, 1)
    product = sign[:, :, :, None] * sign[:, None] * sign.swapaxes(1, 2)[:, :,
                                                                        None]
    assert (product > 0).all()
    # 20,000 pairs: the standard error is 0.0035.
    assert abs((graphs[:, off] == 2).mean() - 0.5) < 0.02


def test_like_charges_repel_and_unlike_ones_attract():
    system = SignedCharges(speed=0.0, num_steps=400)
    graphs = np.zeros((3, 1, 2, 2), np.int64)
    graphs[1, 0, [0, 1], [1, 0]] = 1
    graphs[2, 0, [0, 1], [1, 0]] = 2
    x = system.simulate(graphs, 0)
    approach = ((x[:, 0, 0, :2] - x[:, 1, 0, :2]) *
                (x[:, 0, 0, 2:] - x[:, 1, 0, 2:])).sum(-1)
    assert approach[0] == 0 < approach[1] and approach[2] < 0


def test_energy_is_conserved_without_walls(free):
    kinetic, potential = energy(*free)
    assert np.ptp(kinetic, axis=1).max() > 5
    # Bounded, not only small: no more at the end than at the start.
    error = np.abs((kinetic + potential) - (kinetic + potential)[:, :1])
    assert error.max() < 2e-3
    assert error[:, 25:].max() < 3 * error[:, :25].max()


def test_momentum_is_conserved_without_walls(free):
    velocity = free[2][..., 2:].astype(np.float64)
    assert np.ptp(velocity, axis=2).max() > 2
    assert np.ptp(velocity.sum(1), axis=1).max() < 2e-6


def test_half_the_step_changes_little(free):
    system, graphs, x = free
    fine = SignedCharges(num_steps=20_000, step_size=2.5e-4, sample_every=400,
                         box_half_width=None)
    error = np.abs(fine.simulate(graphs, 0) - x)[..., :2].max((1, 3))  # [S, T]
    # Of second order, until close encounters amplify it.
    assert error[:, 9].max() < 1e-3
    assert np.median(error[:, 9]) < 1e-5
    assert np.median(error[:, -1]) < 1e-3
    coarse = SignedCharges(num_steps=5000, step_size=1e-3, sample_every=100,
                           box_half_width=None)
    worse = np.abs(coarse.simulate(graphs, 0) - x)[..., :2].max((1, 3))
    ratio = np.median(worse[:, 9]) / np.median(error[:, 9])
    assert 3 < ratio < 5


def test_velocities_are_those_of_the_instant():
    # Every step is a frame: central differences of positions.
    system = SignedCharges(num_steps=100, sample_every=1)
    x = system.simulate(system.draw_edge_types(0, 16, 5), 0).astype(np.float64)
    central = (x[:, :, 2:, :2] - x[:, :, :-2, :2]) / (2 * system.step_size)
    velocity = x[:, :, 1:-1, 2:]
    rounding = 2**-24 * np.abs(x[..., :2]).max() / system.step_size
    assert np.abs(central - velocity).max() < 2 * rounding
    lag = system.step_size / 2 * np.abs(np.diff(velocity, axis=2)).max()
    assert lag / system.step_size > 4 * rounding


def test_they_stay_in_the_box():
    system = SignedCharges()
    x = system.simulate(system.draw_edge_types(0, 16, 10), 0)
    assert 4.9 < np.abs(x[..., :2]).max() <= 5


def test_repr_holds_every_constant():
    text = repr(SignedCharges(strength=2.0))
    for constant in ('strength=2.0', 'softening=0.1', 'step_size=0.0005',
                     'position_std=1.0', 'max_kick=inf'):
        assert constant in text
