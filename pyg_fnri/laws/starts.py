"""Laws and graphs from nothing: starts, judged by held-out systems."""
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from pyg_fnri.inference.impulses import Transitions
from pyg_fnri.inference.likelihood import (AnnealingStep, cauchy_nll,
                                           cauchy_width, without_prior)
from pyg_fnri.inference.noise import independent_errors
from pyg_fnri.inference.refine import ANNEALING, find_graphs
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.laws.disentangle import disentangle
from pyg_fnri.laws.fit import (NUM_STAGES, LawFit, State, coarse, fit_range,
                               mean_by_system)
from pyg_fnri.metrics import assign
from pyg_fnri.nn import RelationalAutoEncoder

#: The names under which graphs become directed, and tables of laws finer.
ONE_WAY, FINER = 'one-way', 'finer-tables'
#: That of a term for masses that are given.
GRAVITY = 'gravity'
#: Share of what the better of two starts explains, in nat, that the worse one
#: has to explain to confirm it, and of the interactions that they have in
#: common.
AGREEING, IN_COMMON = 0.95, 0.8
#: The share in common from which on costs differ by trifles.
SAME = 0.98
#: Searches for a held-out system's graph anew: one that is stuck says nothing
#: about laws.
NUM_RESTARTS = 4
#: Steps in a nat: sums of integers are exact, so ties of orders are found.
RESOLUTION = 2**20


class Scores(NamedTuple):
    """How badly laws, and none, explain held-out systems: Cauchy's negative
    log-likelihood in nat per number, :obj:`[num_systems]` each."""
    laws: Tensor
    without: Tensor

    @property
    def cost(self) -> float:
        return (self.laws - self.without).median().item()


class Start(NamedTuple):
    """A start from the encoder's graphs (number 0) or from random ones, and its
    held-out cost in nat per number, below 0 where laws explain something."""
    number: int
    cost: float


class Candidate(NamedTuple):
    """Laws of some terms and the graphs of a pilot, those of the systems that
    judge them, and how badly these are explained."""
    terms: tuple[str, ...]
    undirected: bool
    num_knots: int
    state: State
    judged: State
    scores: Scores


