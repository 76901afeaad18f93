"""Do force laws hold? Asked of frames that they were not fitted to."""
import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import scatter

from pyg_fnri.inference import AnnealingStep, refine
from pyg_fnri.inference.impulses import GAP
from pyg_fnri.inference.likelihood import cauchy_nll, cauchy_width
from pyg_fnri.laws.fit import LawFit, mean_by_system
from pyg_fnri.laws.missing_terms import (MAX_UNEXPLAINED, MIN_PERSISTENCE,
                                         Estimate, Finding, find_missing_terms,
                                         mean_of_systems)
from pyg_fnri.nn import LinearStep, RelationalAutoEncoder, Scaling, per_mass
from pyg_fnri.nn.scaling import split_quantities

#: Two sweeps for networks, whose errors are far above those of laws.
NETWORK_ANNEALING = (AnnealingStep(0.05, 1.0), AnnealingStep(0.05, 1.0))
#: The least difference that counts, in nat per number.
MARGIN = 0.02
#: The share of particles of which laws may leave more than
#: :data:`MAX_UNEXPLAINED`.
MAX_PARTICLES = 0.1
#: The least number of systems that meet walls for these to be judged.
MIN_AT_WALLS = 5


@dataclass(frozen=True)
class LawCheck:
    """Whether force laws hold, with the numbers behind. Scores are negative
    log-likelihoods of held-out single steps in nat per feature.

    Args:
        laws, networks, linear: Scores of the laws, of the networks that they
            replace, and of a linear step without interactions.
        behind, ahead: Laws minus networks, and linear step minus laws.
        unexplained, unexplained_by_networks: Median absolute errors, as shares
            of that of the linear step.
        particles: Share of the particles of which laws leave more than
            :data:`MAX_UNEXPLAINED`.
        persistence: Correlation of successive errors of velocity: about -0.5 of
            noise, positive where a force is missing or wrong.
        at_walls: Laws minus linear step in steps that meet a wall, if any.
        one_way: Laws minus the same laws on directed graphs.
        findings: Terms that the laws lack.
    """
    laws: Estimate
    networks: Estimate
    linear: Estimate
    behind: Estimate
    ahead: Estimate
    unexplained: float
    unexplained_by_networks: float
    particles: float
    persistence: float
    at_walls: Estimate | None
    one_way: Estimate | None
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        return not self.reasons

    @property
    def reasons(self) -> list[str]:
        """Reasons against the laws, a sentence each."""
        unexplained = (self.unexplained > MAX_UNEXPLAINED
                       or self.particles > MAX_PARTICLES)
        out = []
        if clearly_above(self.behind):
            out.append(f'The networks that the laws replaced predict better, '
                       f'by {self.behind} nat a feature.')
        if not clearly_above(self.ahead):
            out.append(f'The laws predict no better than a linear step '
                       f'without interactions, by {self.ahead} nat a feature; '
                       f'check the interval between two frames.')
        if unexplained and self.persistence > MIN_PERSISTENCE:
            out.append(f'The laws leave {self.unexplained:.0%} of the effect '
                       f'of forces unexplained (over {MAX_UNEXPLAINED:.0%} in '
                       f'{self.particles:.0%} of the particles), which is no '
                       f'noise, as successive errors correlate by '
                       f'{self.persistence:.2f}: laws are missing, or many '
                       f'graphs are wrong.')
        if clearly_above(self.one_way):
            out.append(f'Some interactions seem to be one-way, as directed '
                       f'graphs predict better by {self.one_way} nat a '
                       f'feature; train again with undirected=False.')
        if clearly_above(self.at_walls):
            out.append('Particles turn back as if at walls, where the laws '
                       'know of none; check half_width.')
        return out + [f'It looks as if {term}.' for term in self.findings]

    def __str__(self) -> str:
        numbers = (
            f'held-out single steps, in nat a feature (less is better): laws '
            f'{self.laws}, networks {self.networks}, linear step '
            f'{self.linear}; unexplained of the effect of forces: laws '
            f'{self.unexplained:.1%}, networks '
            f'{self.unexplained_by_networks:.1%}; correlation of successive '
            f'errors: {self.persistence:.2f} (below {MIN_PERSISTENCE}: noise)')
        if self.holds:
            return f'The force laws hold: {numbers}.'
        return '\n'.join([
            'The force laws do NOT hold; do not trust laws or graphs.',
            *(f'  - {reason}' for reason in self.reasons), f'  ({numbers})'
        ])


def clearly_above(value: Estimate | None) -> bool:
    return value is not None and value.mean > max(2 * value.error, MARGIN)


