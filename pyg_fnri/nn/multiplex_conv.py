"""Message passing layers over a multiplex graph."""
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.inits import reset, uniform

from pyg_fnri.nn.aggr import ScatterSum
from pyg_fnri.nn.latent import pairs_of

#: In the model's units: below it, inverse squares of distances do not grow.
SOFTENING = 0.1
#: With its square, gradients of lengths stay finite.
LEAST = 0.01


class MultiplexMessages(MessagePassing):
    r"""Message networks :math:`\tilde{f}^k_e` of two ReLU layers per channel,
    weighted by the graph, over features of pairs that a subclass's
    :meth:`message` finds (eq. 1).

    Args:
        pair_channels: Number of features of a pair.
        edge_dim: Number of channels of the graph.
        hidden_channels: Size of all hidden layers.
        **kwargs: Arguments of :class:`torch_geometric.nn.MessagePassing`.
    """
    def __init__(self, pair_channels: int, edge_dim: int, hidden_channels: int,
                 **kwargs: Any) -> None:
        kwargs.setdefault('aggr', ScatterSum())
        super().__init__(node_dim=0, **kwargs)
        self.edge_dim = edge_dim
        self.hidden_channels = hidden = hidden_channels
        # The message networks, stacked along their channels.
        self.weight1 = Parameter(torch.empty(edge_dim, pair_channels, hidden))
        self.bias1 = Parameter(torch.empty(edge_dim, hidden))
        self.weight2 = Parameter(torch.empty(edge_dim, hidden, hidden))
        self.bias2 = Parameter(torch.empty(edge_dim, hidden))

    def reset_parameters(self) -> None:
        reset_stacked(self.weight1, self.bias1)
        reset_stacked(self.weight2, self.bias2)
        for part in self.children():
            reset(part)

    def networks(self, pair: Tensor) -> Iterator[Tensor]:
        r""":math:`\tilde{f}^k_e` of each channel, :obj:`[num_edges, (T,)
        hidden_channels]`, of :obj:`[num_edges, (T,) pair_channels]`."""
        size = pair.size()[:-1] + (self.hidden_channels, )
        pair = pair.view(-1, pair.size(-1))
        # One product of all channels, or slices, cost half as much again.
        for weight1, bias1, weight2, bias2 in zip(self.weight1, self.bias1,
                                                  self.weight2, self.bias2):
            h = torch.addmm(bias1, pair, weight1).relu_()
            yield torch.addmm(bias2, h, weight2).relu_().view(size)

    @torch.no_grad()
    def copy_channel(self, source: int, target: int,
                     generator: torch.Generator) -> None:
        """Replaces a message network by a copy with noise, a tenth of the
        spread of its weights."""
        for weight in (self.weight1, self.bias1, self.weight2, self.bias2):
            new = weight[source]
            noise = torch.randn(new.size(), generator=generator).to(new)
            weight[target] = new + new.std() / 10 * noise

    def mix(self, pair: Tensor, edge_attr: Tensor) -> Tensor:
        r""":math:`\sum_k z_{ij,k} \tilde{f}^k_e`, of the same sizes."""
        out = pair.new_zeros(pair.size()[:-1] + (self.hidden_channels, ))
        shape = (-1, ) + (1, ) * (out.dim() - 1)
        for h, z in zip(self.networks(pair), edge_attr.unbind(-1)):
            out = torch.addcmul(out, z.view(shape), h)
        return out


class MultiplexConv(MultiplexMessages):
    r"""Message networks over the states of both particles, and a node network
    over the sum of messages (eqs. 1 and 2 without the residual):

    .. math::
        \tilde{\mathbf{h}}_{(i,j)} &= \sum_{k} z_{ij,k} \tilde{f}^k_e
        ([\mathbf{x}_i, \mathbf{x}_j]) \\
        \mathbf{x}'_j &= \tilde{f}_v \big( \big[ \mathbf{x}_j,
        \textstyle\sum_{i \neq j} \tilde{\mathbf{h}}_{(i,j)} \big] \big)

    Other arguments as for :class:`MultiplexMessages`."""
    def __init__(self, in_channels: int, out_channels: int, edge_dim: int,
                 hidden_channels: int = 256, **kwargs: Any) -> None:
        super().__init__(2 * in_channels, edge_dim, hidden_channels, **kwargs)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.node_mlp = node_mlp(in_channels + hidden_channels, hidden_channels,
                                 out_channels)
        self.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        """Maps :obj:`[num_nodes, (num_steps,) in_channels]` to as many
        :obj:`out_channels`, by weights :obj:`[num_edges, edge_dim]`."""
        check_edge_attr(edge_attr, edge_index, self.edge_dim)
        # propagate_type: (x: Tensor, edge_attr: Tensor)
        out = self.propagate(edge_index, x=x, edge_attr=edge_attr)
        x = self.node_mlp(torch.cat([x, out], dim=-1))
        return x

    def message(self, x_i: Tensor, x_j: Tensor, edge_attr: Tensor) -> Tensor:
        # [num_edges, (T,) 2 * F]
        out = self.mix(torch.cat([x_i, x_j], dim=-1), edge_attr)
        return out


