import numpy as np
import pytest

from pyg_fnri.simulation import Kuramoto

COUPLED = np.array([[[[0, 1], [1, 0]]]])


def phases(x):
    return np.unwrap(np.arctan2(x[..., 1], x[..., 0]).astype(np.float64))


def test_features_are_phase_and_rates():
    system = Kuramoto()
    graphs = system.draw_edge_types(0, 40, 5)
    x = system.simulate(graphs, 0).astype(np.float64)
    cos, sin, rate, omega = np.moveaxis(x, -1, 0)
    assert np.allclose(cos**2 + sin**2, 1, atol=1e-6)
    theta = np.arctan2(sin, cos)
    difference = theta[:, None] - theta[:, :, None]  # [S, i, j, T]
    pull = (graphs[:, 0, :, :, None] * np.sin(difference)).sum(2)
    assert np.allclose(rate, omega + pull, atol=5e-6)
    assert (omega == omega[..., :1]).all()
    assert abs(np.diff(phases(x)) / 0.1 - rate[..., 1:]).mean() < 0.5


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


def test_uncoupled_oscillators_turn_at_their_own_pace():
    system = Kuramoto()
    x = system.simulate(np.zeros((4, 1, 3, 3), np.int64), 0)
    assert (x[..., 2] == x[..., 3]).all()
    turn = phases(x)[..., -1] - phases(x)[..., 0]
    assert np.allclose(turn, 9.8 * x[..., 0, 3], atol=1e-5)


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


def test_two_that_differ_little_lock_and_others_drift():
    # They lock if the frequencies differ by less than 2 k, with a phase
    # difference of sine (difference / 2 k).
    system = Kuramoto(1.0, 4.0, 8.0, num_frames=400)
    x = system.simulate(np.repeat(COUPLED, 200, axis=0), 0).astype(np.float64)
    gap = x[:, 0, 0, 3] - x[:, 1, 0, 3]
    locked = np.abs(gap) < 1.8
    assert 20 < locked.sum() < 180
    theta = np.arctan2(x[..., 1], x[..., 0])
    lag = np.sin(theta[:, 0] - theta[:, 1])[:, -1]
    assert np.allclose(lag[locked], gap[locked] / 2, atol=1e-4)
    turns = np.abs(phases(x)[:, 0] - phases(x)[:, 1])[:, -1]
    assert turns[np.abs(gap) > 2.2].min() > 2 * np.pi


def test_the_mean_pace_of_symmetric_graphs_is_constant():
    system = Kuramoto()
    x = system.simulate(system.draw_edge_types(0, 40, 5), 0)
    rate, omega = x[..., 2:].astype(np.float64).sum(1).T.swapaxes(1, 2)
    assert np.abs(rate - omega).max() < 1e-5


def test_half_the_step_changes_nothing_visible():
    system = Kuramoto()
    graphs = system.draw_edge_types(0, 20, 10)
    fine = Kuramoto(step_size=0.005, sample_every=20)
    x = system.simulate(graphs, 0)
    assert np.abs(fine.simulate(graphs, 0) - x).max() < 2e-5
    assert system.frame_interval == fine.frame_interval == 0.1


def test_only_receivers_are_pulled():
    one_way = np.array([[[[0, 1], [0, 0]]]])  # 0 feels 1.
    x = Kuramoto().simulate(one_way, 0)
    assert (x[0, 1, :, 2] == x[0, 1, :, 3]).all()
    assert np.ptp(x[0, 0, :, 2]) > 0.5


def test_wrong_graphs_are_refused():
    with pytest.raises(ValueError, match='edge_types'):
        Kuramoto().simulate(2 * COUPLED, 0)
