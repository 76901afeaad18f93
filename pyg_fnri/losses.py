"""Terms of the training objective, per particle."""
from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import huber_loss
from torch_geometric.utils import scatter


def gaussian_nll(prediction: Tensor, target: Tensor, variance: float) -> Tensor:
    r"""Reconstruction error of the paper (supplement, section 1.5),
    :math:`\sum_{t} \|\mathbf{x}^t_j - \boldsymbol{\mu}^t_j\|^2 / 2 \sigma^2`,
    averaged over particles, without its constant.

    Args:
        prediction, target: :obj:`[num_nodes, num_steps, num_features]`.
        variance: :math:`\sigma^2` in those units (5e-5 in the paper's).
    """
    _check_shapes(prediction, target)
    error = (prediction - target).square().sum()
    return error / (2 * variance * target.size(0))


def huber_nll(prediction: Tensor, target: Tensor, scale: Tensor,
              variance: float, delta: float = 1.0,
              weight: Optional[Tensor] = None) -> Tensor:
    r"""Like :func:`gaussian_nll` in units of :obj:`scale` for errors below
    :obj:`delta`, but linear above: close encounters do not drown the rest.

    Args:
        prediction, target: :obj:`[num_nodes, num_steps, num_features]`.
        scale: Typical error of each feature, :obj:`[num_features]`.
        variance: Variance of small errors in units of :obj:`scale` squared.
        delta: Where the tails begin, in :obj:`scale`; infinity: a Gaussian.
        weight: Of each state, :obj:`[num_nodes, num_steps]`; by default 1.
    """
    _check_shapes(prediction, target)
    error = (prediction - target) / scale
    loss = huber_loss(error, torch.zeros_like(error), reduction='none',
                      delta=delta)
    if weight is not None:
        loss = loss * weight.unsqueeze(-1)
    return loss.sum() / (variance * target.size(0))


def kl_divergence(kl: Tensor, num_nodes: int) -> Tensor:
    """Divergences :obj:`[num_edges, num_layers]` of the latent graph from its
    prior, summed over edges and layer-graphs, per particle."""
    return kl.sum() / num_nodes


def draw_frames(residual: Tensor, batch: Optional[Tensor], num_frames: int,
                focus: float,
                generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws frames of each system with replacement, a share :obj:`focus` of
    them by the square of the residual :obj:`[num_nodes, T, num_features]`; and
    weights that make up for it; :obj:`[num_nodes, num_frames]` each."""
    if batch is None:
        batch = torch.zeros(residual.size(0), dtype=torch.long,
                            device=residual.device)
    # Of all particles of a system together, [S, T].
    energy = scatter(residual.square().sum(-1), batch, reduce='sum')
    share = energy / energy.sum(-1, keepdim=True).clamp_min(1e-30)
    probability = (1 - focus) / energy.size(1) + focus * share
    frame = torch.multinomial(probability, num_frames, replacement=True,
                              generator=generator)
    weight = 1 / (num_frames * probability.gather(1, frame))
    return frame[batch], weight[batch]


def _check_shapes(prediction: Tensor, target: Tensor) -> None:
    if prediction.size() != target.size():  # Would be broadcast.
        raise ValueError(f'prediction and target must be of one shape, but are '
                         f'{list(prediction.shape)} and {list(target.shape)}.')
