"""Expectation-maximisation over graphs and force laws."""
from collections.abc import Callable, Sequence
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import AnnealingStep
from pyg_fnri.laws.law_fit import LawFit
from pyg_fnri.nn import RelationalAutoEncoder

#: Slower than in refinement: laws and graphs have to find each other.
EM_ANNEALING = (AnnealingStep(0.3, 1.0), AnnealingStep(0.1, 0.5),
                AnnealingStep(0.05, 0.3), AnnealingStep(0.02, 0.2),
                AnnealingStep(0.01, 0.1), AnnealingStep(0.005, 0.1),
                AnnealingStep(0.003, 0.1), AnnealingStep(0.002, 0.1))

#: Changes of a particle between two frames, to fit laws to in the end.
ENOUGH_CHANGES = 20_000


class Progress(NamedTuple):
    r"""Where an expectation-maximisation is.

    Args:
        iteration: Counted from 1.
        changed: Share of the choices that the last sweep changed, or, in the
            end, the search anew.
        cost: What errors cost by the last stage, a mean over particles and
            transitions: comparable between iterations and runs, and known
            without labels.
        edge_type: The present graph, :obj:`[num_edges, num_layers]`.
    """
    iteration: int
    changed: float
    cost: float
    edge_type: Tensor


@torch.no_grad()
def fit_force_laws(
    model: RelationalAutoEncoder,
    data: Data,
    generator: torch.Generator,
    annealing: Sequence[AnnealingStep] = EM_ANNEALING,
    on_iteration: Optional[Callable[[Progress], None]] = None,
) -> None:
    """Finds force laws and graphs of training systems, without labels.

    Starts from the encoder's graphs. Each iteration fits the laws to the
    graphs (M-step, robust least squares) and then sweeps over the graphs with
    the laws (E-step, iterated conditional modes), with a tolerance that gets
    smaller, as far as the noise. Laws that are known already, and not zero,
    are where it starts. At last, graphs are searched anew
    (:func:`~pyg_fnri.inference.refine.find_graphs`): those that are stuck bend
    the laws at distances that few pairs are seen at.

    Args:
        model: A model whose encoder has been trained, and whose decoder's
            layer is a :class:`~pyg_fnri.nn.ForceLawDecoder`; its laws are
            fitted in place.
        data: Systems with :obj:`x` and, where known, :obj:`y`.
        generator: Source of randomness.
        annealing: One iteration each.
        on_iteration: Called after each, and once more in the end.

    Raises:
        TypeError: If the decoder is of another kind.
        ValueError: If there is no stage, or as for
            :func:`~pyg_fnri.inference.refine`, or if there is nothing to fit
            laws to.
    """
    if not annealing:
        raise ValueError("Expected at least one stage of annealing, but got "
                         "none.")
    fit = LawFit(model, data)
    fit.fit_scale()
    known = bool(fit.layer.law.value.any())

    def report(iteration: int, changed: int, evidence: ImpulseEvidence) -> None:
        if on_iteration is not None:
            cost = fit.cost(annealing[-1], evidence).mean().item()
            on_iteration(
                Progress(iteration, changed / fit.search.choice.numel(), cost,
                         fit.search.result().edge_type))

    for iteration, stage in enumerate(annealing, start=1):
        if iteration > 1 or not known:
            fit.maximise(stage, generator)
        evidence = fit.evidence()
        report(iteration, fit.expect(stage, evidence), evidence)
    fit.maximise(annealing[-1], generator)
    before = fit.search.choice
    fit.find_graphs(annealing, generator)
    # Where systems are few, all transitions say more than sixteen do.
    fit.maximise(annealing[-1], generator)
    enough = ENOUGH_CHANGES // fit.search.system.numel()
    fit.maximise(annealing[-1], generator, max(16, enough))
    changed = int((fit.search.choice != before).sum())
    report(len(annealing) + 1, changed, fit.evidence())
