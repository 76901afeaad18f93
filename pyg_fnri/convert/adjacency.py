"""Adjacency matrices of directed multiplex graphs, and the way back."""
from typing import Optional

import torch
from torch import Tensor

from pyg_fnri.data import Array, adjacency_to_edge_label, fully_connected


def to_adjacency(
    edge_index: Tensor,
    edge_type: Tensor,
    num_nodes: Optional[int] = None,
) -> Tensor:
    """Makes one adjacency matrix per layer: `adjacency[l, i, j]` belongs to
    the edge from sender `j` to receiver `i` (row = receiver, column = sender).

    :func:`from_adjacency` is the way back: it gives the same types on the same
    edges. In the matrices alone, an edge of type 0 and none at all are alike.

    Args:
        edge_index (Tensor): Edges, `[2, E]`.
        edge_type (Tensor): What to put into the matrices, `[E, L]`: types, or
            probabilities or other weights.
        num_nodes (int, optional): The number `N` of particles.
            (default: as many as `edge_index` asks for)

    Returns:
        `[L, N, N]`, of the dtype of `edge_type`, 0 where there is no edge.

    Raises:
        ValueError: If a shape does not fit or an edge is out of range.
    """
    check_shapes(edge_index, edge_type)
    least = int(edge_index.max()) + 1 if edge_index.numel() else 0
    num_nodes = least if num_nodes is None else num_nodes
    if num_nodes < least:
        raise ValueError(f'edge_index names particle {least - 1}, but '
                         f'num_nodes is {num_nodes}.')
    sender, receiver = edge_index
    out = edge_type.new_zeros(edge_type.size(1), num_nodes, num_nodes)
    out[:, receiver, sender] = edge_type.t()
    return out


def from_adjacency(
    adjacency: Array,
    edge_index: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor]:
    """Makes edges and their types of one adjacency matrix per layer, the way
    back from :func:`to_adjacency`: `adjacency[l, i, j]` is the type of the
    edge from sender `j` to receiver `i`. Matrices need not be symmetric.

    With the `edge_index` that the matrices were made with, it gives the types
    that they were made of. By default, every ordered pair becomes an edge,
    most of them perhaps of type 0; `edge_index[:, edge_type.any(-1)]` are those
    that interact.

    Args:
        adjacency (Tensor or ndarray): Types, `[L, N, N]`, integer or bool,
            with a zero diagonal.
        edge_index (Tensor, optional): The edges to look up, `[2, E]`.
            (default: every ordered pair, sorted by receiver)

    Returns:
        `edge_index`, `[2, E]`, and `edge_type`, `[E, L]` int64.

    Raises:
        TypeError: If the entries are neither integer nor bool.
        ValueError: If the matrices do not have the form above, or an
            interaction is between two that `edge_index` does not join.
    """
    if edge_index is None:
        # What is no matrix is found below.
        size = adjacency.shape[-1] if getattr(adjacency, 'ndim', 0) else 2
        edge_index = fully_connected(size)
    edge_type = adjacency_to_edge_label(adjacency, edge_index)
    lost = int((torch.as_tensor(adjacency) != 0).sum()) - int(
        (edge_type != 0).sum())
    if lost:
        raise ValueError(f'The adjacency has {lost} interactions between '
                         f'particles that edge_index does not join; leave '
                         f'edge_index out, or use '
                         f'pyg_fnri.data.adjacency_to_edge_label to drop '
                         f'them.')
    return edge_index, edge_type


def check_shapes(edge_index: Tensor, edge_type: Tensor) -> None:
    """Checks edges and what belongs to them.

    Raises:
        ValueError: If they are not `[2, E]` and `[E, L]`.
    """
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f'edge_index must be [2, num_edges], but its shape '
                         f'is {list(edge_index.shape)}.')
    if edge_type.dim() != 2 or edge_type.size(0) != edge_index.size(1):
        raise ValueError(f'edge_type must be [num_edges, num_layers] with '
                         f'{edge_index.size(1)} edges, but its shape is '
                         f'{list(edge_type.shape)}.')
