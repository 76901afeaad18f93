"""Joint types: each combination of the layers' edge types, as one number.

They count row-major, the last layer fastest: of two layers of two types,
(0, 0) is joint type 0, (0, 1) is 1, (1, 0) is 2 and (1, 1) is 3.
"""
import math
from collections.abc import Iterable, Sequence
from numbers import Integral

import torch
from torch import Tensor


def joint_type(edge_type: Tensor, sizes: Sequence[int]) -> Tensor:
    """The joint type of each edge.

    Args:
        edge_type: Types of each layer, :obj:`[..., num_layers]`.
        sizes: Number of types of each layer.

    Returns:
        The joint types, :obj:`[...]`.
    """
    strides = [math.prod(sizes[layer + 1:]) for layer in range(len(sizes))]
    weight = torch.tensor(strides, device=edge_type.device)
    return (edge_type * weight).sum(dim=-1)


def all_joint_types(sizes: Sequence[int]) -> Tensor:
    """The layers' types in each joint type, in the order of their numbers,
    :obj:`[prod(sizes), num_layers]`."""
    types = torch.cartesian_prod(*map(torch.arange, sizes))
    return types.view(math.prod(sizes), len(sizes))


def check_sizes(name: str, sizes: Sequence[int]) -> tuple[int, ...]:
    """Numbers of edge types per layer, as plain integers.

    Raises:
        ValueError: If there is no layer, or one of fewer than two types.
    """
    values = tuple(sizes) if isinstance(sizes, Iterable) else ()
    if not values or any(not isinstance(k, Integral) or k < 2 for k in values):
        raise ValueError(f'{name} must give a number of edge types, at least '
                         f'2, for each layer (such as [2, 2]), got {sizes}.')
    return tuple(int(k) for k in values)


def check_types(name: str, types: Tensor, sizes: Sequence[int]) -> None:
    """Checks edge types :obj:`[num_edges, num_layers]`.

    Raises:
        TypeError: If they are no tensor of integers.
        ValueError: If the shape does not fit or a type is out of range.
    """
    if not isinstance(types, Tensor):
        raise TypeError(f'{name} must be a tensor, got '
                        f'{type(types).__name__}.')
    if types.is_floating_point() or types.dtype == torch.bool:
        raise TypeError(f'{name} must hold integer edge types, got '
                        f'{types.dtype}. Choose a type per edge and layer '
                        f'first; logits or probabilities will not do.')
    if types.dim() != 2 or types.size(1) != len(sizes):
        raise ValueError(f'{name} has shape {list(types.shape)}, expected '
                         f'[num_edges, {len(sizes)}].')
    limit = torch.tensor(sizes, device=types.device)
    wrong = (types < 0) | (types >= limit)
    if wrong.any():
        edge, layer = wrong.nonzero()[0].tolist()
        raise ValueError(f'{name} holds the type {int(types[edge, layer])} '
                         f'in layer {layer}, expected 0 to '
                         f'{sizes[layer] - 1}. Were the numbers of edge types '
                         f'given in the order of the layers?')


def count_joint_types(
    edge_type: Tensor,
    edge_label: Tensor,
    predicted_sizes: Sequence[int],
    sizes: Sequence[int],
) -> Tensor:
    """Number of edges of each predicted and true joint type, :obj:`[P, P]`.

    Args:
        edge_type: Predicted types, :obj:`[num_edges, num_predicted_layers]`.
        edge_label: True types, :obj:`[num_edges, num_layers]`.
        predicted_sizes: Number of types of each predicted layer.
        sizes: Number of types of each true layer, as many joint types.

    Raises:
        TypeError: If either holds anything but integers.
        ValueError: If there are no labels, shapes do not fit or a type is out
            of range.
    """
    if edge_label is None:
        raise ValueError(
            'edge_label is None: edge accuracy needs the true edge types '
            '[E, L]. Skip this metric for data without them.')
    check_types('edge_type', edge_type, predicted_sizes)
    check_types('edge_label', edge_label, sizes)
    if edge_type.size(0) != edge_label.size(0):
        raise ValueError(
            f'edge_type has {edge_type.size(0)} edges and edge_label '
            f'{edge_label.size(0)}: expected both for the same edges.')
    num_types = math.prod(sizes)
    cell = (joint_type(edge_type, predicted_sizes) * num_types +
            joint_type(edge_label, sizes))
    count = torch.bincount(cell, minlength=num_types**2)
    return count.view(num_types, num_types)


def check_probabilities(posterior: Sequence[Tensor],
                        sizes: Sequence[int]) -> None:
    """Checks probabilities :obj:`[num_edges, K_a]` of each layer's types.

    Raises:
        TypeError: If they are no floating-point tensors.
        ValueError: If shapes do not fit, a value is no probability or those
            of an edge do not sum to one.
    """
    if len(posterior) != len(sizes):
        raise ValueError(f'The posterior is of {len(posterior)} layers, '
                         f'expected {len(sizes)}.')
    for layer, (q, size) in enumerate(zip(posterior, sizes)):
        if not isinstance(q, Tensor) or not q.is_floating_point():
            kind = q.dtype if isinstance(q, Tensor) else type(q).__name__
            raise TypeError(f'The posterior of layer {layer} must be a '
                            f'floating-point tensor, got {kind}.')
        if q.size() != (len(posterior[0]), size):
            raise ValueError(f'The posterior of layer {layer} has shape '
                             f'{list(q.shape)}, expected '
                             f'[{len(posterior[0])}, {size}].')
        # Written so that NaN fails as well.
        if not bool(
            ((q >= 0) & ((q.sum(-1, keepdim=True) - 1).abs() < 1e-3)).all()):
            raise ValueError(f'The posterior of layer {layer} holds values '
                             f'that are negative, not finite or do not sum to '
                             f'1: expected probabilities, not logits.')
