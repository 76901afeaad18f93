"""Force laws from scratch: several starts, compared on held-out systems."""
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch_geometric.data import Data

from pyg_fnri.inference.impulses import GAP
from pyg_fnri.inference.likelihood import (AnnealingStep, cauchy_nll,
                                           cauchy_width, without_prior)
from pyg_fnri.inference.refine import ANNEALING, find_graphs
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.laws.disentangle import MAX_ROUNDS, disentangle
from pyg_fnri.laws.fit import (EM_ANNEALING, LawFit, Progress, State,
                               fit_force_laws, mean_by_system)
from pyg_fnri.metrics import assign
from pyg_fnri.nn import RelationalAutoEncoder

#: Share of what the better of two starts explains, in nat, that the worse one
#: has to explain to confirm it.
AGREEING = 0.95
#: Steps in a nat: sums of integers are exact, so ties of orders are found.
RESOLUTION = 2**20


class Start(NamedTuple):
    """A start from the encoder's graphs (number 0) or from random ones, and its
    :func:`held_out_cost`, below 0 where laws explain something."""
    number: int
    cost: float


class Discovery(NamedTuple):
    """All starts, the best of which was kept, and whether another one found
    laws as good: if not, the search may have got stuck."""
    starts: list[Start]
    confirmed: bool


@torch.no_grad()
def discover_force_laws(
        model: RelationalAutoEncoder, data: Data, generator: torch.Generator,
        annealing: Sequence[AnnealingStep] = EM_ANNEALING, num_pilot: int = 100,
        max_starts: int = 5, max_rounds: int = MAX_ROUNDS,
        on_start: Callable[[Start], None] | None = None,
        on_iteration: Callable[[Progress], None] | None = None) -> Discovery:
    """Finds force laws and graphs from scratch, in place, also with an
    untrained encoder.

    On a few systems, laws and graphs are fitted to each other and disentangled,
    from the encoder's graphs, then from random ones, until the laws that
    explain held-out systems best are found twice. From these, all systems are
    fitted (:func:`fit_force_laws`).

    Args:
        model: Its decoder's layer is a :class:`~pyg_fnri.nn.ForceLawDecoder`.
        data: Systems with :obj:`x`, and :obj:`y` and :obj:`mass` if known.
        annealing: One iteration each.
        num_pilot: Systems to try starts on, and held-out ones, at the most.
        max_rounds: Rounds of disentangling at the most.
        on_start: Called after each start.
        on_iteration: Called after each iteration on all systems.
    """
    pilot, held_out = _pilot_and_held_out(data, num_pilot)
    fit, judge = LawFit(model, pilot), LawFit(model, held_out)
    fit.fit_units()
    starts: list[Start] = []
    states: list[State] = []
    confirmed = False
    for number in range(max_starts):
        if number == 0:
            if not bool(fit.search.channels.any(0).all()):
                continue  # A law without pairs cannot be fitted.
            fit.anneal(annealing, generator)
        else:
            fit.layer.law.reset_parameters()
            fit.search.choice = fit.search.draw(generator)
            fit.anneal(without_prior(annealing), generator)
        disentangle(fit, generator, max_rounds)
        starts.append(Start(number, held_out_cost(judge, generator)))
        states.append(fit.state)
        if on_start is not None:
            on_start(starts[-1])
        lowest, *others = sorted(start.cost for start in starts)
        confirmed = bool(others) and others[0] <= AGREEING * lowest < 0
        if confirmed:
            break
    if not starts:
        raise ValueError(f"There was no start, as the encoder's graphs lack a "
                         f"type or max_starts is {max_starts}; set max_starts "
                         f"to 2 or more.")
    best, state = min(zip(starts, states), key=lambda pair: pair[0].cost)
    fit.state = align(fit.search, state)
    if best.number != 0:  # The encoder led elsewhere, if anywhere.
        annealing = without_prior(annealing)
    fit_force_laws(model, data, generator, annealing, on_iteration)
    return Discovery(starts, confirmed)


