"""Do force laws hold? Asked of frames that nothing was fitted to."""
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import scatter

from pyg_fnri.inference.broken_assumptions import (
    Finding,
    find_broken_assumptions,
)
from pyg_fnri.inference.motion import slip_message, slips, velocity_slope
from pyg_fnri.inference.refine import refine
from pyg_fnri.inference.single_steps import (
    Estimate,
    cauchy_nll,
    cauchy_width,
    mean_of_systems,
)
from pyg_fnri.inference.sweep import Stage
from pyg_fnri.nn import LinearStep, RelationalAutoEncoder, Scaling, per_mass
from pyg_fnri.nn.force_law_decoder import ForceLawDecoder
from pyg_fnri.nn.scaling import split_quantities

#: Two sweeps for networks, whose errors are far above those of laws.
NETWORK_ANNEALING = (Stage(0.05, 1.0), Stage(0.05, 1.0))
#: Differences below this, in nat per number, decide nothing.
MARGIN = 0.02
#: The most that laws may leave unexplained, unless it is noise.
MAX_UNEXPLAINED = 0.05
#: Errors that go on for a while from frame to frame are so correlated; those
#: of noise change sign.
MIN_PERSISTENCE = 0.3
#: Fewer systems that meet walls than this decide nothing.
MIN_AT_WALLS = 5


@dataclass(frozen=True)
class LawCheck:
    """Whether force laws hold, with the figures behind.

    Scores are negative log-likelihoods of single steps along frames that
    follow those that graphs were inferred from, in nat per feature; less is
    better.

    Args:
        laws: The score of the laws.
        networks: Of the networks in whose place the laws are.
        linear: Of a linear step, without any interaction.
        behind: Laws minus networks, paired by system.
        ahead: Linear step minus laws, likewise.
        unexplained: Median absolute error of the laws, as a share of that of
            the linear step.
        unexplained_by_networks: Likewise.
        persistence: Correlation of the laws' errors of velocity in one step
            with those in the next, all clipped at three widths: about -0.5 of
            noise, positive where a force is missing or wrong.
        at_walls: Laws minus linear step in steps that meet a wall, by system;
            None where hardly any does.
        slope: Velocities in units of those given at which positions move.
        findings: What the laws' errors depend on.
        num_systems: How many systems were looked at.
    """
    laws: Estimate
    networks: Estimate
    linear: Estimate
    behind: Estimate
    ahead: Estimate
    unexplained: float
    unexplained_by_networks: float
    persistence: float
    at_walls: Optional[Estimate]
    slope: float
    findings: tuple[Finding, ...]
    num_systems: int

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the laws."""
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """What speaks against them, a sentence each."""
        out = []
        if _clearly_above(self.behind):
            out.append(
                f"The force laws predict held-out frames worse than the "
                f"networks they replaced ({self.laws.mean:.2f} against "
                f"{self.networks.mean:.2f}, a difference of "
                f"{self.behind.mean:.2f} ± {self.behind.error:.2f} nat a "
                f"feature).")
        if not _clearly_above(self.ahead):
            out.append(
                f"The force laws predict held-out frames no better than a "
                f"linear step without interactions ({self.laws.mean:.2f} "
                f"against {self.linear.mean:.2f}, a difference of "
                f"{-self.ahead.mean:.2f} ± {self.ahead.error:.2f} nat a "
                f"feature).")
        if (self.unexplained > MAX_UNEXPLAINED
                and self.persistence > MIN_PERSISTENCE):
            out.append(
                f"The laws leave {self.unexplained:.0%} of what forces do "
                f"unexplained, and that is no noise (it goes on from frame to "
                f"frame, with a correlation of {self.persistence:.2f}): laws "
                f"are missing, or many graphs are wrong.")
        if slips(self.slope):
            out.append(slip_message(self.slope))
        if self.at_walls is not None and _clearly_above(self.at_walls):
            out.append("Particles are turned back as if by walls, where the "
                       "laws know of none; check half_width.")
        out += [f"It looks as if {finding}." for finding in self.findings]
        if _clearly_above(self.behind) and len(out) == 1:
            out.append("Forces here may depend on velocity, point across the "
                       "line of a pair, or differ between particles; or "
                       "frames are too noisy.")
        return out

    def __str__(self) -> str:
        figures = (
            f"held-out single steps of {self.num_systems} systems, in nat a "
            f"feature (less is better): laws {_text(self.laws)}, networks "
            f"{_text(self.networks)}, linear step {_text(self.linear)}; laws "
            f"leave {self.unexplained:.1%} of what forces do unexplained, "
            f"networks {self.unexplained_by_networks:.1%}")
        if self.holds:
            return f"The force laws hold: {figures}."
        return '\n'.join([
            "The force laws do NOT hold; do not trust laws or graphs.",
            *(f'  - {reason}' for reason in self.reasons), f'  ({figures})'
        ])


def _clearly_above(value: Estimate) -> bool:
    """Whether a difference is above 0, and no chance or trifle."""
    return value.mean > max(2 * value.error, MARGIN)


def _text(value: Estimate) -> str:
    return f'{value.mean:.2f} ± {value.error:.2f}'


@torch.no_grad()
def check_laws(
    laws: RelationalAutoEncoder,
    networks: RelationalAutoEncoder,
    data: Batch,
    linear_step: LinearStep,
    units: Scaling,
) -> LawCheck:
    r"""Compares force laws with the networks in whose place they are, and
    looks for what their errors depend on. No label is looked at.

    Each of the two infers the graph of each system from :obj:`x`, refined by
    what it makes of these frames itself, and then predicts :obj:`y` one step
    at a time. What it misses, :math:`e`, is scored by the log-likelihood of a
    Cauchy distribution around the prediction, :math:`\log \pi s + \log(1 +
    e^2 / s^2)`, the widths :math:`s` (one of positions and one of velocities)
    fitted to :obj:`x`. That is a proper score, fair to both: a width of its
    own makes a distribution of each predictor, there is no tolerance to
    choose, and the few close encounters, hundreds of times worse than the
    rest for all, do not decide alone.

    Laws can win and be wrong, where the networks have hardly been trained.
    So they also have to beat a linear step, at walls, too, and their errors
    must not depend on what they do not know of
    (:func:`~pyg_fnri.inference.broken_assumptions.find_broken_assumptions`).

    Args:
        laws: A model of fitted force laws.
        networks: The model with any other decoder.
        data: At least two systems that neither was fitted to, with
            :obj:`x` and :obj:`y`.
        linear_step: The linear step, which finds walls by itself.
        units: The units that it works in.

    Raises:
        TypeError: If :obj:`laws` have another decoder.
        ValueError: If there are fewer than two systems, or as for
            :func:`~pyg_fnri.inference.refine`.
    """
    layer = laws.decoder.layer
    if not isinstance(layer, ForceLawDecoder):
        raise TypeError(f"Expected a model of force laws to check, but the "
                        f"decoder's layer is a {type(layer).__name__}.")
    if 'y' not in data or data.y.size(1) < 2 or data.get('batch') is None:
        raise ValueError("Expected a batch of systems with a continuation y "
                         "of at least two frames; split trajectories with "
                         "`pyg_fnri.transforms.SplitTrajectory`.")
    graph = refine(laws, data).edge_type
    other = refine(networks, data, NETWORK_ANNEALING).edge_type
    first = max(m.decoder.burn_in for m in (laws, networks)) - 1
    steps = (linear_step, units, first)
    residual = [linear_step.residual(units(x)) for x in (data.x, data.y)]
    misses: dict[str, tuple[Tensor, Tensor]] = {
        'laws': _misses(laws, data, graph, *steps),
        'networks': _misses(networks, data, other, *steps),
        'linear': (residual[0][:, first:], residual[1][:, first:]),
    }
    rounding = torch.finfo(data.x.dtype).eps / linear_step.scale
    nll = {name: _nll(*pair, rounding) for name, pair in misses.items()}
    score = {
        name: scatter(part.flatten(1).mean(1), data.batch, reduce='mean')
        for name, part in nll.items()
    }
    median = {name: later.abs().median() for name, (_, later) in misses.items()}
    return LawCheck(
        laws=mean_of_systems(score['laws']),
        networks=mean_of_systems(score['networks']),
        linear=mean_of_systems(score['linear']),
        behind=mean_of_systems(score['laws'] - score['networks']),
        ahead=mean_of_systems(score['linear'] - score['laws']),
        unexplained=(median['laws'] / median['linear']).item(),
        unexplained_by_networks=(median['networks'] / median['linear']).item(),
        at_walls=_at_walls(nll['laws'] - nll['linear'],
                           _met_walls(linear_step, units(data.y))[:, first:],
                           data.batch),
        persistence=_persistence(misses['laws'][1]),
        slope=velocity_slope(data.x, layer.interval),
        findings=tuple(find_broken_assumptions(laws, data, graph)),
        num_systems=int(data.batch.max()) + 1,
    )


def _misses(model: RelationalAutoEncoder, data: Batch, edge_type: Tensor,
            linear_step: LinearStep, units: Scaling,
            first: int) -> tuple[Tensor, Tensor]:
    """Errors of single steps along both halves, in units of the linear
    step's residual, [num_nodes, num_transitions, F] each."""
    edge_attr = model.latent.encode_types(edge_type).to(data.x.dtype)
    edge_attr = per_mass(edge_attr, data)
    out = []
    for x in (data.x, data.y):
        predicted = model.scaling.inverse(
            model.decoder.one_step(model.scaling(x), data.edge_index,
                                   edge_attr))
        error = (units(x[:, 1:]) - units(predicted)) / linear_step.scale
        out.append(error[:, first:])
    return out[0], out[1]


