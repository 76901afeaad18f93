"""How strongly each particle of a system acts on all others."""
import copy
import math
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_fnri.data import fully_connected
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import Transitions
from pyg_fnri.inference.paths import hermite_path
from pyg_fnri.nn import Central, ForceLaw

#: How far a law may bend from knot to knot where no pair tells: a share of it.
BEND = 0.3
#: For their errors, successive frames go together in so many blocks.
NUM_BLOCKS = 6
#: Of least squares, ended by steps that are small in units of errors.
MAX_ITERATIONS, SMALL_STEP = 30, 0.01
#: Errors are not taken for smaller than this share of a particle's changes.
LEAST_ERROR = 1e-8
#: Transitions on which each particle is tried as the only source.
NUM_TRIED = 500
#: Stands for an infinite weight; and a share that is rounding.
FIXED, TINY = 1e100, 1e-15
#: Paths between frames are off by this power of the interval.
ORDER = 4


class PowerTable(ForceLaw):
    """A law over many orders of magnitude: a table times a power of the
    distance, :obj:`factor * r**power`."""
    def __init__(self, factor: float, power: float, min_distance: float,
                 max_distance: float, num_knots: int) -> None:
        super().__init__(1, min_distance, max_distance, num_knots)
        self.factor, self.power = factor, power

    def unit(self, distance: Tensor) -> Tensor:
        return self.factor * distance**self.power

    def interpolation(self, distance: Tensor) -> tuple[Tensor, Tensor]:
        first, weight = super().interpolation(distance)
        return first, weight * self.unit(distance).unsqueeze(-1)


@dataclass(frozen=True)
class Strengths:
    r"""Particle j accelerates particle i by :math:`s_j f(r_{ij})` away from it.

    Args:
        strength, error: :math:`s_j` with standard errors, :obj:`[N]`.
        hub: The particle that explains most if it acts alone; its :math:`s_j`
            is 1.
        unexplained: Share of accelerations that is left if a particle acts
            alone, root mean square over all others, :obj:`[N]`.
        law: :math:`f`.
        covariance: Of the law at its knots, :obj:`[K, K]`.
    """
    strength: Tensor
    error: Tensor
    hub: int
    unexplained: Tensor
    law: ForceLaw
    covariance: Tensor


@torch.no_grad()
def fit_strengths(x: Tensor, interval: float, num_knots: int = 40) -> Strengths:
    """Finds one law of the distance for all pairs of a system, and how strongly
    each particle acts, whatever it acts on, as in gravity.

    First, each particle is taken to act alone. From the one that explains most,
    law and strengths are fitted together by least squares, in units of what is
    left of each particle's changes. Errors are those of a jackknife over blocks
    of frames, with what paths between frames add: every second frame tells.

    Args:
        x: Positions and velocities, :obj:`[N, T, 2D]`.
        interval: Time between two frames.
    """
    least = 4 * NUM_BLOCKS
    if x.dim() != 3 or x.size(0) < 3 or x.size(1) < least:
        raise ValueError(f"Expected one system as [N, T, 2D], of at least 3 "
                         f"particles and {least} frames, but got "
                         f"{list(x.size())}.")
    x = x.double()
    system = _System(x, interval)
    few = _System(x, interval, every=math.ceil(x.size(1) / NUM_TRIED))
    starts = [few.alone(hub, num_knots) for hub in range(len(x))]
    unexplained = torch.stack([share for _, share in starts])
    hub = int(unexplained.argmin())
    law, strength = starts[hub][0], torch.eye(len(x)).to(x)[hub]
    covariance = system.together(law, strength, hub)

    coarse, found = copy.deepcopy(law), strength.clone()
    _System(x[:, ::2], 2 * interval).together(coarse, found, hub)
    off = torch.cat([coarse.value[0] - law.value[0], found - strength])
    off /= 2**ORDER - 1
    covariance += off * off[:, None]
    unit = law.unit(law.knots)
    return Strengths(strength,
                     covariance.diagonal()[num_knots:].sqrt(), hub, unexplained,
                     law.requires_grad_(False),
                     covariance[:num_knots, :num_knots] * unit * unit[:, None])


