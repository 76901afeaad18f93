import json
import math

import pytest
import torch
from torchmetrics.functional import classification

from pyg_fnri.data import fully_connected
from pyg_fnri.metrics import (EdgePosterior, asymmetric_share, asymmetry,
                              brier_score, detection,
                              expected_calibration_error, graph_report,
                              reliability)
from pyg_fnri.nn.latent import reverse_edges

OF_TRUTH = {
    'edge_accuracy', 'joint_edge_accuracy', 'relabelling',
    'relabelling_consistency', 'auroc', 'average_precision', 'brier_score',
    'calibration_error', 'reliability'
}
ALWAYS = {'entropy', 'entropy_share', 'asymmetric_share', 'asymmetry'}


def two_types(score):
    return torch.stack([1 - score, score], dim=-1)


@pytest.mark.parametrize('size', [2, 4])
def test_calibration_error_is_that_of_torchmetrics(size):
    q = torch.rand(500, size).softmax(-1)
    label = torch.randint(size, (500, ))
    confidence, predicted = q.max(-1)
    correct = predicted == label
    found = expected_calibration_error(confidence, correct).item()
    assert found == pytest.approx(
        classification.multiclass_calibration_error(q, label, size).item(),
        abs=1e-6)
    assert found == pytest.approx(
        classification.binary_calibration_error(confidence.double(),
                                                correct.long()).item())


def test_bins_count_every_prediction_once():
    confidence = torch.tensor([0., 1 / 15, 0.5, 0.99, 1.])
    bins = reliability(confidence, torch.arange(5) > 0)
    assert bins.num_edges.tolist() == [1, 1, 0, 0, 0, 0, 0, 1] + 6 * [0] + [2]
    assert bins.accuracy[[0, 1, 7, 14]].tolist() == [0., 1., 1., 1.]
    assert bins.confidence[14].item() == pytest.approx(0.995)
    assert bins.confidence[2].isnan() and bins.accuracy[2].isnan()
    with pytest.raises(ValueError, match='probabilities'):
        reliability(2 * confidence, torch.arange(5) > 0)


def test_brier_score_by_hand():
    q = torch.tensor([[1., 0.], [0.5, 0.5], [0.2, 0.8], [1., 0.]])
    label = torch.tensor([0, 1, 0, 1])
    assert brier_score(q, label).item() == pytest.approx(
        (0 + 0.5 + 2 * 0.64 + 2) / 4)


def test_any_interaction_counts_whatever_its_type():
    q = torch.rand(300, 3).softmax(-1)
    label = torch.randint(3, (300, ))
    expected = detection(two_types(1 - q[:, 0]), label.clamp(max=1))
    assert detection(q, label) == expected == detection(q[:, [0, 2, 1]], label)
    # Improbable interactions are told apart.
    q = torch.tensor([[1., 1e-12], [1., 1e-10]])
    assert detection(q, torch.tensor([0, 1]))[0] == 1


def test_asymmetry_by_hand():
    # 0 -> 1, 1 -> 0, 0 -> 2, 2 -> 0, and 1 -> 2 without its reverse.
    edge_index = torch.tensor([[0, 1, 0, 2, 1], [1, 0, 2, 0, 2]])
    reverse = reverse_edges(edge_index)
    q = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7], [1., 0.]])
    assert asymmetric_share(q.argmax(-1), reverse).item() == 0.5
    assert asymmetry(q, reverse).item() == pytest.approx((0.5 + 0.1) / 2)
    assert asymmetry(q[:1], torch.arange(1)).isnan()


