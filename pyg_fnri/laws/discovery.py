"""Force laws from scratch: several starts, further terms, then all systems."""
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch_geometric.data import Data

from pyg_fnri.inference.likelihood import AnnealingStep, without_prior
from pyg_fnri.inference.relaxation import decode_directed
from pyg_fnri.laws.disentangle import MAX_ROUNDS
from pyg_fnri.laws.fit import EM_ANNEALING, LawFit, Progress, fit_force_laws
from pyg_fnri.laws.selection import LITTLE, Step, select_terms
from pyg_fnri.laws.starts import FINER, GRAVITY, ONE_WAY, Pilot, Start, align
from pyg_fnri.nn import LinearStep, RateLawDecoder, RelationalAutoEncoder

#: The choice of all terms that laws of an order can have.
AUTO = 'auto'
#: Systems that straight laws are sought on.
NUM_SYSTEMS = 10
#: In units of the typical rate: decays and slopes that are tried first.
DECAYS, SLOPES = (0.0, 0.5, 1.0, 2.0), (-2, -1, -0.5, -0.25, 0.25, 0.5, 1, 2)
#: Of pattern searches from the best of each term.
FIRST_STEP, NUM_MOVES, NUM_DESCENTS = 0.25, 12, 3
#: The number of a term, a decay and a slope.
Place = tuple[int, float, float]
#: As good as none: errors weigh by their squares.
QUADRATIC = AnnealingStep(1e6, 0.0)


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
    if _can_be_straight(pilot.fit) and (not undirected or ONE_WAY in terms):
        pilot.turn(undirected=False)
        _start_straight(pilot.fit, generator, without_prior(annealing))
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


def _can_be_straight(fit: LawFit) -> bool:
    """Whether states are one number, and edges of one kind."""
    layer = fit.layer
    return (isinstance(layer, RateLawDecoder) and not layer.circle
            and len(layer.scale) == 1 and 'field' in layer.terms
            and fit.search.options.size(0) == 2)


def _start_straight(fit: LawFit, generator: torch.Generator,
                    annealing: Sequence[AnnealingStep]) -> None:
    """Fits laws and graphs to each other, from the laws that are straight
    lines, of offsets or of senders' states, and the decay, by which directed
    graphs explain the motion of a few systems best."""
    system = fit.search.system.repeat(fit.search.num_windows)
    few = LawFit(fit.model, fit.data.subgraph(system < NUM_SYSTEMS))
    layer, path = few.layer, few.transitions.path
    rate = (path.change.square().mean() / path.position.square().mean()).sqrt()
    unit = rate.item() / path.kernel.sum().item()
    if 'input' not in layer.terms:
        layer.add_term('input')
        few.fit_units()

    def descend(least: float, place: Place) -> tuple[float, Place]:
        step = FIRST_STEP
        for _ in range(NUM_MOVES):
            term, decay, slope = place
            tried = [(term, decay + a * step, slope + b * step)
                     for a, b in product((-1, 0, 1), repeat=2) if a or b]
            better = min((cost(*near), near) for near in tried)
            if better[0] < least:
                least, place = better
            else:
                step /= 2
        return least, place

    def cost(term: int, decay: float, slope: float) -> float:
        tables = layer.tables()
        for law in tables:
            law.value.zero_()
        tables[term].value.copy_(slope * unit * tables[term].knots[None])
        layer.coefficients['field'].zero_()[1] = -decay * unit
        evidence = few.evidence()
        few.search.choice = torch.zeros_like(few.search.choice)
        decode_directed(few.search, evidence, QUADRATIC)
        errors = evidence.errors(few.search.channels)
        return errors.square().sum((1, 2)).median().item()

    found = []
    for term in range(len(layer.tables())):
        places = [(term, *place) for place in product(DECAYS, SLOPES)]
        tried = sorted((cost(*place), place) for place in places)
        found += [descend(*start) for start in tried[:NUM_DESCENTS]]
    cost(*min(found)[1])
    for step in annealing:
        fit.expect(step)
        fit.maximise(step, generator)
