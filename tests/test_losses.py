import math

import pytest
import torch

from pyg_fnri.losses import draw_frames, gaussian_nll, huber_nll


def test_gaussian_equals_the_authors(reference):
    prediction = reference.flat('rollout_1')
    nll = gaussian_nll(prediction, reference.x[:, 1:], variance=5e-5)
    torch.testing.assert_close(nll, reference['nll_var_5e-5_rollout_1'], atol=0,
                               rtol=1e-5)


def test_gaussian_is_a_log_density_up_to_a_constant():
    target, mean = torch.randn(5, 7, 4), torch.randn(5, 7, 4)
    normal = torch.distributions.Normal(mean, 0.3)
    constant = normal.log_prob(mean).sum()
    expected = (constant - normal.log_prob(target).sum()) / 5
    torch.testing.assert_close(gaussian_nll(mean, target, 0.09), expected)


@pytest.mark.parametrize('size, delta', [(0.99, 1.0), (100.0, math.inf)])
def test_huber_is_the_gaussian_within_delta(size, delta):
    scale = torch.tensor([0.1, 0.1, 2.0, 2.0])
    target = torch.randn(5, 7, 4)
    error = scale * torch.empty_like(target).uniform_(-size, size)
    expected = gaussian_nll(error / scale, torch.zeros_like(target), 0.02)
    nll = huber_nll(target + error, target, scale, 0.02, delta)
    torch.testing.assert_close(nll, expected, atol=0, rtol=1e-4)


def test_huber_grows_linearly_for_large_errors():
    scale, target = torch.tensor([0.5]), torch.zeros(1, 1, 1)
    nll = [
        huber_nll(target + 0.5 * error, target, scale, variance=0.1).item()
        for error in (1.0, 2.0, 3.0, 100.0)
    ]
    # In units of the scale, |e| - 1/2.
    assert nll == pytest.approx([5.0, 15.0, 25.0, 995.0])


@pytest.mark.parametrize('size', [(5, 1, 4), (5, 4)])
def test_shapes_that_would_be_spread(size):
    prediction, target = torch.randn(5, 7, 4), torch.randn(size)
    with pytest.raises(ValueError, match='shape'):
        gaussian_nll(prediction, target, 0.1)
    with pytest.raises(ValueError, match='shape'):
        huber_nll(prediction, target, torch.ones(4), 0.1)


def test_huber_counts_states_by_their_weight():
    prediction, target = torch.randn(2, 3, 5, 4).unbind()
    scale, weight = torch.rand(4) + 0.5, torch.rand(3, 5)
    expected = sum(weight[i, t] * huber_nll(prediction[
        i:i + 1, t:t + 1], target[i:i + 1, t:t + 1], scale, 0.02, 0.7)
                   for i in range(3) for t in range(5)) / 3
    loss = huber_nll(prediction, target, scale, 0.02, 0.7, weight)
    torch.testing.assert_close(loss, expected)


def test_frames_in_focus_are_drawn_more_often():
    generator = torch.Generator().manual_seed(0)
    residual = torch.randn(8, 20, 4)
    residual[2, 7] *= 50  # One frame of the first system.
    batch = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    frame, weight = draw_frames(residual, batch, 40_000, 0.5, generator)
    assert (frame[:3] == frame[0]).all()  # Particles stay together.
    share = (frame[0] == 7).double().mean().item()
    assert share == pytest.approx(0.5 + 0.5 / 20, abs=0.02)
    value = torch.rand(8, 20) + residual.square().sum(-1)
    drawn = (weight * value.gather(1, frame)).sum(1)
    torch.testing.assert_close(drawn, value.sum(1), rtol=0.05, atol=0)
