"""Pairs whose types are to be inferred, and what a decoder says of them."""
import sys
from abc import ABC, abstractmethod
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.utils import degree

from pyg_fnri.inference.likelihood import Objective
from pyg_fnri.nn import LinearStep, OverLinearStep, RelationalAutoEncoder
from pyg_fnri.nn.latent import reverse_edges


class Pairs(NamedTuple):
    """The independent choices of a latent graph: pairs, or directed edges.

    Args:
        edge: An edge of each choice, :obj:`[V]`.
        reverse: The edge of the other direction, or the same one, :obj:`[V]`.
        sender, receiver: Ends of the first edge, :obj:`[V]`.
        mutual: Whether the choice acts on the sender, too, :obj:`[V]` bool.
        of_edge: The choice of each edge, :obj:`[num_edges]`.
        rounds: Choices by rounds; those of one act on different particles.
    """
    edge: Tensor
    reverse: Tensor
    sender: Tensor
    receiver: Tensor
    mutual: Tensor
    of_edge: Tensor
    rounds: list[Tensor]


def find_choices(edge_index: Tensor, undirected: bool) -> Pairs:
    """The choices over candidate edges; one without its reverse is its own."""
    edge = torch.arange(edge_index.size(1), device=edge_index.device)
    reverse = reverse_edges(edge_index) if undirected else edge
    edge = edge[edge <= reverse]
    reverse = reverse[edge]
    sender, receiver = edge_index[:, edge]
    mutual = reverse != edge
    of_edge = torch.empty_like(edge_index[0])
    of_edge[edge] = of_edge[reverse] = torch.arange(len(edge)).to(edge)
    return Pairs(edge, reverse, sender, receiver, mutual, of_edge,
                 _rounds(sender, receiver, mutual, edge_index))


def _rounds(sender: Tensor, receiver: Tensor, mutual: Tensor,
            edge_index: Tensor) -> list[Tensor]:
    if receiver.numel() == 0:
        return []
    num_nodes = int(edge_index.max()) + 1
    # In a complete graph of N particles, pairs of equal i + j modulo N do not
    # touch each other; elsewhere any order is right. Particles are counted from
    # the first of their neighbours, so that batches do not change the order.
    number = torch.arange(num_nodes, device=edge_index.device)
    number = number - number.scatter_reduce(0, edge_index[1], edge_index[0],
                                            'amin')
    size = degree(edge_index[1], num_nodes, dtype=torch.long) + 1
    left = ((number[sender] + number[receiver]) %
            size[receiver]).argsort(stable=True)
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
    """One-step errors by the channels of each choice, :obj:`[V, C]`, in units
    of a robust scale; zero where a transition says nothing about forces."""
    #: Errors computed side by side at the most: larger arrays take longer.
    max_tried: int = sys.maxsize

    @abstractmethod
    def errors(self, channels: Tensor) -> Tensor:
        """The errors under a graph, :obj:`[num_nodes, num_transitions, F]`."""

    @abstractmethod
    def changed_errors(self, errors: Tensor, channels: Tensor, members: Tensor,
                       options: Tensor) -> tuple[Tensor, Tensor]:
        """The errors of receivers and of senders, twice :obj:`[v, M,
        num_transitions, F]`, if :obj:`members` of one round changed to each
        option, :obj:`[M, C]`."""

    def profiled(self, errors: Tensor, particles: Tensor,
                 objective: Objective) -> Tensor:
        """Errors :obj:`[v, M, num_transitions, F]` of particles with what else
        is unknown of each, such as its mass, at its best for each graph."""
        return errors


class DecoderEvidence(Evidence):
    """The evidence of any decoder, in units of the residual of a linear step.
    What a recurrent decoder's memory passes on to other particles is neglected.
    """
    def __init__(self, model: RelationalAutoEncoder, x: Tensor,
                 edge_index: Tensor, choices: Pairs,
                 mass: Optional[Tensor] = None, num_windows: int = 1) -> None:
        self.num_windows = num_windows
        self.decoder, self.x = model.decoder, model.scaling(x)
        self.edge_index, self.choices, self.mass = edge_index, choices, mass
        layer = model.decoder.layer
        if isinstance(layer, OverLinearStep):  # Fitted to more systems.
            self.scale = layer.linear_step.scale
        else:
            self.scale = LinearStep(x.size(-1)).to(x.device).fit(self.x).scale

    @torch.no_grad()
    def errors(self, channels: Tensor) -> Tensor:
        edge_attr = channels[self.choices.of_edge].repeat(self.num_windows, 1)
        if self.mass is not None:
            edge_attr = edge_attr / self.mass[self.edge_index[1], None]
        out = self.decoder.one_step(self.x, self.edge_index, edge_attr)
        errors = (self.x[:, 1:] - out) / self.scale
        return torch.cat(errors.chunk(self.num_windows), dim=1)

    def changed_errors(self, errors: Tensor, channels: Tensor, members: Tensor,
                       options: Tensor) -> tuple[Tensor, Tensor]:
        tried = []
        for option in options:
            changed = channels.clone()
            changed[members] = option
            tried.append(self.errors(changed))
        out = torch.stack(tried, 1)  # [num_nodes, M, num_transitions, F]
        return (out[self.choices.receiver[members]],
                out[self.choices.sender[members]])
