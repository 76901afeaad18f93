"""Transforms that turn a stored system into what a model is trained on."""
from typing import Any, Optional

from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform


class SplitTrajectory(BaseTransform):
    r"""Splits a trajectory into what is observed and what is to be predicted.

    The paper (section 3, "compression models") shows the first half of a
    trajectory to the encoder and lets the decoder predict the second half:

    - `x` becomes the **first** `num_observed` frames,
    - `y` becomes the **last** `num_predicted` frames.

    Frames between the two are dropped: of 99 frames,
    :obj:`SplitTrajectory(49)` keeps frames 0 to 48 in `x` and 50 to 98 in `y`.
    The two halves never overlap.

    It treats every particle alike, so it can also be applied to a whole
    :class:`~torch_geometric.data.Batch`, which `batchwise` declares.

    Args:
        num_observed (int): The number of frames the encoder sees.
        num_predicted (int, optional): The number of frames of the
            continuation. (default: `num_observed`)

    Shapes:
        - **input:** `x` :math:`(|\mathcal{V}|, T, F)`
        - **output:** `x` :math:`(|\mathcal{V}|, T_{observed}, F)`,
          `y` :math:`(|\mathcal{V}|, T_{predicted}, F)`
    """
    #: Transforming a batch equals batching the transformed systems.
    batchwise = True

    def __init__(
        self,
        num_observed: int,
        num_predicted: Optional[int] = None,
    ) -> None:
        if num_predicted is None:
            num_predicted = num_observed
        for name, value in [('num_observed', num_observed),
                            ('num_predicted', num_predicted)]:
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f'{name} must be an integer, not {value!r}.')
            if value < 1:
                raise ValueError(f'{name} must be at least 1, not {value}.')
        self.num_observed = num_observed
        self.num_predicted = num_predicted

    def forward(self, data: Any) -> Data:
        x = data.x if 'x' in data else None
        if x is None or x.dim() != 3:
            found = 'missing' if x is None else f'{list(x.shape)}'
            raise ValueError(f'{self} needs trajectories x of shape '
                             f'[num_particles, num_steps, num_features], but '
                             f'x is {found}.')
        num_steps = x.size(1)
        if num_steps < self.num_observed + self.num_predicted:
            raise ValueError(
                f'{self} needs trajectories of at least '
                f'{self.num_observed + self.num_predicted} steps, but these '
                f'have {num_steps}; ask for fewer frames.')
        data.x = x[:, :self.num_observed]
        data.y = x[:, num_steps - self.num_predicted:]
        return data

    def __repr__(self) -> str:
        return (f'{self.__class__.__name__}({self.num_observed}, '
                f'num_predicted={self.num_predicted})')
