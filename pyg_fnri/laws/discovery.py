"""Force laws from several starts, of which held-out systems choose."""
from collections.abc import Callable, Sequence
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from pyg_fnri.inference.impulses import Transitions
from pyg_fnri.inference.likelihood import (
    AnnealingStep,
    cauchy_nll,
    cauchy_width,
    without_prior,
)
from pyg_fnri.inference.refine import ANNEALING, find_graphs
from pyg_fnri.laws.alignment import align
from pyg_fnri.laws.disentangle import disentangle
from pyg_fnri.laws.em import EM_ANNEALING, Progress, fit_force_laws
from pyg_fnri.laws.law_fit import LawFit, State
from pyg_fnri.nn import RelationalAutoEncoder

#: Share of what the best laws explain, in nat, that others do as well, where
#: both have found the same.
AGREEING = 0.95


class Start(NamedTuple):
    r"""What came of a start.

    Args:
        number: 0 is the encoder's guess, others are random graphs.
        cost: What :func:`held_out_cost` says, below 0 where laws explain
            something.
    """
    number: int
    cost: float


class Discovery(NamedTuple):
    """How force laws were found.

    Args:
        starts: All starts, in order.
        best: The one whose laws were kept.
        confirmed: Whether another one found laws that are as good. Where
            none did, the search may have got stuck.
    """
    starts: list[Start]
    best: Start
    confirmed: bool


@torch.no_grad()
def discover_force_laws(
    model: RelationalAutoEncoder,
    data: Data,
    generator: torch.Generator,
    annealing: Sequence[AnnealingStep] = EM_ANNEALING,
    num_pilot: int = 100,
    max_starts: int = 5,
    on_start: Optional[Callable[[Start], None]] = None,
    on_iteration: Optional[Callable[[Progress], None]] = None,
) -> Discovery:
    """Finds force laws and graphs, whatever the encoder knows: also from
    nothing, with one that has not been trained.

    On a few of the systems, laws and graphs are fitted to each other
    (:func:`fit_force_laws`) and disentangled
    (:func:`~pyg_fnri.laws.disentangle.disentangle`), first from the
    encoder's graphs, then from random ones, until what explains held-out
    systems best has been found twice. From there, all systems are fitted.
    Layers are put into the order that the encoder has them in, if it has one.

    Args:
        model: A model whose decoder's layer is a
            :class:`~pyg_fnri.nn.ForceLawDecoder`; its laws are fitted in
            place.
        data: Systems with :obj:`x` and, where known, :obj:`y` and
            :obj:`mass`.
        generator: Source of randomness.
        annealing: One iteration each.
        num_pilot: How many systems starts are tried on, and held out, at the
            most.
        max_starts: How many starts at the most, at least one.
        on_start: Called after each start.
        on_iteration: Called after each iteration on all systems.

    Returns:
        How they were found.

    Raises:
        TypeError: As :func:`fit_force_laws`.
        ValueError: Likewise, and as :func:`held_out_cost`, and if there are
            too few starts.
    """
    if max_starts < 1:
        raise ValueError(f"Expected max_starts of at least 1, but got "
                         f"{max_starts}.")
    pilot, held_out = _parts(data, num_pilot)
    fit, judge = LawFit(model, pilot), LawFit(model, held_out)
    _halves(judge)  # Better told now than after a start.
    fit.fit_scale()
    guess = fit.search.choice
    starts: list[Start] = []
    best: Optional[tuple[Start, State]] = None
    confirmed = False
    for number in range(max_starts):
        if number == 0:
            fit.search.choice = guess
            if not bool(fit.search.channels.any(0).all()):
                continue  # Nothing to fit some law to.
            fit.anneal(annealing, generator)
        else:
            fit.randomise(generator)
            fit.anneal(without_prior(annealing), generator)
        disentangle(fit, generator)
        start = Start(number, held_out_cost(judge, generator))
        starts.append(start)
        if on_start is not None:
            on_start(start)
        if best is None:
            best = start, fit.state
            continue
        better, worse = sorted([start.cost, best[0].cost])
        confirmed = worse < 0 and worse <= AGREEING * better
        if start.cost < best[0].cost:
            best = start, fit.state
        if confirmed:
            break
    if best is None:
        raise ValueError(f"Expected max_starts to be at least 2 where the "
                         f"encoder's graphs lack a type, but it is "
                         f"{max_starts}.")
    fit.state = align(fit.search, best[1])
    if best[0].number != 0:
        # The encoder led elsewhere, if anywhere.
        annealing = without_prior(annealing)
    fit_force_laws(model, data, generator, annealing, on_iteration)
    return Discovery(starts, best[0], confirmed)