class _System:
    """The changes of a system's particles between successive frames."""
    def __init__(self, x: Tensor, interval: float, every: int = 1) -> None:
        pairs = find_choices(fully_connected(len(x)).to(x.device), False)
        self.interval = interval
        self.transitions = Transitions(hermite_path([x], interval),
                                       pairs).thinned(every)
        num_transitions = len(self.transitions.frame)
        self.blocks = torch.arange(num_transitions,
                                   device=x.device).chunk(NUM_BLOCKS)
        change = self.transitions.change
        self.scale = _size(change).clamp(min=TINY * change.abs().max())

    def alone(self, hub: int, num_knots: int) -> tuple[PowerTable, Tensor]:
        """The law if only one particle acts, and the share that is left."""
        pairs, distance = self.transitions.choices, self.transitions.distance
        from_hub = pairs.sender == hub
        impulse = self.transitions.change.chunk(2, -1)[1].norm(dim=-1)
        size = impulse[pairs.receiver[from_hub]] / self.interval
        size = size.clamp(min=TINY * size.max()).log().flatten()
        seen = distance[from_hub].mean(-1).log().flatten()
        power = (torch.cov(torch.stack([seen, size]))[0, 1] / seen.var()).item()
        factor = (size.mean() - power * seen.mean()).exp().item()
        law = PowerTable(factor, power,
                         distance.min().item(),
                         distance.max().item(), num_knots).to(seen)
        strength = torch.eye(len(self.scale)).to(seen)[hub]
        others = strength == 0
        error = self.scale.clone()
        error[hub] = math.inf  # Nothing acts on it.
        prior = _prior(num_knots, strength >= 0)
        curvature, slope, _ = self._equations(law, strength, error)
        step = _solve(curvature.sum(0) + prior, slope.sum(0))
        law.value.add_(step[:num_knots])
        _, _, left = self._equations(law, strength, error)
        return law, (left / self.scale)[others].square().mean().sqrt()

    def together(self, law: PowerTable, strength: Tensor, hub: int) -> Tensor:
        """Fits both in place, all strengths but the hub's. Their covariance,
        :obj:`[K + N, K + N]`."""
        size, error = law.num_knots, self.scale
        fixed = torch.arange(len(strength), device=strength.device) == hub
        prior = _prior(size, fixed)
        bend = prior.clone()
        bend[size:] = 0
        for _ in range(MAX_ITERATIONS):
            values = torch.cat([law.value[0], strength])
            parts, slopes, left = self._equations(law, strength, error)
            step = _solve(parts.sum(0) + prior, slopes.sum(0) - bend @ values)
            if step @ (parts.sum(0) + bend) @ step < SMALL_STEP**2:
                break
            law.value.add_(step[:size])
            strength += step[size:]
            error = torch.maximum(_size(left), LEAST_ERROR * self.scale)
        else:
            warnings.warn(
                "Law and strengths still change after "
                f"{MAX_ITERATIONS} iterations.", stacklevel=3)
        pull, moved = bend @ torch.cat([law.value[0], strength]), []
        for block in torch.eye(len(parts)).bool():  # Each is left out once.
            step = _solve(parts[~block].sum(0) + prior,
                          slopes[~block].sum(0) - pull)
            moved.append(step)
        jackknife = torch.stack(moved)
        share = (len(parts) - 1) / len(parts)
        inverse = _solve(parts.sum(0) + prior, torch.eye(len(prior)).to(prior))
        return share * jackknife.T @ jackknife + inverse @ bend @ inverse

    def _equations(self, law: ForceLaw, strength: Tensor,
                   error: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of each block, the matrix :obj:`[B, K + N, K + N]` and the right side
        of least squares for changes of both; and what is left of changes."""
        curvature, slope, left = [], [], []
        for block in self.blocks:
            part = self.transitions.take(block)
            effect = part.unit_effects(Central())[..., 0]  # [V, t, P, 2D]
            table, sources = self._columns(part, law, strength, effect)
            rest = part.change - sources @ strength
            rows = torch.cat([table, sources], -1) / error.unsqueeze(-1)
            rows = rows.flatten(0, 2)
            curvature.append(rows.T @ rows)
            slope.append(rows.T @ (rest / error).flatten())
            left.append(rest)
        return torch.stack(curvature), torch.stack(slope), torch.cat(left, 1)

    @staticmethod
    def _columns(part: Transitions, law: ForceLaw, strength: Tensor,
                 effect: Tensor) -> tuple[Tensor, Tensor]:
        """What the table's entries, and strengths, add to changes, :obj:`[N, t,
        2D, K]` and :obj:`[N, t, 2D, N]`."""
        sender, receiver = part.choices.sender, part.choices.receiver
        num_nodes, num_steps, size = part.change.size()
        sources = effect.new_zeros(num_nodes, num_nodes, num_steps, size)
        force = law(part.distance)[0].unsqueeze(-1)
        sources[receiver, sender] = (force * effect).sum(2)

        acts = strength[sender] != 0
        first, weight = law.interpolation(part.distance[acts])
        step = torch.arange(num_steps, device=sender.device).view(-1, 1)
        row = receiver[acts].view(-1, 1, 1) * num_steps + step
        effect = strength[sender[acts]].view(-1, 1, 1, 1) * effect[acts]
        table = effect.new_zeros(num_nodes * num_steps * law.num_knots, size)
        for k in range(4):
            table.index_add_(0, (row * law.num_knots + first + k).flatten(),
                             (weight[..., k, None] * effect).flatten(0, 2))
        table = table.view(num_nodes, num_steps, law.num_knots, size)
        return table.transpose(2, 3), sources.permute(0, 2, 3, 1)


def _prior(num_knots: int, fixed: Tensor) -> Tensor:
    """Laws that bend little, and some strengths that are fixed."""
    bend = torch.eye(num_knots).diff(n=2, dim=0).double().to(
        fixed.device) / BEND
    out: Tensor = torch.block_diag(bend.T @ bend,
                                   torch.diag(FIXED * fixed.double()))
    return out


def _size(change: Tensor) -> Tensor:
    """Root mean squares of each particle's shifts, and of its impulses."""
    parts: Tensor = change.unflatten(-1, (2, -1))
    size = parts.square().mean((1, 3), keepdim=True).sqrt()
    return size.expand(-1, -1, -1, parts.size(-1)).flatten(2)


def _solve(matrix: Tensor, right: Tensor) -> Tensor:
    unit = matrix.diagonal().rsqrt()
    right = right * (unit if right.dim() == 1 else unit[:, None])
    out: Tensor = torch.linalg.solve(matrix * unit * unit[:, None], right)
    return out * (unit if right.dim() == 1 else unit[:, None])
