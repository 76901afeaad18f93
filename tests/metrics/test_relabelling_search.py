import math
from itertools import permutations, product

import pytest
import torch

from pyg_fnri.metrics.relabelling_search import (
    best_assignment,
    best_layerwise,
    best_relabelling,
    count_layerwise,
)


def random_confusion(sizes):
    num_types = math.prod(sizes)
    return torch.randint(50, (num_types, num_types))


def score(confusion, joint, sizes):
    """Edges right in all layers, and right layers, if predicted joint type p
    means joint[p]."""
    types = list(product(*map(range, sizes)))
    combined = layers = 0
    for p, row in enumerate(confusion.tolist()):
        for t, count in enumerate(row):
            same = sum(a == b for a, b in zip(types[joint[p]], types[t]))
            combined += count * (same == len(sizes))
            layers += count * same
    return combined, layers


def all_layerwise(predicted_sizes, sizes, fixed_null):
    """All orders of layers x permutations of types within them."""
    for order in permutations(range(len(sizes))):
        if [predicted_sizes[p] for p in order] != list(sizes):
            continue
        for labels in product(*[permutations(range(k)) for k in sizes]):
            if fixed_null and any(label[0] != 0 for label in labels):
                continue
            relabelled = [
                tuple(label[old[p]] for p, label in zip(order, labels))
                for old in product(*map(range, predicted_sizes))
            ]
            true = list(product(*map(range, sizes)))
            yield [true.index(new) for new in relabelled]


@pytest.mark.parametrize('predicted_sizes, sizes, counts', [
    ([2, 2], [2, 2], (8, 2)),
    ([2, 2, 2], [2, 2, 2], (48, 6)),
    ([3, 2], [2, 3], (12, 2)),
    ([3, 2, 3], [3, 3, 2], (144, 8)),
])
@pytest.mark.parametrize('fixed_null', [False, True])
def test_layerwise_search_equals_brute_force(predicted_sizes, sizes, counts,
                                             fixed_null):
    confusion = random_confusion(sizes)
    ways = list(all_layerwise(predicted_sizes, sizes, fixed_null))
    assert len(ways) == counts[fixed_null]
    assert len(ways) == count_layerwise(sizes, fixed_null)
    joint = best_layerwise(confusion, predicted_sizes, sizes, fixed_null)
    assert joint.tolist() in ways
    assert score(confusion, joint.tolist(),
                 sizes) == max(score(confusion, way, sizes) for way in ways)


@pytest.mark.parametrize('sizes', [[2, 2], [2, 3], [5]])
@pytest.mark.parametrize('fixed_null', [False, True])
def test_assignment_equals_brute_force(sizes, fixed_null):
    confusion = random_confusion(sizes)
    ways = [
        way for way in permutations(range(len(confusion)))
        if not fixed_null or way[0] == 0
    ]
    joint = best_assignment(confusion, sizes, fixed_null)
    assert tuple(joint.tolist()) in ways
    assert score(confusion, joint.tolist(),
                 sizes) == max(score(confusion, way, sizes) for way in ways)


def test_of_equals_that_with_more_right_layers_is_taken():
    confusion = torch.zeros(4, 4, dtype=torch.long)
    confusion[0] = torch.tensor([5, 5, 0, 3])  # (0, 1) is half of (1, 1)
    joint = best_layerwise(confusion, [2, 2], [2, 2], fixed_null=False)
    assert joint.tolist() == [1, 0, 3, 2]
    assert best_assignment(confusion, [2, 2]).tolist() == [1, 0, 2, 3]


def test_of_all_equals_none_is_changed():
    confusion = torch.ones(8, 8, dtype=torch.long)
    sizes = [2, 2, 2]
    for joint in (best_layerwise(confusion, sizes, sizes,
                                 False), best_assignment(confusion, sizes)):
        assert joint.tolist() == list(range(8))


def test_one_predicted_layer_is_matched_and_others_are_reordered():
    confusion = random_confusion([2, 2])
    one = best_relabelling(confusion, [4], [2, 2])
    assert one.equal(best_assignment(confusion, [2, 2]))
    two = best_relabelling(confusion, [2, 2], [2, 2], fixed_null=True)
    assert two.equal(best_layerwise(confusion, [2, 2], [2, 2], True))
