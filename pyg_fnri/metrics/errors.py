"""Errors of rollouts and of force laws, and baselines without any model."""
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from pyg_fnri.metrics.edge_accuracy import EdgeAccuracy
from pyg_fnri.nn import LinearStep


class RolloutMSE(Metric):
    """Mean squared error of rollouts of several lengths (table 2 of the
    paper, in min-max scaled units) over particles, frames and features.

    A rollout with horizon :math:`M` starts from a true state, feeds its own
    predictions back for :math:`M` steps, then starts again from the truth.
    :meth:`update` takes the predicted frames :obj:`[N, T - 1, F]` of each
    horizon and the true ones; the error is infinite if a rollout diverges."""
    full_state_update = False
    higher_is_better = False
    squared_error: Tensor
    num_values: Tensor

    def __init__(self, horizons: Sequence[int] = (1, 10, 20),
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.horizons = tuple(horizons)
        self.add_state('squared_error',
                       torch.zeros(len(self.horizons), dtype=torch.double),
                       dist_reduce_fx='sum')
        self.add_state('num_values', torch.tensor(0), dist_reduce_fx='sum')

    def update(self, predictions: Mapping[int, Tensor], target: Tensor) -> None:
        if target.size(1) < max(self.horizons):
            raise ValueError(
                f'target has {target.size(1)} frames, too few for a rollout of '
                f'{max(self.horizons)} steps; leave out the longer horizons.')
        errors = []
        for h in self.horizons:
            if predictions[h].size() != target.size():  # Would broadcast.
                raise ValueError(f'The prediction for horizon {h} has shape '
                                 f'{list(predictions[h].size())}, expected '
                                 f'{list(target.size())} as the target.')
            error = (predictions[h].double() - target.double()).square().sum()
            errors.append(error.nan_to_num(nan=torch.inf, posinf=torch.inf))
        total = self.squared_error  # Not in place: see EdgeAccuracy.
        self.squared_error = total + torch.stack(errors).to(total.device)
        self.num_values = self.num_values + target.numel()

    def compute(self) -> dict[int, Tensor]:
        return dict(zip(self.horizons, self.squared_error / self.num_values))


def relative_law_error(distance: Any, learned: Any, true: Any,
                       seen: Any) -> np.ndarray:
    r"""The error :math:`\sum_r |f_k(r) - f^*_k(r)| / \sum_r |f^*_k(r)|` of each
    learned law :math:`f_k`, over the :func:`supported_distances`.

    Args:
        distance: Where the laws are given, increasing, :obj:`[K]`; they are
            interpolated linearly.
        learned, true: The laws, row for row, :obj:`[C, K]`.
        seen: Distances of pairs in the data, :obj:`[num_seen]`.
    """
    distance, learned, true = map(to_array, (distance, learned, true))
    if learned.shape != true.shape:
        raise ValueError(f'The learned laws have shape {learned.shape} and the '
                         f'true ones {true.shape}; give one for each.')
    at = supported_distances(distance, seen)
    error = np.abs(interpolate(distance, learned - true, at)).sum(axis=-1)
    return cast(np.ndarray,
                error / np.abs(interpolate(distance, true, at)).sum(axis=-1))


def supported_distances(distance: Any, seen: Any) -> np.ndarray:
    """Seen distances at which a law is given, from the 1 % to the 99 %
    quantile, lest a few close encounters decide the error."""
    distance, seen = to_array(distance), to_array(seen)
    if (np.diff(distance) <= 0).any():
        raise ValueError('distance must increase; sort it and the laws.')
    low = max(np.quantile(seen, 0.01, method='lower'), distance[0])
    high = min(np.quantile(seen, 0.99, method='higher'), distance[-1])
    return cast(np.ndarray, seen[(seen >= low) & (seen <= high)])


def interpolate(distance: np.ndarray, laws: np.ndarray,
                at: np.ndarray) -> np.ndarray:
    """Laws :obj:`[C, K]` at other distances :obj:`[Q]`: :obj:`[C, Q]`."""
    return np.stack([np.interp(at, distance, law) for law in laws])


def to_array(values: Any) -> np.ndarray:
    return torch.as_tensor(values).detach().cpu().double().numpy()


def static_rollout(y: Tensor, pred_steps: int) -> Tensor:
    """The Static baseline: for frames 1, ..., T - 1 of :obj:`[N, T, F]` copies
    of the true state every :obj:`pred_steps` steps."""
    start = torch.arange(y.size(1) - 1, device=y.device)
    return y[:, start - start % pred_steps]


@torch.no_grad()
def linear_rollout(linear_step: LinearStep, y: Tensor,
                   pred_steps: int) -> Tensor:
    """As :func:`static_rollout`, but with the best linear prediction without
    any interaction, in the step's units. Not in the paper."""
    num_steps = y.size(1) - 1
    state = y[:, :-1:pred_steps]  # All starts at once: [N, num_starts, F]
    frames = []
    for _ in range(pred_steps):
        state = linear_step(state)
        frames.append(state)
    return torch.stack(frames, dim=2).flatten(1, 2)[:, :num_steps]


def guessing_accuracy(train_label: Tensor, edge_label: Tensor,
                      num_edge_types: Sequence[int]) -> dict[str, Any]:
    """What guesses score, with true types :obj:`[*, L]`: any type as likely
    as another (:obj:`random_accuracy`), and the most common combination in the
    training split and, of each layer by itself, its most common type."""
    generator, size = torch.Generator().manual_seed(0), (len(edge_label), )
    random = [
        torch.randint(k, size, generator=generator) for k in num_edge_types
    ]
    metric = EdgeAccuracy(num_edge_types)
    metric.update(torch.stack(random, dim=-1), edge_label)
    combinations, count = train_label.unique(dim=0, return_counts=True)
    combined = (edge_label == combinations[count.argmax()]).all(-1)
    common = [types.bincount().argmax() for types in train_label.unbind(-1)]
    layers = edge_label == torch.stack(common)
    majority = dict(combined=combined.double().mean().item(),
                    layers=layers.double().mean(0).tolist())
    return dict(random_accuracy=metric.compute().numbers(),
                majority_accuracy=majority)
