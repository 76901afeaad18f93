from itertools import permutations

import torch

from pyg_fnri.metrics.assignment import assign


def test_equals_the_best_of_all_orders():
    for size in (1, 2, 4):
        table = torch.randint(-50, 50, (size, size)).tolist()
        weight = {
            (row, column): table[row][column]
            for row in range(size)
            for column in range(size)
        }
        found = assign(weight)
        assert sorted(found) == sorted(found.values()) == list(range(size))
        best = max(
            sum(table[row][column] for row, column in enumerate(order))
            for order in permutations(range(size)))
        assert sum(weight[pair] for pair in found.items()) == best


def test_what_may_not_be_joined_is_not():
    assert assign({(0, 0): 1, (1, 1): 1, (1, 0): 10}) == {0: 0, 1: 1}
    assert assign({(0, 0): 1, (1, 0): 10}) == {1: 0}


def test_large_integers_are_exact():
    large = 10**40
    weight = {(0, 0): large, (1, 1): large, (0, 1): large, (1, 0): large + 1}
    assert assign(weight) == {0: 1, 1: 0}
