"""Do force laws hold? Asked of frames that they were not fitted to."""
import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import scatter

from pyg_fnri.inference import AnnealingStep, refine
from pyg_fnri.inference.impulses import GAP, ImpulseEvidence
from pyg_fnri.inference.likelihood import cauchy_nll, cauchy_width, some
from pyg_fnri.inference.noise import NUM_LAGS
from pyg_fnri.inference.refine import ANNEALING, find_graphs
from pyg_fnri.inference.smoothing import SmoothedTransitions
from pyg_fnri.laws.fit import LawFit
from pyg_fnri.laws.missing_terms import (MAX_UNEXPLAINED, Estimate, Finding,
                                         find_missing_terms, mean_of_systems)
from pyg_fnri.nn import Central, LinearStep, RelationalAutoEncoder, per_mass

#: Two sweeps for networks, whose errors are far above those of laws.
NETWORK_ANNEALING = (AnnealingStep(0.05, 1.0), AnnealingStep(0.05, 1.0))
#: The least difference that counts, in nat per number.
MARGIN = 0.02
#: Successive steps whose errors are summed, as noise does not add up.
SPANS = (1, 4, 16)
#: Standard errors that what goes on has to exceed, and what laws are off by at
#: one of many distances.
SIGNIFICANT, CLEARLY_OFF = 3.0, 5.0
#: The share of particles of which laws may leave more than
#: :data:`MAX_UNEXPLAINED`.
MAX_PARTICLES = 0.1
MAX_PARTICLE_LEFT = 0.1
#: Random numbers that add up like errors of noise do not, in squares of forces.
MAX_KICKS = 0.2
#: By how much a law may be off, in typical forces or those at that distance.
MAX_OFF = 0.15
#: Random starts of the search for graphs, and particles asked for the order.
NUM_RESTARTS, NUM_ASKED = 24, 60
#: Quantiles of distances between which laws are looked at.
QUANTILES = (0, .01, .03, .1, .2, .35, .5, .65, .8, .9, .97, 1)
#: A pair whose effects, in errors, have a square sum below this is not seen.
LEAST_SEEN = 25.0
#: The share of velocities that positions alone may leave, in first order.
MAX_FIRST_ORDER = 0.1


