import math

import pytest
import torch
from torchmetrics.functional.classification import multiclass_calibration_error

from pyg_fnri.metrics import (
    brier_score,
    expected_calibration_error,
    reliability,
)


def test_a_calibrated_model_has_no_error():
    confidence = 0.5 + 0.5 * torch.rand(200_000)
    correct = torch.rand(200_000) < confidence
    assert expected_calibration_error(confidence, correct) < 0.005
    bins = reliability(confidence, correct)
    used = bins.num_edges > 1000
    assert (bins.accuracy - bins.confidence)[used].abs().max() < 0.02


@pytest.mark.parametrize('confidence, accuracy', [(0.9, 0.), (0.9, 0.5),
                                                  (0.6, 1.), (1., 0.25)])
def test_constant_confidence_errs_by_its_distance_from_the_accuracy(
        confidence, accuracy):
    correct = torch.arange(400) < 400 * accuracy
    error = expected_calibration_error(torch.full((400, ), confidence), correct)
    assert error.item() == pytest.approx(abs(confidence - accuracy), abs=1e-6)


def test_error_equals_a_sum_over_bins_by_hand():
    confidence, correct = torch.rand(1000).double(), torch.rand(1000) < 0.6
    error = 0.
    for b in range(15):
        inside = (confidence >= b / 15) & (confidence < (b + 1) / 15)
        if inside.any():
            distance = confidence[inside].mean() - correct[inside].double(
            ).mean()
            error += inside.double().mean() * distance.abs()
    found = expected_calibration_error(confidence, correct)
    assert found.item() == pytest.approx(error.item())
    bins = reliability(confidence, correct)
    share = bins.num_edges / 1000
    from_bins = (share * (bins.confidence - bins.accuracy).abs()).nansum()
    assert from_bins.item() == pytest.approx(error.item())


@pytest.mark.parametrize('size', [2, 3, 4])
def test_of_the_most_probable_type_it_is_the_multiclass_error(size):
    q = torch.rand(500, size).softmax(-1)
    label = torch.randint(size, (500, ))
    confidence, predicted = q.max(-1)
    assert expected_calibration_error(
        confidence, predicted == label).item() == pytest.approx(
            multiclass_calibration_error(q, label, size).item(), abs=1e-6)


def test_bins_count_every_prediction_once():
    confidence = torch.tensor([0., 1 / 15, 0.5, 0.99, 1.])
    bins = reliability(confidence, torch.tensor([False, True, True, True,
                                                 True]))
    assert bins.num_edges.tolist() == [1, 1, 0, 0, 0, 0, 0, 1] + 6 * [0] + [2]
    assert bins.accuracy[[0, 1, 7, 14]].tolist() == [0., 1., 1., 1.]
    assert bins.confidence[14].item() == pytest.approx(0.995)
    assert bins.confidence[2].isnan() and bins.accuracy[2].isnan()


def test_many_edges_lose_no_precision():
    confidence = torch.full((2_000_000, ), 0.97)
    correct = torch.arange(2_000_000) % 100 < 97
    assert expected_calibration_error(confidence, correct) < 1e-6


def test_brier_score_by_hand():
    q = torch.tensor([[1., 0.], [0.5, 0.5], [0.2, 0.8], [1., 0.]])
    label = torch.tensor([0, 1, 0, 1])
    assert brier_score(q, label).item() == pytest.approx(
        (0 + 0.5 + 2 * 0.64 + 2) / 4)
    q = torch.tensor([[0.2, 0.3, 0.5]])
    assert brier_score(q, torch.tensor(
        [2])).item() == pytest.approx(0.04 + 0.09 + 0.25)


def test_no_edges_have_no_figures():
    empty = torch.empty(0)
    assert expected_calibration_error(empty, empty.bool()).isnan()
    assert brier_score(torch.empty(0, 2), empty.long()).isnan()
    assert reliability(empty, empty.bool()).num_edges.sum() == 0


@pytest.mark.parametrize('function', [reliability, expected_calibration_error])
def test_what_is_no_confidence_is_refused(function):
    correct = torch.tensor([True, False])
    for wrong in ([0.5, 1.2], [-0.1, 0.5], [0.5, math.nan]):
        with pytest.raises(ValueError, match='between 0 and 1'):
            function(torch.tensor(wrong), correct)
    with pytest.raises(ValueError, match=r'expected \[num_edges\]'):
        function(torch.tensor([0.5]), correct)
    with pytest.raises(TypeError, match='bools'):
        function(torch.tensor([0.5, 0.5]), torch.tensor([1, 0]))
    with pytest.raises(TypeError, match='floating-point'):
        function(torch.tensor([1, 0]), correct)


def test_brier_score_is_of_one_layer():
    with pytest.raises(ValueError, match='one layer at a time'):
        brier_score(torch.rand(3, 2), torch.zeros(3, 2, dtype=torch.long))
