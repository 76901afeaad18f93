"""Positions alone, with noise: what forces say of several frames at once."""
import copy
import math
from collections.abc import Sequence
from typing import Optional, cast

import torch
from torch import Tensor

from pyg_fnri.inference.evidence import Pairs
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import fit_student
from pyg_fnri.inference.noise import (DecorrelatedEvidence, factorise, solve,
                                      solve_transposed, together)
from pyg_fnri.inference.paths import GAP, Path, hermite_path, rate_path
from pyg_fnri.nn import ForceLawDecoder, RateLawDecoder, Walls

#: Of the accelerations at three frames, in a second difference (Numerov).
NUMEROV = (1 / 12, 10 / 12, 1 / 12)
#: Ratios of what forces leave unexplained to noise that are tried, and changes
#: that tell the best one.
RATIOS, NUM_JUDGING = torch.logspace(-3.5, 3, 27).tolist(), 4_000
#: In m/s, or any unit: variances are still above zero.
LEAST_NOISE = 1e-30
#: The fewest successive transitions that tell forces from noise.
LEAST_WINDOW = 48


def follow(trajectories: Sequence[Tensor], choices: Pairs,
           layer: ForceLawDecoder, mass: Optional[Tensor] = None,
           num_windows: int = 1) -> Transitions:
    """Transitions of frames :obj:`[num_windows * num_nodes, T, 2D]` in m and
    m/s, smoothed if velocities were derived from positions. Windows of the same
    particles come one after the other, with gaps in between: to searches and
    laws, they are one system."""
    windows = [part for x in trajectories for part in x.chunk(num_windows)]
    mass = None if mass is None else mass[:len(windows[0])]
    if isinstance(layer, RateLawDecoder):
        out = Transitions(rate_path(layer, windows), choices, mass)
    elif all(is_derived(x, layer.interval) for x in trajectories):
        out = SmoothedTransitions(windows, choices, layer.interval, layer.walls,
                                  mass)
    else:
        path = hermite_path(trajectories, layer.interval, layer.walls,
                            num_windows)
        out = Transitions(path, choices, mass)
    out.num_windows = num_windows
    if 'gravity' in layer.terms:
        out.source = out.mass.clone()
    return out


def is_derived(x: Tensor, interval: float) -> bool:
    """Whether the velocities of five frames or more are, but for rounding, the
    central differences of positions."""
    position, velocity = x.double().chunk(2, dim=-1)
    central = (position[:, 2:] - position[:, :-2]) / (2 * interval)
    largest = position.abs().amax((0, 1)) / interval + velocity.abs().amax(
        (0, 1))
    error = (velocity[:, 1:-1] - central).abs()
    rounding = 4 * torch.finfo(x.dtype).eps * largest
    return x.size(1) > 4 and bool((error <= rounding).all())


