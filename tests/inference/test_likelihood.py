import math

import pytest
import torch

from pyg_fnri.inference import AnnealingStep
from pyg_fnri.inference.likelihood import (StudentErrors, cauchy_nll,
                                           cauchy_width, fit_errors,
                                           fit_student, independent_share, some)


def autoregressive(correlation, num_series, num_steps):
    """Stationary series of variance 1 whose autocorrelation is a power."""
    out = [torch.randn(num_series, 1)]
    for _ in range(num_steps - 1):
        out.append(correlation * out[-1] +
                   math.sqrt(1 - correlation**2) * torch.randn(num_series, 1))
    return torch.stack(out, dim=1)


def share_of(series):
    valid = torch.ones(series.size()[:2], dtype=torch.bool)
    return independent_share(series, valid).tolist()


@pytest.mark.parametrize('objective', [
    AnnealingStep(1e-3, 0.5),
    StudentErrors((1.0, 40.0), (0.3, 2.0), (0.5, 1.0), 0.1)
])
def test_weights_are_of_parabolas_that_touch_the_cost(objective):
    square = torch.randn(5, 3, 7, 2).square().double().requires_grad_()
    slope, = torch.autograd.grad(objective.cost(square.sqrt()).sum(), square)
    torch.testing.assert_close(objective.weight(-square.detach().sqrt()), slope)
    # And lie above it.
    here, there = torch.randn(2, 1_000, 7, 2).double()
    rise = objective.weight(here) * (there.square() - here.square())
    parabola = objective.cost(here) + rise.sum((-1, -2))
    assert (objective.cost(there) <= parabola + 1e-9).all()


def test_cost_is_minus_the_log_likelihood():
    likelihood = StudentErrors((2.0, 12.0), (0.3, 4.0), (1.0, 1.0), 0.1)
    errors = torch.randn(5, 3, 7, 2)
    expected = -sum(
        torch.distributions.StudentT(d, 0.0, s).log_prob(errors[..., f]).sum(-1)
        for f, (d, s) in enumerate(zip(likelihood.degrees, likelihood.scale)))
    with pytest.raises(ValueError, match='tolerance'):
        AnnealingStep(math.nan, 1.0)
    cost = likelihood.cost(errors)  # Up to a constant.
    torch.testing.assert_close(cost - cost[0, 0], expected - expected[0, 0],
                               atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(likelihood.widened(4).cost(4 * errors), cost)


@pytest.mark.parametrize('degrees, nearby', [(1, (1.0, )), (3, (2.0, 3.0, 4.0)),
                                             (1e6, (40.0, 100.0))])
def test_scale_and_tails_are_found(degrees, nearby):
    scale = torch.tensor([0.01, 3.0])
    drawn = torch.distributions.StudentT(degrees).sample((10_000, 2))
    found, fitted = fit_student(scale * drawn)
    assert all(value in nearby for value in found.tolist())
    torch.testing.assert_close(fitted, scale, rtol=0.06, atol=0)


def test_share_of_errors_that_are_not_independent():
    series = autoregressive(0.5, 4_000, 100)
    share, = share_of(series)
    assert share == pytest.approx(1 / 3, rel=0.15)
    # That of the variance of a mean; features have shares of their own.
    independent = 1 / (100 * series.mean(1).var())
    assert share == pytest.approx(independent.item(), rel=0.15)
    both = share_of(torch.cat([series, torch.randn(4_000, 100, 1)], -1))
    assert both == [pytest.approx(share), pytest.approx(1, abs=0.1)]
    # Differences of noise count no more than once.
    assert share_of(torch.randn(1_000, 50, 1).diff(dim=1)) == [1]


def test_fit_leaves_out_what_says_nothing_and_bears_outliers():
    series = autoregressive(0.8, 4_000, 50)
    expected = fit_errors(series, 0.1)
    assert expected.scale[0] == pytest.approx(1, abs=0.05)
    valid = torch.rand(4_000, 50, 1) < 0.7
    found = fit_errors(series * valid, 0.1)
    assert found.scale == pytest.approx(expected.scale, rel=0.05)
    assert found.share == pytest.approx(expected.share, rel=0.1)
    outlying = torch.rand(4_000, 50, 1) < 0.01
    found = fit_errors(torch.where(outlying, 1_000 * series, series), 0.1)
    assert found.scale == pytest.approx(expected.scale, rel=0.4)
    assert found.share == pytest.approx(expected.share, rel=0.4)
    # In any unit; a third coordinate of motion in a plane has a scale, too.
    larger = fit_errors(torch.cat([100 * series, 0 * series], -1), 0.1)
    assert larger.scale[0] == pytest.approx(100 * expected.scale[0])
    assert 0 < larger.scale[1] < 1e-3
    with pytest.raises(ValueError, match='half_width'):
        fit_errors(0 * series, 0.1)


@pytest.mark.parametrize('errors', [
    torch.randn(999, 2),
    torch.distributions.Cauchy(0.0, 7.0).sample((2_000, )),
    torch.cat([torch.zeros(30), torch.ones(40)])
])
def test_cauchy_width_is_the_most_likely(errors):
    width = cauchy_width(errors)
    expected = -torch.distributions.Cauchy(0.0, width).log_prob(errors)
    torch.testing.assert_close(cauchy_nll(errors, width), expected)
    for other in (0.5, 0.95, 1.05, 2.0):
        assert expected.mean() < cauchy_nll(errors, other * width).mean()
    assert cauchy_width(0 * errors, 1e-3).item() == pytest.approx(1e-3)


def test_some_rows_come_from_all_places():
    rows = torch.arange(12_000)
    drawn = some(rows, 1_000)
    assert drawn.equal(some(rows, 1_000)) and some(rows, 12_000) is rows
    # Of trajectories of twelve frames, each frame is met.
    assert (drawn % 12).bincount().min() > 50
