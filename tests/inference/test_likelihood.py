import math

import pytest
import torch

from pyg_fnri.inference import AnnealingStep
from pyg_fnri.inference.likelihood import (
    DEGREES,
    EVIDENCE_WEIGHT,
    StudentErrors,
    fit_errors,
    fit_student,
    independent_share,
)


def student(degrees, *size):
    """Draws of Student's t-distribution of scale 1."""
    normal = torch.randn(size)
    if math.isinf(degrees):
        return normal
    chi2 = torch.distributions.Chi2(degrees).sample(size)
    return normal * (degrees / chi2).sqrt()


def autoregressive(correlation, num_series, num_steps, num_features=1):
    """Stationary series of variance 1 whose autocorrelation is a power."""
    out = [torch.randn(num_series, num_features)]
    for _ in range(num_steps - 1):
        new = torch.randn(num_series, num_features)
        out.append(correlation * out[-1] + math.sqrt(1 - correlation**2) * new)
    return torch.stack(out, dim=1)


@pytest.mark.parametrize('degrees,nearby', [(1, (1.0, )), (3, (2.0, 3.0, 4.0)),
                                            (math.inf, (40.0, 100.0))])
def test_scale_and_tails_are_found(degrees, nearby):
    scale = torch.tensor([0.01, 3.0])
    found, fitted = fit_student(scale * student(degrees, 10_000, 2))
    assert all(value in nearby for value in found.tolist())
    torch.testing.assert_close(fitted, scale, rtol=0.06, atol=0)


def test_no_other_scale_and_no_other_tails_are_likelier():
    errors = student(3, 4_000, 1)

    def log_likelihood(degrees, scale):
        return torch.distributions.StudentT(degrees, 0.0,
                                            scale).log_prob(errors).mean()

    degrees, scale = (value.item() for value in fit_student(errors))
    best = log_likelihood(degrees, scale)
    for factor in (0.98, 1.02):
        assert log_likelihood(degrees, factor * scale) < best
    for other in DEGREES:
        assert log_likelihood(other, scale) <= best


def test_what_is_explained_exactly_has_a_scale_all_the_same():
    # The third coordinate of motion in a plane.
    errors = torch.randn(500, 2)
    errors[:, 1] = 0
    degrees, scale = fit_student(errors)
    assert scale[0] == pytest.approx(1, abs=0.1) and 0 < scale[1] < 1e-5
    assert degrees.isfinite().all()


@pytest.mark.parametrize('correlation', [0.5, 0.9])
def test_share_of_errors_that_are_not_independent(correlation):
    share = independent_share(autoregressive(correlation, 4_000, 100, 2),
                              torch.ones(4_000, 100, dtype=torch.bool))
    expected = (1 - correlation) / (1 + correlation)
    assert share.tolist() == pytest.approx([expected] * 2, rel=0.15)


def test_share_is_that_of_the_variance_of_a_mean():
    series = autoregressive(0.7, 20_000, 30)
    share = independent_share(series, torch.ones(20_000, 30, dtype=torch.bool))
    independent = 1 / (30 * series.mean(1).var())
    assert share.item() == pytest.approx(independent.item(), rel=0.1)


def test_features_have_shares_of_their_own():
    series = torch.cat(
        [autoregressive(0.8, 2_000, 50),
         torch.randn(2_000, 50, 1)], dim=-1)
    slow, quick = independent_share(series,
                                    torch.ones(2_000, 50, dtype=torch.bool))
    assert slow < 0.15 and quick > 0.85


def test_differences_of_noise_count_no_more_than_once():
    series = torch.randn(1_000, 50, 1).diff(dim=1)
    valid = torch.ones(1_000, 49, dtype=torch.bool)
    assert independent_share(series, valid).tolist() == [1]
    assert independent_share(series[:, :1], valid[:, :1]).tolist() == [1]


def test_transitions_that_say_nothing_are_left_out():
    series = autoregressive(0.7, 8_000, 40)
    valid = torch.rand(8_000, 40) < 0.7
    everything = independent_share(series, torch.ones_like(valid))
    share = independent_share(torch.where(valid.unsqueeze(-1), series, 99.),
                              valid)
    torch.testing.assert_close(share, everything, rtol=0.1, atol=0)
    errors = series * valid.unsqueeze(-1)
    found = fit_errors(errors, 0.1)
    assert found.scale[0] == pytest.approx(1, abs=0.05)
    assert found.share[0] == pytest.approx(share.item(), rel=0.1)


