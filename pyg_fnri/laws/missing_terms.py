"""What force laws leave unexplained, and the terms that they lack."""
import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import scatter

from pyg_fnri.inference.impulses import SPREAD, ImpulseEvidence
from pyg_fnri.inference.likelihood import (cauchy_nll, cauchy_width, robust_fit,
                                           some)
from pyg_fnri.inference.noise import NUM_LAGS
from pyg_fnri.laws.fit import LawFit, mean_by_system, typical
from pyg_fnri.nn import Central, NodeTerm, PairTerm, Term

#: Least distance, in units of a law's first one: closer encounters would
#: outweigh all else.
CLOSE = 10 / 3
#: The least size of a term, in typical changes of velocity by forces; laws
#: that hold are off by less.
MIN_SIZE = 0.02
#: The least gain that counts, in nat per number.
MIN_GAIN = 0.02
#: Standard errors that one gain has to exceed, as several terms are tried, and
#: all those among which the greatest decides.
MIN_SIGNIFICANCE, MORE_THAN_CHANCE = 3.0, 2.0
#: The share that laws may leave unexplained, unless it is noise: the
#: correlation between successive errors above which it is none.
MAX_UNEXPLAINED, MIN_PERSISTENCE = 0.05, 0.3

#: Standard errors that what goes on has to exceed, and what laws are off by at
#: one of many distances.
SIGNIFICANT, CLEARLY_OFF = 3.0, 5.0
#: Successive steps whose errors are summed, as noise does not add up.
SPANS = (1, 4, 16)
#: What laws may leave of a particle's motion, as a share of that by forces.
MAX_PARTICLE_LEFT = 0.1
#: Quantiles of distances between which laws are looked at.
QUANTILES = (0, .01, .03, .1, .2, .35, .5, .65, .8, .9, .97, 1)
#: Of what each particle has its own of.
SPREADS = {'response': SPREAD, 'own-rate': 100.0}


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


def clearly_above(gain: Estimate, least: float = 0.0) -> bool:
    return gain.mean > max(2 * gain.error, MIN_GAIN, least)


class Finding(NamedTuple):
    """A term by its name, its mean size in typical changes of velocity by
    forces, and its gain of log-likelihood in nat per velocity component."""
    name: str
    size: float
    gain: Estimate

    def __str__(self) -> str:
        what = Term.known[self.name].what
        return f'{what} ({self.size:.0%} of typical forces)'


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
            total, count = (transitions.by_window(value).sum(-1)
                            for value in (gain * later, later))
            gained = mean_of_systems(
                mean_by_system(total, count, fit.search.window))
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
    errors = transitions.by_window(errors.clamp(-limit, limit).double())
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
    elif name == 'own-rate':
        axes = torch.eye(explained.size(-1)).to(explained)
        return axes.expand(*explained.size(), -1)
    else:
        return explained.unsqueeze(-1)
    out = evidence.independent(out / evidence.scale.unsqueeze(-1))
    return out[:, :, -explained.size(-1):]


class Lasting(NamedTuple):
    """Shares of what forces do: of what goes on from step to step, and of
    particles with much of it, zero if they may be chance; of what adds up."""
    share: float
    particles: float
    kicks: float


def what_lasts(errors: Tensor, forces: Tensor,
               system: Tensor) -> Lasting | None:
    """Of errors and changes by forces, :obj:`[num_nodes, T, D]` each, summed
    over several steps; None of too few. Two sums without a frame in common have
    no noise in common either: its products are zero in the mean."""
    shares: list[float] = []
    particles: list[float] = []
    squares: list[float] = []
    for span in SPANS:
        apart = span + NUM_LAGS
        if span + apart > errors.size(1):
            return None
        left, done = (value.unfold(1, span, 1).sum(-1)
                      for value in (errors, forces))
        # Of what moves under forces, as most particles may move freely.
        usual = typical(done.abs()).nan_to_num().item()
        left, done = (v.clamp(-3 * usual, 3 * usual).double()
                      for v in (left, done))
        product = (left[:, apart:] * left[:, :-apart]).mean((1, 2))
        power = done.square().mean((1, 2))
        much = MAX_PARTICLE_LEFT**2 * power.clamp(min=typical(power))
        # By chance, as many are below zero as above it.
        for value, out in ((product / power.mean(), shares),
                           ((product.abs() > much) * product.sign(),
                            particles)):
            mean, error = mean_of_systems(scatter(value, system, reduce='mean'))
            out.append(max(0.0, mean) * (mean > SIGNIFICANT * error))
        # Across a wall, noise does not cancel.
        whole = (errors != 0).any(-1).unfold(1, span, 1).all(-1)
        squares.append(left[whole].abs().median().nan_to_num().item()**2)
        if span == 1:
            unit = max(usual**2, 1e-30)
    growth = (squares[-1] - squares[-2]) / (SPANS[-1] - SPANS[-2])
    return Lasting(
        max(shares)**0.5, max(particles),
        max(0.0, growth / unit)**0.5)


class Offset(NamedTuple):
    """What pairs of a channel do beyond its law, or without any, in m/s^2; and
    as a share of forces there or in general, zero if it may be chance."""
    channel: int | None
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


def off_by_distance(fit: LawFit, evidence: ImpulseEvidence,
                    channels: Tensor) -> list[Offset]:
    """Regresses errors on unit forces of pairs at some distances, robustly."""
    transitions = evidence.transitions
    axes = slice(-transitions.path.position.size(-1), None)
    unit = transitions.unit_effects(Central())[..., axes, 0]
    unit = unit / evidence.scale[axes]
    distance, law = transitions.distance, fit.layer.law
    none = (channels == 0).all(1, keepdim=True).to(unit)
    # A trifle, beside what all forces do to a particle, is none of a law.
    whole = transitions.path.kernel.sum(0)[-1]
    least = (evidence.scale[axes].mean() / whole / 2).item()
    columns, places, forces = [], [], []
    for channel, acts in enumerate(torch.cat([channels, none], 1).t()):
        seen = distance[acts > 0]
        if not seen.numel():
            continue
        edges = some(seen.flatten(),
                     100_000).quantile(unit.new_tensor(QUANTILES))
        known = channel < law.num_channels
        size = law(seen)[channel].abs() if known else torch.zeros_like(seen)
        usual = max(size.median().item(), least)
        for low, high in zip(edges[:-1], edges[1:]):
            inside = (distance >= low) & (distance <= high)
            push = (unit * inside.unsqueeze(-1)).sum(2) * acts.view(-1, 1, 1)
            columns.append(transitions.sum_at_particles(push))
            here = size[(seen >= low) & (seen <= high)].median().item()
            places.append((channel if known else None, low.item(), high.item()))
            forces.append(max(usual, here))
    valid, system = transitions.valid, fit.search.window
    design = torch.stack(columns, -1) * valid[..., None, None]
    design = transitions.by_window(design).flatten(1, 2).double()
    target = evidence.errors(channels)[..., axes]
    width = cauchy_width(target[valid]).double()
    target = transitions.by_window(target).flatten(1).double()
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
        Offset(*place, size,
               size / max(force, 1e-30) * (size > CLEARLY_OFF * sd)) for place,
        size, sd, force in zip(places,
                               found.abs().tolist(), error.tolist(), forces)
    ]
