"""Do force laws hold? Asked of frames that they were not fitted to."""
import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import scatter

from pyg_fnri.inference import refine
from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import cauchy_nll, cauchy_width
from pyg_fnri.inference.paths import velocities_follow
from pyg_fnri.inference.refine import ANNEALING, find_graphs
from pyg_fnri.inference.smoothing import SmoothedTransitions
from pyg_fnri.laws.fit import LawFit
from pyg_fnri.laws.missing_terms import (MAX_UNEXPLAINED, Estimate,
                                         clearly_above, find_missing_terms,
                                         mean_of_systems, off_by_distance,
                                         what_lasts)
from pyg_fnri.nn import LinearStep, RelationalAutoEncoder

#: The share of particles of which laws may leave much.
MAX_PARTICLES = 0.1
#: Random changes that stay, in typical ones by forces.
MAX_KICKS = 0.3
#: By how much a law may be off, in typical forces or those at that distance.
MAX_OFF = 0.15
#: Frames that laws of different order have to predict.
NUM_PREDICTED = 10
#: Random starts of the search for graphs.
NUM_RESTARTS = 24
#: A pair whose effects, in errors, have a square sum below this is not seen;
#: the share of such pairs from which on that is said.
LEAST_SEEN, LEAST_SHARE = 25.0, 0.005


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

    @property
    def tells(self) -> bool:
        """Whether they hold, and it would have shown if another law acted."""
        return self.holds and any(
            name.endswith('_left') for name in self.numbers)

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


@torch.no_grad()
def check_laws(model: RelationalAutoEncoder, data: Batch) -> LawCheck:
    r"""Asks systems that laws were not fitted to, without labels.

    Graphs are inferred from :obj:`x`, refined, and laws are judged by the
    transitions of :obj:`y`. What they leave must not be more than noise, which
    does not add up over successive steps; nor push pairs apart or together at
    any distance; nor be a term that the laws lack
    (:func:`~pyg_fnri.laws.missing_terms.find_missing_terms`). Laws have to beat
    a linear step and directed graphs.

    Args:
        model: Its decoder's layer is a :class:`~pyg_fnri.nn.ForceLawDecoder`.
        data: At least two other systems, with :obj:`x` and :obj:`y`.
    """
    if data.get('y') is None or data.y.size(1) < 2:
        raise ValueError("Expected systems with a continuation y of at least "
                         "two frames; split trajectories with "
                         "`pyg_fnri.transforms.SplitTrajectory`.")
    judged = _judge(model, data)
    fit, evidence, channels, unseen = judged
    layer, transitions = fit.layer, evidence.transitions
    smoothed = isinstance(transitions, SmoothedTransitions)
    score = judged.score(judged.errors(channels))
    numbers = {'laws': score.nanmean().item()}
    reasons: list[str] = []
    remarks: list[str] = []

    def lead(name: str, other: Tensor,
             score: Tensor = score) -> Optional[Estimate]:
        """By how much others are more likely than the laws; None if fewer than
        two systems tell."""
        numbers[name] = other.nanmean().item()
        ahead = (score - other)[(score - other).isfinite()]
        return mean_of_systems(ahead) if len(ahead) > 1 else None

    left = evidence.errors(channels)
    forces = evidence.change * transitions.valid.unsqueeze(-1) - left
    left, forces = transitions.by_window(left), transitions.by_window(forces)
    num_parts = transitions.path.kernel.size(1)
    names = ['positions', 'velocities'] if num_parts == 2 else ['motion']
    for name, part, whole in zip(names, left.chunk(num_parts, -1),
                                 forces.chunk(num_parts, -1)):
        found = what_lasts(part, whole, fit.search.window)
        if found is None:
            remarks.append(f'Too few frames go on to tell what laws leave of '
                           f'{name} from noise.')
            continue
        numbers |= {
            f'{name}_left': found.share,
            f'{name}_particles': found.particles
        }
        if name == 'velocities':
            numbers['kicks'] = found.kicks
        if found.share > MAX_UNEXPLAINED or found.particles > MAX_PARTICLES:
            reasons.append(
                f'The laws leave {found.share:.0%} of what forces do to {name} '
                f'unexplained (much in {found.particles:.0%} of the '
                f'particles), which is no noise, as it adds up from step to '
                f'step: laws are missing, or many graphs are wrong.')
        elif found.kicks > MAX_KICKS and name == 'velocities':
            reasons.append(f'Random changes of {name}, {found.kicks:.0%} of '
                           f'those by forces, stay, as noise would not.')
    if not smoothed:  # There, noise is in directions and errors alike.
        worst = max(off_by_distance(fit, evidence, channels),
                    key=lambda offset: offset.share)
        numbers['law_off'] = worst.share
        reasons += [str(worst)] * (worst.share > MAX_OFF)
    observed = fit.transitions.observed.expand_as(fit.transitions.valid)
    reasons += [
        f'It looks as if {term}.' for term in find_missing_terms(
            fit, channels, observed, layer.candidates())
    ]
    if layer.order == 2 and not smoothed:
        walls: Any = layer.walls
        step = LinearStep(data.x.size(-1)).to(data.x).fit(data.x)
        missed = step.residual(data.y) * step.scale
        ahead = lead('linear', judged.score(missed / evidence.scale))
        known, seen = (bool(torch.cat([of.lower, of.upper]).isfinite().any())
                       for of in (walls, step.walls))
        if seen and not known:
            reasons.append('Particles turn back as if at walls, where the laws '
                           'know of none; check half_width.')
    else:
        ahead = lead('without', judged.score(judged.errors(0 * channels)))
    if ahead is None:
        reasons.append('Hardly a frame held out tells of forces; record more '
                       'frames.')
    elif not clearly_above(ahead._replace(mean=-ahead.mean)):
        reasons.append(f'The laws predict no better than none, which leads by '
                       f'{ahead} nat a feature; check the interval between two '
                       f'frames.')
    for name, setting, words in (
        ('one_way', 'undirected',
         'Some interactions seem to be one-way, as directed graphs'),
        ('apart', 'shared',
         'Systems seem not to share a graph, as graphs of their own')):
        if getattr(model.latent, setting):
            out = copy.deepcopy(model)
            setattr(out.latent, setting, False)
            other_way = _judge(out, data)
            valid, mine = None, score
            if setting == 'shared':  # More is seen of pairs together.
                valid = judged.valid & other_way.valid
                mine = judged.score(judged.errors(channels), valid)
            other = other_way.score(other_way.errors(other_way.channels), valid)
            ahead = lead(name, other, mine)
            if ahead is None:
                remarks.append(f'Too few systems tell whether {setting}=False '
                               f'predicts better.')
            elif clearly_above(ahead):
                reasons.append(f'{words} predict better by {ahead} nat a '
                               f'feature; train again with {setting}=False.')
    if reasons and layer.order == 2 and velocities_follow(
            data, fit.search.num_windows):
        reasons.append('Velocities seem to follow from positions alone, as in '
                       'dynamics of first order; fit those as well, as the '
                       'recipe laws does.')
    shares = unseen.double().mean(0)
    numbers['unseen'] = shares.max().item()
    remarks += [
        f'{share:.0%} of the pairs never came within reach of law {channel}; '
        f'whether they interact is unknown, not absent.'
        for channel, share in enumerate(shares.tolist()) if share > LEAST_SHARE
    ]
    return LawCheck(tuple(reasons), tuple(remarks), numbers)


