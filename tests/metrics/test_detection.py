import math
import warnings

import pytest
import torch

from pyg_fnri.metrics import auroc, average_precision
from pyg_fnri.metrics.detection import interaction_probability


def two_types(score):
    return torch.stack([1 - score, score], dim=-1)


def test_random_scores_tell_nothing():
    label = (torch.rand(50_000) < 0.3).long()
    q = two_types(torch.rand(50_000))
    assert auroc(q, label).item() == pytest.approx(0.5, abs=0.01)
    assert average_precision(q, label).item() == pytest.approx(0.3, abs=0.01)


def test_perfect_scores_tell_everything():
    label = torch.randint(2, (100, ))
    q = two_types(0.4 * torch.rand(100) + 0.5 * label)
    assert auroc(q, label).item() == pytest.approx(1)
    assert average_precision(q, label).item() == pytest.approx(1)
    assert auroc(q.flip(-1), label) == 0


def test_auroc_is_the_share_of_ordered_pairs():
    label = torch.randint(2, (60, ))
    score = (10 * torch.rand(60)).floor() / 10  # with ties
    difference = score[label == 1].unsqueeze(1) - score[label == 0]
    expected = (difference > 0).double() + (difference == 0).double() / 2
    assert auroc(two_types(score),
                 label).item() == pytest.approx(expected.mean().item())


def test_only_the_order_counts():
    label = torch.randint(2, (200, ))
    score = torch.rand(200)
    plain, bent = two_types(score), two_types(0.1 + 0.5 * score**3)
    for metric in (auroc, average_precision):
        assert metric(plain, label).item() == pytest.approx(
            metric(bent, label).item())
    swapped = auroc(plain.flip(-1), 1 - label)
    assert swapped.item() == pytest.approx(auroc(plain, label).item())


def test_equal_scores_are_a_toss_up():
    label = torch.arange(10) // 8
    q = two_types(torch.full((10, ), 0.7))
    assert auroc(q, label).item() == pytest.approx(0.5)
    assert average_precision(q, label).item() == pytest.approx(0.2)


def test_any_interaction_counts_whatever_its_type():
    q = torch.rand(300, 3).softmax(-1)
    label = torch.randint(3, (300, ))
    for metric in (auroc, average_precision):
        assert metric(q, label) == metric(two_types(1 - q[:, 0]),
                                          label.clamp(max=1))
        assert metric(q, label) == metric(q[:, [0, 2, 1]], label)


def test_improbable_interactions_are_told_apart():
    q = torch.tensor([[1., 1e-12], [1., 1e-10]])
    assert interaction_probability(q).tolist() == q[:, 1].tolist()
    assert auroc(q, torch.tensor([0, 1])) == 1


@pytest.mark.parametrize('label', [[0, 0], [1, 1], []])
def test_edges_of_one_kind_have_no_figures(label):
    q = torch.full((len(label), 2), 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for metric in (auroc, average_precision):
            assert metric(q, torch.tensor(label, dtype=torch.long)).isnan()


@pytest.mark.parametrize('metric', [auroc, average_precision])
def test_what_is_no_probability_is_refused(metric):
    label = torch.tensor([0, 1])
    for wrong in (-0.5, 3., math.nan):
        with pytest.raises(ValueError, match='between 0 and 1'):
            metric(torch.tensor([[0.5, 0.5], [0.5, wrong]]), label)
    with pytest.raises(ValueError, match='one layer at a time'):
        metric(torch.rand(2), label)
    with pytest.raises(ValueError, match='one layer at a time'):
        metric(torch.rand(3, 2), label)
    with pytest.raises(TypeError, match='edge_label integers'):
        metric(torch.rand(2, 2), label.float())