class Pilot:
    """A few systems that a model's laws are fitted to, in place, and as many
    others that judge them; a system alone does both."""
    def __init__(self, model: RelationalAutoEncoder, data: Data, num_pilot: int,
                 generator: torch.Generator) -> None:
        self.model, self.generator = model, generator
        self.data = _pilot_and_held_out(data, num_pilot)
        self._fits: dict[bool, tuple[LawFit, LawFit]] = {}
        self.fit.fit_units()

    @property
    def fit(self) -> LawFit:
        return self._both()[0]

    @property
    def judge(self) -> LawFit:
        return self._both()[1]

    def _both(self) -> tuple[LawFit, LawFit]:
        undirected = self.model.latent.undirected
        if undirected not in self._fits:
            fit, judge = (LawFit(self.model, part) for part in self.data)
            self._fits[undirected] = fit, judge
        return self._fits[undirected]

    def add(self, name: str) -> None:
        """Adds a term, or has graphs be directed, or tables finer."""
        layer = self.fit.layer
        if name == ONE_WAY:
            return self.turn(undirected=False)
        if name == FINER:
            return layer.resample(2 * layer.law.num_knots - 1)
        layer.add_term(name)
        if name == GRAVITY:
            for fit in self._both():
                fit.transitions.source = fit.mass.clone()
        if name in layer.laws:
            term, law = layer.pair_terms()[-1]
            fit_range(law, self.fit.transitions, term)

    def drop(self, name: str) -> None:
        layer = self.fit.layer
        if name == ONE_WAY:
            return self.turn(undirected=True)
        if name == FINER:
            return layer.resample((layer.law.num_knots + 1) // 2)
        layer.drop_term(name)
        for fit in self._both():
            if name == 'response':
                fit.transitions.mass = fit.mass.clone()
            if name == GRAVITY:
                fit.transitions.source = torch.ones_like(fit.mass)

    def turn(self, undirected: bool) -> None:
        """Has graphs directed or not; they stay the same, as far as can be."""
        before = self._both()
        self.model.latent.undirected = undirected
        for old, new in zip(before, self._both()):
            same = old.search.choices.of_edge[new.search.choices.edge]
            new.search.choice = old.search.choice[same]
            new.transitions.mass = old.transitions.mass.clone()
            new.transitions.source = old.transitions.source

    def judged(self) -> Candidate:
        scores = held_out_scores(self.judge, self.generator)
        layer = self.fit.layer
        return Candidate(tuple(layer.terms), self.model.latent.undirected,
                         layer.law.num_knots, self.fit.state, self.judge.state,
                         scores)

    def adopt(self, candidate: Candidate) -> None:
        for name in tuple(self.fit.layer.terms):
            self.drop(name)
        self.model.latent.undirected = candidate.undirected
        self.fit.layer.resample(candidate.num_knots)
        for name in candidate.terms:
            self.add(name)
        self.judge.state = candidate.judged
        self.fit.state = candidate.state

    def _apart(self) -> LawFit:
        """What is fitted, with a graph for each window: of many random graphs,
        errors in laws average out."""
        if not self.model.latent.shared:
            return self.fit
        with self.model.latent.apart():
            return LawFit(self.model, self.data[0])

    def start(
        self, numbers: Iterable[int], annealing: Sequence[AnnealingStep],
        max_rounds: int, on_start: Callable[[Start], None] | None = None
    ) -> tuple[list[Start], Candidate | None, bool]:
        """Fits laws and graphs to each other, disentangles laws and searches
        all pairs at once, from the encoder's graphs (number 0) or from random
        ones, until the best laws are found twice; gives all starts, the best,
        and whether they were."""
        starts, found, fit = list[Start](), list[Candidate](), self.fit
        first, steps = self._apart(), annealing
        for number in numbers:
            if number == 0:
                if not bool(first.search.channels.any(0).all()):
                    continue  # A law without pairs cannot be fitted.
            else:
                fit.layer.reset_parameters()
                for part in (fit, first):
                    part.transitions.mass = part.mass.clone()
                first.search.choice = first.search.draw(self.generator)
                steps = without_prior(annealing)
            first.anneal(steps, self.generator)
            disentangle(first, self.generator, max_rounds)
            first.search_anew(annealing, self.generator)
            if first is not fit:
                find_graphs(fit.search, fit.evidence(), coarse(annealing),
                            NUM_RESTARTS, self.generator)
                fit.anneal(annealing[-NUM_STAGES:], self.generator)
                fit.search_with_laws(annealing[-1], self.generator)
            found.append(self.judged())
            starts.append(Start(number, found[-1].scores.cost))
            if on_start is not None:
                on_start(starts[-1])
            if _confirmed(fit.search, found):
                return starts, _best(found), True
        return starts, _best(found) if found else None, False


def _best(found: Sequence[Candidate]) -> Candidate:
    return min(found, key=lambda candidate: candidate.scores.cost)


def _confirmed(search: GraphSearch, found: Sequence[Candidate]) -> bool:
    """Whether another start found the best one's laws: they explain as much,
    by graphs that are much alike, or their graphs are the same."""
    best = _best(found)
    for other in found:
        if other is not best and best.scores.cost < 0:
            common = agreement(search, best.state, other.state)
            close = other.scores.cost <= AGREEING * best.scores.cost
            if common >= SAME or close and common >= IN_COMMON:
                return True
    return False


def agreement(search: GraphSearch, one: State, other: State) -> float:
    """The share of interactions in either of two graphs that are alike, with
    types in the order that agrees best."""
    types = search.types[one.choice]
    log_posterior = [
        one_hot(kind, q.size(1)).to(q)
        for kind, q in zip(types.t(), search.log_posterior)
    ]
    other = align(search, other, log_posterior)
    same = one.choice == other.choice
    acts = search.options.any(-1)
    either = acts[one.choice] | acts[other.choice]
    return same[either].double().mean().item()


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


def held_out_scores(judge: LawFit, generator: torch.Generator) -> Scores:
    """Graphs are inferred from the transitions before the gap (or the first
    half), and scores are those after. The judge keeps the graphs."""
    search, transitions = judge.search, judge.transitions
    transitions.mass = judge.mass.clone()
    seen = judge.evidence(seen_transitions(transitions))
    search.choice = search.draw(generator)
    find_graphs(search, seen, without_prior(ANNEALING), NUM_RESTARTS, generator)
    transitions.mass = seen.transitions.mass
    return later_scores(judge)


def later_scores(judge: LawFit) -> Scores:
    """How badly laws explain the later transitions by a judge's graphs."""
    transitions, nll = judge.transitions, []
    later = transitions.take(slice(num_seen(transitions), None))
    channels = judge.search.channels
    for graph in (channels, torch.zeros_like(channels)):
        evidence = judge.evidence(later.followed(judge.layer, graph))
        errors, log_scale = independent_errors(evidence.errors(graph), later)
        width = torch.stack(
            [cauchy_width(part) for part in errors[later.valid].unbind(-1)])
        surprise = (cauchy_nll(errors, width) + evidence.log_scale + log_scale)
        surprise, valid = (later.by_window(value).sum(-1)
                           for value in (surprise.mean(-1) * later.valid,
                                         later.valid))
        nll.append(mean_by_system(surprise, valid, judge.search.window))
    return Scores(*nll)


def seen_transitions(transitions: Transitions) -> Transitions:
    first, total = num_seen(transitions), len(transitions.frame)
    if first == total:
        raise ValueError(f"Graphs and laws are judged by different "
                         f"transitions, which takes two, but there is {total}; "
                         f"observe three frames, or give a continuation y.")
    return transitions.take(slice(0, first))


def num_seen(transitions: Transitions) -> int:
    """How many transitions are before the gap, or in the first half."""
    first, total = int(transitions.observed.sum()), len(transitions.frame)
    return first if 0 < first < total else (total + 1) // 2


def align(search: GraphSearch, state: State,
          log_posterior: Sequence[Tensor] | None = None) -> State:
    """Laws and graphs in the order of like layers, and of types within a layer,
    that agrees best with a posterior, by default the encoder's: as that is a
    product over layers, two assignment problems."""
    options, types, found = search.options, search.types, state.choice
    posterior = log_posterior or search.log_posterior
    # Channels of each type; the null type stays where it has none.
    kinds = [[
        int(options[types[:, layer] == k].amin(0).sum())
        for k in range(log_q.size(1))
    ] for layer, log_q in enumerate(posterior)]
    fits: dict[tuple[int, int], int] = {}
    former: dict[tuple[int, int], list[int]] = {}  # Of each new type.
    for old, new in product(range(len(kinds)), repeat=2):
        if sorted(kinds[old]) == sorted(kinds[new]):
            log_q = posterior[new].double() * RESOLUTION
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
