"""Out of local optima: graphs found again, from independent starts."""
from collections.abc import Sequence

import torch

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.relaxation import relax_and_sweep
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.inference.sweep import Objective, without_prior

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
