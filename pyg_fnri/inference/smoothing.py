"""Noisy positions without velocities: what forces say of several frames."""
import copy
import math
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor

from pyg_fnri.inference.evidence import Pairs
from pyg_fnri.inference.impulses import (GAP, ImpulseEvidence, Path,
                                         Transitions, hermite_path)
from pyg_fnri.inference.likelihood import fit_student
from pyg_fnri.inference.noise import DecorrelatedEvidence, factorise, solve
from pyg_fnri.nn import ForceLawDecoder, Walls

#: Numerov's rule: a force at three frames in a second difference of positions.
NUMEROV = (1 / 12, 10 / 12, 1 / 12)
#: Ratios of what forces leave unexplained to noise that are tried, and how many
#: transitions tell the better one.
RATIOS, NUM_JUDGING = torch.logspace(-3.5, 3, 27).tolist(), 4_000
#: The fewest successive transitions that tell forces from noise.
LEAST_WINDOW = 48


def follow(trajectories: Sequence[Tensor], choices: Pairs,
           layer: ForceLawDecoder,
           mass: Optional[Tensor] = None) -> Transitions:
    """Transitions of observed frames :obj:`[num_nodes, T, 2D]` in m and m/s:
    of smoothed positions, where velocities were derived from positions."""
    path = hermite_path(trajectories, layer.interval, layer.walls)
    if not all(is_derived(x, layer.interval) for x in trajectories):
        return Transitions(path, choices, mass)
    return SmoothedTransitions(trajectories, choices, layer.interval,
                               layer.walls, mass)


def is_derived(x: Tensor, interval: float) -> bool:
    """Whether velocities are the central differences of positions."""
    position, velocity = x.double().chunk(2, dim=-1)
    central = (position[:, 2:] - position[:, :-2]) / (2 * interval)
    # Rounded when they were stored, as were the positions.
    rounding = 4 * torch.finfo(x.dtype).eps * (
        position.abs().amax((0, 1)) / interval + velocity.abs().amax((0, 1)))
    return x.size(1) > 4 and bool(
        ((velocity[:, 1:-1] - central).abs() <= rounding).all())


