"""How well graphs explain observed frames, one step at a time."""
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.utils import degree

from pyg_fnri.nn import LinearStep, OverLinearStep, RelationalAutoEncoder
from pyg_fnri.nn.latent import Latent, reverse_edges


class Pairs(NamedTuple):
    """The independent choices of a latent graph over candidate edges.

    In an undirected graph both edges of a pair are one choice, and it acts on
    both particles; in a directed one each edge is a choice of its own, and it
    acts on the receiver only.

    Args:
        edge: An edge of each choice, :obj:`[V]`.
        reverse: The edge of the other direction, or the same one, :obj:`[V]`.
        sender: Sender of that edge, :obj:`[V]`.
        receiver: Its receiver, :obj:`[V]`.
        mutual: Whether the choice acts on the sender too, :obj:`[V]` bool.
        rounds: Which choices can be changed side by side: those of a round
            act on different particles; each choice is in one round.
    """
    edge: Tensor
    reverse: Tensor
    sender: Tensor
    receiver: Tensor
    mutual: Tensor
    rounds: list[Tensor]

    def among(self, kept: Tensor) -> 'Subset':
        """The choices among some particles.

        Args:
            kept: Which, :obj:`[num_nodes]` bool: all of a system or none.
        """
        if bool(kept.all()):
            return Subset(self, slice(None), slice(None))
        of_part = kept[self.receiver]
        node, place = kept.cumsum(0) - 1, of_part.cumsum(0) - 1
        choice = of_part.nonzero().squeeze(-1)
        choices = Pairs(self.edge[choice], self.reverse[choice],
                        node[self.sender[choice]], node[self.receiver[choice]],
                        self.mutual[choice],
                        [place[r[of_part[r]]] for r in self.rounds])
        return Subset(choices, kept.nonzero().squeeze(-1), choice)


class Subset(NamedTuple):
    """Some systems of a batch.

    Args:
        choices: Theirs, with particles counted among those of the part; edges
            keep their numbers.
        particle: Which particles of the whole these are, :obj:`[n]`; a slice
            of all, which copies nothing, where it is the whole.
        choice: Likewise, which choices, :obj:`[v]`.
    """
    choices: Pairs
    particle: Tensor | slice
    choice: Tensor | slice


def find_choices(edge_index: Tensor, undirected: bool) -> Pairs:
    """The choices of a graph over candidate edges :obj:`[2, num_edges]`.

    Args:
        edge_index: Candidate edges, each given once.
        undirected: Whether both edges of a pair are one choice; an edge
            without its reverse is a choice of its own.
    """
    edge = torch.arange(edge_index.size(1), device=edge_index.device)
    reverse = reverse_edges(edge_index) if undirected else edge
    edge = edge[edge <= reverse]
    reverse = reverse[edge]
    sender, receiver = edge_index[:, edge]
    mutual = reverse != edge
    return Pairs(edge, reverse, sender, receiver, mutual,
                 _rounds(sender, receiver, mutual, edge_index))


def all_types(latent: Latent) -> Tensor:
    """All M combinations of the layer-graphs' types, :obj:`[M, num_layers]`,
    nulls first."""
    types = [torch.arange(k) for k in latent.num_edge_types]
    return torch.cartesian_prod(*types).view(-1, len(types))


def _rounds(sender: Tensor, receiver: Tensor, mutual: Tensor,
            edge_index: Tensor) -> list[Tensor]:
    if receiver.numel() == 0:
        return []
    num_nodes = int(edge_index.max()) + 1
    # In a complete graph of N particles, pairs of equal i + j modulo N do not
    # touch each other: N rounds, the fewest for odd N. Elsewhere any order is
    # right, only not the best. Particles are counted from the first of their
    # neighbours, for the order in a system not to depend on its batch.
    number = torch.arange(num_nodes, device=edge_index.device)
    number = number - number.scatter_reduce(0, edge_index[1], edge_index[0],
                                            'amin')
    size = degree(edge_index[1], num_nodes, dtype=torch.long) + 1
    key = (number[sender] + number[receiver]) % size[receiver]
    left = key.argsort(stable=True)
    rounds = []
    while left.numel():
        rank = torch.arange(left.numel(), device=left.device)
        a, b, both = receiver[left], sender[left], mutual[left]
        first = rank.new_full((num_nodes, ), left.numel())
        first.scatter_reduce_(0, a, rank, 'amin')
        first.scatter_reduce_(0, b[both], rank[both], 'amin')
        chosen = (first[a] == rank) & (~both | (first[b] == rank))
        rounds.append(left[chosen])
        left = left[~chosen]
    return rounds


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
