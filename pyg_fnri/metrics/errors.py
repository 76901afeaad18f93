"""What can be had without a model: floors for every figure in a table."""
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from pyg_fnri.nn import LinearStep


def static_rollout(y: Tensor, pred_steps: int) -> Tensor:
    """The Static baseline: each predicted state is a copy of the last true
    one that was looked at (every :obj:`pred_steps` steps).

    Args:
        y: Trajectories, :obj:`[num_nodes, T, num_features]`.
        pred_steps: Steps between two looks at the true state.

    Returns:
        Predictions of frames 1, ..., T - 1, :obj:`[num_nodes, T - 1, F]`.

    Raises:
        ValueError: If :obj:`pred_steps` is less than 1.
    """
    _check_steps(pred_steps)
    num_steps = y.size(1) - 1
    start = torch.arange(num_steps, device=y.device)
    return y[:, start - start % pred_steps]


@torch.no_grad()
def linear_rollout(linear_step: LinearStep, y: Tensor,
                   pred_steps: int) -> Tensor:
    """The best linear prediction without any interaction, rolled out: the
    least-squares step feeds on its own predictions and looks at the true state
    every :obj:`pred_steps` steps. Not in the paper.

    Args:
        linear_step: The step, fitted on the training split.
        y: Trajectories in the step's units, :obj:`[num_nodes, T,
            num_features]`.
        pred_steps: Steps between two looks at the true state.

    Returns:
        Predictions of frames 1, ..., T - 1, :obj:`[num_nodes, T - 1, F]`.

    Raises:
        ValueError: If :obj:`pred_steps` is less than 1.
    """
    _check_steps(pred_steps)
    num_steps = y.size(1) - 1
    state = y[:, :-1:pred_steps]  # All starts at once: [N, num_starts, F]
    frames = []
    for _ in range(min(pred_steps, num_steps)):
        state = linear_step(state)
        frames.append(state)
    if not frames:
        return y[:, 1:]
    return torch.stack(frames, dim=2).flatten(1, 2)[:, :num_steps]


def random_types(
    num_edges: int,
    num_edge_types: Sequence[int],
    generator: Optional[torch.Generator] = None,
) -> Tensor:
    """The Random baseline: each type of each layer-graph as likely as another.

    Args:
        num_edges: Number of edges.
        num_edge_types: Number of types of each layer-graph.
        generator: Source of the types.

    Returns:
        The types, :obj:`[num_edges, num_layers]` int64.
    """
    return torch.stack([
        torch.randint(k, (num_edges, ), generator=generator)
        for k in num_edge_types
    ], dim=-1)


class Majority(NamedTuple):
    """The most common types of a training split.

    Args:
        layers (tuple[int, ...]): The most common type of each layer-graph.
        combination (tuple[int, ...]): The most common combination of types.
    """
    layers: tuple[int, ...]
    combination: tuple[int, ...]

    def accuracy(self, edge_label: Tensor) -> dict[str, object]:
        """What always guessing them scores: :obj:`combined` the most common
        combination, :obj:`layers` the most common type of each layer-graph by
        itself, so that no figure in a table has a higher floor than it.

        Args:
            edge_label: True types, :obj:`[num_edges, num_layers]`.

        Raises:
            ValueError: If there are no edges or other layer-graphs.
        """
        if edge_label.dim() != 2 or edge_label.size(1) != len(self.layers):
            raise ValueError(f"Expected edge labels of shape [num_edges, "
                             f"{len(self.layers)}], but got "
                             f"{list(edge_label.size())}.")
        if not len(edge_label):
            raise ValueError("There are no edges to score on.")
        combined = (edge_label == edge_label.new_tensor(self.combination))
        layers = edge_label == edge_label.new_tensor(self.layers)
        return {
            'combined': combined.all(-1).double().mean().item(),
            'layers': layers.double().mean(0).tolist(),
        }


def majority_types(edge_label: Tensor) -> Majority:
    """The most common types, the first of equally common ones.

    Args:
        edge_label: Types of the training split, :obj:`[num_edges,
            num_layers]`.

    Raises:
        ValueError: If there are no edges.
    """
    if edge_label.dim() != 2 or not edge_label.numel():
        raise ValueError(f"Expected edge labels of shape [num_edges, "
                         f"num_layers] of at least one edge, but got "
                         f"{list(edge_label.size())}.")
    combinations, count = edge_label.unique(dim=0, return_counts=True)
    return Majority(
        tuple(
            int(torch.bincount(types).argmax())
            for types in edge_label.unbind(-1)),
        tuple(combinations[count.argmax()].tolist()))


def _check_steps(pred_steps: int) -> None:
    if pred_steps < 1:
        raise ValueError(f"Expected at least 1 step between two looks at the "
                         f"true state, but got pred_steps={pred_steps}.")
