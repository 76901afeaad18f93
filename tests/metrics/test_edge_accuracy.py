from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_fnri.metrics import (Agreement, EdgeAccuracy, JointEdgeAccuracy,
                              agreement, relabelling_consistency)

REFERENCE = Path(__file__).parents[1] / 'reference' / 'edge_accuracy.npz'


def reference(name):
    arrays = np.load(REFERENCE)
    values = {
        key.split('/')[1]: torch.from_numpy(arrays[key])
        for key in arrays if key.startswith(f'{name}/')
    }
    predicted, true = values['predicted'], values['true']
    return predicted.flatten(0, 1), true.flatten(0, 1), values


def random_types(num_edges, sizes):
    return torch.stack([torch.randint(k, (num_edges, )) for k in sizes], dim=-1)


def noisy(edge_label, sizes, share):
    """Edge labels of which a share is replaced by random ones."""
    replaced = torch.rand(edge_label.shape) < share
    other = random_types(len(edge_label), sizes)
    return torch.where(replaced, other, edge_label)


@pytest.mark.parametrize('name, num_layers', [('two_layers', 2),
                                              ('three_layers', 3)])
def test_accuracies_equal_the_published_code(name, num_layers):
    predicted, true, expected = reference(name)
    for kind, metric in (('joint', JointEdgeAccuracy([2] * num_layers)),
                         ('layer',
                          EdgeAccuracy([2] * num_layers, fixed_null=True))):
        metric.update(predicted, true)
        result = metric.compute()
        assert result.combined.item() == pytest.approx(
            expected[f'{kind}_permutation_accuracy'].item(), abs=1e-12)
        assert torch.stack(result.layers).allclose(
            expected[f'{kind}_permutation_layer_accuracy'], rtol=0, atol=1e-12)
        assert (result.relabelling is None) == (kind == 'joint')


@pytest.mark.parametrize('predicted_sizes', [[2, 2, 2], [8]])
def test_relabelling_found_is_the_one_applied(predicted_sizes):
    true = random_types(400, [2, 2, 2])
    noise = noisy(true, [2, 2, 2], share=0.3)
    predicted = torch.stack([1 - noise[:, 2], noise[:, 0], noise[:, 1]], -1)
    if predicted_sizes == [8]:
        code = predicted @ torch.tensor([4, 2, 1])
        shuffled = torch.tensor([3, 1, 4, 0, 5, 7, 2, 6])
        predicted = shuffled[code].unsqueeze(-1)
    metric = EdgeAccuracy([2, 2, 2], predicted_sizes)
    metric.update(predicted, true)
    result = metric.compute()
    assert result.relabelling(predicted).equal(noise)
    right = result.relabelling(predicted) == true
    assert result.combined == right.all(dim=-1).double().mean()
    assert list(result.layers) == right.double().mean(dim=0).tolist()


def test_one_relabelling_holds_for_the_whole_data_set():
    true = random_types(100, [2, 2])
    strict, joint = EdgeAccuracy([2, 2]), JointEdgeAccuracy([2, 2])
    for metric in (strict, joint):
        metric.update(true, true)
        metric.update(1 - true[:50], true[:50])  # other labels in this batch
    assert joint.compute().combined == 1
    wrong = strict.compute()
    assert wrong.combined.item() == pytest.approx(100 / 150)
    assert str(wrong.relabelling) == 'as predicted'


def test_entangled_layers_do_not_count_as_right():
    true = random_types(4000, [2, 2])
    exclusive = true[:, :1] ^ true[:, 1:]
    predicted = torch.cat([true[:, :1], exclusive], dim=-1)
    strict, joint = EdgeAccuracy([2, 2]), JointEdgeAccuracy([2, 2])
    strict.update(predicted, true)
    joint.update(predicted, true)
    assert joint.compute().combined == 1
    assert strict.compute().combined < 0.55


