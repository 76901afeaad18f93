"""What the edges of a particle say of it."""
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.utils import scatter


def mean_per_node(
    logits: Tensor,
    edge_index: Tensor,
    num_nodes: Optional[int] = None,
) -> tuple[Tensor, Tensor]:
    """The mean over all edges of a node, in and out.

    Args:
        logits: What each edge says of its receiver, then of its sender,
            :obj:`[num_edges, 2 * C]`.
        edge_index: Candidate edges, :obj:`[2, num_edges]`.
        num_nodes: Number of nodes; by default, the last one with an edge is
            the last.

    Returns:
        The means :obj:`[num_nodes, C]`, 0 where there is no edge, and the
        numbers of edges :obj:`[num_nodes, 1]`.

    Raises:
        ValueError: If the edges are not those of the logits.
    """
    if edge_index.size() != (2, logits.size(0)):
        raise ValueError(
            f"Expected the candidate edges edge_index of the {logits.size(0)} "
            f"rows of logits, of shape [2, num_edges], but got "
            f"{list(edge_index.size())}.")
    if num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
    node = edge_index.flip(0).flatten()  # Receivers, then senders.
    said = torch.cat(logits.chunk(2, dim=-1))
    mean = scatter(said, node, dim_size=num_nodes, reduce='mean')
    return mean, node.bincount(minlength=num_nodes).unsqueeze(-1)
