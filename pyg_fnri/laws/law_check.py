"""Do force laws hold? Asked of frames that nothing was fitted to."""
import copy
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import scatter

from pyg_fnri.inference.impulses import velocity_slope
from pyg_fnri.inference.likelihood import (
    AnnealingStep,
    Estimate,
    cauchy_nll,
    cauchy_width,
    mean_of_systems,
)
from pyg_fnri.inference.refine import refine
from pyg_fnri.laws.broken_assumptions import find_broken_assumptions
from pyg_fnri.laws.law_verdict import MAX_UNEXPLAINED, LawCheck
from pyg_fnri.nn import (
    ForceLawDecoder,
    LinearStep,
    RelationalAutoEncoder,
    Scaling,
    per_mass,
)
from pyg_fnri.nn.scaling import split_quantities

#: Two sweeps for networks, whose errors are far above those of laws.
NETWORK_ANNEALING = (AnnealingStep(0.05, 1.0), AnnealingStep(0.05, 1.0))
#: Fewer systems that meet walls than this decide nothing.
MIN_AT_WALLS = 5


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
    (:func:`~pyg_fnri.laws.broken_assumptions.find_broken_assumptions`).

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
    untied = _both_ways(laws)
    other = refine(networks, data, NETWORK_ANNEALING).edge_type
    first = max(m.decoder.burn_in for m in (laws, networks)) - 1
    steps = (linear_step, units, first)
    residual = [linear_step.residual(units(x)) for x in (data.x, data.y)]
    misses: dict[str, tuple[Tensor, Tensor]] = {
        'laws': _misses(laws, data, graph, *steps),
        'networks': _misses(networks, data, other, *steps),
        'linear': (residual[0][:, first:], residual[1][:, first:]),
    }
    if untied is not None:
        one_way = refine(untied, data).edge_type
        misses['one way'] = _misses(untied, data, one_way, *steps)
    rounding = torch.finfo(data.x.dtype).eps / linear_step.scale
    nll = {name: _nll(*pair, rounding) for name, pair in misses.items()}
    score = {
        name: scatter(part.flatten(1).mean(1), data.batch, reduce='mean')
        for name, part in nll.items()
    }
    median = {name: later.abs().median() for name, (_, later) in misses.items()}
    ours, theirs = (misses[name][1].abs().flatten(1).median(1).values
                    for name in ('laws', 'linear'))
    # Where hardly any force acts, trifles are a large share of it.
    much = ours > MAX_UNEXPLAINED * theirs.clamp(min=median['linear'].item())
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
        particles=much.double().mean().item(),
        persistence=_persistence(misses['laws'][1]),
        one_way=None if untied is None else mean_of_systems(score['laws'] -
                                                            score['one way']),
        slope=velocity_slope(data.x, layer.interval),
        findings=tuple(find_broken_assumptions(laws, data, graph)),
        num_systems=int(data.batch.max()) + 1,
    )


def _both_ways(laws: RelationalAutoEncoder) -> Optional[RelationalAutoEncoder]:
    """The same laws, on graphs whose two directions may differ; None where
    they may anyway."""
    if not laws.latent.undirected:
        return None
    out = copy.deepcopy(laws)
    out.latent.undirected = False
    return out


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
