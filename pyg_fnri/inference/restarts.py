"""Out of local optima: graphs found twice, from independent starts."""
from collections.abc import Sequence
from dataclasses import replace

import torch

from pyg_fnri.inference.evidence import Evidence
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.inference.sweep import Objective

#: Times the median cost of a batch from which on a system's graph is doubted.
OUTLYING = 3.0


def settle(
    search: GraphSearch,
    evidence: Evidence,
    annealing: Sequence[Objective],
    generator: torch.Generator,
    num_restarts: int,
) -> int:
    """Searches anew from random graphs, without the encoder's word before the
    last stage, and keeps for each system what explains it best.

    A system is settled, and left alone from then on, once its best graph has
    been found from two independent starts and does not stand out among the
    batch by its cost. Changing one pair at a time gets stuck where several
    pairs are wrong together (all those of a particle whose charge is, say, or
    of two that orbit each other), but seldom at the same place twice.

    Args:
        search: Has been annealed; holds the best graphs in the end.
        evidence: The decoder's errors.
        annealing: One sweep each.
        generator: Source of the random graphs.
        num_restarts: How many at the most.

    Returns:
        The number of systems that are not settled.
    """
    last = annealing[-1]
    blind = [
        replace(stage, prior_weight=0.0)  # type: ignore[type-var]
        for stage in annealing[:-1]
    ]
    everything = search.choices
    owner = search.system[everything.receiver]  # System of each choice.
    best = search.choice
    best_cost = search.cost(evidence, last)
    settled = torch.zeros_like(best_cost, dtype=torch.bool)
    for _ in range(num_restarts):
        if bool(settled.all()):
            break
        open_choices = ~settled[owner]
        search.choices = everything._replace(
            rounds=[r[open_choices[r]] for r in everything.rounds])
        search.choice = torch.where(open_choices, search.draw(generator), best)
        # Twice at the end: from afar, one sweep is not always enough.
        for stage in (*blind, last, last):
            search.sweep(evidence, stage)
        cost = search.cost(evidence, last)
        other = torch.zeros_like(settled)
        other[owner[search.choice != best]] = True
        better = other & (cost < best_cost)
        best = torch.where(better[owner], search.choice, best)
        best_cost = torch.where(better, cost, best_cost)
        settled |= ~other & (best_cost <= OUTLYING * best_cost.median())
    search.choices, search.choice = everything, best
    search.sweep(evidence, last)  # For the conditional posterior of all.
    return int((~settled).sum())
