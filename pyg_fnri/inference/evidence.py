"""How well graphs explain observed frames, one step at a time."""
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor

from pyg_fnri.inference.pairs import Pairs
from pyg_fnri.nn import LinearStep, OverLinearStep, RelationalAutoEncoder


class Evidence(ABC):
    """One-step prediction errors of a decoder as a function of the graph.

    A graph is given by the channels of each choice, :obj:`[V, num_channels]`.
    Errors are in units of a robust scale per feature, one for each particle,
    transition and feature, :obj:`[num_nodes, num_transitions, F]`; those of
    transitions that say nothing about forces are zero.
    """
    #: Errors that changes of many choices are tried with side by side, at the
    #: most: in larger arrays it takes longer. No limit where a try of one
    #: choice takes as long as one of all.
    max_tried: int = sys.maxsize

    @abstractmethod
    def errors(self, channels: Tensor) -> Tensor:
        """The errors under a graph, :obj:`[num_nodes, num_transitions, F]`."""

    @abstractmethod
    def changed_errors(
        self,
        errors: Tensor,
        channels: Tensor,
        members: Tensor,
        options: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """The errors of receivers and of senders, if the choices
        :obj:`members` (of one round) changed to each of the options.

        Args:
            errors: The errors under the present graph.
            channels: The present graph.
            members: Positions of choices, :obj:`[v]`.
            options: Channels of each option, :obj:`[M, num_channels]`.

        Returns:
            Twice :obj:`[v, M, num_transitions, F]`.
        """


class DecoderEvidence(Evidence):
    """The evidence of any decoder, by running it anew for each option.

    A choice changes what acts on its own two particles only, so all choices
    of a round are tried in one run. This is exact where the decoder looks at
    the last state only; a recurrent one's memory passes changes on to other
    particles, which is neglected. Errors are in units of what a linear step
    leaves over, :class:`~pyg_fnri.nn.LinearStep`: the model's own one, or one
    that is fitted to these trajectories.

    Args:
        model: A trained model.
        trajectories: Observed frames of all systems in physical units, each
            :obj:`[num_nodes, T, F]`; two where a gap lies between them.
        edge_index: Candidate edges, :obj:`[2, num_edges]`.
        choices: The choices over these.
        mass: Masses of the particles, :obj:`[num_nodes]`, where known.

    Raises:
        ValueError: If the trajectories are too short or not finite, or leave
            nothing over that interactions could explain.
    """
    def __init__(
        self,
        model: RelationalAutoEncoder,
        trajectories: Sequence[Tensor],
        edge_index: Tensor,
        choices: Pairs,
        mass: Optional[Tensor] = None,
    ) -> None:
        self.mass = mass
        self.decoder = model.decoder
        self.edge_index = edge_index
        self.choices = choices
        self.trajectories = [model.scaling(x) for x in trajectories]
        self.target = torch.cat([x[:, 1:] for x in self.trajectories], dim=1)
        layer = model.decoder.layer
        if isinstance(layer, OverLinearStep):
            # Fitted in training, to more systems than these.
            self.scale = layer.linear_step.scale
        else:
            x = self.trajectories[0]
            linear_step = LinearStep(x.size(-1)).to(x.device)
            self.scale = linear_step.fit(x).scale

    @torch.no_grad()
    def errors(self, channels: Tensor) -> Tensor:
        edge_attr = channels.new_zeros(self.edge_index.size(1),
                                       channels.size(1))
        edge_attr[self.choices.edge] = channels
        edge_attr[self.choices.reverse] = channels
        if self.mass is not None:
            edge_attr = edge_attr / self.mass[self.edge_index[1], None]
        # Whatever memory a decoder has starts anew after a gap.
        out = torch.cat([
            self.decoder.one_step(x, self.edge_index, edge_attr)
            for x in self.trajectories
        ], dim=1)
        return (self.target - out) / self.scale

    def changed_errors(
        self,
        errors: Tensor,
        channels: Tensor,
        members: Tensor,
        options: Tensor,
    ) -> tuple[Tensor, Tensor]:
        receiver, sender = (self.choices.receiver[members],
                            self.choices.sender[members])
        at_receiver, at_sender = [], []
        for option in options:
            changed = channels.clone()
            changed[members] = option
            out = self.errors(changed)
            at_receiver.append(out[receiver])
            at_sender.append(out[sender])
        return torch.stack(at_receiver, 1), torch.stack(at_sender, 1)
