"""Force laws fitted to graphs by robust least squares, and graphs to laws."""
import math
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from pyg_fnri.inference.impulses import (ImpulseEvidence, Transitions,
                                         shortest_distance)
from pyg_fnri.inference.likelihood import (EVIDENCE_WEIGHT, AnnealingStep,
                                           Objective, StudentErrors,
                                           fit_student, some)
from pyg_fnri.inference.refine import find_graphs
from pyg_fnri.inference.relaxation import decode_directed
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.inference.smoothing import SmoothedTransitions, follow
from pyg_fnri.laws.errors import groups_of, jackknife
from pyg_fnri.nn import (Central, EvenLaw, ForceLaw, ForceLawDecoder, PairTerm,
                         RelationalAutoEncoder, known_masses)

#: Slower than in refinement: laws and graphs have to find each other.
EM_ANNEALING = (AnnealingStep(0.3, 1.0), AnnealingStep(0.1, 0.5),
                AnnealingStep(0.05, 0.3), AnnealingStep(0.02, 0.2),
                AnnealingStep(0.01, 0.1), AnnealingStep(0.005, 0.1),
                AnnealingStep(0.003, 0.1), AnnealingStep(0.002, 0.1))
#: Of graphs of all pairs at once, each with the laws of the last one.
MAX_SEARCHES = 8
#: Changes of a graph at the most, with laws fitted anew to each.
MAX_REFITTED = 210
#: Share of the cost, or of what laws explain, that another round is worth.
LEAST_GAIN = 0.01
#: Of graphs in the end: a few that are stuck do no harm to laws.
NUM_RESTARTS = 8
#: Last stages of fits that start from known laws.
NUM_STAGES = 3
#: Of least squares.
NUM_REWEIGHTINGS = 3
#: Changes of particles between two frames that laws are fitted to at the least,
#: in the end, and at the most: further ones say little new, and take memory.
LEAST_CHANGES, ENOUGH_CHANGES, MOST_CHANGES = 2_000, 20_000, 400_000
#: Changes are by forces from this share of large ones on; others are rounding.
LEAST_CHANGE = 0.01
#: Where a table has the median distance of pairs, as a share of its length in
#: logarithms: at 2 m, of those from 0.03 to 15 m.
PLACE = 0.68
#: Distances to look at, and the share that may lie beyond the table's ends.
NUM_DISTANCES, MAX_OUTSIDE = 50_000, 0.05


class Progress(NamedTuple):
    """An iteration, from 1: the share of pairs whose types it changed, the cost
    of errors with the last tolerance, and the graph :obj:`[num_edges,
    num_layers]`."""
    iteration: int
    changed: float
    cost: float
    edge_type: Tensor