@torch.no_grad()
def prediction_cost(model: RelationalAutoEncoder, data: Batch) -> float:
    """How badly laws predict positions in the first frames of :obj:`y`, by the
    graphs of :obj:`x`: Cauchy's negative log-likelihood in nat per number, for
    laws of different order to be compared."""
    graph, known = refine(model, data), data.clone()
    if graph.mass is not None:
        known.mass = graph.mass
    y = data.y[:, :NUM_PREDICTED]
    out = model.predict_trajectory(known, y.size(1), graph.edge_type)
    layer: Any = model.decoder.layer
    errors = layer.between(layer.split(out)[0], layer.split(y)[0])
    errors = errors.nan_to_num(torch.inf).clamp(-1e12, 1e12)
    return cauchy_nll(errors, cauchy_width(errors)).mean().item()


class _Judged(NamedTuple):
    """Graphs by :obj:`x` and the evidence of :obj:`y`, channels :obj:`[V, C]`,
    and which pairs no law would be seen of, :obj:`[V, C]`."""
    fit: LawFit
    evidence: ImpulseEvidence
    channels: Tensor
    unseen: Tensor

    def errors(self, channels: Tensor) -> Tensor:
        """Of a graph, by window, :obj:`[num_nodes, T, F]`, and independent,
        where those of successive steps are known to depend on each other."""
        transitions = self.evidence.transitions
        errors = self.evidence.errors(channels)
        if isinstance(transitions, SmoothedTransitions):
            evidence = transitions.evidence(self.fit.layer)
            unit = torch.as_tensor(evidence.log_scale).mean((0, 1)).exp()
            errors = evidence.errors(channels) * unit
        return transitions.by_window(errors)

    @property
    def valid(self) -> Tensor:
        transitions = self.evidence.transitions
        return transitions.by_window(transitions.valid)

    def score(self, errors: Tensor, valid: Optional[Tensor] = None) -> Tensor:
        """Cauchy's negative log-likelihood of errors in units of the evidence,
        in nat per number, :obj:`[num_systems]`; NaN without any."""
        valid = self.valid if valid is None else valid
        system = self.fit.search.window
        width = torch.stack(
            [cauchy_width(part) for part in errors[valid].unbind(-1)])
        nll = (cauchy_nll(errors, width).mean(-1) * valid).sum(-1)
        return torch.div(scatter(nll, system), scatter(valid.sum(-1), system))


def _judge(model: RelationalAutoEncoder, data: Batch) -> _Judged:
    fit = LawFit(model, data)
    first = int(fit.transitions.observed.sum())
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
    evidence = ImpulseEvidence(later, fit.layer)
    acts = (evidence.effect.abs().amax(-1)
            > MAX_UNEXPLAINED) & unseen.unsqueeze(-1)
    acts = acts.any(1).to(channels)
    later.valid = later.valid & (later.sum_at_particles(acts, acts) == 0)
    return _Judged(fit, evidence, channels, unseen)
