"""Refining a guessed graph by what a decoder makes of the observed frames."""
from collections.abc import Sequence
from typing import Optional

import torch
from torch_geometric.data import Data

from pyg_fnri.inference.evidence import DecoderEvidence, Evidence
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import (
    AnnealingStep,
    Objective,
    StudentErrors,
    fit_errors,
    without_prior,
)
from pyg_fnri.inference.noise import decorrelated
from pyg_fnri.inference.relaxation import relax_and_sweep
from pyg_fnri.inference.search import GraphSearch, Refined
from pyg_fnri.nn import ForceLawDecoder, RelationalAutoEncoder, known_masses
from pyg_fnri.nn.latent import most_probable

#: Tolerance annealed, so that a wrong graph can still be told from a worse
#: one at the start; the encoder's word fades as the decoder's gets sharper.
ANNEALING = (
    AnnealingStep(0.3, 1.0),
    AnnealingStep(0.1, 0.5),
    AnnealingStep(0.03, 0.3),
    AnnealingStep(0.01, 0.2),
    AnnealingStep(0.005, 0.1),
    AnnealingStep(0.002, 0.1),
)

#: Times the fitted scale: from afar, most errors are far above it.
WIDENING = (30.0, 10.0, 5.0, 3.0, 2.0, 1.0)

#: How often the likelihood is fitted to the errors of better graphs.
NUM_FITS = 2


@torch.no_grad()
def refine(
    model: RelationalAutoEncoder,
    data: Data,
    annealing: Sequence[AnnealingStep] = ANNEALING,
    num_restarts: int = 24,
    generator: Optional[torch.Generator] = None,
) -> Refined:
    """Improves the encoder's graph by what the decoder makes of the observed
    frames :obj:`x`; labels and the continuation :obj:`y` are not looked at.

    First with given tolerances, then with a likelihood that is fitted to the
    errors of the graphs found
    (:func:`~pyg_fnri.inference.likelihood.fit_errors`), which are of all
    systems of the batch: errors and noise are taken to be of one kind.

    Args:
        model: A trained model with any decoder; force laws are far faster.
        data: Observed trajectories, a :obj:`Data` or :obj:`Batch`; with
            masses :obj:`mass` where they are known.
        annealing: Tolerances to begin with. Without any, the encoder's graph
            stays.
        num_restarts: How often at the most a system is searched anew from
            random graphs, see
            :func:`~pyg_fnri.inference.refine.refine_by_restarts`.
            With force laws only: any other decoder takes too long.
        generator: Source of the random graphs; one of its own, and the same
            graphs in every call, by default.

    Raises:
        TypeError: If the trajectories are of another dtype than the model.
        ValueError: If trajectories or edges are missing, a shape does not
            fit, a number is not finite, or there are fewer than two particles
            or two frames.
    """
    generator = generator or torch.Generator().manual_seed(0)
    search, _ = refined_search(model, data, annealing, num_restarts, generator)
    return search.result()


def refined_search(
    model: RelationalAutoEncoder,
    data: Data,
    annealing: Sequence[AnnealingStep],
    num_restarts: int,
    generator: torch.Generator,
) -> tuple[GraphSearch, Evidence]:
    """The search that :func:`refine` gives the result of, to go on from, and
    the evidence it looked at. Arguments are as there.
    """
    search = GraphSearch(model, data)
    layer = model.decoder.layer
    if isinstance(layer, ForceLawDecoder):
        transitions = Transitions([data.x], search.choices, layer.interval,
                                  layer.half_width, known_masses(data))
        impulses = ImpulseEvidence(transitions, layer)
        if annealing:
            impulses = find_graphs(search, impulses, annealing, num_restarts,
                                   generator)
        return search, impulses
    evidence = DecoderEvidence(model, [data.x], data.edge_index, search.choices,
                               known_masses(data))
    for stage in annealing:
        search.sweep(evidence, stage)
    for _ in range(NUM_FITS if annealing else 0):
        search.sweep(evidence, fit_likelihood(search, evidence, annealing[-1]))
    return search, evidence


def find_graphs(
    search: GraphSearch,
    evidence: ImpulseEvidence,
    annealing: Sequence[Objective],
    num_restarts: int,
    generator: torch.Generator,
) -> ImpulseEvidence:
    """The graphs that force laws explain the motion best with, from the
    encoder's guess and from random graphs.

    Args:
        search: Holds them in the end.
        evidence: The errors of the laws.
        annealing: At least one stage.
        num_restarts, generator: As for :func:`refine`.

    Returns:
        The evidence that was looked at in the end: where there is noise, with
        independent errors (:func:`~pyg_fnri.inference.noise.decorrelated`).
    """
    seen = evidence
    relax_and_sweep(search, evidence, annealing)
    for _ in range(NUM_FITS):
        seen = decorrelated(evidence, evidence.errors(search.channels))
        cost = fit_likelihood(search, seen, annealing[-1])
        if not isinstance(cost, StudentErrors):
            break
        annealing = [cost.widened(factor) for factor in WIDENING]
        relax_and_sweep(search, seen, annealing)
    refine_by_restarts(search, seen, annealing, generator, num_restarts)
    return seen


def fit_likelihood(search: GraphSearch, evidence: Evidence,
                   last: Objective) -> Objective:
    """The likelihood that fits the errors of the present graphs, or, where no
    transition says anything about interactions, the last cost."""
    errors = evidence.errors(search.channels)
    return fit_errors(errors, last.prior_weight) if bool(errors.any()) else last


#: Times the median cost of a batch from which on a system's graph is doubted.
OUTLYING = 3.0

#: Starts that have to find the same graph of a system that is doubted.
ENOUGH = 3


