import math

import pytest
import torch

from pyg_fnri.losses import gaussian_nll, huber_nll, kl_divergence


def test_gaussian_equals_the_authors(reference):
    prediction = reference.flat('rollout_1')
    nll = gaussian_nll(prediction, reference.x[:, 1:], variance=5e-5)
    torch.testing.assert_close(nll, reference['nll_var_5e-5_rollout_1'], atol=0,
                               rtol=1e-5)


def test_gaussian_sums_over_time_and_features_per_particle():
    target = torch.randn(5, 7, 4)
    error = torch.zeros_like(target)
    error[0, 0, 0], error[3, 6, 2] = 3.0, 4.0
    nll = gaussian_nll(target + error, target, variance=0.5)
    assert nll.item() == pytest.approx((9 + 16) / (2 * 0.5) / 5, rel=1e-5)
    assert gaussian_nll(target, target, variance=0.5) == 0


def test_gaussian_is_a_log_density_up_to_a_constant():
    target, mean = torch.randn(5, 7, 4), torch.randn(5, 7, 4)
    normal = torch.distributions.Normal(mean, 0.3)
    constant = normal.log_prob(mean).sum()
    expected = (constant - normal.log_prob(target).sum()) / 5
    torch.testing.assert_close(gaussian_nll(mean, target, 0.09), expected)


def test_huber_is_the_gaussian_for_small_errors():
    scale = torch.tensor([0.1, 0.1, 2.0, 2.0])
    target = torch.randn(5, 7, 4)
    error = scale * torch.empty_like(target).uniform_(-0.99, 0.99)
    expected = gaussian_nll(error / scale, torch.zeros_like(target), 0.02)
    nll = huber_nll(target + error, target, scale, variance=0.02)
    torch.testing.assert_close(nll, expected, atol=0, rtol=1e-4)


def test_huber_grows_linearly_for_large_errors():
    scale, target = torch.tensor([0.5]), torch.zeros(1, 1, 1)
    nll = [
        huber_nll(target + 0.5 * error, target, scale, variance=0.1).item()
        for error in (1.0, 2.0, 3.0, 100.0)
    ]
    # In units of the scale, |e| - 1/2.
    assert nll == pytest.approx([5.0, 15.0, 25.0, 995.0])


def test_divergence_per_particle():
    kl = torch.rand(20, 3)
    torch.testing.assert_close(kl_divergence(kl, 5), kl.sum() / 5)


@pytest.mark.parametrize('size', [(5, 7, 4), (10, 14, 4)])
def test_losses_do_not_depend_on_the_size_of_the_batch(size):
    # Twice the particles and edges, alike: the same loss.
    prediction, target = torch.randn(size), torch.randn(size)
    kl, scale = torch.rand(20, 2), torch.rand(4) + 0.1
    twice = torch.cat([prediction] * 2), torch.cat([target] * 2)
    torch.testing.assert_close(gaussian_nll(*twice, 0.1),
                               gaussian_nll(prediction, target, 0.1))
    torch.testing.assert_close(huber_nll(*twice, scale, 0.1),
                               huber_nll(prediction, target, scale, 0.1))
    torch.testing.assert_close(kl_divergence(torch.cat([kl, kl]), 10),
                               kl_divergence(kl, 5))


@pytest.mark.parametrize('size', [(5, 1, 4), (1, 7, 4), (5, 7, 1), (5, 4)])
def test_shapes_that_would_be_spread(size):
    prediction, target = torch.randn(5, 7, 4), torch.randn(size)
    with pytest.raises(ValueError, match=r'one shape, but got \[5, 7, 4\]'):
        gaussian_nll(prediction, target, 0.1)
    with pytest.raises(ValueError, match=r'one shape, but got \[5, 7, 4\]'):
        huber_nll(prediction, target, torch.ones(4), 0.1)


@pytest.mark.parametrize('variance', [0.0, -1.0, float('nan')])
def test_impossible_variances(variance):
    x = torch.randn(5, 7, 4)
    with pytest.raises(ValueError, match='variance > 0'):
        gaussian_nll(x, x, variance)
    with pytest.raises(ValueError, match='variance > 0'):
        huber_nll(x, x, torch.ones(4), variance)


def test_no_particles():
    with pytest.raises(ValueError, match='at least one particle'):
        kl_divergence(torch.empty(0, 2), 0)


def test_huber_counts_states_by_their_weight():
    prediction, target = torch.randn(2, 3, 5, 4).unbind()
    scale, weight = torch.rand(4) + 0.5, torch.rand(3, 5)
    expected = sum(weight[i, t] * huber_nll(prediction[
        i:i + 1, t:t + 1], target[i:i + 1, t:t + 1], scale, 0.02, 0.7)
                   for i in range(3) for t in range(5)) / 3
    loss = huber_nll(prediction, target, scale, 0.02, 0.7, weight)
    torch.testing.assert_close(loss, expected)


def test_huber_without_tails_is_gaussian():
    prediction, target = (100 * torch.randn(2, 3, 5, 4)).unbind()
    scale = torch.rand(4) + 0.5
    loss = huber_nll(prediction, target, scale, 0.02, math.inf)
    expected = gaussian_nll(prediction / scale, target / scale, 0.02)
    torch.testing.assert_close(loss, expected)


def test_huber_needs_a_positive_delta():
    x = torch.zeros(1, 1, 4)
    with pytest.raises(ValueError, match='delta > 0, but got 0'):
        huber_nll(x, x, torch.ones(4), 0.02, 0)
