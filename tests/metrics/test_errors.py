import math

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


def frames(num_particles):
    return torch.randn(num_particles, 24, 4)


def test_rollout_mse_weighs_every_value_the_same():
    horizons = (1, 10)
    whole, first, second = (RolloutMSE(horizons) for _ in range(3))
    errors = {h: [] for h in horizons}
    for part, num_particles in ((first, 5), (second, 40)):
        target = frames(num_particles)
        predictions = {h: target + h * frames(num_particles) for h in horizons}
        whole.update(predictions, target)
        part.update(predictions, target)
        for h in horizons:
            errors[h].append((predictions[h] - target).double().square())
    first.merge_state(second)
    for h in horizons:
        expected = pytest.approx(torch.cat(errors[h]).mean().item(), rel=1e-6)
        assert whole.compute()[h].item() == expected
        assert first.compute()[h].item() == expected


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_rollouts_that_diverge_have_an_infinite_error(value):
    good = frames(5)
    bad = good.clone()
    bad[2, 3, 1] = value
    metric = RolloutMSE((1, 5))
    metric.update({1: good, 5: bad}, good)
    assert metric.compute() == {1: 0, 5: math.inf}


def test_rollouts_that_do_not_fit_are_refused():
    metric, good = RolloutMSE((1, 5)), frames(5)
    with pytest.raises(ValueError, match='shape'):
        metric.update({1: good, 5: good[:1]}, good)
    with pytest.raises(ValueError, match='too few'):
        metric.update({1: good[:, :4], 5: good[:, :4]}, good[:, :4])
    assert metric.num_values == 0


@pytest.mark.parametrize('pred_steps', [1, 10, 50])
def test_baselines_equal_a_loop(pred_steps):
    step, y = LinearStep(4), torch.randn(3, 21, 4)
    step.weight.normal_(std=0.2)
    step.bias.normal_(std=0.2)
    static = static_rollout(y, pred_steps)
    linear = linear_rollout(step, y, pred_steps)
    assert static.size() == linear.size() == (3, 20, 4)
    for t in range(20):
        if t % pred_steps == 0:
            state = still = y[:, t]
        state = step(state)
        assert static[:, t].equal(still)
        torch.testing.assert_close(linear[:, t], state)


def test_guesses_are_measured_as_a_model_is():
    train, test = (torch.rand(2, 5000, 2) < 0.7).long()
    report = guessing_accuracy(train, test, [2, 2])
    random = report['random_accuracy']
    assert random['combined'] == pytest.approx(0.25, abs=0.03)
    assert random['layers'] == pytest.approx([0.5, 0.5], abs=0.03)
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
    learned = np.array([[1.01], [0.9]]) * TRUE
    error = relative_law_error(DISTANCE, learned, TRUE, SEEN)
    assert error == pytest.approx([0.01, 0.1])


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
