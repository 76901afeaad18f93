"""Refining a graph by how well a decoder explains the observed frames."""
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from pyg_fnri.inference.evidence import DecoderEvidence, Evidence
from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import (AnnealingStep, Objective,
                                           StudentErrors, fit_errors,
                                           without_prior)
from pyg_fnri.inference.noise import decorrelated
from pyg_fnri.inference.relaxation import relax_and_sweep, sizes
from pyg_fnri.inference.search import GraphSearch, Refined
from pyg_fnri.inference.smoothing import SmoothedEvidence, follow
from pyg_fnri.nn import ForceLawDecoder, RelationalAutoEncoder, known_masses
from pyg_fnri.nn.latent import most_probable

#: Tolerances and prior weights. At first a wrong graph can still be told from a
#: worse one; the encoder's prior fades as the errors get sharper.
ANNEALING = tuple(
    AnnealingStep(*step) for step in ((0.3, 1.0), (0.1, 0.5), (0.03, 0.3),
                                      (0.01, 0.2), (0.005, 0.1), (0.002, 0.1)))

#: Times the fitted scale, and how often it is fitted to better graphs' errors.
WIDENING, NUM_FITS = (30.0, 10.0, 5.0, 3.0, 2.0, 1.0), 2

#: How often masses are fitted to graphs, and graphs to masses; and where masses
#: start, in units of a typical one.
NUM_ALTERNATIONS, MASSES = 3, (1.0, 0.5, 2.0, 0.7, 1.4)

#: Times the median cost from which on a system stands out, and starts that have
#: to find its best graph then.
OUTLYING, ENOUGH = 3.0, 3

#: Channels at a particle up to which systems are small: they get all starts.
#: Larger ones, which take longer, get fewer, and none that only sweeps, where
#: they are stuck.
SMALL = 24


@torch.no_grad()
def refine(model: RelationalAutoEncoder, data: Data,
           annealing: Sequence[AnnealingStep] = ANNEALING,
           num_restarts: int = 24, generator: Optional[torch.Generator] = None,
           num_fits: int = NUM_FITS) -> Refined:
    """Improves the encoder's graph by how well the decoder explains the
    observed frames :obj:`x`: first with given tolerances, then with a
    likelihood fitted to the errors of the whole batch. Uses neither labels nor
    :obj:`y`. Not in the paper.

    Args:
        model: A trained model with any decoder; force laws are far faster.
        data: Observed trajectories, with masses :obj:`mass` where known.
        annealing: Tolerances to begin with; without any, nothing changes.
        num_restarts: Most searches from random graphs, with force laws only.
        generator: Source of randomness, by default the same in every call.
        num_fits: How often the likelihood is fitted; 0 takes half the time.
    """
    generator = generator or torch.Generator().manual_seed(0)
    search, evidence = _refined(model, data, annealing, num_restarts, generator,
                                num_fits)
    return search.result()._replace(mass=_masses(search, evidence))


def infer_graph(model: RelationalAutoEncoder, data: Data) -> Refined:
    """The best graph at little cost: refined if the decoder is force laws,
    that of the encoder otherwise."""
    if isinstance(model.decoder.layer, ForceLawDecoder):
        return refine(model, data)
    return Refined(*model.infer(data))


@torch.no_grad()
def sample_posterior(model: RelationalAutoEncoder, data: Data,
                     num_samples: int = 32, burn_in: int = 16,
                     num_restarts: int = 24,
                     generator: Optional[torch.Generator] = None) -> Refined:
    """The most probable types of each edge, and their probabilities given the
    observed frames :obj:`x` alone, whatever the other edges.

    Gibbs sampling from the refined graphs on, with a likelihood fitted during
    burn-in. Too sure where good explanations differ in many pairs at once, as a
    chain hardly leaves one for another.

    Args:
        model, data, num_restarts, generator: As for :func:`refine`.
        num_samples: How many graphs of each system are averaged over.
        burn_in: How many before that are not, at least 1.
    """
    if num_samples < 1 or burn_in < 1:
        raise ValueError(f"Expected num_samples and burn_in of at least 1, but "
                         f"got {num_samples} and {burn_in}.")
    generator = generator or torch.Generator().manual_seed(0)
    search, evidence = _refined(model, data, ANNEALING, num_restarts, generator)
    for _ in range(burn_in):
        objective = fit_errors(evidence.errors(search.channels),
                               ANNEALING[-1].prior_weight)
        search.sweep(evidence, objective, generator)
    total = torch.zeros_like(search.conditional)
    for _ in range(num_samples):
        search.sweep(evidence, objective, generator)
        total += search.conditional.exp()
    search.conditional = (total / num_samples).log()
    posterior = search.result().posterior
    return Refined(most_probable(posterior), posterior,
                   _masses(search, evidence))


def _masses(search: GraphSearch, evidence: Evidence) -> Optional[Tensor]:
    if isinstance(evidence, ImpulseEvidence) and evidence.responds:
        return evidence.transitions.mass.repeat(search.num_windows)
    return None