class SmoothedTransitions(Transitions):
    r"""What happens between three successive frames of noisy positions:

    .. math::
        \frac{\mathbf{x}_{t+1} - 2 \mathbf{x}_t + \mathbf{x}_{t-1}}{h} =
        \int_{-h}^h \left(1 - \frac{|\tau|}{h}\right) \mathbf{f}(\tau) \, d\tau
        + \mathbf{q}_t +
        \frac{\mathbf{e}_{t+1} - 2 \mathbf{e}_t + \mathbf{e}_{t-1}}{h},

    with independent errors :math:`\mathbf{e}` of positions and
    :math:`\mathbf{q}` of forces, both of unknown size. So the covariance
    :math:`\mathbf{\Sigma}` of changes is a band, and their best estimate is
    generalised least squares. Forces act along smoothed positions: what
    known forces leave of changes, :math:`\mathbf{r}`, corrects positions by
    :math:`-\operatorname{Cov}(\mathbf{e}, \mathbf{r}) \mathbf{\Sigma}^{-1}
    \mathbf{r}`, which is Kalman's smoother. Not in the paper.

    Args:
        trajectories: Frames, each :obj:`[num_nodes, T, 2D]`; velocities are
            not looked at.
        choices, interval, walls, mass: As in other transitions.
    """
    def __init__(self, trajectories: Sequence[Tensor], choices: Pairs,
                 interval: float, walls: Walls,
                 mass: Optional[Tensor] = None) -> None:
        self.interval = interval
        triples = [x.chunk(2, dim=-1)[0].unfold(1, 3, 1) for x in trajectories]
        seen = torch.cat(triples, dim=1).movedim(-1, 2)
        #: Positions in three frames of each transition, [num_nodes, T, 3, D].
        self.seen = seen.double()
        #: Standard deviations, [D] each, of noise of positions over the
        #: interval, and of what forces leave of changes, in m/s.
        self.noise = self.force_error = self.seen.new_ones(seen.size(-1))
        frame = torch.cat([
            number * GAP + torch.arange(part.size(1), device=seen.device)
            for number, part in enumerate(triples)
        ])
        change = _second_difference(self.seen) / interval
        kernel = interval * seen.new_tensor(NUMEROV).unsqueeze(-1)
        valid = torch.ones_like(seen[:, :, 0, 0], dtype=torch.bool)
        path = Path(change.to(seen), valid, frame, seen, seen, kernel)
        super().__init__(path, choices, mass)
        self._smooth(change)
        # Smoothing rounds off turns at walls, so only speeds are taken of it.
        speed = self.path.velocity.abs().amax((1, 2))[:, None, None]
        reach = interval * (speed + 3 * self.noise)
        valid = ((self.seen + reach < walls.upper)
                 & (self.seen - reach > walls.lower)).all(-1).all(-1)
        if not bool(valid.all()):
            self._put(self.path._replace(valid=valid))
            self._smooth(change)

    def _smooth(self, left: Tensor) -> None:
        """Estimates noise and positions by what known forces leave of changes,
        :obj:`[num_nodes, T, D]`."""
        left = left.double() * self.valid.unsqueeze(-1)
        three = together(self, 1)[:, 1:] & together(self, 1)[:, :-1]
        if bool(three.any()):  # Fourth differences are of noise alone.
            fourth = left.diff(n=2, dim=1)[three].abs()
            noise = 1.4826 * fourth.median(0).values / math.sqrt(70)
            least = 1e-7 * left[self.valid].abs().mean().item()
            self.noise = noise.clamp(min=max(least, LEAST_NOISE))
        self.force_error = _force_error(self, left)
        factor = factorise(self, self.band)
        weight = solve_transposed(factor, solve(factor, left))
        near = [self._shifted(weight, lag) for lag in range(-2, 3)]
        error = torch.stack(
            [near[k] - 2 * near[k + 1] + near[k + 2] for k in range(3)], dim=2)
        position = self.seen - self.interval * self.noise.square() * error
        mean = (position[:, :, 2] - position[:, :, 0]) / (2 * self.interval)
        turn = _second_difference(position) / self.interval
        velocity = torch.stack([mean - turn, mean, mean + turn], dim=2)
        path = self.path
        self._put(
            path._replace(position=position.to(path.position),
                          velocity=velocity.to(path.velocity)))

    @property
    def band(self) -> Tensor:
        """The covariance of changes 0, 1 and 2 steps apart, :obj:`[3, D]`."""
        noise = self.noise.square()
        return torch.stack(
            [6 * noise + self.force_error.square(), -4 * noise, noise])

    def _shifted(self, value: Tensor, lag: int) -> Tensor:
        """Values :obj:`[num_nodes, T, D]` of so many transitions later, zero
        beyond the ends of trajectories."""
        out = torch.zeros_like(value)
        size = value.size(1) - abs(lag)
        if size > 0:
            here, there = (slice(max(0, k),
                                 max(0, k) + size) for k in (-lag, lag))
            same = self.frame[there] - self.frame[here] == lag
            out[:, here] = value[:, there] * same.view(-1, 1)
        return out

    def take(self, transitions: slice | Tensor) -> 'SmoothedTransitions':
        out = cast(SmoothedTransitions, super().take(transitions))
        out.seen = self.seen[:, transitions]
        return out

    def thinned(self, step: int) -> 'SmoothedTransitions':
        # Successive ones, as others only show noise.
        size = max(len(self.frame) // step, LEAST_WINDOW)
        return self.take(slice(0, size))

    def drawn(self, number: int,
              generator: torch.Generator) -> 'SmoothedTransitions':
        number = max(number, LEAST_WINDOW)
        last = max(0, len(self.frame) - number)
        first = torch.randint(last + 1, (), generator=generator,
                              device=generator.device).item()
        return self.take(slice(int(first), int(first) + number))

    def whitened(self, rows: Sequence[Tensor], scale: Tensor) -> list[Tensor]:
        factor = factorise(self, self.band / scale.square()).to(rows[0])
        out: list[Tensor] = []
        for step, row in enumerate(rows):
            for lag in range(1, min(step, 2) + 1):
                weight = factor[:, step, lag].reshape(-1, 1)
                row = row - weight * out[step - lag]
            out.append(row / factor[:, step, 0].reshape(-1, 1))
        return out

    def evidence(self, layer: ForceLawDecoder) -> 'SmoothedEvidence':
        return SmoothedEvidence(self, layer)

    def followed(self, layer: ForceLawDecoder,
                 channels: Tensor) -> 'SmoothedTransitions':
        plain, out = ImpulseEvidence(self, layer), copy.copy(self)
        out._smooth(plain.errors(channels) * plain.scale)
        return out


class SmoothedEvidence(DecorrelatedEvidence):
    """With independent errors of about 1."""
    transitions: SmoothedTransitions

    def __init__(self, transitions: SmoothedTransitions,
                 layer: ForceLawDecoder) -> None:
        plain = ImpulseEvidence(transitions, layer)
        super().__init__(plain, transitions.band / plain.scale.square())
        self.layer = layer

    def followed(self, channels: Tensor) -> 'SmoothedEvidence':
        """Along the paths on which the forces of a graph act."""
        return self.transitions.followed(self.layer,
                                         channels).evidence(self.layer)


def _second_difference(position: Tensor) -> Tensor:
    before, now, after = position.unbind(2)
    return after - 2 * now + before


def _force_error(transitions: SmoothedTransitions, left: Tensor) -> Tensor:
    """The size of what forces leave, :obj:`[D]`, under which independent errors
    are most likely to follow Student's t-distribution: few close encounters do
    not decide."""
    noise = transitions.noise
    every = max(1, transitions.valid.numel() // NUM_JUDGING)
    few, left = copy.copy(transitions), left[::every]
    few.valid = transitions.valid[::every]
    # All ratios at once, as if they were features.
    ratio = noise.new_tensor(RATIOS).repeat_interleave(len(noise))
    few.noise = noise.repeat(len(RATIOS))
    few.force_error = ratio * few.noise
    factor = factorise(few, few.band)
    errors = solve(factor, left.repeat(1, 1, len(RATIOS)))[few.valid]
    if not len(errors):
        return noise
    degrees, scale = (part.double() for part in fit_student(errors, 5))
    surprise = (errors.square() / (degrees * scale.square())).log1p().mean(0)
    nll = ((degrees + 1) / 2 * surprise + (degrees / 2).lgamma() -
           ((degrees + 1) / 2).lgamma() + degrees.log() / 2 + scale.log() +
           factor[:, :, 0][few.valid].log().mean(0))
    best = nll.view(len(RATIOS), -1).argmin(0)
    return noise.new_tensor(RATIOS)[best] * noise