def held_out_cost(judge: LawFit, generator: torch.Generator) -> float:
    """How badly laws explain systems, in the second half of whose transitions
    they are judged; their graphs are inferred from the first half.

    Args:
        judge: The systems; graphs are searched anew.
        generator: Source of the random graphs that systems too large to relax
            start from.

    Returns:
        The median over systems of the negative log-likelihood of their
        errors, Cauchy's, in nat per number, less that without forces.

    Raises:
        ValueError: If there are fewer than two transitions.
    """
    search, (seen, later) = judge.search, _halves(judge)
    search.choice = search.draw(generator)
    find_graphs(search, judge.evidence(seen), without_prior(ANNEALING), 0,
                generator)
    evidence = judge.evidence(later)
    left = evidence.errors(search.channels)
    idle = evidence.errors(torch.zeros_like(search.channels))
    gain = (_surprise(judge, idle, evidence.transitions) -
            _surprise(judge, left, evidence.transitions))
    return -gain.median().item()


def _halves(judge: LawFit) -> tuple[Transitions, Transitions]:
    """Transitions to infer graphs from, those before the gap if there is one,
    and others to judge laws in."""
    first, total = judge.num_observed, judge.transitions.change.size(1)
    if total < 2:
        raise ValueError(f"Laws are judged in other transitions than those "
                         f"that graphs are inferred from, which takes at least "
                         f"two, but there is {total}; observe three frames or "
                         f"more, or give a continuation y.")
    if not 0 < first < total:
        first = (total + 1) // 2
    return (judge.transitions.take(slice(0, first)),
            judge.transitions.take(slice(first, None)))


def _surprise(judge: LawFit, errors: Tensor,
              transitions: Transitions) -> Tensor:
    """The negative log-likelihood of each system's errors, in nat per number,
    :obj:`[num_systems]`."""
    width = torch.stack([
        cauchy_width(part) for part in errors[transitions.valid].unbind(-1)
    ]) if bool(transitions.valid.any()) else errors.new_ones(errors.size(-1))
    nll = cauchy_nll(errors, width).mean(-1) * transitions.valid
    return judge.mean_of_systems(nll.sum(-1), transitions)


def _parts(data: Data, num_pilot: int) -> tuple[Data, Data]:
    """The first systems, and as many others; a system alone is both."""
    batch: Optional[Tensor] = data.get('batch')
    num_systems = 1 if batch is None else int(batch.max()) + 1
    if batch is None or num_systems == 1:
        return data, data
    size = min(num_pilot, (num_systems + 1) // 2)
    return _part(data, 0, size), _part(data, size, 2 * size)


def _part(data: Data, start: int, stop: int) -> Data:
    kept = (data.batch >= start) & (data.batch < stop)
    edge_index, _ = subgraph(kept, data.edge_index, relabel_nodes=True,
                             num_nodes=kept.numel())
    out = Data(x=data.x[kept], edge_index=edge_index,
               batch=data.batch[kept] - start)
    for key in ('y', 'mass'):
        if data.get(key) is not None:
            out[key] = data[key][kept]
    return out
