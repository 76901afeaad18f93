import math
from itertools import permutations, product

import pytest
import torch

from pyg_fnri.metrics import Relabelling, assign
from pyg_fnri.metrics.relabelling import best_assignment, best_relabelling

TYPES = [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_types_are_translated_and_posteriors_marginalised():
    relabelling = Relabelling((4, ), ((1, 0), (0, 0), (1, 1), (0, 1)))
    types = torch.tensor([[3], [0], [0], [2]])
    assert relabelling(types).tolist() == [[0, 1], [1, 0], [1, 0], [1, 1]]
    with pytest.raises(ValueError, match='beyond'):
        relabelling(types + 1)
    q = torch.tensor([[0.1, 0.2, 0.3, 0.4], [1., 0., 0., 0.]])
    first, second = relabelling.probabilities([q])
    torch.testing.assert_close(first, torch.tensor([[0.6, 0.4], [0., 1.]]))
    torch.testing.assert_close(second, torch.tensor([[0.3, 0.7], [1., 0.]]))
    with pytest.raises(ValueError, match='logits'):
        relabelling.probabilities([5 * q])


def test_posteriors_are_relabelled_layer_by_layer_or_mixed():
    q = [torch.tensor([[0.9, 0.1]]), torch.tensor([[0.3, 0.7]])]
    swapped = Relabelling((2, 2), tuple((1 - b, a) for a, b in TYPES))
    first, second = swapped.probabilities(q)
    torch.testing.assert_close(first, q[1].flip(-1))
    torch.testing.assert_close(second, q[0])
    exclusive = Relabelling((2, 2), tuple((a, a ^ b) for a, b in TYPES))
    second = exclusive.probabilities(q)[1]
    torch.testing.assert_close(second, torch.tensor([[0.34, 0.66]]))


PLAIN = tuple(product(range(3), range(2)))
#: Predicted: layer 0 of the two types, layer 1 of three, numbered 0, 2, 1.
OTHER = tuple((kind, layer) for layer in range(2) for kind in (0, 2, 1))


@pytest.mark.parametrize('sizes, table, num_channels, channels',
                         [((2, 2), TYPES, 2, [0, 1]),
                          ((2, 2), [(b, a) for a, b in TYPES], 2, [1, 0]),
                          ((2, 2), [(1 - a, b) for a, b in TYPES], 2, None),
                          ((2, 2), TYPES, 4, None),
                          ((3, 2), PLAIN, 3, [0, 1, 2]),
                          ((2, 3), OTHER, 3, [2, 1, 0]),
                          ((4, ), TYPES, 3, None),
                          ((3, ), ((1, ), (0, ), (2, )), 2, None),
                          ((2, ), ((0, ), (2, )), 1, None)])
def test_each_force_has_the_channel_that_stands_for_it_alone(
        sizes, table, num_channels, channels):
    relabelling = Relabelling(sizes, tuple(table))
    assert relabelling.channels(num_channels) == channels


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


@pytest.mark.parametrize('predicted_sizes, sizes, counts',
                         [([2, 2, 2], [2, 2, 2], (48, 6)),
                          ([3, 2, 3], [3, 3, 2], (144, 8)),
                          ([4], [2, 2], (24, 6)), ([5], [5], (120, 24))])
@pytest.mark.parametrize('fixed_null', [False, True])
def test_search_equals_brute_force(predicted_sizes, sizes, counts, fixed_null):
    num_types = math.prod(sizes)
    confusion = torch.randint(50, (num_types, num_types))
    if len(predicted_sizes) > 1:
        ways = list(all_layerwise(predicted_sizes, sizes, fixed_null))
    else:
        ways = [[*way] for way in permutations(range(num_types))
                if not fixed_null or way[0] == 0]
    assert len(ways) == counts[fixed_null]
    joint = best_relabelling(confusion, predicted_sizes, sizes,
                             fixed_null).tolist()
    assert joint in ways
    assert score(confusion, joint,
                 sizes) == max(score(confusion, way, sizes) for way in ways)


def test_ties_go_to_right_layers_then_to_no_change():
    confusion = torch.zeros(4, 4, dtype=torch.long)
    confusion[0] = torch.tensor([5, 5, 0, 3])  # (0, 1) is half of (1, 1)
    joint = best_relabelling(confusion, [2, 2], [2, 2])
    assert joint.tolist() == [1, 0, 3, 2]
    assert best_assignment(confusion, [2, 2]).tolist() == [1, 0, 2, 3]
    same, sizes = torch.ones(8, 8, dtype=torch.long), [2, 2, 2]
    assert best_relabelling(same, sizes, sizes).tolist() == list(range(8))
    assert best_assignment(same, sizes).tolist() == list(range(8))


def test_assignments_are_exact_and_leave_the_fewest_out():
    assert assign({(0, 0): 1, (1, 1): 1, (1, 0): 10}) == {0: 0, 1: 1}
    assert assign({(0, 0): 1, (1, 0): 10}) == {1: 0}
    large = 10**40
    weight = {(0, 0): large, (1, 1): large, (0, 1): large, (1, 0): large + 1}
    assert assign(weight) == {0: 1, 1: 0}
