"""How well probabilities tell interactions from their absence."""
from collections.abc import Callable

import torch
from torch import Tensor
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_average_precision,
)


def interaction_probability(probabilities: Tensor) -> Tensor:
    """The probability of any interaction, of whatever type: that of all types
    but the null type 0.

    Args:
        probabilities: Of one layer's types, :obj:`[num_edges, K]`.

    Returns:
        The probabilities, :obj:`[num_edges]`.
    """
    # Not 1 - q_0: where q_0 is all but 1, that is all rounding.
    return probabilities[:, 1:].sum(-1).clamp(max=1)


def auroc(probabilities: Tensor, edge_label: Tensor) -> Tensor:
    """Area under the receiver operating characteristic: how often an edge
    that interacts has a higher :func:`interaction_probability` than one that
    does not (ties count half). Right types of interacting edges, where there
    are more than two, play no part.

    Args:
        probabilities: Of one layer's types, :obj:`[num_edges, K]`, type 0
            being the absence of an interaction.
        edge_label: The true types, :obj:`[num_edges]`.

    Returns:
        A scalar; NaN unless there are edges of both kinds.

    Raises:
        TypeError: If dtypes do not fit.
        ValueError: If shapes do not fit or a value is no probability.
    """
    return _detect(binary_auroc, probabilities, edge_label)


def average_precision(probabilities: Tensor, edge_label: Tensor) -> Tensor:
    """Area under the precision-recall curve of the same decision as in
    :func:`auroc`: of guesses, the share of edges that interact.

    Arguments, result and errors as for :func:`auroc`.
    """
    return _detect(binary_average_precision, probabilities, edge_label)


def _detect(metric: Callable[[Tensor, Tensor], Tensor], probabilities: Tensor,
            edge_label: Tensor) -> Tensor:
    if not probabilities.is_floating_point() or edge_label.is_floating_point():
        raise TypeError(f'probabilities must hold floating-point numbers and '
                        f'edge_label integers, got {probabilities.dtype} and '
                        f'{edge_label.dtype}.')
    if (probabilities.dim() != 2
            or edge_label.size() != probabilities.size()[:1]):
        raise ValueError(f'probabilities have shape '
                         f'{list(probabilities.shape)} and edge_label '
                         f'{list(edge_label.shape)}: expected [num_edges, K] '
                         f'and [num_edges], one layer at a time.')
    # Written so that NaN fails as well; torchmetrics takes any other numbers
    # for logits.
    if not bool(((probabilities >= 0) & (probabilities <= 1)).all()):
        raise ValueError('probabilities must lie between 0 and 1.')
    present = edge_label != 0
    if present.all() or not present.any():
        return probabilities.new_tensor(torch.nan)
    # In single precision, sums over all edges can exceed 1 by rounding.
    return metric(interaction_probability(probabilities),
                  present.long()).clamp(max=1)
