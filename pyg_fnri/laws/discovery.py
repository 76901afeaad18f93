"""Force laws from scratch: several starts, compared on held-out systems."""
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.inference.impulses import GAP, Transitions
from pyg_fnri.inference.likelihood import (AnnealingStep, cauchy_nll,
                                           cauchy_width, without_prior)
from pyg_fnri.inference.refine import ANNEALING, find_graphs
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.laws.disentangle import MAX_ROUNDS, REANNEALING, disentangle
from pyg_fnri.laws.fit import (EM_ANNEALING, LawFit, Progress, State,
                               fit_force_laws, mean_by_system)
from pyg_fnri.laws.missing_terms import (Estimate, find_missing_terms,
                                         leaves_unexplained, mean_of_systems)
from pyg_fnri.laws.straight import can_be_straight, start_straight
from pyg_fnri.metrics import assign
from pyg_fnri.nn import LinearStep, RelationalAutoEncoder, Term

#: Share of what the better of two starts explains, in nat, that the worse one
#: has to explain to confirm it.
AGREEING = 0.95
#: Systems that straight laws are sought on.
NUM_STRAIGHT = 10
#: The name under which graphs become directed.
ONE_WAY = 'one-way'
#: Nat per number that directed graphs have to be worth to be tried.
MIN_GAIN = 0.02
#: Steps in a nat: sums of integers are exact, so ties of orders are found.
RESOLUTION = 2**20


class Start(NamedTuple):
    """A start from the encoder's graphs (number 0) or from random ones, and its
    held-out cost in nat per number, below 0 where laws explain something."""
    number: int
    cost: float


class Step(NamedTuple):
    """A term that was tried: its size in typical forces, by how much held-out
    systems are then more likely, in nat per number, and whether it stayed."""
    term: str
    size: float
    lead: Estimate
    kept: bool


class Discovery(NamedTuple):
    """All starts, the best of which was kept, whether another one found laws
    as good (if not, the search may have got stuck), and the terms tried."""
    starts: list[Start]
    confirmed: bool
    steps: list[Step]


