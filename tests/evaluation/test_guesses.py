import pytest
import torch

from pyg_fnri.evaluation import guessing_accuracy


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
    other = guessing_accuracy(train, test, [2, 2], seed=1)
    assert other['random_accuracy'] != random
    assert other['majority_accuracy'] == majority


def test_the_majority_is_that_of_the_training_split():
    train = torch.tensor([[1]] * 3 + [[0]] * 2)
    test = torch.tensor([[0]] * 9 + [[1]])
    report = guessing_accuracy(train, test, [2])
    assert report['majority_accuracy'] == {'combined': 0.1, 'layers': [0.1]}