def batch_of(num_systems, sizes, edge_label=None, near=None):
    """Random posteriors of systems of 5 particles; near labels, if given."""
    edge_index = torch.cat(
        [fully_connected(5) + 5 * k for k in range(num_systems)], dim=1)
    near = edge_label if near is None else near
    posterior = []
    for layer, size in enumerate(sizes):
        logits = torch.randn(edge_index.size(1), size)
        if near is not None:
            logits += 2 * torch.eye(size)[near[:, layer]]
        posterior.append(logits.softmax(-1))
    edge_type = torch.stack([q.argmax(-1) for q in posterior], dim=-1)
    return EdgePosterior(edge_type, posterior, edge_index, edge_label)


def test_batches_of_any_size_give_the_same():
    parts = [batch_of(n, [2, 2], torch.randint(2, (20 * n, 2))) for n in (3, 7)]
    types, layers, edge_index, label = zip(*parts)
    edge_index = torch.cat([edge_index[0], edge_index[1] + 15], dim=1)
    whole = EdgePosterior(torch.cat(types),
                          [torch.cat(q) for q in zip(*layers)], edge_index,
                          torch.cat(label))
    whole, pieces = (graph_report(batches, [2, 2], [2, 2])
                     for batches in ([whole], parts))
    assert whole.keys() == pieces.keys() == OF_TRUTH | ALWAYS
    ours = {'joint_edge_accuracy', 'relabelling_consistency'}
    for key in whole.keys() - ours:
        assert whole[key] == pieces[key], key
    assert pieces['relabelling_consistency']['num_batches'] == 2


def test_metrics_are_in_the_order_of_the_truth():
    label = torch.randint(2, (2000, 2))
    noisy = label.clone()
    noisy[:, 1] = torch.randint(2, (2000, ))  # The second is not seen at all.
    plain = batch_of(100, [2, 2], label, noisy)
    swapped = plain._replace(edge_type=plain.edge_type.flip(-1),
                             layers=plain.layers[::-1])
    ours, theirs = (graph_report([batch], [2, 2], [2, 2])
                    for batch in (plain, swapped))
    for key in ('auroc', 'brier_score', 'entropy', 'asymmetric_share'):
        assert ours[key] == pytest.approx(theirs[key]), key
    assert ours['auroc'][0] > 0.9
    assert ours['auroc'][1] == pytest.approx(0.5, abs=0.03)
    assert ours['reliability']['layers'] == theirs['reliability']['layers']


def test_joint_types_have_metrics_of_each_true_layer():
    label = torch.randint(2, (2000, 2))
    shuffled = torch.tensor([3, 0, 2, 1])[label @ torch.tensor([[2], [1]])]
    report = graph_report([batch_of(100, [4], label, shuffled)], [2, 2], [4])
    assert all(len(report[key]) == 2 for key in ('auroc', 'entropy'))
    assert min(report['auroc']) > 0.85
    assert report['relabelling_consistency']['share'] == 1
    # Edges right in all layers are those of which the joint type is.
    bins, accuracy = report['reliability'], report['edge_accuracy']
    for bins, share in zip([bins['combined'], *bins['layers']],
                           [accuracy['combined'], *accuracy['layers']]):
        right = sum(n * a for n, a in zip(bins['num_edges'], bins['accuracy'])
                    if n)
        assert right == pytest.approx(2000 * share)


def test_without_truth_entropy_and_asymmetry_are_left():
    batch = EdgePosterior(torch.zeros(20, 1, dtype=torch.long),
                          [torch.full((20, 4), 0.25)], fully_connected(5))
    assert graph_report([batch], [2, 2], [4]) == {
        'entropy': [pytest.approx(math.log(4))],
        'entropy_share': [pytest.approx(1)],
        'asymmetric_share': [0.],
        'asymmetry': [0.]
    }


def test_report_is_plain_and_none_where_not_defined():
    label = torch.zeros(20, 2, dtype=torch.long)  # Of one kind only.
    report = graph_report([batch_of(1, [2, 2], label)], [2, 2], [2, 2])
    assert report['auroc'] == report['average_precision'] == [None, None]
    del report['relabelling']
    assert json.loads(json.dumps(report, allow_nan=False)) == report
