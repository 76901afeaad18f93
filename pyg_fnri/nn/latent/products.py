"""What the values of two particles make of the edge between them."""
import operator
from collections.abc import Sequence

import torch
from torch import Tensor


def product_table(values: Sequence[int]) -> Tensor:
    """The edge type of each pair of values, :obj:`[K, K]` int64: the place of
    their product, the smallest first, the positive before the negative."""
    products = {a * b for a in values for b in values}
    order = sorted(products, key=lambda z: (abs(z), -z))
    return torch.tensor([[order.index(a * b) for b in values] for a in values])


def check_values(values: Sequence[Sequence[int]]) -> list[list[int]]:
    """The values of a particle in each layer-graph as plain integers.

    Raises:
        TypeError: If they are no sequences of integers.
        ValueError: If there are fewer than two, they repeat or do not begin
            with 0.
    """
    try:
        out = [[operator.index(c) for c in layer] for layer in values]
    except TypeError:
        raise TypeError(
            f"Expected the values of a particle in each layer-graph, such as "
            f"[[0, 1]], but got {values!r}.") from None
    if not out or any(
            len(layer) < 2 or layer[0] != 0 or len(set(layer)) < len(layer)
            for layer in out):
        raise ValueError(
            f"Expected at least two different values of a particle in each "
            f"layer-graph, 0 first, such as [[0, 1]], but got {values}.")
    return out
