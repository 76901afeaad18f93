"""Units: physical ones outside a model, scaled ones inside."""
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor


class Scaling(torch.nn.Module, ABC):
    r"""Maps physical units to a model's, :math:`(x - \text{offset}) /
    \text{scale}` per feature, and back.

    The first half of the features (positions) share one offset and scale, and
    so does the second half (velocities): directions in space stay alike. An
    odd number of features has no halves; each feature then has its own.

    Fitted on the training split and saved with the model, so that a checkpoint
    and raw data give predictions in physical units.

    A new scaling is one method, :meth:`statistics`.

    Args:
        num_features (int): Number of features of a particle.
    """
    offset: Tensor
    scale: Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.register_buffer('offset', torch.zeros(num_features))
        self.register_buffer('scale', torch.ones(num_features))

    @abstractmethod
    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Offset and scale (scalars) of all values :obj:`x` of a quantity."""

    @torch.no_grad()
    def fit(self, x: Tensor) -> 'Scaling':
        """Sets offset and scale from trajectories in physical units.

        Args:
            x: :obj:`[num_nodes, T, num_features]`, of the training split.

        Raises:
            ValueError: On another number of features, no values, values that
                are not finite, or a quantity that never changes.
        """
        self._check(x)
        if x.numel() == 0:
            raise ValueError(f"Expected trajectories to fit the units to, but "
                             f"got none: the shape is {list(x.size())}.")
        offsets: list[Tensor] = []
        scales: list[Tensor] = []
        for quantity in split_quantities(x):
            offset, scale = self.statistics(quantity)
            if not (torch.isfinite(offset) and torch.isfinite(scale)
                    and scale > 0):
                start, size = len(offsets), quantity.size(-1)
                raise ValueError(
                    f"Features {start} to {start + size - 1} cannot be scaled: "
                    f"they are constant or not finite. Remove them, or mend "
                    f"the data.")
            offsets += [offset] * quantity.size(-1)
            scales += [scale] * quantity.size(-1)
        self.offset.copy_(torch.stack(offsets))
        self.scale.copy_(torch.stack(scales))
        return self

    def forward(self, x: Tensor) -> Tensor:
        """From physical units, :obj:`[..., num_features]`."""
        self._check(x)
        return (x - self.offset) / self.scale

    def inverse(self, x: Tensor) -> Tensor:
        """Back to physical units, :obj:`[..., num_features]`."""
        self._check(x)
        return x * self.scale + self.offset

    def _check(self, x: Tensor) -> None:
        # A single feature would otherwise be spread over all of them.
        if x.dim() == 0 or x.size(-1) != self.num_features:
            raise ValueError(
                f"Expected {self.num_features} features per particle in the "
                f"last dimension, but got the shape {list(x.size())}.")

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.num_features})"


class MinMaxScaling(Scaling):
    """Extremes to -1 and 1: the units of the paper's tables."""
    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        low, high = x.aminmax()
        return (high + low) / 2, (high - low) / 2


class StandardScaling(Scaling):
    """Mean 0 and standard deviation 1: better conditioned for training."""
    def statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        # Batched sums in double: millions of values.
        std, mean = torch.std_mean(x.double())
        return mean.to(x.dtype), std.to(x.dtype)


def split_quantities(x: Tensor) -> Sequence[Tensor]:
    """Positions and velocities, the two halves of the last dimension; every
    feature by itself where an odd number of them cannot be halved."""
    num_features = x.size(-1)
    return x.split(num_features // 2 if num_features % 2 == 0 else 1, dim=-1)