def _pilot_and_held_out(data: Data, num_pilot: int) -> tuple[Data, Data]:
    """The first systems, and as many others; a system alone is both."""
    batch = data.get('batch')
    if batch is None or int(batch.max()) == 0:
        return data, data
    size = min(num_pilot, (int(batch.max()) + 2) // 2)
    keys = ('x', 'y', 'mass', 'edge_index', 'batch')
    known = Data(**{k: data[k] for k in keys if data.get(k) is not None})
    held_out = known.subgraph((batch >= size) & (batch < 2 * size))
    held_out.batch = held_out.batch - size
    return known.subgraph(batch < size), held_out


def held_out_cost(judge: LawFit, generator: torch.Generator) -> float:
    """How badly laws explain held-out systems: graphs are inferred from the
    transitions before the gap (or the first half), and errors are those after.
    The median over systems of Cauchy's negative log-likelihood, in nat per
    number, less that without forces."""
    search, transitions = judge.search, judge.transitions
    first, total = int((transitions.frame < GAP).sum()), len(transitions.frame)
    if not 0 < first < total:
        first = (total + 1) // 2
    if first == total:
        raise ValueError(f"Graphs and laws are judged by different "
                         f"transitions, which takes two, but there is {total}; "
                         f"observe three frames, or give a continuation y.")
    seen = judge.evidence(transitions.take(slice(0, first)))
    later = transitions.take(slice(first, None))
    search.choice = search.draw(generator)
    find_graphs(search, seen, without_prior(ANNEALING), 0, generator)
    evidence, nll = judge.evidence(later), []
    for channels in (torch.zeros_like(search.channels), search.channels):
        errors = evidence.errors(channels)
        width = torch.stack(
            [cauchy_width(part) for part in errors[later.valid].unbind(-1)])
        surprise = cauchy_nll(errors, width).mean(-1) * later.valid
        nll.append(
            mean_by_system(surprise.sum(-1), later.valid.sum(-1),
                           search.system))
    return -(nll[0] - nll[1]).median().item()


def align(search: GraphSearch, state: State) -> State:
    """Laws and graphs in the order of like layers, and of types within a layer,
    that agrees best with the encoder's posterior: as that is a product over
    layers, two assignment problems."""
    options, types, found = search.options, search.types, state.choice
    # Channels of each type; the null type stays where it has none.
    kinds = [[
        int(options[types[:, layer] == k].amin(0).sum())
        for k in range(log_q.size(1))
    ] for layer, log_q in enumerate(search.log_posterior)]
    fits: dict[tuple[int, int], int] = {}
    former: dict[tuple[int, int], list[int]] = {}  # Of each new type.
    for old, new in product(range(len(kinds)), repeat=2):
        if sorted(kinds[old]) == sorted(kinds[new]):
            log_q = search.log_posterior[new].double() * RESOLUTION
            score = log_q.new_zeros(log_q.size(1), log_q.size(1))
            score.index_add_(0, types[found, old], log_q.round())
            allowed = {
                (k, m): int(score[k, m])
                for k, m in product(range(len(score)), repeat=2)
                if kinds[old][k] == kinds[new][m]
            }
            former[old, new] = _assignment(allowed)
            fits[old, new] = sum(allowed[k, m]
                                 for m, k in enumerate(former[old, new]))
    renamed = torch.empty_like(types)
    for new, old in enumerate(_assignment(fits)):
        order = torch.tensor(former[old, new], device=types.device)
        renamed[:, new] = order.argsort()[types[:, old]]
    option = (renamed.unsqueeze(1) == types).all(-1).long().argmax(-1)
    # The former channel of each new one, [C, C].
    same = (options[option].unsqueeze(-1) == options.unsqueeze(1)).all(0)
    if not bool(same.any(-1).all()):
        return state  # A latent graph whose types are no channels.
    return state._replace(laws=state.laws[same.long().argmax(-1)],
                          choice=option[found])


def _assignment(weight: dict[tuple[int, int], int]) -> list[int]:
    """The row of each column, each once, of the highest total weight; of equal
    ones, the first in lexicographic order."""
    size = 1 + max(column for _, column in weight)
    # Python's integers keep the two criteria apart, whatever their size.
    found = assign({
        (row, column):
        value * size**size - row * size**(size - 1 - column)
        for (row, column), value in weight.items()
    })
    return sorted(found, key=found.__getitem__)
