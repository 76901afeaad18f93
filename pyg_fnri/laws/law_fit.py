"""Graphs and force laws of some systems, as they are fitted to each other."""
import math
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import (
    EVIDENCE_WEIGHT,
    AnnealingStep,
    Objective,
    StudentErrors,
    fit_student,
)
from pyg_fnri.inference.refine import find_graphs
from pyg_fnri.inference.search import NOT_FINITE, GraphSearch
from pyg_fnri.laws.fit_laws import fit_laws, fit_scale
from pyg_fnri.laws.law_range import fit_range
from pyg_fnri.nn import ForceLawDecoder, RelationalAutoEncoder, known_masses

#: A few graphs that are stuck do no harm to laws.
NUM_RESTARTS = 8

#: Transitions and errors to look at for how large these are, and iterations:
#: a bound is rough.
NUM_LOOKS, NUM_ROWS, NUM_ITERATIONS = 8, 1_000, 15


class State(NamedTuple):
    """Laws :obj:`[num_channels, num_knots]` and graphs :obj:`[V]`."""
    laws: Tensor
    choice: Tensor


class LawFit:
    """Graphs of some systems, and the laws of a model, which it changes.

    Args:
        model: A model whose decoder's layer is a
            :class:`~pyg_fnri.nn.ForceLawDecoder`; the graphs start as its
            encoder guesses them.
        data: Systems with :obj:`x` and, where known, :obj:`y` and
            :obj:`mass`.

    Raises:
        TypeError: If the decoder is of another kind.
        ValueError: As :class:`GraphSearch`, :class:`Transitions` and
            :func:`~pyg_fnri.nn.known_masses`.
    """
    def __init__(self, model: RelationalAutoEncoder, data: Data) -> None:
        layer = model.decoder.layer
        if not isinstance(layer, ForceLawDecoder):
            raise TypeError(f"Only a ForceLawDecoder has laws to fit, but the "
                            f"decoder's layer is a {type(layer).__name__}; "
                            f"see RelationalInference.with_laws.")
        self.layer = layer
        self.search = GraphSearch(model, data)
        # A frame alone is no transition.
        frames = [data[key] for key in ('x', 'y') if data.get(key) is not None]
        #: How many transitions there are before the gap.
        self.num_observed = max(0, data.x.size(1) - 1)
        self.transitions = Transitions(frames, self.search.choices,
                                       layer.interval, layer.half_width,
                                       known_masses(data))

    def fit_scale(self) -> None:
        """What is typical of the data, in whatever unit: changes by forces
        (:func:`~pyg_fnri.laws.fit_laws.fit_scale`) and distances
        (:func:`~pyg_fnri.laws.law_range.fit_range`)."""
        fit_scale(self.layer, self.transitions)
        fit_range(self.layer.law, self.transitions)

    def maximise(self, stage: AnnealingStep, generator: torch.Generator,
                 num_transitions: int = 16) -> None:
        """Fits the laws to the graphs (M-step). Few transitions, drawn anew
        each time, are quicker, and shake laws out of local optima."""
        fit_laws(self.layer, self.transitions, self.search.channels,
                 self.bounded(stage), generator, num_transitions)

    def expect(self, stage: AnnealingStep,
               evidence: Optional[ImpulseEvidence] = None) -> int:
        """Sweeps over the graphs with the laws (E-step), or with what is
        known already of these; how many choices that changed."""
        evidence = evidence or self.evidence()
        return self.search.sweep(evidence, self.bounded(stage, evidence))

    def bounded(self, stage: AnnealingStep,
                evidence: Optional[ImpulseEvidence] = None) -> StudentErrors:
        """The stage with tolerances that are not below what the present graphs
        leave unexplained: below the noise, a wrong graph is as good as any.

        Args:
            stage: Its tolerance is the least one.
            evidence: What the laws say, of some transitions by default.

        Raises:
            ValueError: If that is not finite.
        """
        if evidence is None:
            step = self.transitions.change.size(1) // NUM_LOOKS
            evidence = self.evidence(self.transitions.thinned(max(1, step)))
        errors = evidence.errors(self.search.channels)
        if not bool(errors.isfinite().all()):
            raise ValueError(NOT_FINITE)
        seen = errors[(errors != 0).any(-1)]
        if not len(seen):
            seen = errors.flatten(0, 1)  # Nothing is left to be explained.
        degrees, scale = fit_student(seen[::math.ceil(len(seen) / NUM_ROWS)],
                                     NUM_ITERATIONS)
        fitted = StudentErrors(tuple(degrees.tolist()), tuple(scale.tolist()),
                               (EVIDENCE_WEIGHT, ) * len(scale),
                               stage.prior_weight)
        return fitted.at_least(stage.tolerance)

    def find_graphs(self, stages: Sequence[AnnealingStep],
                    generator: torch.Generator) -> None:
        """Searches the graphs of all systems anew with the laws, as
        :func:`~pyg_fnri.inference.refine.find_graphs` does."""
        find_graphs(self.search, self.evidence(), stages, NUM_RESTARTS,
                    generator)

    def anneal(self, stages: Sequence[AnnealingStep],
               generator: torch.Generator) -> None:
        """Both in turn, an iteration for each stage."""
        for stage in stages:
            self.maximise(stage, generator)
            self.expect(stage)

    def evidence(self,
                 transitions: Optional[Transitions] = None) -> ImpulseEvidence:
        """What the laws say, of all transitions or of some."""
        return ImpulseEvidence(transitions or self.transitions, self.layer)

    def cost(self, objective: Objective,
             evidence: Optional[ImpulseEvidence] = None) -> Tensor:
        """What errors cost by the laws or by other evidence, per particle and
        transition, a mean for each system, :obj:`[num_systems]`; known
        without labels."""
        evidence = evidence or self.evidence()
        cost = objective.cost(evidence.errors(self.search.channels))
        return self.mean_of_systems(cost, evidence.transitions)

    def mean_of_systems(self, total: Tensor,
                        transitions: Transitions) -> Tensor:
        """Of each particle's sum over its valid transitions, the mean over
        those of each system, :obj:`[num_systems]`."""
        system = self.search.system
        out = total.new_zeros(2, self.search.num_systems)
        out[0].index_add_(0, system, total)
        out[1].index_add_(0, system, transitions.valid.sum(-1).to(total))
        return out[0] / out[1].clamp(min=1)

    def randomise(self, generator: torch.Generator) -> None:
        """Forgets laws and graphs."""
        self.layer.law.reset_parameters()
        self.search.choice = self.search.draw(generator)

    @property
    def state(self) -> State:
        return State(self.layer.law.value.detach().clone(),
                     self.search.choice.clone())

    @state.setter
    def state(self, state: State) -> None:
        self.layer.law.value.data.copy_(state.laws)
        self.search.choice = state.choice.clone()
