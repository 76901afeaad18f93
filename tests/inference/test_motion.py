import math

import pytest
import torch

from pyg_fnri.inference.impulses import check_motion, velocity_slope


def test_positions_move_at_their_velocities(batch):
    assert velocity_slope(batch.x, 0.1) == pytest.approx(1.0, abs=1e-3)
    check_motion(batch.x, 0.1)


def test_noise_does_not_matter(batch):
    noise = torch.randn_like(batch.x) * 0.05 * batch.x.std((0, 1))
    assert velocity_slope(batch.x + noise, 0.1) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize('unit', [1e-12, 1e-7, 1e6])
def test_unit_does_not_matter(batch, unit):
    # Jumps, which only robust weights see through.
    jump = 3.0 * (torch.rand_like(batch.x) < 0.02)
    slope = velocity_slope(batch.x + jump, 0.11)
    assert slope == pytest.approx(1 / 1.1, abs=0.02)
    scaled = velocity_slope(unit * (batch.x + jump), 0.11)
    assert scaled == pytest.approx(slope, rel=1e-5)


def test_particles_that_stand_still():
    assert velocity_slope(torch.ones(3, 5, 4), 0.1) == 0
    assert velocity_slope(torch.zeros(3, 5, 4), 0.1) == 0


@pytest.mark.parametrize('interval, slope', [(0.2, 0.5), (0.05, 2.0)])
def test_another_interval_is_seen(batch, interval, slope):
    assert velocity_slope(batch.x, interval) == pytest.approx(slope, rel=1e-2)
    with pytest.raises(ValueError, match=f'at {slope:.2f} times .* interval'):
        check_motion(batch.x, interval)


def test_oscillators_are_no_particles():
    """Features of phases, as :class:`pyg_fnri.simulation.Kuramoto` has."""
    rate = torch.rand(40, 1) * 9 + 1
    phase = torch.rand(40, 1) * 6 + rate * torch.arange(49) / 10
    rate = rate.expand_as(phase)
    x = torch.stack([phase.cos(), phase.sin(), rate, rate], dim=-1)
    with pytest.raises(ValueError, match='no positions and velocities'):
        check_motion(x, 0.1)


def test_what_is_no_number_does_not_pass(batch):
    with pytest.raises(ValueError, match='nan times'):
        check_motion(batch.x * math.nan, 0.1)
