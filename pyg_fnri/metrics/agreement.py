"""How far two inferred graphs of the same systems agree; no truth needed."""
import math
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from pyg_fnri.metrics.joint_type import check_sizes, check_types, joint_type
from pyg_fnri.metrics.relabelling_search import best_relabelling, check_mapping


class Agreement(NamedTuple):
    """How far two graphs agree, all layers at once.

    Args:
        share (float): Share of edges that agree after the best relabelling.
        chance (float): What two graphs that have nothing in common but how
            often each type occurs in them are expected to share.
        adjusted (float, optional): 1 for the same graph, 0 for chance, as
            Cohen's kappa; None where chance alone makes them agree, as where
            both have one type everywhere.
    """
    share: float
    chance: float
    adjusted: Optional[float]


def agreement(types_a: Tensor, types_b: Tensor,
              sizes: Sequence[int]) -> Agreement:
    r"""The strict edge accuracy of one inferred graph, were the other the
    truth: the share of edges :math:`p` that are the same in all layers at
    once, after the relabelling of layers and of types within layers that
    makes it highest, as in :class:`EdgeAccuracy`. Models that differ in their
    seed alone should find one graph; where they do not, neither can be
    trusted.

    Sparse graphs agree by chance, as both say "no interaction" nearly
    everywhere. If two graphs are independent, the shares :math:`a_s` and
    :math:`b_t` of their joint types multiply. The best relabelling
    :math:`\pi` of that gives the chance level
    :math:`c = \max_\pi \sum_s a_s b_{\pi(s)}`, and
    :math:`(p - c) / (1 - c)` is the agreement adjusted for it. On few edges,
    the search for the best relabelling finds a little more than :math:`c` in
    independent graphs, too.

    Args:
        types_a (torch.Tensor): The types in one graph,
            :obj:`[num_edges, num_layers]`, integers.
        types_b (torch.Tensor): Those in the other one, of the same edges.
        sizes (Sequence[int]): Number of edge types of each layer.

    Returns:
        An :class:`Agreement`.

    Raises:
        TypeError: If types are no integers.
        ValueError: If there are no edges, shapes do not fit, a type is out of
            range, or there are too many relabellings to try.
    """
    sizes = check_sizes('sizes', sizes)
    check_mapping(sizes, sizes)
    if not isinstance(types_a, Tensor) or not isinstance(types_b, Tensor):
        raise TypeError(f'Expected the types of both graphs as tensors, got '
                        f'{type(types_a).__name__} and '
                        f'{type(types_b).__name__}.')
    confusion = _count(types_a, types_b, sizes)
    num_edges = int(confusion.sum())
    if not num_edges:
        raise ValueError('There are no edges on which two graphs could agree.')
    # Counts of independent graphs, as whole numbers: num_edges times too many.
    independent = confusion.sum(1, keepdim=True) * confusion.sum(0)
    share = _right(confusion, sizes) / num_edges
    chance = _right(independent, sizes) / num_edges**2
    adjusted = None if chance == 1 else (share - chance) / (1 - chance)
    return Agreement(share, chance, adjusted)


def _count(types_a: Tensor, types_b: Tensor, sizes: Sequence[int]) -> Tensor:
    """Number of edges of each pair of joint types, :obj:`[P, P]`."""
    check_types('types_a', types_a, sizes)
    check_types('types_b', types_b, sizes)
    if types_a.size(0) != types_b.size(0):
        raise ValueError(f'types_a has {types_a.size(0)} edges and types_b '
                         f'{types_b.size(0)}: expected both for the same '
                         f'edges.')
    num_types = math.prod(sizes)
    cell = joint_type(types_a, sizes) * num_types + joint_type(types_b, sizes)
    return torch.bincount(cell,
                          minlength=num_types**2).view(num_types,
                                                       num_types).cpu()


def _right(confusion: Tensor, sizes: Sequence[int]) -> int:
    """Number of edges that agree after the best relabelling."""
    joint = best_relabelling(confusion, sizes, sizes)
    return int(confusion[torch.arange(joint.numel()), joint].sum())
