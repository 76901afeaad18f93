"""The error of rollouts of several lengths."""
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric


class RolloutMSE(Metric):
    r"""Mean squared error of rollouts of several lengths (table 2 of the
    paper).

    A rollout with horizon :math:`M` starts from a true state, feeds its own
    predictions back for :math:`M` steps, then starts again from the truth
    until every frame but the first is predicted. The error is the mean over
    all particles, predicted frames and features.

    The unit is that of the tensors handed in. The paper's figures are for
    positions and velocities that were each min-max scaled to
    :math:`[-1, 1]` with the training split's extremes.

    :meth:`compute` returns :obj:`{horizon: error}`, scalar tensors summed in
    double precision.

    Args:
        horizons (Sequence[int]): Rollout lengths :math:`M`.
            (default: :obj:`(1, 10, 20)`)

    Raises:
        TypeError: If an update holds anything but floating-point tensors.
        ValueError: If the horizons or the shapes of an update do not fit, a
            value is not finite, or :meth:`compute` comes before any frame.

    Shapes:
        :meth:`update` takes :obj:`predictions`, a mapping from each horizon
        to the predicted frames :obj:`[N, T - 1, F]`, and :obj:`target`, the
        true frames :obj:`[N, T - 1, F]`.
    """
    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    squared_error: Tensor
    num_values: Tensor

    def __init__(self, horizons: Sequence[int] = (1, 10, 20),
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        horizons = tuple(horizons)
        if (not horizons or len(set(horizons)) < len(horizons)
                or any(not isinstance(h, Integral) or h < 1 for h in horizons)):
            raise ValueError(f'horizons must be different whole numbers of '
                             f'steps, at least 1, got {horizons}.')
        self.horizons = tuple(int(h) for h in horizons)
        self.add_state('squared_error',
                       torch.zeros(len(horizons), dtype=torch.double),
                       dist_reduce_fx='sum')
        self.add_state('num_values', torch.tensor(0), dist_reduce_fx='sum')

    def update(self, predictions: Mapping[int, Tensor], target: Tensor) -> None:
        self._check(predictions, target)
        target = target.double()
        self.squared_error += torch.stack([
            (predictions[h].double() - target).square().sum()
            for h in self.horizons
        ]).to(self.squared_error.device)
        self.num_values += target.numel()

    def compute(self) -> dict[int, Tensor]:
        if self.num_values == 0:
            raise ValueError('RolloutMSE has seen no frames: call '
                             'update(predictions, target) before compute().')
        return dict(zip(self.horizons, self.squared_error / self.num_values))

    def _check(self, predictions: Mapping[int, Tensor], target: Tensor) -> None:
        if not isinstance(predictions, Mapping):
            raise TypeError(f'predictions must map each horizon to its '
                            f'predicted frames, got '
                            f'{type(predictions).__name__}.')
        if set(predictions) != set(self.horizons):
            raise ValueError(f'predictions are for the horizons '
                             f'{list(predictions)}, expected '
                             f'{list(self.horizons)}.')
        _check_frames('target', target)
        if target.size(1) < max(self.horizons):
            raise ValueError(
                f'target has {target.size(1)} frames, too few for a rollout of '
                f'{max(self.horizons)} steps. Expected at least that many; '
                f'leave out the longer horizons for shorter trajectories.')
        for horizon, prediction in predictions.items():
            name = f'the prediction for horizon {horizon}'
            _check_frames(name, prediction)
            if prediction.shape != target.shape:
                raise ValueError(f'{name} has shape {list(prediction.shape)}, '
                                 f"expected the target's "
                                 f'{list(target.shape)}.')

    def __repr__(self) -> str:
        return f'{type(self).__name__}(horizons={self.horizons})'


def _check_frames(name: str, frames: Tensor) -> None:
    if not isinstance(frames, Tensor) or not frames.is_floating_point():
        kind = frames.dtype if isinstance(frames, Tensor) else type(frames)
        raise TypeError(f'{name} must be a floating-point tensor, got {kind}.')
    if frames.dim() != 3:
        raise ValueError(f'{name} has shape {list(frames.shape)}, expected '
                         f'[num_particles, num_frames, num_features].')
    if not frames.isfinite().all():
        raise ValueError(f'{name} holds NaN or infinite values: expected '
                         f'finite numbers. A rollout that diverges has no '
                         f'mean squared error.')
