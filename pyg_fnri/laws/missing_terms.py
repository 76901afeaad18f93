"""Terms that force laws lack, found in what they leave unexplained."""
import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_fnri.inference.impulses import SPREAD, ImpulseEvidence
from pyg_fnri.inference.likelihood import cauchy_nll, cauchy_width, robust_fit
from pyg_fnri.laws.fit import LawFit, mean_by_system
from pyg_fnri.nn import NodeTerm, PairTerm, Term

#: Least distance, in units of a law's first one: closer encounters would
#: outweigh all else.
CLOSE = 10 / 3
#: The least size of a term, in typical changes of velocity by forces; laws
#: that hold are off by less.
MIN_SIZE = 0.02
#: Standard errors that one gain has to exceed, as several terms are tried, and
#: all those among which the greatest decides.
MIN_SIGNIFICANCE, MORE_THAN_CHANCE = 3.0, 2.0
#: The share that laws may leave unexplained, unless it is noise: the
#: correlation between successive errors above which it is none.
MAX_UNEXPLAINED, MIN_PERSISTENCE = 0.05, 0.3

#: Of what each particle has its own of.
SPREADS = {'response': SPREAD, 'own rate': 100.0}


class Estimate(NamedTuple):
    """A mean and its standard error."""
    mean: float
    error: float

    def __str__(self) -> str:
        return f'{self.mean:.2f} ± {self.error:.2f}'


def mean_of_systems(values: Tensor) -> Estimate:
    """The mean of a value per system, :obj:`[num_systems]`."""
    if values.numel() < 2:
        raise ValueError(f"A standard error takes at least two systems, but "
                         f"there is {values.numel()}.")
    values = values.double()
    error = values.std() / math.sqrt(values.numel())
    return Estimate(values.mean().item(), error.item())


class Finding(NamedTuple):
    """A term by its name, its mean size in typical changes of velocity by
    forces, and its gain of log-likelihood in nat per velocity component."""
    name: str
    size: float
    gain: Estimate

    def __str__(self) -> str:
        what = Term.known[self.name].what
        return f'{what} ({self.size:.0%} of typical forces)'


@torch.no_grad()
def find_missing_terms(fit: LawFit, channels: Tensor, seen: Tensor,
                       names: Iterable[str]) -> list[Finding]:
    """Those of some terms that laws lack in at least two systems with graphs
    :obj:`[V, num_channels]`, the greatest gain first. Each is fitted to what
    the laws miss in the transitions :obj:`seen`, and judged by the others; the
    best is taken out, and the others are tried on what is left."""
    transitions = fit.transitions.followed(fit.layer, channels)
    evidence, valid = transitions.evidence(fit.layer), transitions.valid
    # Changes of velocity, in typical ones by forces.
    axes = slice(-transitions.path.position.size(-1), None)
    missed = evidence.errors(channels)[..., axes]
    explained = evidence.change[..., axes] - missed
    left = {
        name: term_columns(fit, evidence, name, channels, explained)
        for name in names if name not in fit.layer.terms
    }
    later, seen = valid & ~seen, valid & seen
    # Laws that are all too strong or too weak by one factor break no rule.
    missed = missed - _part(explained.unsqueeze(-1), missed, seen)
    found = []
    while left:
        tried = []
        for name, columns in left.items():
            part = _part(columns, missed, seen, SPREADS.get(name))
            gain = torch.zeros_like(missed[..., 0])
            for errors, sign in ((missed, 1), (missed - part, -1)):
                nll = cauchy_nll(errors, cauchy_width(errors[seen]))
                gain += sign * nll.mean(-1)
            gained = mean_of_systems(
                mean_by_system((gain * later).sum(-1), later.sum(-1),
                               fit.search.system))
            size = part[later].abs().mean().item()
            if size >= MIN_SIZE and (gained.mean
                                     > MORE_THAN_CHANCE * gained.error):
                tried.append((Finding(name, size, gained), part))
        if not any(finding.gain.mean > MIN_SIGNIFICANCE * finding.gain.error
                   for finding, _ in tried):
            break
        finding, part = max(tried, key=lambda pair: pair[0].gain.mean)
        missed = missed - part
        found.append(finding)
        del left[finding.name]
    return found


def leaves_unexplained(fit: LawFit, channels: Tensor) -> bool:
    """Whether laws leave much unexplained that is no noise, as errors go on
    from one transition to the next."""
    transitions = fit.transitions.followed(fit.layer, channels)
    evidence, valid = transitions.evidence(fit.layer), transitions.valid
    axes = slice(-transitions.path.position.size(-1), None)
    errors = evidence.errors(channels)[..., axes]
    change = evidence.change[..., axes]
    share = errors[valid].abs().median() / change[valid].abs().median()
    limit = 3 * cauchy_width(errors[valid])
    errors = errors.clamp(-limit, limit).double()
    product = (errors[:, 1:] * errors[:, :-1]).sum()
    persistence = product / errors.square().sum().clamp(min=1e-300)
    return bool((share > MAX_UNEXPLAINED) & (persistence > MIN_PERSISTENCE))


def _part(columns: Tensor, missed: Tensor, seen: Tensor,
          spread: float | None = None) -> Tensor:
    constants = robust_fit(columns, missed, seen, spread)
    return torch.einsum('ntdp,np->ntd', columns, constants)


def term_columns(fit: LawFit, evidence: ImpulseEvidence, name: str,
                 channels: Tensor, explained: Tensor) -> Tensor:
    """What each of P constants adds to changes of velocity, :obj:`[num_nodes,
    num_transitions, D, P]`, in typical ones: of terms of pairs, laws that are
    constant, linear, and inverse."""
    transitions, term = evidence.transitions, Term.known[name]()
    if isinstance(term, NodeTerm):
        out = transitions.node_columns(term)
    elif isinstance(term, PairTerm):

        def effects(at_sender: bool) -> Tensor:
            distance = transitions.distances(term, at_sender=at_sender)
            distance = distance.clamp(min=CLOSE * fit.layer.law.min_distance)
            shapes = torch.stack(
                [torch.ones_like(distance), distance, 1 / distance])
            unit = transitions.unit_effects(term, at_sender=at_sender)
            out = torch.einsum('svtp,vtpfk->vtfks', shapes, unit)
            return torch.einsum('vc,vtfks->vtfcks', channels, out).flatten(3)

        out = transitions.sum_at_particles(effects(False),
                                           None if term.odd else effects(True))
    elif name == 'own rate':
        axes = torch.eye(explained.size(-1)).to(explained)
        return axes.expand(*explained.size(), -1)
    else:
        return explained.unsqueeze(-1)
    out = evidence.independent(out / evidence.scale.unsqueeze(-1))
    return out[:, :, -explained.size(-1):]
