"""Terms of the training objective, per particle."""
import math
from typing import Optional

import torch
from torch import Tensor


def gaussian_nll(prediction: Tensor, target: Tensor, variance: float) -> Tensor:
    r"""Reconstruction error of the paper (supplement, section 1.5),
    :math:`\sum_{t} \|\mathbf{x}^t_j - \boldsymbol{\mu}^t_j\|^2 / 2 \sigma^2`,
    averaged over particles, without its constant.

    Args:
        prediction: :obj:`[num_nodes, num_steps, num_features]`.
        target: Same shape, same units.
        variance: :math:`\sigma^2` in those units (5e-5 in the paper's).

    Raises:
        ValueError: If the shapes differ or the variance is not positive.
    """
    _check(prediction, target, variance)
    error = (prediction - target).square().sum()
    return error / (2 * variance * target.size(0))


def huber_nll(
    prediction: Tensor,
    target: Tensor,
    scale: Tensor,
    variance: float,
    delta: float = 1.0,
    weight: Optional[Tensor] = None,
) -> Tensor:
    r"""Like :func:`gaussian_nll` in units of :obj:`scale` for errors below
    :obj:`delta`, but growing linearly above: the likelihood has heavy tails,
    so close encounters do not drown everything else.

    Args:
        prediction: :obj:`[num_nodes, num_steps, num_features]`.
        target: Same shape, same units.
        scale: Typical error of each feature, :obj:`[num_features]`.
        variance: Variance of small errors in units of :obj:`scale` squared.
        delta: Where the tails begin, in units of :obj:`scale`; infinity for a
            Gaussian.
        weight: How much each state counts, :obj:`[num_nodes, num_steps]`;
            once each by default.

    Raises:
        ValueError: If the shapes differ, or the variance or :obj:`delta` is
            not positive.
    """
    _check(prediction, target, variance)
    if not delta > 0:
        raise ValueError(f"Expected a delta > 0, but got {delta}.")
    error = (prediction - target) / scale
    if delta == math.inf:
        loss = error.square() / 2
    else:
        loss = torch.nn.functional.huber_loss(error, torch.zeros_like(error),
                                              reduction='none', delta=delta)
    if weight is not None:
        loss = loss * weight.unsqueeze(-1)
    return loss.sum() / (variance * target.size(0))


def kl_divergence(kl: Tensor, num_nodes: int) -> Tensor:
    """Divergences :obj:`[num_edges, num_layers]` of the latent graph from its
    prior, summed over edges and layer-graphs, per particle.

    Raises:
        ValueError: If there are no particles.
    """
    if num_nodes < 1:
        raise ValueError(f"Expected at least one particle, but got "
                         f"{num_nodes}.")
    return kl.sum() / num_nodes


def _check(prediction: Tensor, target: Tensor, variance: float) -> None:
    # Tensors of other shapes would be spread over each other.
    if prediction.size() != target.size():
        raise ValueError(
            f"Expected predictions and targets of one shape, but got "
            f"{list(prediction.size())} and {list(target.size())}.")
    if not variance > 0:
        raise ValueError(f"Expected a variance > 0, but got {variance}.")