def refine_by_restarts(
    search: GraphSearch,
    evidence: ImpulseEvidence,
    annealing: Sequence[Objective],
    generator: torch.Generator,
    num_restarts: int,
) -> int:
    """Searches anew from random graphs, without the encoder's word before the
    last stage, and keeps for each system what explains it best.

    Every other start relaxes its random graphs first
    (:func:`~pyg_fnri.inference.relaxation.relax`), which finds what explains
    all pairs together; the others only sweep, which finds more different
    graphs where the laws leave something unexplained.

    A system is settled, and left alone from then on, once its best graph has
    been found from two independent starts and does not stand out among the
    batch by its cost per particle; one that does stand out, once it has been
    found from three.

    Args:
        search: Holds the best graphs so far, and in the end.
        evidence: The errors of force laws.
        annealing: What to minimise, one after the other.
        generator: Source of the random graphs.
        num_restarts: How many at the most.

    Returns:
        The number of systems that are not settled.
    """
    last = annealing[-1]
    stages = [*without_prior(annealing[:-1]), last]
    search.choice = search.choice.clone()
    best_cost = search.cost(evidence, last)
    times_found = torch.ones_like(best_cost)
    size = search.system.bincount(minlength=search.num_systems)
    settled = size == 0
    # Relative: where all are of one size, costs stay as they are.
    size = size.clamp(min=1) / size.max()
    for number in range(num_restarts):
        if bool(settled.all()):
            break
        part = search.choices.among(~settled[search.system])
        some, seen = search.part(part), evidence.part(part)
        best, some.choice = some.choice, search.draw(generator)[part.choice]
        if number % 2 == 0:
            drawn = torch.nn.functional.one_hot(some.choice,
                                                some.options.size(0))
            relax_and_sweep(some, seen, stages,
                            0.5 * drawn + 0.5 / drawn.size(1))
        else:
            for stage in stages:
                some.sweep(seen, stage)
        some.sweep(seen, last)  # From afar, one is not always enough.
        cost = best_cost.clone()
        cost[~settled] = some.cost(seen, last)
        owner = search.system[search.choices.receiver[part.choice]]
        other = torch.zeros_like(settled)
        other[owner[some.choice != best]] = True
        better = other & (cost < best_cost)
        search.choice[part.choice] = torch.where(better[owner], some.choice,
                                                 best)
        best_cost = torch.where(better, cost, best_cost)
        times_found = torch.where(better, 1, times_found + ~other)
        typical = (best_cost / size).median()
        inconspicuous = best_cost / size <= OUTLYING * typical
        settled |= (times_found >= 2) & inconspicuous
        settled |= times_found >= ENOUGH
    search.sweep(evidence, last)  # For the conditional posterior of all.
    return int((~settled).sum())


@torch.no_grad()
def sample_posterior(
    model: RelationalAutoEncoder,
    data: Data,
    num_samples: int = 32,
    burn_in: int = 16,
    num_restarts: int = 24,
    generator: Optional[torch.Generator] = None,
) -> Refined:
    """The probabilities of all types, given the observed frames :obj:`x` and
    not, as those of :func:`~pyg_fnri.inference.refine`, also all other edges;
    labels and the continuation :obj:`y` are not looked at.

    Gibbs sampling from the refined graphs on. In the first sweeps, the
    likelihood of the decoder's errors is fitted to those of the present graphs
    (:func:`~pyg_fnri.inference.likelihood.fit_errors`), which are of all
    systems of the batch: errors and noise are taken to be of one kind. Then it
    stays, and what is averaged is the probability
    of each type given the other edges' present ones, less noisy than counting
    what was drawn. The encoder's word weighs as little as at the end of
    refinement, as it has seen the same frames.

    A chain hardly leaves one good explanation for another that differs in many
    pairs at once, so where several are good, the posterior is too sure. More
    restarts help: they choose where it starts.

    Args:
        model: A trained model with any decoder; force laws are far faster.
        data: Observed trajectories, a :obj:`Data` or :obj:`Batch`.
        num_samples: How many graphs of each system are averaged over.
        burn_in: How many before that are not.
        num_restarts: As for :func:`~pyg_fnri.inference.refine`.
        generator: Source of randomness; one of its own, and the same draws in
            every call, by default.

    Returns:
        The most probable types of each layer-graph by itself, and the
        posterior :obj:`[num_edges, K_a]` of each.

    Raises:
        As :func:`~pyg_fnri.inference.refine`, and
        ValueError: If there are no samples or no sweeps before them, or no
            transition says anything about interactions.
    """
    if num_samples < 1 or burn_in < 1:
        raise ValueError(f"Expected num_samples and burn_in of at least 1, but "
                         f"got {num_samples} and {burn_in}.")
    generator = generator or torch.Generator().manual_seed(0)
    search, evidence = refined_search(model, data, ANNEALING, num_restarts,
                                      generator)
    prior_weight = ANNEALING[-1].prior_weight
    for _ in range(burn_in):
        objective = fit_errors(evidence.errors(search.channels), prior_weight)
        search.sweep(evidence, objective, generator)
    return average(search, evidence, objective, num_samples, generator)


def average(
    search: GraphSearch,
    evidence: Evidence,
    objective: Objective,
    num_samples: int,
    generator: torch.Generator,
) -> Refined:
    """Goes on from a sample of the posterior, and averages over those that
    follow.

    Args:
        search: At a sample of it; in the end, at the last one.
        evidence: The decoder's errors.
        objective: Minus the logarithm of the posterior.
        num_samples: How many sweeps.
        generator: Source of randomness.
    """
    total = torch.zeros_like(search.conditional)
    for _ in range(num_samples):
        search.sweep(evidence, objective, generator)
        total += search.conditional.exp()
    search.conditional = (total / num_samples).log()
    posterior = search.result().posterior
    return Refined(most_probable(posterior), posterior)
