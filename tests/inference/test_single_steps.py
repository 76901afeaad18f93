import math

import pytest
import torch

from pyg_fnri.inference.likelihood import (
    cauchy_nll,
    cauchy_width,
    mean_of_systems,
)


def test_mean_and_its_standard_error():
    mean, error = mean_of_systems(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    assert mean == pytest.approx(3.0)
    assert error == pytest.approx(math.sqrt(14 / 3 / 4))


def test_one_system_has_no_standard_error():
    with pytest.raises(ValueError, match='at least two systems'):
        mean_of_systems(torch.ones(1))


def test_score_is_the_likelihood_of_a_cauchy_distribution():
    errors, width = torch.randn(50), torch.tensor(0.3)
    expected = -torch.distributions.Cauchy(0.0, width).log_prob(errors)
    torch.testing.assert_close(cauchy_nll(errors, width), expected)


@pytest.mark.parametrize('errors', [
    torch.randn(999, 2),
    torch.distributions.Cauchy(0.0, 7.0).sample((2_000, )),
    torch.cat([torch.zeros(30), torch.ones(40)]),
])
def test_width_is_the_most_likely(errors):
    width = cauchy_width(errors)
    best = cauchy_nll(errors, width).mean()
    for other in (0.5, 0.95, 1.05, 2.0):
        assert best < cauchy_nll(errors, other * width).mean()


def test_width_of_a_known_distribution():
    torch.manual_seed(0)
    errors = torch.distributions.Cauchy(0.0, 7.0).sample((20_000, ))
    assert cauchy_width(errors).item() == pytest.approx(7.0, rel=0.05)


def test_no_width_below_the_floor():
    assert cauchy_width(torch.zeros(9),
                        floor=1e-3).item() == (pytest.approx(1e-3))