@torch.no_grad()
def fit_force_laws(
        model: RelationalAutoEncoder, data: Data, generator: torch.Generator,
        annealing: Sequence[AnnealingStep] = EM_ANNEALING,
        on_iteration: Callable[[Progress], None] | None = None) -> None:
    """Fits force laws and graphs to each other, without labels, in place.

    Starts from the encoder's graphs, and from the model's laws unless they are
    zero. Each iteration fits the laws (M-step) and the graphs (E-step), with a
    tolerance that shrinks as far as the noise. At last, graphs are searched
    anew: those that are stuck bend the laws where few pairs are.

    Args:
        model: Its decoder's layer is a :class:`~pyg_fnri.nn.ForceLawDecoder`.
        data: Systems with :obj:`x`, and :obj:`y` and :obj:`mass` if known.
        annealing: One iteration each.
        on_iteration: Called after each, and once more in the end.
    """
    fit, last = LawFit(model, data), annealing[-1]
    search = fit.search
    fit.fit_units()

    def report(iteration: int, before: Tensor,
               evidence: ImpulseEvidence) -> None:
        if on_iteration is not None:
            changed = (search.choice != before).double().mean().item()
            cost = fit.cost(last, evidence).mean().item()
            on_iteration(
                Progress(iteration, changed, cost,
                         search.result().edge_type))

    known, stages = bool(fit.layer.law.value.any()), annealing
    if known:  # Single pairs hardly lead from the encoder's graphs to theirs.
        find_graphs(search, fit.evidence(), coarse(annealing), 0, generator,
                    num_fits=0)
        stages = annealing[-NUM_STAGES:]
    for iteration, step in enumerate(stages, start=1):
        if iteration > 1 or not known:
            fit.maximise(step, generator)
        before, evidence = search.choice, fit.evidence()
        fit.expect(step, evidence)
        report(iteration, before, evidence)
    fit.maximise(last, generator)
    before = search.choice
    find_graphs(search, fit.evidence(), coarse(annealing), NUM_RESTARTS,
                generator)
    fit.maximise(last, generator)
    # Where systems are few, all transitions say more than sixteen do.
    number = max(16, ENOUGH_CHANGES // len(search.system))
    fit.maximise(last, generator, number, search.system)
    report(len(stages) + 1, before, fit.evidence())


def coarse(annealing: Sequence[AnnealingStep]) -> list[AnnealingStep]:
    """Every other step, and the last: enough for laws that are known."""
    return [*annealing[:-1:2], annealing[-1]]


class State(NamedTuple):
    """Laws :obj:`[num_channels, num_values]`, graphs :obj:`[V]`, coefficients
    of node terms, masses :obj:`[num_nodes]`, and both ends of each table."""
    laws: Tensor
    choice: Tensor
    coefficients: Tensor
    mass: Tensor
    ends: tuple[Tensor, ...] = ()


class LawFit:
    """The graphs of some systems, at first the encoder's, and a model's laws.
    """
    def __init__(self, model: RelationalAutoEncoder, data: Data) -> None:
        layer = model.decoder.layer
        if not isinstance(layer, ForceLawDecoder):
            raise TypeError(f"The decoder's layer is a {type(layer).__name__}, "
                            f"which has no force laws; put a ForceLawDecoder "
                            f"in its place.")
        self.model, self.data, self.layer = model, data, layer
        self.search = GraphSearch(model, data)
        frames = [data[key] for key in ('x', 'y') if data.get(key) is not None]
        if len(frames) == 1 and self.search.num_windows > 1:
            middle = data.x.size(1) // 2
            frames = [data.x[:, :middle + 1], data.x[:, middle:]]
        self.transitions = follow(frames, self.search.choices, layer,
                                  known_masses(data), self.search.num_windows)
        #: Masses that are given, [num_nodes], else 1.
        self.mass = self.transitions.mass.clone()

    def fit_units(self) -> None:
        """Adapts the laws' scale and range to the units of the data."""
        fit_scale(self.layer, self.transitions)
        for term, law in self.layer.pair_terms():
            fit_range(law, self.transitions, term)

    def maximise(self, step: AnnealingStep, generator: torch.Generator,
                 num_transitions: int = 16,
                 system: Tensor | None = None) -> None:
        """Fits the laws to the graphs. Few transitions, drawn anew each time,
        are quicker, and shake laws out of local optima."""
        fit_laws(self.layer, self.transitions, self.search.channels,
                 self.bounded(step), generator, num_transitions, system)
        self.respond()
        self.transitions = self.transitions.followed(self.layer,
                                                     self.search.channels)

    def respond(self) -> None:
        """Fits masses, if they are sought; in the mean, laws are those of 1 kg.
        """
        if 'response' in self.layer.terms:
            self.evidence().settle(self.search.channels)
            mass = self.transitions.mass
            self.transitions.mass = mass / mass.log().mean().exp()

    def expect(self, step: AnnealingStep,
               evidence: ImpulseEvidence | None = None) -> None:
        evidence = evidence or self.evidence()
        objective = self.bounded(step, evidence)
        self.search.sweep(evidence, objective)
        decode_directed(self.search, evidence, objective)

    def anneal(self, annealing: Sequence[AnnealingStep],
               generator: torch.Generator) -> None:
        for step in annealing:
            self.maximise(step, generator)
            self.expect(step)

    def search_anew(self, annealing: Sequence[AnnealingStep],
                    generator: torch.Generator) -> None:
        """Finds the types of all pairs at once, and laws to go with them, as
        long as they explain more: changes of single pairs get stuck where many
        interact."""
        last, evidence = self.bounded(annealing[-1]), self.evidence()
        cost = self.cost(last, evidence).mean()
        for _ in range(MAX_SEARCHES):
            before, best = self.state, cost
            find_graphs(self.search, evidence, coarse(annealing), 0, generator)
            if torch.equal(self.search.choice, before.choice):
                break
            self.maximise(annealing[-1], generator)
            evidence = self.evidence()
            cost = self.cost(last, evidence).mean()
            if cost >= best:
                self.state = before
            if cost > (1 - LEAST_GAIN) * best:
                break

    def search_with_laws(self, step: AnnealingStep,
                         generator: torch.Generator) -> None:
        """Changes single pairs of a graph that all windows share, and two of
        few, where laws fitted to the changed graph explain more: of many
        graphs, errors in laws average out, but laws of a single one fit its
        errors as well."""
        search, objective = self.search, self.bounded(step)
        single = [[change] for change in product(range(len(search.choice)),
                                                 range(len(search.options)))]
        moves = single + [a + b for a, b in combinations(single, 2)]
        if len(moves) > MAX_REFITTED:
            moves = single[:MAX_REFITTED]
        best, found, tried = math.inf, True, set[bytes]()
        while found:
            found = False
            for move in [[], *moves]:
                state = self.state
                for pair, option in move:
                    search.choice[pair] = option
                graph = search.choice.cpu().numpy().tobytes()
                if graph in tried or not bool(search.channels.any()):
                    self.state = state
                    continue
                tried.add(graph)
                fit_laws(self.layer, self.transitions, search.channels,
                         objective, generator)
                cost = self.cost(objective).item()
                if cost < (1 - LEAST_GAIN) * best:
                    found, best = True, cost
                else:
                    self.state = state

    def bounded(self, step: AnnealingStep,
                evidence: ImpulseEvidence | None = None) -> StudentErrors:
        """The step with tolerances at least as large as present errors: below
        the noise, a wrong graph is as good as any."""
        if evidence is None:  # Some eight transitions do.
            every = max(1, self.transitions.change.size(1) // 8)
            evidence = self.evidence(self.transitions.thinned(every))
        errors = evidence.errors(self.search.channels)
        seen = errors[(errors != 0).any(-1)]
        if not len(seen):
            seen = errors.flatten(0, 1)  # Nothing is left to be explained.
        degrees, scale = fit_student(some(seen, 1_000), 15)
        fitted = StudentErrors(tuple(degrees.tolist()), tuple(scale.tolist()),
                               (EVIDENCE_WEIGHT, ) * len(scale),
                               step.prior_weight)
        return fitted.at_least(step.tolerance)

    def evidence(self,
                 transitions: Transitions | None = None) -> ImpulseEvidence:
        return (transitions or self.transitions).evidence(self.layer)

    def cost(self, objective: Objective,
             evidence: ImpulseEvidence | None = None,
             channels: Tensor | None = None) -> Tensor:
        """The cost per particle and transition, a mean for each system."""
        evidence = evidence or self.evidence()
        channels = self.search.channels if channels is None else channels
        cost = objective.cost(evidence.errors(channels))
        valid = evidence.transitions.valid
        return mean_by_system(cost, valid.sum(-1), self.search.system)

    @property
    def state(self) -> State:
        """A copy of laws and graphs, to put aside."""
        layer, num_channels = self.layer, self.search.options.size(1)
        laws = [law.value.view(num_channels, -1) for law in layer.tables()]
        values = [layer.law.value.new_zeros(0), *layer.coefficients.values()]
        return State(
            torch.cat(laws, 1).detach(), self.search.choice.clone(),
            torch.cat(values).detach(), self.transitions.mass.clone(),
            tuple(law.get_extra_state() for law in layer.tables()))

    @state.setter
    def state(self, state: State) -> None:
        for law, ends in zip(self.layer.tables(), state.ends):
            law.set_extra_state(ends)
        put_values(self.layer, state.laws, state.coefficients)
        self.search.choice = state.choice.clone()
        self.transitions.mass = state.mass.clone()


def mean_by_system(total: Tensor, count: Tensor, system: Tensor) -> Tensor:
    """The mean over the transitions of each system that has any."""
    count = scatter(count.to(total), system)
    return torch.div(scatter(total, system), count)[count > 0]


@torch.no_grad()
def put_values(layer: ForceLawDecoder, laws: Tensor,
               coefficients: Tensor) -> None:
    """Sets all laws, :obj:`[num_channels, num_values]`, and coefficients."""
    tables, values = layer.tables(), list(layer.coefficients.values())
    widths = [law.value.numel() // len(laws) for law in tables]
    for law, value in zip(tables, laws.split(widths, dim=1)):
        law.value.copy_(value.reshape_as(law.value))
    for old, value in zip(values, coefficients.split([len(v) for v in values])):
        old.copy_(value)


@torch.no_grad()
def fit_laws(layer: ForceLawDecoder, transitions: Transitions, channels: Tensor,
             cost: Objective, generator: torch.Generator,
             num_transitions: int = 16, system: Tensor | None = None) -> None:
    """Fits all laws and coefficients to graphs :obj:`[V, num_channels]`, in
    place, by iteratively reweighted least squares on transitions drawn at
    random; their spread, too, if each particle's system :obj:`[num_nodes]` is
    given."""
    num_nodes = transitions.change.size(0)
    least, most = (number // num_nodes
                   for number in (LEAST_CHANGES, MOST_CHANGES))
    number = min(max(num_transitions, least), max(1, most))
    taken = transitions.drawn(number, generator)
    scale = layer.scale[-transitions.change.size(-1):]
    targets = (taken.change / scale).transpose(0, 1).flatten(1)
    rows = [
        torch.cat([columns, target.unsqueeze(-1)], dim=1)
        for columns, target in zip(_columns(layer, taken, channels), targets)
    ]
    if 'own-rate' in layer.terms:
        mean = torch.stack(rows).mean(0)
        rows = [row - mean for row in rows]
    rows = taken.whitened(rows, scale)
    design = [(row[:, :-1], row[:, -1]) for row in rows]
    valid = taken.valid.t().unsqueeze(-1)  # [T, num_nodes, 1]
    tables, num_channels = layer.tables(), channels.size(1)
    penalty = torch.block_diag(*[
        _roughness(law) for _ in range(num_channels) for law in tables
        for _ in range(law.num_channels // num_channels)
    ])
    num_values = len(penalty)
    state = torch.cat([law.value.view(num_channels, -1) for law in tables], 1)
    unknowns = torch.cat([state.flatten(), *layer.coefficients.values()])
    for _ in range(NUM_REWEIGHTINGS):
        normal = unknowns.new_zeros(2 * unknowns.size(), dtype=torch.double)
        right = torch.zeros_like(normal[0])
        for (columns, row), usual in zip(design, valid):
            error = (row - columns @ unknowns).view(len(usual), -1)
            weight = (usual * cost.weight(error)).flatten()
            weighted = columns * weight.unsqueeze(-1)
            normal += (columns.t() @ weighted).double()
            right += (row @ weighted).double()
        unit = normal.diagonal()[:num_values].mean()
        if not bool(unit > 0):
            raise ValueError(
                "There are no interactions to fit laws to, in these graphs or "
                "away from walls; train the encoder for longer, or check "
                "candidate edges and half_width.")
        normal[:num_values, :num_values] += unit * penalty
        # Coefficients have units of their own.
        constants = normal.diagonal()[num_values:]
        constants *= 1 + 1e-9
        constants.clamp_(min=1e-12 * unit)  # Own rates leave none of others.
        unknowns = torch.linalg.solve(normal, right).to(unknowns.dtype)
    put_values(layer, unknowns[:num_values].view(num_channels, -1),
               unknowns[num_values:])
    if system is not None:
        everything = torch.diag(1e-9 * normal.diagonal())
        everything[:num_values, :num_values] = unit * penalty
        group = groups_of(system, taken.frame)
        layer.spread = jackknife(rows, valid, unknowns, cost, everything, group)


def _roughness(law: ForceLaw) -> Tensor:
    """A penalty, small, of second differences, and smaller, where there are no
    data."""
    eye = torch.eye(law.num_knots, dtype=torch.double, device=law.value.device)
    second = eye[:-2] - 2 * eye[1:-1] + eye[2:]
    return 1e-6 * second.t() @ second + 1e-9 * eye


def _columns(layer: ForceLawDecoder, transitions: Transitions,
             channels: Tensor) -> list[Tensor]:
    """What a unit of each entry of all laws, by channel, and of coefficients
    adds to changes in each transition, in units of the scale, :obj:`[num_nodes
    * F, num_channels * num_values + num_coefficients]`."""
    nodes = [transitions.node_columns(term) for term, _ in layer.node_terms()]
    scale = layer.scale[-transitions.change.size(-1):].view(-1, 1)
    out = []
    for t in range(len(transitions.frame)):
        now = transitions.take(slice(t, t + 1))
        tables = [
            _table_columns(term, law, now, channels)
            for term, law in layer.pair_terms()
        ]  # [num_nodes, F, C, num_values] each
        parts = [torch.cat(tables, dim=-1).flatten(2)]
        parts += [columns[:, t] for columns in nodes]
        out.append((torch.cat(parts, dim=-1) / scale).flatten(0, 1))
    return out


def _table_columns(term: PairTerm, law: ForceLaw, transition: Transitions,
                   channels: Tensor) -> Tensor:
    weight = channels[:, None, :, None]
    on_receiver = weight * _entries(term, law, transition).unsqueeze(2)
    if term.odd:
        return transition.sum_at_particles(on_receiver)
    on_sender = _entries(term, law, transition, at_sender=True).unsqueeze(2)
    return transition.sum_at_particles(on_receiver, weight * on_sender)


def _entries(term: PairTerm, law: ForceLaw, transition: Transitions,
             at_sender: bool = False) -> Tensor:
    """What a unit of each entry of a table does to one end of each choice,
    :obj:`[V, F, num_values]`."""
    distance = transition.distances(term, at_sender=at_sender)
    num_choices, knots = len(distance), law.num_knots
    first, weight = law.interpolation(distance[:, 0])
    # [V, points, 4, P, F]: an entry's part in shift and impulse.
    effect = transition.unit_effects(term, at_sender=at_sender)
    effect = effect[:, 0].transpose(-1, -2)
    num_vectors = effect.size(2)
    part = weight[..., None, None] * effect.unsqueeze(2)
    entry = first.unsqueeze(-1) + torch.arange(4, device=first.device)
    row = torch.arange(num_choices, device=first.device).view(-1, 1, 1)
    entry = entry + knots * row
    table = part.new_zeros(num_choices * knots, num_vectors, part.size(-1))
    table.index_add_(0, entry.flatten(), part.flatten(0, 2))
    table = table.view(num_choices, knots, num_vectors, -1)
    return table.transpose(1, 3).flatten(2)


def fit_scale(layer: ForceLawDecoder, transitions: Transitions) -> None:
    """Sets the typical changes by forces: the median absolute one of those that
    are no rounding, as most particles may move freely."""
    if isinstance(transitions, SmoothedTransitions):
        impulse = transitions.force_error.mean().item()
        num_dims = transitions.change.size(-1)
        layer.scale[num_dims:] = impulse
        layer.scale[:num_dims] = layer.interval / 2 * impulse
        return
    change = _by_pairs(layer, transitions)[transitions.valid].abs()
    quantities = change.chunk(layer.order, dim=-1)
    scale = 1.4826 * torch.stack([typical(q) for q in quantities])
    if not bool((scale > 0).all()):  # Or there are none: NaN.
        raise ValueError(
            "No particle moves as if a force acted on it, or all may meet a "
            "wall in all transitions; check half_width and the interval "
            "between two frames.")
    layer.scale.copy_(scale.repeat_interleave(quantities[0].size(1)))


def _by_pairs(layer: ForceLawDecoder, transitions: Transitions) -> Tensor:
    """The changes, of first order less what particles do by themselves."""
    change = transitions.change
    if layer.order == 2:
        return change
    columns = [transitions.node_columns(term) for term, _ in layer.node_terms()]
    parts = torch.cat([change.unsqueeze(-1), *columns], dim=-1)
    if 'own-rate' in layer.terms:
        parts = parts - parts.mean(1, keepdim=True)
    rows = parts.flatten(0, 2).double()
    found: Tensor = torch.linalg.lstsq(rows[:, 1:], rows[:, :1]).solution
    return parts[..., 0] - (parts[..., 1:] @ found.to(parts)).squeeze(-1)


def typical(change: Tensor) -> Tensor:
    """The median of absolute changes that are no rounding: half of all square
    roots are of larger ones, however many are zero."""
    change = change.flatten().sort().values
    share = change.double().sqrt().cumsum(0)
    middle = change[share >= share[-1:] / 2][:1]
    return change[change > LEAST_CHANGE * middle].median()


def fit_range(law: ForceLaw, transitions: Transitions,
              term: PairTerm = Central()) -> None:
    r"""Moves the table to the distances of pairs, in any unit: by the power of
    ten that brings their median within :math:`\sqrt{10}` of its place. Laws
    that are moved are zero again; known ones stay if off by a factor below ten.
    """
    def share_outside(distance: Tensor) -> float:
        outside = (distance < law.min_distance) | (distance > law.max_distance)
        return outside.double().mean().item()

    seen = _seen_distances(transitions, term)
    median = seen.median().item()  # Of no distance: NaN.
    if not 0 < median < math.inf:
        return
    if isinstance(law, EvenLaw):
        if not bool(law.value.any()):
            law.stretch(seen.max().item())
        return
    length = math.log10(law.max_distance / law.min_distance)
    shift = math.log10(median / law.min_distance) - PLACE * length
    share, factor = share_outside(seen), 10.**round(shift)
    if abs(shift) >= (1. if bool(law.value.any()) else 0.5):
        moved = share_outside(seen / factor)
        if moved < share or moved == 0:  # A table may be shorter than a step.
            law.rescale(factor)
            law.reset_parameters()
            share = moved
    if share > MAX_OUTSIDE:
        low, high = seen.quantile(seen.new_tensor([0.01, 0.99])).tolist()
        warnings.warn(
            f"{share:.0%} of the distances between particles (from {low:.3g} "
            f"to {high:.3g}) lie outside the table of force laws (from "
            f"{law.min_distance:.3g} to {law.max_distance:.3g}), where laws "
            f"are constant; leave out pairs that are too far apart to "
            f"interact, or give the decoder a ForceLaw of another range.",
            stacklevel=2)


def _seen_distances(transitions: Transitions, term: PairTerm) -> Tensor:
    """Distances of pairs half-way between two frames, off walls; of many, some.
    """
    choices, valid = transitions.choices, transitions.valid
    seen = transitions.distances(term)
    seen = seen[..., seen.size(-1) // 2]
    seen = seen[valid[choices.receiver] & valid[choices.sender]]
    seen = seen[seen > 2 * shortest_distance(seen.dtype)]
    return some(seen, NUM_DISTANCES)
