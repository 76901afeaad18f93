"""Refining a guessed graph by what a decoder makes of the observed frames."""
from collections.abc import Sequence
from typing import Optional

import torch
from torch_geometric.data import Data

from pyg_fnri.inference.evidence import DecoderEvidence, Evidence
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import StudentErrors, fit_errors
from pyg_fnri.inference.noise import decorrelated
from pyg_fnri.inference.relaxation import relax_and_sweep
from pyg_fnri.inference.restarts import refine_by_restarts
from pyg_fnri.inference.search import GraphSearch, Refined
from pyg_fnri.inference.sweep import AnnealingStep, Objective
from pyg_fnri.nn import ForceLawDecoder, RelationalAutoEncoder, known_masses

#: Tolerance annealed, so that a wrong graph can still be told from a worse
#: one at the start; the encoder's word fades as the decoder's gets sharper.
ANNEALING = (
    AnnealingStep(0.3, 1.0),
    AnnealingStep(0.1, 0.5),
    AnnealingStep(0.03, 0.3),
    AnnealingStep(0.01, 0.2),
    AnnealingStep(0.005, 0.1),
    AnnealingStep(0.002, 0.1),
)

#: Times the fitted scale: from afar, most errors are far above it.
WIDENING = (30.0, 10.0, 5.0, 3.0, 2.0, 1.0)

#: How often the likelihood is fitted to the errors of better graphs.
NUM_FITS = 2


@torch.no_grad()
def refine(
    model: RelationalAutoEncoder,
    data: Data,
    annealing: Sequence[AnnealingStep] = ANNEALING,
    num_restarts: int = 24,
    generator: Optional[torch.Generator] = None,
) -> Refined:
    """Improves the encoder's graph by what the decoder makes of the observed
    frames :obj:`x`; labels and the continuation :obj:`y` are not looked at.

    First with given tolerances, then with a likelihood that is fitted to the
    errors of the graphs found
    (:func:`~pyg_fnri.inference.likelihood.fit_errors`), which are of all
    systems of the batch: errors and noise are taken to be of one kind.

    Args:
        model: A trained model with any decoder; force laws are far faster.
        data: Observed trajectories, a :obj:`Data` or :obj:`Batch`; with
            masses :obj:`mass` where they are known.
        annealing: Tolerances to begin with. Without any, the encoder's graph
            stays.
        num_restarts: How often at the most a system is searched anew from
            random graphs, see
            :func:`~pyg_fnri.inference.restarts.refine_by_restarts`.
            With force laws only: any other decoder takes too long.
        generator: Source of the random graphs; one of its own, and the same
            graphs in every call, by default.

    Raises:
        TypeError: If the trajectories are of another dtype than the model.
        ValueError: If trajectories or edges are missing, a shape does not
            fit, a number is not finite, or there are fewer than two particles
            or two frames.
    """
    generator = generator or torch.Generator().manual_seed(0)
    search, _ = refined_search(model, data, annealing, num_restarts, generator)
    return search.result()


def refined_search(
    model: RelationalAutoEncoder,
    data: Data,
    annealing: Sequence[AnnealingStep],
    num_restarts: int,
    generator: torch.Generator,
) -> tuple[GraphSearch, Evidence]:
    """The search that :func:`refine` gives the result of, to go on from, and
    the evidence it looked at. Arguments are as there.
    """
    search = GraphSearch(model, data)
    layer = model.decoder.layer
    if isinstance(layer, ForceLawDecoder):
        transitions = Transitions([data.x], search.choices, layer.interval,
                                  layer.half_width, known_masses(data))
        impulses = ImpulseEvidence(transitions, layer)
        if annealing:
            impulses = find_graphs(search, impulses, annealing, num_restarts,
                                   generator)
        return search, impulses
    evidence = DecoderEvidence(model, [data.x], data.edge_index, search.choices,
                               known_masses(data))
    for stage in annealing:
        search.sweep(evidence, stage)
    for _ in range(NUM_FITS if annealing else 0):
        search.sweep(evidence, fit_likelihood(search, evidence, annealing[-1]))
    return search, evidence


def find_graphs(
    search: GraphSearch,
    evidence: ImpulseEvidence,
    annealing: Sequence[Objective],
    num_restarts: int,
    generator: torch.Generator,
) -> ImpulseEvidence:
    """The graphs that force laws explain the motion best with, from the
    encoder's guess and from random graphs.

    Args:
        search: Holds them in the end.
        evidence: The errors of the laws.
        annealing: At least one stage.
        num_restarts, generator: As for :func:`refine`.

    Returns:
        The evidence that was looked at in the end: where there is noise, with
        independent errors (:func:`~pyg_fnri.inference.noise.decorrelated`).
    """
    seen = evidence
    relax_and_sweep(search, evidence, annealing)
    for _ in range(NUM_FITS):
        seen = decorrelated(evidence, evidence.errors(search.channels))
        cost = fit_likelihood(search, seen, annealing[-1])
        if not isinstance(cost, StudentErrors):
            break
        annealing = [cost.widened(factor) for factor in WIDENING]
        relax_and_sweep(search, seen, annealing)
    refine_by_restarts(search, seen, annealing, generator, num_restarts)
    return seen


def fit_likelihood(search: GraphSearch, evidence: Evidence,
                   last: Objective) -> Objective:
    """The likelihood that fits the errors of the present graphs, or, where no
    transition says anything about interactions, the last cost."""
    errors = evidence.errors(search.channels)
    return fit_errors(errors, last.prior_weight) if bool(errors.any()) else last
