"""Force laws from scratch: several starts, further terms, then all systems."""
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch_geometric.data import Data

from pyg_fnri.inference.likelihood import AnnealingStep, without_prior
from pyg_fnri.laws.disentangle import MAX_ROUNDS
from pyg_fnri.laws.fit import EM_ANNEALING, Progress, fit_force_laws
from pyg_fnri.laws.selection import LITTLE, Step, select_terms
from pyg_fnri.laws.starts import FINER, GRAVITY, ONE_WAY, Pilot, Start, align
from pyg_fnri.laws.straight import can_be_straight, start_straight
from pyg_fnri.nn import LinearStep, RelationalAutoEncoder

#: The choice of all terms that laws of an order can have.
AUTO = 'auto'


class Discovery(NamedTuple):
    """All starts, the best of which was kept, whether another one found the
    same laws and graphs (if not, the search may have got stuck), and the terms
    tried."""
    starts: list[Start]
    confirmed: bool
    steps: list[Step]


@torch.no_grad()
def discover_force_laws(
        model: RelationalAutoEncoder, data: Data, generator: torch.Generator,
        annealing: Sequence[AnnealingStep] = EM_ANNEALING, num_pilot: int = 100,
        max_starts: int = 5, max_rounds: int = MAX_ROUNDS,
        terms: Sequence[str] = AUTO,
        on_start: Callable[[Start], None] | None = None,
        on_step: Callable[[Step], None] | None = None,
        on_iteration: Callable[[Progress], None] | None = None) -> Discovery:
    """Finds force laws and graphs from scratch, in place, also with an
    untrained encoder.

    On a few systems, laws and graphs are fitted to each other and disentangled,
    from the encoder's graphs, then from random ones, until the laws that
    explain held-out systems best are found twice. Further terms are added as
    long as held-out systems get more likely
    (:func:`~pyg_fnri.laws.selection.select_terms`). From these laws, all
    systems are fitted (:func:`fit_force_laws`).

    Args:
        model: Its decoder's layer is a :class:`~pyg_fnri.nn.ForceLawDecoder`.
        data: Systems with :obj:`x`, and :obj:`y` and :obj:`mass` if known.
        annealing: One iteration each.
        num_pilot: Systems to try starts on, and held-out ones, at the most.
        max_rounds: Rounds of disentangling at the most.
        terms: Names of terms that may be added to central laws, that graphs
            are directed (:obj:`'one-way'`), or that laws are tables of more
            distances (:obj:`'finer-tables'`); :obj:`'auto'` for all.
        on_start: Called after each start.
        on_step: Called after each term that was tried.
        on_iteration: Called after each iteration on all systems.
    """
    find_walls(model, data)
    pilot = Pilot(model, data, num_pilot, generator)
    possible = [*pilot.fit.layer.candidates(), ONE_WAY, FINER, GRAVITY]
    terms = possible if AUTO in terms else terms
    if not set(terms) <= set(possible):
        raise ValueError(f"Terms are {', '.join(terms)}, of which some are "
                         f"not known here; take {AUTO}, or some of "
                         f"{', '.join(possible)}.")
    undirected, starts = model.latent.undirected, list[Start]()
    best, confirmed = None, False
    if can_be_straight(pilot.fit) and (not undirected or ONE_WAY in terms):
        pilot.turn(undirected=False)
        start_straight(pilot.fit, generator, without_prior(annealing))
        best = pilot.judged()
        starts.append(Start(0, best.scores.cost))
    if best is None or best.scores.cost > LITTLE:
        pilot.turn(undirected)
        others, found, confirmed = pilot.start(range(max_starts), annealing,
                                               max_rounds, on_start)
        starts += others
        best = min([best, found], key=lambda one: one.scores.cost
                   if one else math.inf)
    if best is None:
        raise ValueError(f"There was no start, as the encoder's graphs lack a "
                         f"type or max_starts is {max_starts}; set max_starts "
                         f"to 2 or more.")
    best, steps = select_terms(pilot, best, terms, annealing, max_starts,
                               on_step)
    pilot.adopt(best)
    pilot.fit.state = align(pilot.fit.search, best.state)
    kept = min(starts, key=lambda start: start.cost)
    if kept.number != 0:  # The encoder led elsewhere, if anywhere.
        annealing = without_prior(annealing)
    fit_force_laws(model, data, generator, annealing, on_iteration)
    return Discovery(starts, confirmed, steps)


def find_walls(model: RelationalAutoEncoder, data: Data) -> None:
    """Has laws know the walls at which particles turn back, if none is told."""
    walls: Any = model.decoder.layer.walls
    if model.decoder.layer.order == 2 and bool(
            torch.cat([walls.lower, walls.upper]).isinf().all()):
        step = LinearStep(data.x.size(-1)).to(data.x)
        walls.load_state_dict(step.fit(data.x).walls.state_dict())
