import numpy as np
import pytest

from pyg_fnri.simulation import Kuramoto

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
