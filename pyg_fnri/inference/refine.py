"""Refining a guessed graph by what a decoder makes of the observed frames."""
from collections.abc import Sequence
from typing import Optional

import torch
from torch_geometric.data import Data

from pyg_fnri.inference.evidence import DecoderEvidence, Evidence
from pyg_fnri.inference.impulses import Flights, ImpulseEvidence
from pyg_fnri.inference.restarts import settle
from pyg_fnri.inference.search import GraphSearch, Refined
from pyg_fnri.inference.sweep import Objective, Stage
from pyg_fnri.nn import RelationalAutoEncoder, known_masses
from pyg_fnri.nn.force_law_decoder import ForceLawDecoder

#: Tolerance annealed, so that a wrong graph can still be told from a worse
#: one at the start; the encoder's word fades as the decoder's gets sharper.
ANNEALING = (
    Stage(0.3, 1.0),
    Stage(0.1, 0.5),
    Stage(0.03, 0.3),
    Stage(0.01, 0.2),
    Stage(0.005, 0.1),
    Stage(0.002, 0.1),
)


@torch.no_grad()
def refine(
    model: RelationalAutoEncoder,
    data: Data,
    annealing: Sequence[Stage] = ANNEALING,
    num_restarts: int = 24,
    generator: Optional[torch.Generator] = None,
) -> Refined:
    """Improves the encoder's graph by what the decoder makes of the observed
    frames :obj:`x`; labels and the continuation :obj:`y` are not looked at.

    Args:
        model: A trained model with any decoder; force laws are far faster.
        data: Observed trajectories, a :obj:`Data` or :obj:`Batch`; with
            masses :obj:`mass` where they are known.
        annealing: One sweep each.
        num_restarts: How often at the most a system is searched anew from
            random graphs, see :func:`~pyg_fnri.inference.restarts.settle`.
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
    annealing: Sequence[Stage],
    num_restarts: int,
    generator: torch.Generator,
) -> tuple[GraphSearch, Evidence]:
    """The search that :func:`refine` gives the result of, to go on from, and
    the evidence it looked at. Arguments are as there.
    """
    search = GraphSearch(model, data)
    layer = model.decoder.layer
    evidence: Evidence
    if isinstance(layer, ForceLawDecoder):
        flights = Flights([data.x], search.choices, layer.interval,
                          layer.half_width, known_masses(data))
        evidence = ImpulseEvidence(flights, layer)
    else:
        evidence = DecoderEvidence(model, [data.x], data.edge_index,
                                   search.choices, known_masses(data))
    for stage in annealing:
        search.sweep(evidence, stage)
    search_anew(search, evidence, annealing, num_restarts, generator)
    return search, evidence


def search_anew(
    search: GraphSearch,
    evidence: Evidence,
    annealing: Sequence[Objective],
    num_restarts: int,
    generator: torch.Generator,
) -> None:
    """Settles the graphs of all systems, see
    :func:`~pyg_fnri.inference.restarts.settle`, where the evidence is quick
    enough for that. Arguments are as for :func:`refine`.
    """
    if isinstance(evidence, ImpulseEvidence) and annealing and num_restarts > 0:
        settle(search, evidence, annealing, generator, num_restarts)
