"""Force laws as learned functions of distance."""
import math
from typing import Any

import torch
from torch import Tensor


class ForceLaw(torch.nn.Module):
    r"""A force law per channel, :math:`f_k(r)`, read off a table.

    The table holds the acceleration at distances that are equally spaced in
    :math:`\log r`; between them it is interpolated by cubic convolution, four
    entries at a time. A law is thus smooth, free in shape, and *linear* in
    its parameters: it can be fitted by least squares, trained by gradients,
    plotted and exported. Beyond the table's ends a law is constant. Not in
    the paper.

    Distances may be in any unit. Where laws are fitted, the table is moved to
    the distances of the data (:meth:`rescale`, see
    :func:`~pyg_fnri.laws.fit.fit_range`); a state dict holds where
    it is.

    Args:
        num_channels (int): Number of laws.
        min_distance (float, optional): First distance, in metre or the data's
            unit. (default: :obj:`0.03`)
        max_distance (float, optional): Last distance, likewise.
            (default: :obj:`15.0`)
        num_knots (int, optional): Number of distances, at least 4.
            (default: :obj:`26`)

    Raises:
        ValueError: If there is no channel, the distances are no range, or the
            knots are too few.

    Shapes:
        - **input:** distances :math:`(*)`
        - **output:** accelerations :math:`(C, *)`
    """
    def __init__(
        self,
        num_channels: int,
        min_distance: float = 0.03,
        max_distance: float = 15.0,
        num_knots: int = 26,
    ) -> None:
        super().__init__()
        if num_channels < 1:
            raise ValueError(f"Expected at least one channel, but got "
                             f"num_channels={num_channels}.")
        if num_knots < 4:
            raise ValueError(f"Expected at least 4 knots, but got {num_knots}.")
        self.num_channels = num_channels
        self._set_range(min_distance, max_distance)
        self._first_range = min_distance, max_distance
        self.num_knots = num_knots
        #: Acceleration in m/s^2 at each knot, positive where repulsive.
        self.value = torch.nn.Parameter(torch.empty(num_channels, num_knots))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all laws to zero."""
        torch.nn.init.zeros_(self.value)

    def rescale(self, factor: float) -> None:
        """Moves the table to distances :obj:`factor` times as large, where
        laws then have the values that they had.

        Raises:
            ValueError: If these are no range.
        """
        # Numbers that are round stay so, there and back by powers of ten.
        self._set_range(*(float(f'{factor * end:.12g}')
                          for end in (self.min_distance, self.max_distance)))

    def _set_range(self, min_distance: float, max_distance: float) -> None:
        if not 0 < min_distance < max_distance < math.inf:
            raise ValueError(f"Expected 0 < min_distance < max_distance, both "
                             f"finite, but got {min_distance} and "
                             f"{max_distance}.")
        self.min_distance = min_distance
        self.max_distance = max_distance

    def get_extra_state(self) -> Tensor:
        """Both ends of the table. They are no buffer, which would lose digits
        with the module's dtype."""
        return torch.tensor([self.min_distance, self.max_distance],
                            dtype=torch.double)

    def set_extra_state(self, state: Tensor) -> None:
        self._set_range(*state.tolist())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str,
                              *args: Any, **kwargs: Any) -> None:
        # Before tables could be moved, states did not say where they are.
        first = torch.tensor(self._first_range, dtype=torch.double)
        state_dict.setdefault(f'{prefix}_extra_state', first)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    @property
    def knots(self) -> Tensor:
        """The table's distances in metre, :obj:`[num_knots]`."""
        return torch.logspace(math.log10(self.min_distance),
                              math.log10(self.max_distance), self.num_knots,
                              dtype=self.value.dtype, device=self.value.device)

    def forward(self, distance: Tensor) -> Tensor:
        """The accelerations that each law gives, in m/s^2.

        Args:
            distance: In metre, :obj:`[*]`.

        Returns:
            :obj:`[num_channels, *]`, positive where repulsive.
        """
        first, weight = self.interpolation(distance)
        table = self.value.unfold(-1, 4, 1)  # [num_channels, num_knots - 3, 4]
        return torch.einsum('c...w,...w->c...', table[:, first], weight)

    def interpolation(self, distance: Tensor) -> tuple[Tensor, Tensor]:
        """How a law depends on its table: the first of four successive
        entries, :obj:`[*]`, and their weights, :obj:`[*, 4]`."""
        step = math.log(
            self.max_distance / self.min_distance) / (self.num_knots - 1)
        place = (distance.clamp(self.min_distance, self.max_distance) /
                 self.min_distance).log() / step
        # NaN has a place in the table, but weights that are NaN.
        second = place.nan_to_num().floor().clamp(1, self.num_knots - 3)
        t = place - second
        # A blend of the parabolas through the first and the last three of the
        # entries at t = -1, 0, 1, 2. Between 0 and 1 that is Keys's (1981)
        # cubic; at the ends of the table one of them goes on alone.
        s = t.clamp(0, 1)
        weight = torch.stack([
            (1 - s) * t * (t - 1) / 2,
            (1 - s) * (1 - t * t) + s * (t - 1) * (t - 2) / 2,
            (1 - s) * t * (t + 1) / 2 + s * t * (2 - t),
            s * t * (t - 1) / 2,
        ], dim=-1)
        return second.long() - 1, weight

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.num_channels}, "
                f"min_distance={self.min_distance}, "
                f"max_distance={self.max_distance}, "
                f"num_knots={self.num_knots})")
