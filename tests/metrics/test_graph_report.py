import json
import math

import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.metrics import GraphReport

FIGURES = {
    'edge_accuracy', 'joint_edge_accuracy', 'relabelling',
    'relabelling_consistency', 'auroc', 'average_precision', 'brier_score',
    'calibration_error', 'reliability', 'entropy', 'entropy_share',
    'asymmetric_share', 'asymmetry'
}


def batch_of(num_systems, sizes, edge_label=None):
    """Random posteriors of systems of 5 particles; near the labels given."""
    edge_index = torch.cat(
        [fully_connected(5) + 5 * k for k in range(num_systems)], dim=1)
    posterior = []
    for layer, size in enumerate(sizes):
        logits = torch.randn(edge_index.size(1), size)
        if edge_label is not None:
            logits += 2 * torch.eye(size)[edge_label[:, layer]]
        posterior.append(logits.softmax(-1))
    edge_type = torch.stack([q.argmax(-1) for q in posterior], dim=-1)
    return edge_type, posterior, edge_index


def report_on(batches, sizes=(2, 2), num_edge_types=(2, 2)):
    report = GraphReport(num_edge_types, sizes)
    for batch in batches:
        report.update(*batch)
    return report.compute()


def cut(batch, first):
    """A batch of systems of 5 particles as two."""
    edge_type, posterior, edge_index, edge_label = batch
    for part, shift in ((slice(0, 20 * first), 0), (slice(20 * first,
                                                          None), 5 * first)):
        yield (edge_type[part], [q[part] for q in posterior],
               edge_index[:, part] - shift, edge_label[part])


def test_batches_of_any_size_give_the_same():
    label = torch.randint(2, (200, 2))
    batch = (*batch_of(10, [2, 2], label), label)
    whole, pieces = report_on([batch]), report_on(cut(batch, 3))
    assert whole.keys() == pieces.keys() == FIGURES
    for key in FIGURES - {'joint_edge_accuracy', 'relabelling_consistency'}:
        assert whole[key] == pieces[key], key
    assert pieces['relabelling_consistency']['num_batches'] == 2


def test_figures_are_in_the_order_of_the_truth():
    label = torch.randint(2, (2000, 2))
    noisy = label.clone()
    noisy[:, 1] = torch.randint(2, (2000, ))  # The second is not seen at all.
    plain = batch_of(100, [2, 2], noisy)
    swapped = plain[0].flip(-1), plain[1][::-1], plain[2]
    ours = report_on([(*plain, label)])
    theirs = report_on([(*swapped, label)])
    for key in ('auroc', 'brier_score', 'entropy', 'asymmetric_share'):
        assert ours[key] == pytest.approx(theirs[key]), key
    assert ours['auroc'][0] > 0.9
    assert ours['auroc'][1] == pytest.approx(0.5, abs=0.03)
    assert ours['reliability']['layers'] == theirs['reliability']['layers']


def test_joint_types_have_figures_of_each_true_layer():
    label = torch.randint(2, (2000, 2))
    joint = label @ torch.tensor([[2], [1]])
    shuffled = torch.tensor([3, 0, 2, 1])[joint]
    report = report_on([(*batch_of(100, [4], shuffled), label)], sizes=(4, ))
    assert all(len(report[key]) == 2 for key in ('auroc', 'entropy'))
    assert min(report['auroc']) > 0.85
    assert report['relabelling_consistency']['share'] == 1
    # Edges right in all layers are those of which the joint type is.
    bins = report['reliability']['combined']
    right = sum(n * a for n, a in zip(bins['num_edges'], bins['accuracy']) if n)
    assert right == pytest.approx(2000 * report['edge_accuracy']['combined'])
    for layer in range(2):
        bins = report['reliability']['layers'][layer]
        right = sum(n * a for n, a in zip(bins['num_edges'], bins['accuracy'])
                    if n)
        assert right == pytest.approx(2000 *
                                      report['edge_accuracy']['layers'][layer])


def test_guesses_are_found_out():
    label = torch.randint(2, (4000, 2))
    report = report_on([(*batch_of(200, [2, 2]), label)])
    assert report['auroc'] == pytest.approx([0.5, 0.5], abs=0.03)
    assert report['calibration_error']['combined'] > 0.1


def test_without_truth_entropy_and_asymmetry_are_left():
    q = [torch.full((20, 4), 0.25)]
    report = report_on(
        [(torch.zeros(20, 1, dtype=torch.long), q, fully_connected(5))], (4, ))
    assert report == {
        'entropy': [pytest.approx(math.log(4))],
        'entropy_share': [pytest.approx(1)],
        'asymmetric_share': [0.],
        'asymmetry': [0.],
    }


def test_report_is_plain():
    label = torch.zeros(20, 2, dtype=torch.long)  # Of one kind only.
    report = report_on([(*batch_of(1, [2, 2], label), label)])
    assert report['auroc'] == report['average_precision'] == [None, None]
    del report['relabelling']
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_nothing_seen_nothing_said():
    assert report_on([]) == {}


def test_truth_is_known_of_all_batches_or_of_none():
    label = torch.zeros(20, 2, dtype=torch.long)
    for first, second in ((None, label), (label, None)):
        report = GraphReport([2, 2], [2, 2])
        report.update(*batch_of(1, [2, 2]), first)
        with pytest.raises(ValueError, match='of all or of none'):
            report.update(*batch_of(1, [2, 2]), second)
    with pytest.raises(ValueError, match='joint types'):
        GraphReport([2, 2], [3])