def test_joint_metric_weighs_batches_by_their_edges():
    true = random_types(90, [2, 2])
    metric = JointEdgeAccuracy([2, 2])
    metric.update(true[:80], true[:80])
    constant = torch.zeros(10, 2, dtype=torch.long)
    metric.update(constant, torch.tensor([[0, 1]] * 5 + [[1, 0]] * 5))
    assert metric.compute().combined.item() == pytest.approx(85 / 90)


@pytest.mark.parametrize('cls', [EdgeAccuracy, JointEdgeAccuracy])
def test_edge_accuracy_across_processes(cls):
    true = random_types(300, [2, 2])
    predicted = noisy(true, [2, 2], share=0.5).flip(-1)
    single, first, second = (cls([2, 2]) for _ in range(3))
    for part, metric in ((slice(0, 20), first), (slice(20, 120), second),
                         (slice(120, 300), second)):
        single.update(predicted[part], true[part])
        metric.update(predicted[part], true[part])
    first.merge_state(second)
    assert first.compute() == single.compute()


@pytest.mark.parametrize('cls', [EdgeAccuracy, JointEdgeAccuracy])
def test_metrics_go_on_after_a_reset_under_inference_mode(cls):
    # As `trainer.validate` does before `trainer.fit`.
    types, metric = torch.randint(2, (20, 2)), cls([2, 2])
    with torch.inference_mode():
        metric.reset()
    metric.update(types, types)
    assert metric.compute().combined == 1


@pytest.mark.parametrize('args, message',
                         [(([2, 2], [3]), 'cannot be mapped'),
                          (([2, 3], [2, 2]), 'cannot be mapped'),
                          (([2] * 12, ), 'relabellings')])
def test_impossible_sizes_are_refused(args, message):
    with pytest.raises(ValueError, match=message):
        EdgeAccuracy(*args)


@pytest.mark.parametrize('edge_type, edge_label, error',
                         [([[0, 1]], [[0]], ValueError),
                          ([[0, 1]], [[0, 1], [1, 1]], RuntimeError),
                          ([[0, 2]], [[0, 1]], ValueError),
                          ([[0, 1]], [[-1, 1]], ValueError)])
def test_wrong_edges_are_not_counted(edge_type, edge_label, error):
    metric = EdgeAccuracy([2, 2])
    with pytest.raises(error):
        metric.update(torch.tensor(edge_type), torch.tensor(edge_label))
    assert metric.confusion.sum() == 0


def test_batches_with_other_labels_are_counted():
    true = random_types(40, [2, 2])
    batches = [(true, true)] * 3 + [(1 - true, true), (true.flip(-1), true)]
    batches.append((true[:0], true[:0]))
    found = relabelling_consistency(batches, [2, 2], [2, 2])
    assert found['share'] == 0.6 and found['num_batches'] == 5
    assert list(found['frequencies'].values()) == [3, 1, 1]
    assert found['frequencies']['as predicted'] == 3
    swapped = 'layer 0 <- predicted layer 1; layer 1 <- predicted layer 0'
    assert found['frequencies'][swapped] == 1


def test_share_and_chance_by_hand():
    #        a: 0 0 0 0 0 0 1 1 1 1,  b, with other names, differs twice.
    a = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1, 1]).view(-1, 1)
    b = torch.tensor([1, 1, 1, 1, 1, 0, 0, 0, 0, 1]).view(-1, 1)
    # Independent: 0.6 * 0.6 + 0.4 * 0.4, as b has six of one type, too.
    share, chance, adjusted = agreement(a, b, [2])
    assert (share, chance) == (0.8, 0.52)
    assert adjusted == pytest.approx(0.28 / 0.48)
    assert agreement(b, a, [2]) == agreement(a, b, [2])


def test_graphs_that_have_nothing_in_common_agree_by_chance():
    # Every pair of combinations equally often: independent exactly.
    both = torch.cartesian_prod(*[torch.arange(2)] * 4)
    assert agreement(both[:, :2], both[:, 2:], [2, 2]) == (0.25, 0.25, 0)
    same = torch.zeros(50, 2, dtype=torch.long)
    assert agreement(same, same, [2, 2]) == Agreement(1., 1., None)