class SmoothedTransitions(Transitions):
    r"""Successive second differences of positions,

    .. math::
        \frac{\mathbf{x}_{t+1} - 2 \mathbf{x}_t + \mathbf{x}_{t-1}}{h} =
        \int_{-h}^h \left(1 - \frac{|\tau|}{h}\right) \mathbf{f} \, d\tau +
        \mathbf{q}_t
        + \frac{\mathbf{e}_{t+1} - 2 \mathbf{e}_t + \mathbf{e}_{t-1}}{h},

    with independent errors :math:`\mathbf{e}` of positions and
    :math:`\mathbf{q}` of laws, whose sizes are estimated. Their covariance
    :math:`\mathbf{\Sigma}` is a band; given it, what forces
    leave, :math:`\mathbf{r}`, tells positions: :math:`\mathbf{x} -
    \operatorname{Cov}(\mathbf{e}, \mathbf{r}) \mathbf{\Sigma}^{-1}
    \mathbf{r}`, which are the Kalman smoother's. Not in the paper.
    """
    def __init__(self, trajectories: Sequence[Tensor], choices: Pairs,
                 interval: float, walls: Walls,
                 mass: Optional[Tensor] = None) -> None:
        self.interval = interval
        seen = [x.chunk(2, dim=-1)[0].double() for x in trajectories]
        frame = torch.cat([
            number * GAP + torch.arange(x.size(1) - 2, device=x.device)
            for number, x in enumerate(seen)
        ])
        #: Three positions of each transition, [num_nodes, T, 3, D].
        self.seen = torch.cat([x.unfold(1, 3, 1) for x in seen],
                              dim=1).transpose(-1, -2)
        change = (self.seen[:, :, 2] - 2 * self.seen[:, :, 1] +
                  self.seen[:, :, 0]) / interval
        #: Standard deviations of errors of positions, over the interval, and of
        #: what forces leave, in m/s, [D] each.
        self.noise = torch.stack([_deviation(change), _deviation(change)])
        valid = torch.ones_like(change[..., 0], dtype=torch.bool)
        x = trajectories[0]
        self.dtype = x.dtype
        kernel = interval * x.new_tensor(NUMEROV).unsqueeze(1)
        path = Path(change.to(x.dtype), valid, frame, self.seen.to(x.dtype),
                    self.seen.to(x.dtype), kernel)
        super().__init__(path, choices, mass)
        self._smooth(change)
        # Away from walls, in the recording and by its fastest move.
        if bool((walls.upper < torch.inf).any() | (walls.lower > -torch.inf).any()):
            speed = self.path.velocity[:, :, 1].abs().amax(1)[:, None, None]
            margin = interval * (speed + 3 * self.noise[0])
            near = ((self.seen + margin > walls.upper) |
                    (self.seen - margin < walls.lower))
            valid = ~near.any(-1).any(-1)
            self._put(self.path._replace(valid=valid))
            self._smooth(change)

    def _smooth(self, left: Tensor) -> None:
        """Takes what forces leave unexplained, [num_nodes, T, D], for the
        estimates of noise and positions."""
        left = left.double() * self.valid.unsqueeze(-1)
        together = self._together
        fourth = left.diff(n=2, dim=1)[together(1)[:, 1:] & together(1)[:, :-1]]
        noise = 1.4826 * fourth.abs().median(0).values / math.sqrt(70)
        least = 1e-7 * _deviation(left[self.valid]).clamp(min=1e-30)
        noise = torch.maximum(noise, least)
        self.noise = torch.stack([noise, _unexplained(self, left, noise)])
        factor = factorise(self, self.band)
        weight = solve(factor, left)
        weight = solve_transposed(factor, weight)  # [N, T, D]
        error = torch.stack([
            self._shifted(weight, k - 1) - 2 * self._shifted(weight, k) +
            self._shifted(weight, k + 1) for k in (-1, 0, 1)
        ], dim=2)
        position = self.seen - self.interval * noise.square() * error
        mean = (position[:, :, 2] - position[:, :, 0]) / (2 * self.interval)
        turn = (position[:, :, 2] - 2 * position[:, :, 1] +
                position[:, :, 0]) / self.interval
        velocity = torch.stack([mean - turn, mean, mean + turn], dim=2)
        self._put(self.path._replace(position=position.to(self.dtype),
                                     velocity=velocity.to(self.dtype)))

    @property
    def band(self) -> Tensor:
        """The covariance of changes 0, 1 and 2 steps apart, :obj:`[3, D]`."""
        position, force = self.noise.square()
        out = position * position.new_tensor([6., -4., 1.]).unsqueeze(1)
        out[0] += force
        return out

    def _together(self, lag: int) -> Tensor:
        valid, frame = self.valid, self.frame
        return valid[:, lag:] & valid[:, :-lag] & (frame[lag:] - frame[:-lag]
                                                   == lag)

    def _shifted(self, value: Tensor, lag: int) -> Tensor:
        if lag == 0:
            return value
        out, size = torch.zeros_like(value), abs(lag)
        if value.size(1) <= size:
            return out
        near = (self.frame[size:] - self.frame[:-size] == size).view(1, -1, 1)
        if lag > 0:
            out[:, :-size] = value[:, size:] * near
        else:
            out[:, size:] = value[:, :-size] * near
        return out

    def take(self, transitions: slice | Tensor) -> 'SmoothedTransitions':
        out = super().take(transitions)
        out.seen = self.seen[:, transitions]
        return out

    def thinned(self, step: int) -> 'SmoothedTransitions':
        """As many, but successive ones."""
        size = max(self.change.size(1) // step, LEAST_WINDOW)
        return self.take(slice(0, size))

    def drawn(self, num: int, generator: torch.Generator) -> Transitions:
        num, total = max(num, LEAST_WINDOW), len(self.frame)
        first = torch.randint(max(1, total - num + 1), (), generator=generator,
                              device=generator.device)
        return self.take(slice(int(first), int(first) + num))

    def whitened(self, columns: list[Tensor], scale: Tensor) -> list[Tensor]:
        """Of each transition, :obj:`[num_nodes * F, *]`."""
        factor = factorise(self, self.band / scale.square()).to(columns[0])
        out: list[Tensor] = []
        for step, value in enumerate(columns):
            for lag in range(1, min(step, factor.size(2) - 1) + 1):
                value = value - (factor[:, step, lag].reshape(-1, 1) *
                                 out[step - lag])
            out.append(value / factor[:, step, 0].reshape(-1, 1))
        return out

    def evidence(self, layer: ForceLawDecoder) -> ImpulseEvidence:
        return SmoothedEvidence(self, layer)

    def followed(self, layer: ForceLawDecoder,
                 channels: Tensor) -> 'SmoothedTransitions':
        """Along the paths on which these forces act."""
        plain = ImpulseEvidence(self, layer)
        out = copy.copy(self)
        out._smooth(plain.errors(channels) * plain.scale)
        return out


class SmoothedEvidence(DecorrelatedEvidence):
    def __init__(self, transitions: SmoothedTransitions,
                 layer: ForceLawDecoder) -> None:
        plain = ImpulseEvidence(transitions, layer)
        super().__init__(plain, transitions.band / plain.scale.square())
        self.layer = layer

    def followed(self, channels: Tensor) -> 'SmoothedEvidence':
        transitions = self.transitions.followed(self.layer, channels)
        return SmoothedEvidence(transitions, self.layer)


def solve_transposed(factor: Tensor, value: Tensor) -> Tensor:
    out, num_lags = value.clone(), factor.size(2) - 1
    for step in range(value.size(1) - 1, -1, -1):
        for lag in range(1, num_lags + 1):
            if step + lag < value.size(1):
                out[:, step] -= factor[:, step + lag, lag] * out[:, step + lag]
        out[:, step] /= factor[:, step, 0]
    return out


def _deviation(value: Tensor) -> Tensor:
    return 1.4826 * value.flatten(0, -2).abs().median(0).values


def _unexplained(transitions: SmoothedTransitions, left: Tensor,
                 noise: Tensor) -> Tensor:
    """The standard deviation :obj:`[D]` of what forces leave unexplained, under
    which changes, made independent, are most likely to follow Student's
    t-distribution: close encounters do not decide."""
    ratio = noise.new_tensor(RATIOS).unsqueeze(1)  # [R, 1]
    few = copy.copy(transitions)
    few.valid = transitions.valid[::max(1, transitions.valid.numel() // NUM_JUDGING)]
    left = left[::max(1, transitions.valid.numel() // NUM_JUDGING)]
    few.noise = torch.stack([noise.expand(len(ratio), -1), ratio * noise]).flatten(1)
    factor = factorise(few, few.band)
    errors = solve(factor, left.repeat(1, 1, len(ratio)))[few.valid]
    degrees, scale = (part.double() for part in fit_student(errors, 5))
    nll = (degrees + 1) / 2 * (
        errors.square() / (degrees * scale.square())).log1p().mean(0)
    nll += (factor[:, :, 0][few.valid].log().mean(0) + scale.log() +
            (degrees / 2).lgamma() - ((degrees + 1) / 2).lgamma() +
            degrees.log() / 2)
    best = nll.view(len(ratio), -1).argmin(0)
    return ratio[best, 0] * noise
