"""A start for directed networks of first order: laws that are straight lines.
"""
from collections.abc import Sequence
from itertools import product

import torch

from pyg_fnri.inference.likelihood import AnnealingStep
from pyg_fnri.inference.relaxation import decode_directed
from pyg_fnri.laws.fit import LawFit
from pyg_fnri.nn import RateLawDecoder

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


def can_be_straight(fit: LawFit) -> bool:
    """Whether states are one number, and edges of one kind."""
    layer = fit.layer
    return (isinstance(layer, RateLawDecoder) and not layer.circle
            and len(layer.scale) == 1 and 'field' in layer.terms
            and fit.search.options.size(0) == 2)


@torch.no_grad()
def start_straight(fit: LawFit, generator: torch.Generator,
                   annealing: Sequence[AnnealingStep]) -> None:
    """Fits laws and graphs to each other, from the laws that are straight
    lines, of offsets or of senders' states, and the decay, by which directed
    graphs explain the motion of a few systems best."""
    few = LawFit(fit.model, fit.data.subgraph(fit.search.system < NUM_SYSTEMS))
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
