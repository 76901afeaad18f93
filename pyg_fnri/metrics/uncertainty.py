"""How sure a posterior is, and whether it agrees with itself; no truth needed.
"""
import torch
from torch import Tensor


def posterior_entropy(probabilities: Tensor) -> Tensor:
    r"""The mean entropy of one layer's types, :math:`- \sum_k q_k \log q_k`
    in nats; :math:`\log K` at most.

    Args:
        probabilities: :obj:`[num_edges, K]`.

    Returns:
        A scalar; NaN where there are no edges.
    """
    return torch.special.entr(probabilities.double()).sum(-1).mean()


def asymmetric_share(edge_type: Tensor, reverse: Tensor) -> Tensor:
    """The share of pairs whose two directions have different types in one
    layer. Where interactions are mutual, as forces are, at least one of the
    two is wrong.

    Args:
        edge_type: The predicted types, :obj:`[num_edges]`.
        reverse: The position of each edge's reverse, :obj:`[num_edges]`, as
            of :func:`~pyg_fnri.nn.latent.reverse_edges`; edges without one
            are left out.

    Returns:
        A scalar; NaN where there are no pairs.
    """
    edge, back = _both_ways(reverse)
    return (edge_type[edge] != edge_type[back]).double().mean()


def asymmetry(probabilities: Tensor, reverse: Tensor) -> Tensor:
    r"""The mean distance of the probabilities of a pair's two directions,
    :math:`\frac{1}{2} \sum_k |q_{k,ij} - q_{k,ji}|`: of two types, the
    absolute difference of either's probabilities.

    Args:
        probabilities: Of one layer's types, :obj:`[num_edges, K]`.
        reverse: As for :func:`asymmetric_share`.

    Returns:
        A scalar; NaN where there are no pairs.
    """
    edge, back = _both_ways(reverse)
    distance = (probabilities[edge] - probabilities[back]).double().abs()
    return distance.sum(-1).mean() / 2


def _both_ways(reverse: Tensor) -> tuple[Tensor, Tensor]:
    """Each pair once: the positions of its two directions."""
    edge = torch.arange(reverse.numel(), device=reverse.device)
    once = edge < reverse
    return edge[once], reverse[once]