def _refined(model: RelationalAutoEncoder, data: Data,
             annealing: Sequence[AnnealingStep], num_restarts: int,
             generator: torch.Generator,
             num_fits: int = NUM_FITS) -> tuple[GraphSearch, Evidence]:
    search, layer = GraphSearch(model, data), model.decoder.layer
    choices, mass = search.choices, known_masses(data)
    if isinstance(layer, ForceLawDecoder):
        impulses = follow([data.x], choices, layer, mass,
                          search.num_windows).evidence(layer)
        if annealing:
            impulses = find_graphs(search, impulses, annealing, num_restarts,
                                   generator, num_fits)
        return search, impulses
    evidence = DecoderEvidence(model, data.x, data.edge_index, choices, mass,
                               search.num_windows)
    for stage in annealing:
        search.sweep(evidence, stage)
    for _ in range(num_fits if annealing else 0):
        search.sweep(evidence, _likelihood(search, evidence, annealing[-1]))
    return search, evidence


def find_graphs(search: GraphSearch, evidence: ImpulseEvidence,
                annealing: Sequence[Objective], num_restarts: int,
                generator: torch.Generator,
                num_fits: int = NUM_FITS) -> ImpulseEvidence:
    """Has the search hold the graphs by which force laws explain the motion
    best. Returns the evidence used in the end, its errors independent."""
    seen = evidence
    if isinstance(evidence, SmoothedEvidence):
        # Its errors are mostly noise: no tolerance is right but theirs.
        annealing = _widened(_likelihood(search, evidence, annealing[-1]))
    relax_and_sweep(search, evidence, annealing)
    for _ in range(NUM_ALTERNATIONS if evidence.responds else 0):
        evidence.settle(search.channels)
        relax_and_sweep(search, evidence, annealing)
    for _ in range(num_fits):
        if isinstance(seen, SmoothedEvidence):
            seen = seen.followed(search.channels)
        else:
            seen = decorrelated(evidence, evidence.errors(search.channels))
        cost = _likelihood(search, seen, annealing[-1])
        if not isinstance(cost, StudentErrors):
            break
        annealing, before = _widened(cost), search.choice
        relax_and_sweep(search, seen, annealing)
        seen.settle(search.channels)
        if not seen.responds:  # What has not changed hardly will.
            search.activate(search.choice != before)
    search.activate()
    _refine_by_restarts(search, seen, annealing, num_restarts, generator)
    evidence.transitions.mass = seen.transitions.mass
    return seen


def _widened(cost: Objective) -> list[Objective]:
    if isinstance(cost, StudentErrors):
        return [cost.widened(factor) for factor in WIDENING]
    return [cost]


def _refine_by_restarts(search: GraphSearch, evidence: ImpulseEvidence,
                        annealing: Sequence[Objective], num_restarts: int,
                        generator: torch.Generator) -> None:
    """Searches again from random graphs and keeps what explains each system
    (in directed graphs, each particle) best. Every other start only sweeps,
    which finds more different graphs. A system is left once :data:`ENOUGH`
    starts, or two if its cost is typical, agree."""
    last = annealing[-1]
    stages = [*without_prior(annealing[:-1]), last]
    unit = search.unit
    owner = unit[search.choices.receiver]
    best_cost, transitions = search.cost(evidence, last), evidence.transitions
    times_found = torch.ones_like(best_cost)
    size = unit.bincount(minlength=len(best_cost))
    settled = size == 0  # Numbers of systems may have gaps.
    size = size.clamp(min=1) / size.max()
    width = sizes(search, evidence)[0].clamp(min=1)
    small = torch.ones_like(settled)
    small[unit] = (width <= SMALL)[search.system]
    last_number = torch.full_like(best_cost, num_restarts)
    last_number[unit] *= (SMALL / width).clamp(max=1)[search.system]
    for number in range(num_restarts):
        tried = ~settled & (number < last_number)
        if number % 2:
            tried &= small
        if not bool(tried.any()):
            continue
        search.active = tried[owner]
        best, best_mass = search.choice, transitions.mass
        if evidence.responds:
            other_mass = torch.full_like(best_mass,
                                         MASSES[number % len(MASSES)])
            transitions.mass = torch.where(tried[unit], other_mass, best_mass)
        search.choice = torch.where(search.active, search.draw(generator), best)
        if number % 2 == 0:
            drawn = one_hot(search.choice, len(search.options))
            relax_and_sweep(search, evidence, stages,
                            0.5 * drawn + 0.5 / drawn.size(1))
        else:
            for stage in stages:
                search.sweep(evidence, stage)
        for _ in range(2 if evidence.responds else 1):
            evidence.settle(search.channels)
            search.sweep(evidence, last)
        evidence.settle(search.channels)
        cost = search.cost(evidence, last)
        other = torch.zeros_like(settled)
        other[owner[search.choice != best]] = True
        better = other & (cost < best_cost)
        search.choice = torch.where(better[owner], search.choice, best)
        best_cost = torch.where(better, cost, best_cost)
        transitions.mass = torch.where(better[unit], transitions.mass,
                                       best_mass)
        times_found = torch.where(better, 1, times_found + (tried & ~other))
        typical = (best_cost / size).median()
        settled |= (times_found >= 2) & (best_cost / size <= OUTLYING * typical)
        settled |= times_found >= ENOUGH
    search.activate()
    search.sweep(evidence, last)  # For the conditional posterior of all.


def _likelihood(search: GraphSearch, evidence: Evidence,
                last: Objective) -> Objective:
    """That of the present graphs' errors; the last cost where all are 0."""
    errors = evidence.errors(search.channels)
    return fit_errors(errors, last.prior_weight) if bool(errors.any()) else last
