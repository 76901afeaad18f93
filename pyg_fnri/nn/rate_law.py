"""Laws of first order: rates, not accelerations, of positions or any state."""
from typing import Any, Optional

import torch
from torch import Tensor

from pyg_fnri.nn.force_law import ForceLaw, ForceLawDecoder
from pyg_fnri.nn.scaling import Scaling

#: How often rates of one's own are corrected by what they leave.
NUM_CORRECTIONS = 8


class EvenLaw(ForceLaw):
    """At distances equally spaced, for states on a line or a circle; straight
    beyond the ends. Rates per second in place of accelerations."""
    def stretch(self, max_distance: float) -> None:
        self._set_range(max_distance / 1e3, max_distance)

    @property
    def knots(self) -> Tensor:
        return torch.linspace(self.min_distance, self.max_distance,
                              self.num_knots, dtype=self.value.dtype,
                              device=self.value.device)

    def interpolation(self, distance: Tensor) -> tuple[Tensor, Tensor]:
        first, weight = super().interpolation(distance)
        place = self._step_to(distance)
        beyond = place - place.clamp(0, self.num_knots - 1)
        low, high = beyond.clamp(max=0), beyond.clamp(min=0)
        return first, weight + torch.stack([-low, low, -high, high], dim=-1)

    def _place(self, distance: Tensor) -> Tensor:
        return self._step_to(distance).clamp(0, self.num_knots - 1)

    def _step_to(self, distance: Tensor) -> Tensor:
        length = self.max_distance - self.min_distance
        return (distance - self.min_distance) * ((self.num_knots - 1) / length)


class RateLawDecoder(ForceLawDecoder):
    r"""A layer for :class:`RolloutDecoder`: as :class:`ForceLawDecoder`, but
    laws and terms add up to the rate of positions (or of any other state),

    .. math::
        \dot{\mathbf{r}}_i = \sum_{j \neq i} \sum_k z_{ij,k}
        f_k(r_{ij}) \frac{\mathbf{r}_i - \mathbf{r}_j}{r_{ij}} + \ldots,

    by the Runge-Kutta method of fourth order between two frames. Not in the
    paper.

    Features are states, then their rates, if measured, then constants that each
    particle has. On a circle, the state is an angle, and cosine and sine are
    its features.

    Args:
        circle: Whether positions are on a circle.
        measured: Whether features hold rates.
        num_constants: Features that do not change.
        **kwargs: Arguments of :class:`ForceLawDecoder`.
    """
    order = 1

    def __init__(self, law: ForceLaw, scaling: Scaling, interval: float = 0.1,
                 circle: bool = False, measured: bool = False,
                 num_constants: int = 0, **kwargs: Any) -> None:
        self.circle, self.measured = circle, measured
        self.num_constants = num_constants
        #: Rates of each particle's own, [num_nodes, D], where known.
        self.own: Optional[Tensor] = None
        super().__init__(law, scaling, interval, **kwargs)

    def split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Positions and constants, of features."""
        moving, constants = self._moving(x)
        if self.circle:
            return torch.atan2(moving[..., 1:2], moving[..., :1]), constants
        return moving.chunk(1 + self.measured, dim=-1)[0], constants

    def rate(self, x: Tensor) -> Tensor:
        """The rates that features hold."""
        moving, _ = self._moving(x)
        return moving[..., 2:] if self.circle else moving.chunk(2, dim=-1)[1]

    def candidates(self) -> list[str]:
        # Rates that are given cannot be told from others of one's own.
        names = super().candidates()
        return [n for n in names if n != 'own-rate' or not self.num_constants]

    def own_rates(self, x: Tensor, edge_index: Tensor,
                  edge_attr: Tensor) -> Tensor:
        """What laws leave of the rates in frames :obj:`[num_nodes, T, F]`, in
        the model's units, by the median: rates of each particle's own,
        :obj:`[num_nodes, D]`."""
        position, _ = self.split(self.scaling.inverse(x))
        moved = self.between(position[:, 1:], position[:, :-1])
        before, self.own = self.own, moved.median(1).values / self.interval
        for _ in range(NUM_CORRECTIONS):  # Forces act along the whole path.
            out = x[:, :-1] + self(x[:, :-1], edge_index, edge_attr)
            predicted, _ = self.split(self.scaling.inverse(out))
            left = self.between(position[:, 1:], predicted).median(1).values
            self.own = self.own + left / self.interval
        found, self.own = self.own, before
        return found

    def _force(self, position: Tensor, velocity: Tensor, edge_index: Tensor,
               edge_attr: Tensor) -> Tensor:
        out = super()._force(position, velocity, edge_index, edge_attr)
        if self.own is None:
            return out
        return out + self.own[(slice(None), ) + (None, ) * (out.dim() - 2)]

    def _moving(self, x: Tensor) -> tuple[Tensor, Tensor]:
        size = x.size(-1) - self.num_constants
        return x[..., :size], x[..., size:]

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        position, constants = self.split(self.scaling.inverse(x))
        step = self.interval / self.num_substeps

        def rate(position: Tensor) -> Tensor:
            return self._force(position, constants, edge_index, edge_attr)

        first = rate(position)
        for _ in range(self.num_substeps):
            second = rate(position + step / 2 * first)
            third = rate(position + step / 2 * second)
            fourth = rate(position + step * third)
            slope = first + 2 * (second + third) + fourth
            position = position + step / 6 * slope
            first = rate(position)
        out = [position.cos(), position.sin()] if self.circle else [position]
        out += [first] * self.measured + [constants]
        return torch.sub(self.scaling(torch.cat(out, dim=-1)), x)


def rate_laws(num_channels: int, scaling: Scaling, circle: bool = False,
              measured: bool = False, num_constants: int = 0,
              num_knots: int = 26, **kwargs: Any) -> RateLawDecoder:
    """With laws of the kind that suits the number of dimensions."""
    on_line = circle or scaling.num_features - num_constants == 1 + measured
    law = (EvenLaw if on_line else ForceLaw)(num_channels, num_knots=num_knots)
    return RateLawDecoder(law, scaling, circle=circle, measured=measured,
                          num_constants=num_constants, **kwargs)