@torch.no_grad()
def check_laws(laws: RelationalAutoEncoder, networks: RelationalAutoEncoder,
               data: Batch, linear_step: LinearStep,
               units: Scaling) -> LawCheck:
    r"""Compares force laws with the networks that they replaced, label-free.

    Each infers graphs from :obj:`x`, refined, and predicts :obj:`y` one step at
    a time. Errors :math:`e` are scored by a Cauchy distribution, :math:`\log
    \pi s + \log(1 + e^2 / s^2)`, with widths :math:`s` fitted to :obj:`x`, so
    that a few close encounters do not decide. Laws also have to beat a linear
    step, and lack no term
    (:func:`~pyg_fnri.laws.missing_terms.find_missing_terms`).

    Args:
        laws: A model of fitted force laws.
        networks: The model with any other decoder.
        data: At least two other systems, with :obj:`x` and :obj:`y`.
        units: The units of the linear step.
    """
    if data.get('y') is None or data.y.size(1) < 2:
        raise ValueError("Expected systems with a continuation y of at least "
                         "two frames; split trajectories with "
                         "`pyg_fnri.transforms.SplitTrajectory`.")
    first = max(m.decoder.burn_in for m in (laws, networks)) - 1

    def misses(model: RelationalAutoEncoder, edge_type: Tensor) -> list[Tensor]:
        """Errors of single steps along x and along y, in units of the linear
        step's residual, [num_nodes, num_transitions, F]."""
        out = []
        for x in (data.x, data.y):
            edge_attr = model.latent.encode_types(edge_type).to(x.dtype)
            predicted = model.scaling.inverse(
                model.decoder.one_step(model.scaling(x), data.edge_index,
                                       per_mass(edge_attr, data)))
            error = (units(x[:, 1:]) - units(predicted)) / linear_step.scale
            out.append(error[:, first:])
        return out

    graph = refine(laws, data).edge_type
    other = refine(networks, data, NETWORK_ANNEALING).edge_type
    missed = {'laws': misses(laws, graph), 'networks': misses(networks, other)}
    missed['linear'] = [
        linear_step.residual(units(x))[:, first:] for x in (data.x, data.y)
    ]
    if laws.latent.undirected:
        directed = copy.deepcopy(laws)
        directed.latent.undirected = False
        missed['one way'] = misses(directed, refine(directed, data).edge_type)
    rounding = torch.finfo(data.x.dtype).eps / linear_step.scale
    nll, score, median = {}, {}, {}
    for name, errors in missed.items():
        seen, later = errors
        parts = map(split_quantities, (seen, later))
        nll[name] = torch.cat([
            cauchy_nll(part, cauchy_width(of,
                                          floor.max().item()))
            for of, part, floor in zip(*parts, split_quantities(rounding))
        ], dim=-1).mean(-1)
        score[name] = scatter(nll[name].mean(1), data.batch, reduce='mean')
        median[name] = later.abs().median().item()
    # Steps in which the linear step has to fold.
    before = units(data.y[:, first:-1])
    free = before + torch.nn.functional.linear(before, linear_step.weight,
                                               linear_step.bias)
    met = (linear_step.walls(free) != free).any(-1)
    at_walls = mean_by_system(((nll['laws'] - nll['linear']) * met).sum(1),
                              met.sum(1), data.batch)
    # Where hardly any force acts, trifles are a large share of it.
    ours, theirs = (missed[name][1].abs().flatten(1).median(1).values
                    for name in ('laws', 'linear'))
    much = ours > MAX_UNEXPLAINED * theirs.clamp(min=median['linear'])
    return LawCheck(
        laws=mean_of_systems(score['laws']), networks=mean_of_systems(
            score['networks']), linear=mean_of_systems(score['linear']),
        behind=mean_of_systems(score['laws'] - score['networks']),
        ahead=mean_of_systems(score['linear'] - score['laws']),
        unexplained=median['laws'] / median['linear'],
        unexplained_by_networks=median['networks'] / median['linear'],
        particles=much.double().mean().item(), persistence=_persistence(
            missed['laws'][1]), at_walls=mean_of_systems(at_walls)
        if len(at_walls) >= MIN_AT_WALLS else None,
        one_way=mean_of_systems(score['laws'] - score['one way'])
        if 'one way' in score else None,
        findings=tuple(missing_from_laws(laws, data, graph)))


def missing_from_laws(model: RelationalAutoEncoder, data: Batch,
                      edge_type: Tensor) -> list[Finding]:
    fit = LawFit(model, data)
    channels = model.latent.encode_types(edge_type)[fit.search.choices.edge]
    observed = (fit.transitions.frame < GAP).expand_as(fit.transitions.valid)
    return find_missing_terms(fit, channels.to(data.x.dtype), observed,
                              fit.layer.candidates())


def _persistence(errors: Tensor) -> float:
    errors = split_quantities(errors)[-1]
    limit = 3 * cauchy_width(errors).item()
    errors = errors.clamp(-limit, limit).double()
    product = (errors[:, 1:] * errors[:, :-1]).mean()
    return (product / errors.square().mean().clamp(min=1e-300)).item()
