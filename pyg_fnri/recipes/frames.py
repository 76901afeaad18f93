"""The frames that a step of training predicts from."""
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.utils import scatter


def draw_frames(
    residual: Tensor,
    batch: Optional[Tensor],
    num_frames: int,
    focus: float,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Draws frames of each system, more often where more is left over.

    Args:
        residual: What is left over, :obj:`[num_nodes, T, num_features]`.
        batch: The system of each node, :obj:`[num_nodes]`; None for one system.
        num_frames: How many, with replacement.
        focus: The share that is drawn by the square of what is left over.
        generator: Source of randomness.

    Returns:
        The frames and their weights, with which sums over them are on average
        those over all frames; :obj:`[num_nodes, num_frames]` each.
    """
    if batch is None:
        batch = torch.zeros(residual.size(0), dtype=torch.long,
                            device=residual.device)
    # The square of what is left over, of all particles together, [S, T].
    energy = scatter(residual.square().sum(-1), batch, reduce='sum')
    share = energy / energy.sum(-1, keepdim=True).clamp_min(1e-30)
    probability = (1 - focus) / energy.size(1) + focus * share
    frame = torch.multinomial(probability, num_frames, replacement=True,
                              generator=generator)
    weight = 1 / (num_frames * probability.gather(1, frame))
    return frame[batch], weight[batch]