@torch.no_grad()
def discover_force_laws(
        model: RelationalAutoEncoder, data: Data, generator: torch.Generator,
        annealing: Sequence[AnnealingStep] = EM_ANNEALING, num_pilot: int = 100,
        max_starts: int = 5, max_rounds: int = MAX_ROUNDS,
        terms: Sequence[str] | None = None,
        on_start: Callable[[Start], None] | None = None,
        on_step: Callable[[Step], None] | None = None,
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
        terms: Names of terms that may be added to central laws, or that graphs
            are directed (:obj:`'one-way'`). (default: all)
        on_start: Called after each start.
        on_step: Called after each term that was tried.
        on_iteration: Called after each iteration on all systems.
    """
    pilot, held_out = _pilot_and_held_out(data, num_pilot)
    find_walls(model, data)
    fit, judge = LawFit(model, pilot), LawFit(model, held_out)
    fit.fit_units()
    starts: list[Start] = []
    states: list[State] = []
    confirmed = False
    straight = can_be_straight(fit)
    for number in range(1 if straight else max_starts):
        if straight:
            few = pilot.subgraph(fit.search.system < NUM_STRAIGHT)
            start_straight(LawFit(model, few))
            for step in without_prior(annealing):
                fit.expect(step)
                fit.maximise(step, generator)
        elif number == 0:
            if not bool(fit.search.channels.any(0).all()):
                continue  # A law without pairs cannot be fitted.
            fit.anneal(annealing, generator)
        else:
            fit.layer.law.reset_parameters()
            fit.search.choice = fit.search.draw(generator)
            fit.anneal(without_prior(annealing), generator)
        disentangle(fit, generator, max_rounds)
        starts.append(Start(number, held_out_scores(judge, generator).cost))
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
    if terms is None:
        terms = [*fit.layer.candidates(), ONE_WAY]
    steps = select_terms(model, (pilot, held_out), fit, judge, generator, terms,
                         on_step)
    if best.number != 0:  # The encoder led elsewhere, if anywhere.
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


class _Trial(NamedTuple):
    """A term on trial, with what it led to."""
    step: Step
    fit: LawFit
    judge: LawFit
    scores: 'Scores'
    state: State


def select_terms(model: RelationalAutoEncoder, data: tuple[Data, Data],
                 fit: LawFit, judge: LawFit, generator: torch.Generator,
                 names: Sequence[str],
                 on_step: Callable[[Step], None] | None = None) -> list[Step]:
    """Adds to central laws the terms by which held-out systems get more likely,
    one at a time. Of those that the laws seem to lack, a few are fitted along
    with laws and graphs, and the best stays if it leads, paired by system, by
    more than two standard errors."""
    layer = fit.layer
    steps: list[Step] = []
    if judge.search.num_systems < 2:
        return steps
    known = [name for name in names if name in Term.known]
    scores = held_out_scores(judge, generator)
    while True:
        seen = torch.zeros_like(judge.transitions.valid)
        seen[:, :num_seen(judge.transitions)] = True
        missing = find_missing_terms(judge, judge.search.channels, seen, known)
        before, trials = fit.state, []

        def attempt(name: str, size: float, fit: LawFit, judge: LawFit) -> None:
            fit.anneal(REANNEALING, generator)
            found = held_out_scores(judge, generator)
            lead = mean_of_systems(scores.laws - found.laws)
            step = Step(name, size, lead, lead.mean > 2 * lead.error)
            trials.append(_Trial(step, fit, judge, found, fit.state))

        sizes = {finding.name: finding.size for finding in missing}
        if leaves_unexplained(judge, judge.search.channels):
            # Laws and graphs may hide what they lack.
            sizes = {
                name: 0.0
                for name in known if name not in layer.terms
            } | sizes
        for name, size in sizes.items():
            layer.add_term(name)
            attempt(name, size, fit, judge)
            layer.drop_term(name)
            fit.state = before
        if model.latent.undirected and ONE_WAY in names:
            model.latent.undirected = False
            directed = [
                _directed(model, *pair) for pair in zip((fit, judge), data)
            ]
            gain = mean_of_systems(scores.laws -
                                   held_out_scores(directed[1], generator).laws)
            if gain.mean > max(2 * gain.error, MIN_GAIN):
                attempt(ONE_WAY, gain.mean, *directed)
            model.latent.undirected = True
            fit.state = before
        if not trials:
            break
        best = max(trials, key=lambda trial: trial.step.lead.mean)
        steps.append(best.step)
        if on_step is not None:
            on_step(best.step)
        if not best.step.kept:
            break
        if best.step.term == ONE_WAY:
            model.latent.undirected = False
        else:
            layer.add_term(best.step.term)
        fit, judge, scores = best.fit, best.judge, best.scores
        fit.state = best.state
        held_out_scores(judge, generator)
    return steps


def _directed(model: RelationalAutoEncoder, fit: LawFit, data: Data) -> LawFit:
    """The same graphs, as directed ones."""
    out, choices = LawFit(model, data), fit.search.choices
    option = torch.zeros(data.num_edges, dtype=torch.long,
                         device=data.edge_index.device)
    option[choices.edge] = option[choices.reverse] = fit.search.choice
    out.search.choice = option[out.search.choices.edge]
    out.transitions.mass = fit.transitions.mass.clone()
    return out


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


class Scores(NamedTuple):
    """How badly laws, and none, explain held-out systems: Cauchy's negative
    log-likelihood in nat per number, :obj:`[num_systems]` each."""
    laws: Tensor
    without: Tensor

    @property
    def cost(self) -> float:
        return (self.laws - self.without).median().item()


def held_out_scores(judge: LawFit, generator: torch.Generator) -> Scores:
    """Graphs are inferred from the transitions before the gap (or the first
    half), and scores are those after. The judge keeps the graphs."""
    search, transitions = judge.search, judge.transitions
    first, total = num_seen(transitions), len(transitions.frame)
    if first == total:
        raise ValueError(f"Graphs and laws are judged by different "
                         f"transitions, which takes two, but there is {total}; "
                         f"observe three frames, or give a continuation y.")
    seen = judge.evidence(transitions.take(slice(0, first)))
    if seen.responds:
        seen.transitions.mass = torch.ones_like(transitions.mass)
    search.choice = search.draw(generator)
    find_graphs(search, seen, without_prior(ANNEALING), 0, generator)
    transitions.mass = seen.transitions.mass
    later, nll = transitions.take(slice(first, None)), []
    for channels in (search.channels, torch.zeros_like(search.channels)):
        evidence = judge.evidence(later.followed(judge.layer, channels))
        errors = evidence.errors(channels)
        width = torch.stack(
            [cauchy_width(part) for part in errors[later.valid].unbind(-1)])
        surprise = cauchy_nll(errors, width) + evidence.log_scale
        surprise = surprise.mean(-1) * later.valid
        nll.append(
            mean_by_system(surprise.sum(-1), later.valid.sum(-1),
                           search.system))
    return Scores(*nll)


def num_seen(transitions: Transitions) -> int:
    """How many transitions are before the gap, or in the first half."""
    first, total = int((transitions.frame < GAP).sum()), len(transitions.frame)
    return first if 0 < first < total else (total + 1) // 2


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