@dataclass(frozen=True)
class LawCheck:
    """Whether force laws hold: reasons against them, remarks that are none, a
    sentence each, and the numbers behind. Scores are negative log-likelihoods
    of held-out single steps in nat per feature."""
    reasons: tuple[str, ...]
    remarks: tuple[str, ...]
    numbers: dict[str, float]

    @property
    def holds(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        numbers = ', '.join(f'{name.replace("_", " ")} {value:.3g}'
                            for name, value in self.numbers.items())
        first = 'The force laws hold.'
        if not self.holds:
            first = ('The force laws do NOT hold; do not trust laws or '
                     'graphs.')
        return '\n'.join([
            first, *(f'  - {text}' for text in (*self.reasons, *self.remarks)),
            f'  ({numbers})'
        ])


def clearly_above(value: Estimate) -> bool:
    return value.mean > max(2 * value.error, MARGIN)


@torch.no_grad()
def check_laws(model: RelationalAutoEncoder, data: Batch,
               networks: Optional[RelationalAutoEncoder] = None) -> LawCheck:
    r"""Asks systems that laws were not fitted to, without labels.

    Graphs are inferred from :obj:`x`, refined, and laws are judged by the
    transitions of :obj:`y`. What they leave must not be more than noise, which
    does not add up over successive steps; nor push pairs apart or together at
    any distance; nor be a term that the laws lack
    (:func:`~pyg_fnri.laws.missing_terms.find_missing_terms`). Laws have to beat
    a linear step, directed graphs, and the networks that they replaced.

    Args:
        model: Its decoder's layer is a :class:`~pyg_fnri.nn.ForceLawDecoder`.
        data: At least two other systems, with :obj:`x` and :obj:`y`.
        networks: A model with any other decoder, to compare with.
    """
    if data.get('y') is None or data.y.size(1) < 2:
        raise ValueError("Expected systems with a continuation y of at least "
                         "two frames; split trajectories with "
                         "`pyg_fnri.transforms.SplitTrajectory`.")
    judged = _judge(model, data)
    fit, evidence, channels, errors, _ = judged
    system, layer, change = fit.search.system, fit.layer, evidence.change
    transitions = evidence.transitions
    smoothed = isinstance(transitions, SmoothedTransitions)
    score = judged.score(judged.independent(channels))
    numbers = {'laws': score.nanmean().item()}
    reasons: list[str] = []
    remarks: list[str] = []

    def compare(name: str, other: Tensor, ahead: bool) -> Optional[Estimate]:
        """By how much laws are behind other scores, or ahead of them."""
        numbers[name] = other.nanmean().item()
        behind = score - other
        lead = mean_of_systems(
            (-behind if ahead else behind)[behind.isfinite()])
        return lead if clearly_above(lead) != ahead else None

    # What forces do, quantity by quantity.
    num_parts = transitions.path.kernel.size(1)
    names = ['positions', 'velocities'] if num_parts == 2 else ['motion']
    for name, left, whole in zip(names, errors.chunk(num_parts, -1),
                                 (change * transitions.valid.unsqueeze(-1) -
                                  errors).chunk(num_parts, -1)):
        found = [
            _lasting(left, whole, system, span) for span in SPANS
            if 2 * span + NUM_LAGS <= left.size(1)
        ]
        if len(found) < len(SPANS):
            remarks.append(f'Too few frames go on to tell what laws leave of '
                           f'{name} from noise.')
            continue
        square, particles, *_ = (max(part) for part in zip(*found))
        share = square**0.5
        growth = (found[-1].left - found[-2].left) / (SPANS[-1] - SPANS[-2])
        kicks = max(0.0, growth / max(found[0].forces, 1e-30))**0.5
        numbers |= {f'{name}_left': share, f'{name}_particles': particles}
        if share > MAX_UNEXPLAINED or particles > MAX_PARTICLES:
            reasons.append(
                f'The laws leave {share:.0%} of what forces do to {name} '
                f'unexplained (over {MAX_UNEXPLAINED:.0%} in {particles:.0%} '
                f'of the particles), which is no noise, as it adds up from '
                f'step to step: laws are missing, or many graphs are wrong.')
        elif kicks > MAX_KICKS and name == 'velocities':
            reasons.append(
                f'Changes of {name} by {kicks:.0%} of those by forces are at '
                f'random, and no noise of frames, as they stay.')
    if not smoothed:  # There, noise tells directions and errors.
        worst = max(_by_distance(judged), key=lambda found: found.share)
        numbers['law_off'] = worst.share
        if worst.share > MAX_OFF:
            reasons.append(str(worst))
    reasons += [f'It looks as if {term}.' for term in missing_from_laws(judged)]
    walls: Any = layer.walls
    if layer.order == 2 and not smoothed:
        step = LinearStep(data.x.size(-1)).to(data.x).fit(data.x)
        lead = compare(
            'linear',
            judged.score(step.residual(data.y) * step.scale / evidence.scale),
            ahead=True)
        known, seen = (torch.cat([of.lower, of.upper]).isfinite().any()
                       for of in (walls, step.walls))
        if bool(seen & ~known):
            reasons.append('Particles turn back as if at walls, where the laws '
                           'know of none; check half_width.')
        if networks is not None:
            types = refine(networks, data, NETWORK_ANNEALING).edge_type
            attr = networks.latent.encode_types(types).to(data.y)
            predicted = networks.scaling.inverse(
                networks.decoder.one_step(networks.scaling(data.y),
                                          data.edge_index, per_mass(attr,
                                                                    data)))
            behind = compare(
                'networks',
                judged.score((data.y[:, 1:] - predicted) / evidence.scale),
                ahead=False)
            if behind is not None:
                reasons.append(f'The networks that the laws replaced predict '
                               f'better, by {behind} nat a feature.')
    else:
        lead = compare('without',
                       judged.score(judged.independent(0 * channels)),
                       ahead=True)
    if lead is not None:
        reasons.append(f'The laws predict no better than none, by {lead} nat a '
                       f'feature; check the interval between two frames.')
    if model.latent.undirected:
        directed = copy.deepcopy(model)
        directed.latent.undirected = False
        other = _judge(directed, data)
        one_way = compare('one_way',
                          other.score(other.independent(other.channels)),
                          ahead=False)
        if one_way is not None:
            reasons.append(f'Some interactions seem to be one-way, as directed '
                           f'graphs predict better by {one_way} nat a feature; '
                           f'train again with undirected=False.')
    if reasons and layer.order == 2 and _is_first_order(data):
        reasons.append('Velocities seem to follow from positions alone, as in '
                       'dynamics of first order; give positions alone.')
    unseen = judged.unseen.double().mean(0)
    numbers['unseen'] = unseen.max().item()
    for channel, share in enumerate(unseen.tolist()):
        if share > 0.005:
            remarks.append(f'{share:.0%} of the pairs never came within reach '
                           f'of law {channel}; whether they interact is '
                           f'unknown, not absent.')
    return LawCheck(tuple(reasons), tuple(remarks), numbers)


class _Judged(NamedTuple):
    """Graphs by :obj:`x`, the evidence of :obj:`y`, channels :obj:`[V, C]`,
    errors :obj:`[num_nodes, T, F]`, and which pairs no law would be seen of,
    :obj:`[V, C]`."""
    fit: LawFit
    evidence: ImpulseEvidence
    channels: Tensor
    errors: Tensor
    unseen: Tensor

    def independent(self, channels: Tensor) -> Tensor:
        """Errors of a graph, each by itself if those of successive steps are
        known to depend on each other."""
        transitions = self.evidence.transitions
        if not isinstance(transitions, SmoothedTransitions):
            return self.evidence.errors(channels)
        evidence = transitions.evidence(self.fit.layer)
        unit = torch.as_tensor(evidence.log_scale).mean((0, 1)).exp()
        return evidence.errors(channels) * unit

    def score(self, errors: Tensor) -> Tensor:
        """Cauchy's negative log-likelihood of errors in units of the evidence,
        in nat per number, :obj:`[num_systems]`; NaN without any."""
        valid, system = self.evidence.transitions.valid, self.fit.search.system
        width = torch.stack(
            [cauchy_width(part) for part in errors[valid].unbind(-1)])
        nll = cauchy_nll(errors, width).mean(-1) * valid
        return scatter(nll.sum(-1), system) / scatter(valid.sum(-1), system)


def _judge(model: RelationalAutoEncoder, data: Batch) -> _Judged:
    fit = LawFit(model, data)
    first = int((fit.transitions.frame < GAP).sum())
    seen = fit.transitions.take(slice(0, first)).evidence(fit.layer)
    generator = torch.Generator().manual_seed(0)
    seen = find_graphs(fit.search, seen, ANNEALING, NUM_RESTARTS, generator)
    fit.transitions.mass, channels = seen.transitions.mass, fit.search.channels
    fit.transitions = fit.transitions.followed(fit.layer, channels)
    errors = seen.errors(channels)
    width = torch.stack([
        cauchy_width(part) for part in errors[seen.transitions.valid].unbind(-1)
    ])
    told = torch.stack(seen.effects(slice(None))) / width
    unseen = told.square().sum((0, 3, 4)) < LEAST_SEEN
    later = fit.transitions.take(slice(first, None))
    # Where pairs act that were not seen before, graphs are not to blame.
    effect = ImpulseEvidence(later, fit.layer).effect
    acts = (effect.abs().amax(-1) > MAX_UNEXPLAINED) & unseen.unsqueeze(-1)
    acts, choices = acts.any(1), later.choices
    for end, part in ((choices.receiver, acts),
                      (choices.sender, acts & choices.mutual.unsqueeze(-1))):
        later.valid = later.valid & (scatter(part.long(), end, dim=0,
                                             dim_size=len(later.valid)) == 0)
    evidence = ImpulseEvidence(later, fit.layer)
    return _Judged(fit, evidence, channels, evidence.errors(channels), unseen)


class _Lasting(NamedTuple):
    """What goes on, as a share of the square of what forces do, where that is
    significant; the share of particles with much of it; and squares of typical
    sums."""
    share: float
    particles: float
    left: float
    forces: float


def _lasting(errors: Tensor, explained: Tensor, system: Tensor,
             span: int) -> _Lasting:
    """Errors summed over so many steps. Two sums without a frame in common have
    no noise in common either, so products of noise are zero in the mean."""
    left, forces = (value.unfold(1, span, 1).sum(-1)
                    for value in (errors, explained))
    limit = 3 * cauchy_width(forces).item()
    left, forces = (v.clamp(-limit, limit).double() for v in (left, forces))
    apart = span + NUM_LAGS
    product = (left[:, apart:] * left[:, :-apart]).mean((1, 2))
    power = forces.square().mean((1, 2))
    shares = (
        mean_of_systems(scatter(value, system, reduce='mean')) for value in (
            product / power.mean(),
            # By chance, as many are below zero as above it.
            (product.abs() > MAX_PARTICLE_LEFT**2 *
             power.clamp(min=power.median())) * product.sign()))
    share, particles = (max(0.0, part.mean) *
                        (part.mean > SIGNIFICANT * part.error)
                        for part in shares)
    return _Lasting(share, particles,
                    left.abs().median().item()**2,
                    forces.abs().median().item()**2)


class _Offset(NamedTuple):
    """What pairs of a channel do beyond its law, or without any, in m/s^2; and
    as a share of forces there or in general, zero if it may be chance."""
    channel: Optional[int]
    low: float
    high: float
    size: float
    share: float

    def __str__(self) -> str:
        what = f'The law of channel {self.channel} is off'
        if self.channel is None:
            what = 'Pairs thought not to interact push each other'
        return (f'{what} by {self.size:.2g} ({self.share:.0%} of forces) at '
                f'distances from {self.low:.2g} to {self.high:.2g}.')


def _by_distance(judged: _Judged) -> list[_Offset]:
    """Regresses errors on unit forces of pairs at some distances, robustly."""
    fit, transitions = judged.fit, judged.evidence.transitions
    axes = slice(-transitions.path.position.size(-1), None)
    unit = transitions.unit_effects(Central())[..., axes, 0]
    unit = unit / judged.evidence.scale[axes]
    distance, law = transitions.distance, fit.layer.law
    none = (judged.channels == 0).all(1, keepdim=True).to(unit)
    columns, places, forces, typical = [], [], [], 0.0
    for channel, acts in enumerate(torch.cat([judged.channels, none], 1).t()):
        seen = distance[acts > 0]
        if not seen.numel():
            continue
        edges = some(seen.flatten(),
                     100_000).quantile(unit.new_tensor(QUANTILES))
        known = channel < law.num_channels
        size = law(seen)[channel].abs() if known else torch.zeros_like(seen)
        usual = size.median().item() if known else typical
        typical = max(typical, usual)
        for low, high in zip(edges[:-1], edges[1:]):
            inside = (distance >= low) & (distance <= high)
            push = (unit * inside.unsqueeze(-1)).sum(2) * acts.view(-1, 1, 1)
            columns.append(transitions.sum_at_particles(push))
            here = size[(seen >= low) & (seen <= high)].median().item()
            places.append((channel if known else None, low.item(), high.item()))
            forces.append(max(usual, here))
    valid, system = transitions.valid, fit.search.system
    design = torch.stack(columns, -1) * valid[..., None, None]
    design = design.flatten(1, 2).double()
    target = judged.errors[..., axes]
    width = cauchy_width(target[valid]).double()
    target = target.flatten(1).double()
    found = design.new_zeros(design.size(-1))
    for _ in range(5):
        left = target - design @ found
        weighted = design / (1 + (left / width).square()).unsqueeze(-1)
        normal = torch.einsum('nop,noq->pq', weighted, design)
        normal += 1e-9 * normal.diagonal().mean() * torch.eye(
            len(normal)).to(normal)
        found = torch.linalg.solve(normal,
                                   torch.einsum('nop,no->p', weighted, target))
    pull = torch.einsum('nop,no->np', weighted, target - design @ found)
    pull = torch.linalg.solve(normal, scatter(pull, system).t())
    error = pull.square().sum(1).sqrt()  # Systems are independent.
    return [
        _Offset(*place, size,
                size / max(force, 1e-30) * (size > CLEARLY_OFF * sd)) for place,
        size, sd, force in zip(places,
                               found.abs().tolist(), error.tolist(), forces)
    ]


def missing_from_laws(judged: _Judged) -> list[Finding]:
    fit = judged.fit
    observed = (fit.transitions.frame < GAP).expand_as(fit.transitions.valid)
    return find_missing_terms(fit, judged.channels, observed,
                              fit.layer.candidates())


def _is_first_order(data: Batch) -> bool:
    """Whether velocities in :obj:`y` are functions of positions, of each pair
    its own, fitted to :obj:`x`; asked of some particles."""
    shares = []
    for i in range(min(NUM_ASKED, data.num_nodes)):
        sender = data.edge_index[0, data.edge_index[1] == i]
        parts = []
        for x in (data.x, data.y):
            place, velocity = x.double().chunk(2, -1)
            offset = place[i] - place[sender]
            square = offset.square().sum(-1, keepdim=True).clamp(min=1e-300)
            columns = torch.cat(
                [offset, offset / square.sqrt(), offset / square])  # [3K, T, D]
            parts.append((columns.flatten(1).t(), velocity[i].reshape(-1, 1)))
        (seen, target), (later, rate) = parts
        left = rate - later @ torch.linalg.lstsq(seen, target).solution
        shares.append(left.square().mean() / rate.square().mean())
    return bool(torch.stack(shares).nanmedian() < MAX_FIRST_ORDER)