def test_outliers_hide_neither_scale_nor_correlation():
    errors = autoregressive(0.9, 2_000, 50)
    expected = fit_errors(errors, 0.1)
    outlying = torch.rand(2_000, 50, 1) < 0.01
    found = fit_errors(torch.where(outlying, 1_000 * errors, errors), 0.1)
    assert found.scale[0] == pytest.approx(expected.scale[0], rel=0.4)
    assert found.share[0] == pytest.approx(expected.share[0], rel=0.4)
    assert found.degrees[0] < 10 < expected.degrees[0]


def test_cost_is_minus_the_log_likelihood():
    likelihood = StudentErrors((2.0, 12.0), (0.3, 4.0), (1.0, 1.0), 0.1)
    errors = torch.randn(5, 3, 7, 2)
    cost = likelihood.cost(errors)
    assert cost.size() == (5, 3)
    expected = -sum(
        torch.distributions.StudentT(degrees, 0.0, scale).log_prob(errors[
            ..., f]).sum(-1)
        for f, (degrees,
                scale) in enumerate(zip(likelihood.degrees, likelihood.scale)))
    # Up to a constant.
    torch.testing.assert_close(cost - cost[0, 0], expected - expected[0, 0],
                               atol=1e-4, rtol=1e-4)


def test_weight_is_the_slope_of_the_cost_over_the_square():
    likelihood = StudentErrors((2.0, 12.0), (0.3, 4.0), (0.5, 1.0), 0.1)
    square = torch.randn(5, 3, 7, 2).square().double().requires_grad_()
    slope, = torch.autograd.grad(likelihood.cost(square.sqrt()).sum(), square)
    torch.testing.assert_close(likelihood.weight(-square.detach().sqrt()),
                               slope)


def test_a_cost_is_below_the_parabolas_that_touch_it():
    likelihood = StudentErrors((1.0, 40.0), (0.3, 2.0), (0.5, 1.0), 0.1)
    here, there = torch.randn(2, 1_000, 7, 2).double()
    parabola = likelihood.cost(here) + (likelihood.weight(here) *
                                        (there.square() - here.square())).sum(
                                            (-1, -2))
    assert (likelihood.cost(there) <= parabola).all()


def test_widened_for_larger_errors():
    errors = torch.randn(5, 7, 2)
    likelihood = StudentErrors((2.0, 9.0), (1.0, 3.0), (1.0, 0.5), 0.1)
    torch.testing.assert_close(
        likelihood.widened(4).cost(4 * errors), likelihood.cost(errors))


def test_a_share_is_so_much_less_to_say():
    errors = torch.randn(5, 7, 2)
    once = StudentErrors((2.0, 2.0), (1.0, 1.0), (1.0, 1.0), 0.1)
    half = StudentErrors((2.0, 2.0), (1.0, 1.0), (0.5, 0.5), 0.1)
    torch.testing.assert_close(half.cost(errors), once.cost(errors) / 2)


def test_a_stage_is_a_likelihood_of_heavy_tails():
    errors = torch.randn(5, 7, 2)
    weight = (EVIDENCE_WEIGHT, ) * 2
    cauchy = StudentErrors((1.0, 1.0), (0.2, 0.2), weight, 0.1)
    torch.testing.assert_close(cauchy.cost(errors),
                               AnnealingStep(0.04, 0.1).cost(errors))


def test_units_of_the_errors_do_not_matter():
    errors = torch.randn(300, 20, 2)
    found, larger = fit_errors(errors, 0.1), fit_errors(100 * errors, 0.1)
    assert found.degrees == larger.degrees
    assert larger.scale == pytest.approx([100 * s for s in found.scale])
    assert larger.share == pytest.approx(found.share)


def test_what_cannot_be_fitted():
    with pytest.raises(ValueError, match='No transition .* half_width'):
        fit_errors(torch.zeros(4, 5, 2), 0.1)
    with pytest.raises(ValueError, match='finite errors'):
        fit_errors(torch.full((4, 5, 2), math.nan), 0.1)
    with pytest.raises(ValueError, match=r'but got \[4, 5\]'):
        fit_errors(torch.randn(4, 5), 0.1)


@pytest.mark.parametrize('wrong', [
    ((), (), (), 0.1),
    ((1.0, 2.0), (1.0, ), (1.0, ), 0.1),
    ((0.0, ), (1.0, ), (1.0, ), 0.1),
    ((1.0, ), (math.nan, ), (1.0, ), 0.1),
    ((1.0, ), (1.0, ), (0.0, ), 0.1),
    ((1.0, ), (1.0, ), (1.0, ), -0.1),
])
def test_wrong_likelihoods_are_refused(wrong):
    with pytest.raises(ValueError, match='above 0 for each feature'):
        StudentErrors(*wrong)