class EquivariantConv(MultiplexMessages):
    r"""Messages along what turns with the particles, by networks of what no
    turn, mirror or translation changes. Not in the paper.

    Of the line :math:`\mathbf{r}_{ij}` between two particles, :math:`r` long,
    and their relative velocity :math:`\mathbf{w}_{ij}`, positions change by

    .. math::
        \mathbf{h}_{(i,j)} &= \textstyle\sum_k z_{ij,k} \tilde{f}^k_e ([r,
        \log r, \mathbf{r} \cdot \mathbf{w} / r, |\mathbf{w}|]) \\
        \mathbf{x}'_j &= \mathbf{A} \mathbf{x}_j + \mathbf{b} +
        \textstyle\sum_{i \neq j} \big( c_1 \mathbf{r} + c_2
        \mathbf{r} / r^3 + c_3 \mathbf{w} \big)

    with :math:`\mathbf{c} = \mathbf{C} \mathbf{h}_{(i,j)}`; and velocities by
    other :math:`\mathbf{c}`. :math:`\mathbf{A}` and :math:`\mathbf{b}` are
    each particle's own.

    Args:
        in_channels: Number of positions and as many velocities, 2 * d, which
            are also the :obj:`out_channels`. Other arguments as for
            :class:`MultiplexMessages`.
    """
    def __init__(self, in_channels: int, out_channels: int, edge_dim: int,
                 hidden_channels: int = 256, **kwargs: Any) -> None:
        super().__init__(4, edge_dim, hidden_channels, **kwargs)
        if in_channels % 2 or out_channels != in_channels:
            raise ValueError(f"Expected positions and as many velocities, but "
                             f"got {in_channels} features, {out_channels} to "
                             f"predict; take MultiplexConv.")
        if self.flow != 'source_to_target':  # Graphs follow from messages.
            raise ValueError(f"Expected flow 'source_to_target', but got "
                             f"'{self.flow}'; flip edge_index.")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.lin_own = torch.nn.Linear(in_channels, out_channels)
        self.lin = torch.nn.Linear(hidden_channels, 2 * 3, bias=False)
        self.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        """As :meth:`MultiplexConv.forward`."""
        check_edge_attr(edge_attr, edge_index, self.edge_dim)
        effects = self.effects(x, edge_index)
        # propagate_type: (effects: Tensor, edge_attr: Tensor)
        out = self.propagate(edge_index, effects=effects, edge_attr=edge_attr,
                             size=(len(x), len(x)))
        out = torch.add(out, self.lin_own(x))
        return out

    def message(self, effects: Tensor, edge_attr: Tensor) -> Tensor:
        out = torch.bmm(edge_attr.unsqueeze(1), effects.flatten(2))
        return out.view(effects[:, 0].size())

    def effects(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Messages of each channel, :obj:`[num_edges, edge_dim, (T,)
        out_channels]`: what graphs weight and add up to change a receiver by,
        besides its own :obj:`lin_own`."""
        # Both directions of a pair are opposite; networks see one.
        seen, place = pairs_of(edge_index)
        sender, receiver = edge_index[:, seen]
        pair, vectors = self._look(
            x.index_select(0, sender) - x.index_select(0, receiver))
        out = torch.stack([self._turn(h, vectors) for h in self.networks(pair)],
                          dim=1).index_select(0, place)
        forward = edge_index[0] == sender[place]
        sign = torch.where(forward, 1, -1).to(out)
        return out * sign.view(-1, *[1] * (out.dim() - 1))

    def _look(self, between: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """What no turn changes, and what turns, of relative states."""
        line, speed = between.chunk(2, dim=-1)  # [num_edges, (T,) d]
        distance, fast = ((dot(k, k) + LEAST**2).sqrt() for k in (line, speed))
        along = dot(line, speed) / distance
        pair = torch.stack([distance, distance.log(), along, fast], dim=-1)
        near = distance.clamp(min=SOFTENING).pow(-2) / distance
        return pair, (line, line * near.unsqueeze(-1), speed)

    def _turn(self, h: Tensor, vectors: Sequence[Tensor]) -> Tensor:
        """The changes of positions, then of velocities."""
        strengths = self.lin(h).split(1, dim=-1)
        number = len(vectors)
        return torch.cat([
            reduce(torch.add, map(torch.mul, part, vectors))
            for part in (strengths[:number], strengths[number:])
        ], dim=-1)


def dot(a: Tensor, b: Tensor, dim: int = -1) -> Tensor:
    """Over a dimension of few axes; PyTorch's own sum is slower."""
    return reduce(torch.add, map(torch.mul, a.unbind(dim), b.unbind(dim)))


def node_mlp(in_channels: int, hidden_channels: int,
             out_channels: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Linear(in_channels, hidden_channels),
        torch.nn.ReLU(inplace=True),
        torch.nn.Linear(hidden_channels, hidden_channels),
        torch.nn.ReLU(inplace=True),
        torch.nn.Linear(hidden_channels, out_channels))


def reset_stacked(weight: Tensor, bias: Tensor) -> None:
    """PyTorch's default of linear layers, :obj:`[C, F_in, F_out]`."""
    for values in (weight, bias):
        uniform(weight.size(1), values)


def check_edge_attr(edge_attr: Tensor, edge_index: Tensor,
                    num_channels: int) -> None:
    """One row would be spread over all edges, further channels dropped."""
    if edge_attr.size() != (edge_index.size(1), num_channels):
        raise ValueError(
            f"Expected edge attributes of shape [{edge_index.size(1)}, "
            f"{num_channels}], but got {list(edge_attr.size())}.")