def _nll(seen: Tensor, later: Tensor, rounding: Tensor) -> Tensor:
    """The score of each number, with widths fitted to frames seen."""
    parts = zip(*(split_quantities(x) for x in (seen, later, rounding)))
    return torch.cat([
        cauchy_nll(new, cauchy_width(known,
                                     floor.max().item()))
        for known, new, floor in parts
    ], dim=-1)


def _persistence(errors: Tensor) -> float:
    """Of the errors of velocities, [num_nodes, num_transitions, F]."""
    errors = errors.chunk(2, dim=-1)[1]
    limit = 3 * cauchy_width(errors).item()
    errors = errors.clamp(-limit, limit).double()
    product = (errors[:, 1:] * errors[:, :-1]).mean()
    return (product / errors.square().mean().clamp(min=1e-300)).item()


def _met_walls(linear_step: LinearStep, x: Tensor) -> Tensor:
    """Whether a linear step has to fold, [num_nodes, num_transitions]."""
    state = x[:, :-1]
    free = state + torch.nn.functional.linear(state, linear_step.weight,
                                              linear_step.bias)
    return (linear_step.walls(free) != free).any(-1)


def _at_walls(difference: Tensor, met: Tensor,
              system: Tensor) -> Optional[Estimate]:
    total = scatter((difference.mean(-1) * met).sum(1), system)
    count = scatter(met.sum(1).to(total), system)
    if int((count > 0).sum()) < MIN_AT_WALLS:
        return None
    return mean_of_systems((total / count)[count > 0])
