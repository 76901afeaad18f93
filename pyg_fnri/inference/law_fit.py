"""Graphs and force laws of some systems, as they are fitted to each other."""
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.inference.fit_laws import fit_laws, fit_scale
from pyg_fnri.inference.impulses import Flights, ImpulseEvidence
from pyg_fnri.inference.restarts import settle
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.inference.sweep import Stage
from pyg_fnri.nn import RelationalAutoEncoder, known_masses
from pyg_fnri.nn.force_law_decoder import ForceLawDecoder

#: A few graphs that are stuck do no harm to laws.
NUM_RESTARTS = 8


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
        ValueError: As :class:`GraphSearch`, :class:`Flights` and
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
        self.flights = Flights(frames, self.search.choices, layer.interval,
                               layer.half_width, known_masses(data))

    def fit_scale(self) -> None:
        """See :func:`~pyg_fnri.inference.fit_laws.fit_scale`."""
        fit_scale(self.layer, self.flights)

    def maximise(self, stage: Stage, generator: torch.Generator,
                 num_transitions: int = 16) -> None:
        """Fits the laws to the graphs (M-step). Few transitions, drawn anew
        each time, are quicker, and shake laws out of local optima."""
        fit_laws(self.layer, self.flights, self.search.channels,
                 stage.tolerance, generator, num_transitions)

    def expect(self, stage: Stage) -> int:
        """Sweeps over the graphs with the laws (E-step); how many choices
        that changed."""
        return self.search.sweep(self.evidence(), stage)

    def settle(self, stages: Sequence[Stage],
               generator: torch.Generator) -> int:
        """Searches the graphs of all systems anew with the laws, see
        :func:`~pyg_fnri.inference.restarts.settle`; how many choices that
        changed."""
        before = self.search.choice
        settle(self.search, self.evidence(), stages, generator, NUM_RESTARTS)
        return int((self.search.choice != before).sum())

    def anneal(self, stages: Sequence[Stage],
               generator: torch.Generator) -> None:
        """Both in turn, an iteration for each stage."""
        for stage in stages:
            self.maximise(stage, generator)
            self.expect(stage)

    def evidence(self, flights: Optional[Flights] = None) -> ImpulseEvidence:
        """What the laws say, of all transitions or of some."""
        return ImpulseEvidence(flights or self.flights, self.layer)

    def cost(self, tolerance: float,
             evidence: Optional[ImpulseEvidence] = None) -> Tensor:
        r"""Mean robust error :math:`\log(1 + e^2 / d^2)` of each system by
        the laws or by other evidence, :obj:`[num_systems]`; known without
        labels."""
        evidence = evidence or self.evidence()
        errors = evidence.errors(self.search.channels)
        valid = evidence.flights.valid
        error = (errors.square() / tolerance).log1p().mean(-1)
        system = self.search.system
        out = error.new_zeros(2, self.search.num_systems)
        out[0].index_add_(0, system, error.sum(-1))  # 0 where not valid.
        out[1].index_add_(0, system, valid.sum(-1).to(error))
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


def blind(stages: Sequence[Stage]) -> list[Stage]:
    """The same stages without the encoder's word."""
    return [replace(stage, prior_weight=0.0) for stage in stages]
