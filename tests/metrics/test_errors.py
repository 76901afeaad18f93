import math
from functools import partial

import numpy as np
import pytest
import torch

from pyg_fnri.metrics import (RolloutMSE, guessing_accuracy, linear_rollout,
                              relative_law_error, static_rollout)
from pyg_fnri.metrics.errors import supported_distances
from pyg_fnri.nn import LinearStep

DISTANCE = np.linspace(0.5, 4., 701)
TRUE = np.stack([-0.1 * DISTANCE, 0.2 / DISTANCE**2])
SEEN = np.linspace(1., 3., 41)


def frames(num_particles, seed, num_frames=24):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_particles, num_frames, 4, generator=generator)


def test_rollout_mse_weighs_every_value_the_same(as_two_processes):
    metric = RolloutMSE(horizons=(1, 10, 20))
    errors, batches = {h: [] for h in metric.horizons}, []
    for seed, num_particles in enumerate([5, 40]):
        target = frames(num_particles, seed)
        predictions = {
            h: target + h * frames(num_particles, seed + 10 * h)
            for h in metric.horizons
        }
        batches.append((predictions, target))
        metric.update(*batches[-1])
        for h in metric.horizons:
            errors[h].append((predictions[h] - target).double().square())
    result = metric.compute()
    gathered = as_two_processes(partial(RolloutMSE, (1, 10, 20)), batches)
    for h in (1, 10, 20):
        expected = torch.cat(errors[h]).mean().item()
        assert result[h].item() == pytest.approx(expected, rel=1e-6)
        assert gathered[h].item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_rollouts_that_diverge_have_an_infinite_error(value):
    good = frames(5, seed=0)
    bad = good.clone()
    bad[2, 3, 1] = value
    metric = RolloutMSE((1, 5))
    metric.update({1: good, 5: bad}, good)
    assert metric.compute() == {1: 0, 5: math.inf}


def test_rollouts_that_do_not_fit_are_refused():
    metric, good = RolloutMSE((1, 5)), frames(5, seed=0)
    with pytest.raises(ValueError, match='shape'):
        metric.update({1: good, 5: good[:1]}, good)
    with pytest.raises(ValueError, match='too few'):
        metric.update({1: good[:, :4], 5: good[:, :4]}, good[:, :4])
    assert metric.num_values == 0


@pytest.fixture
def linear_step():
    """A linear step with other numbers than none."""
    step = LinearStep(4)
    step.weight.normal_(std=0.2)
    step.bias.normal_(std=0.2)
    return step


@pytest.mark.parametrize('num_frames', [2, 21])
@pytest.mark.parametrize('pred_steps', [1, 10, 50])
def test_baselines_equal_a_loop(linear_step, num_frames, pred_steps):
    y = torch.randn(3, num_frames, 4)
    static = static_rollout(y, pred_steps)
    linear = linear_rollout(linear_step, y, pred_steps)
    assert static.size() == linear.size() == (3, num_frames - 1, 4)
    for t in range(num_frames - 1):
        if t % pred_steps == 0:
            state = still = y[:, t]
        state = linear_step(state)
        assert static[:, t].equal(still)
        torch.testing.assert_close(linear[:, t], state)


def test_guesses_are_measured_as_a_model_is():
    train = (torch.rand(5000, 2) < 0.7).long()
    test = (torch.rand(5000, 2) < 0.7).long()
    report = guessing_accuracy(train, test, [2, 2])
    random, majority = report['random_accuracy'], report['majority_accuracy']
    assert random['combined'] == pytest.approx(0.25, abs=0.03)
    assert random['layers'] == pytest.approx([0.5, 0.5], abs=0.03)
    assert majority['combined'] == pytest.approx(0.49, abs=0.03)
    assert majority['layers'] == pytest.approx([0.7, 0.7], abs=0.03)
    assert guessing_accuracy(train, test, [2, 2]) == report


def test_the_most_common_combination_need_not_be_that_of_common_types():
    train = torch.tensor([[0, 1]] * 4 + [[1, 0]] * 3 + [[1, 2]] * 2 + [[1, 1]])
    test = torch.tensor([[0, 1], [1, 1], [1, 0], [0, 2]])
    report = guessing_accuracy(train, test, [2, 3])
    assert report['majority_accuracy'] == {
        'combined': 0.25,
        'layers': [0.5, 0.5]
    }


def test_a_law_error_of_a_hundredth_is_one_percent():
    scale = np.array([[1.01], [0.9]])
    error = relative_law_error(DISTANCE, scale * TRUE, TRUE, SEEN)
    assert error == pytest.approx([0.01, 0.1])
    learned = torch.tensor(1.1 * TRUE, dtype=torch.float, requires_grad=True)
    error = relative_law_error(torch.tensor(DISTANCE), learned,
                               torch.tensor(TRUE),
                               torch.tensor(SEEN).float())
    assert error == pytest.approx([0.1, 0.1], rel=1e-4)


def test_distances_count_as_often_as_they_were_seen():
    distance, true = [1., 2., 3.], [[1., 2., 4.]]
    learned = [[1.5, 2., 3.]]  # off by 1/2, 0 and 1
    error = relative_law_error(distance, learned, true, [1., 1., 1., 2., 3.])
    assert error == pytest.approx([(3 * 0.5 + 1) / (3 + 2 + 4)])
    # Between the given distances, also where the difference changes its sign.
    error = relative_law_error([1., 3.], [[3., -1.]], [[1., 1.]], [2., 2.5])
    assert error == pytest.approx([(0 + 1) / 2])


def test_few_extreme_distances_do_not_count():
    seen = np.concatenate([SEEN.repeat(100), [0.6, 3.9]])
    inside = (DISTANCE > 0.9) & (DISTANCE < 3.1)
    learned = np.where(inside, TRUE, 1e3)
    assert relative_law_error(DISTANCE, learned, TRUE, seen).tolist() == [0, 0]
    # But few distances do not count as extreme.
    assert supported_distances(DISTANCE, SEEN).tolist() == SEEN.tolist()
    # Where no law is given, none is judged.
    seen = np.array([0., 0.1, 1., 2., 9.])
    assert supported_distances(DISTANCE, seen).tolist() == [1, 2]


def test_laws_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match='increase'):
        relative_law_error(DISTANCE[::-1].copy(), TRUE, TRUE, SEEN)
    with pytest.raises(ValueError, match='shape'):
        relative_law_error(DISTANCE, TRUE, TRUE[:1], SEEN)
