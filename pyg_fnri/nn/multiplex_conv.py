"""The message passing layer over a multiplex graph."""
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.inits import reset

from pyg_fnri.nn.aggr import ScatterSum


class MultiplexConv(MessagePassing):
    r"""Message networks :math:`\tilde{f}^k_e` of two ReLU layers per channel,
    and a node network over the sum of messages (eqs. 1 and 2 without the
    residual):

    .. math::
        \tilde{\mathbf{h}}_{(i,j)} &= \sum_{k} z_{ij,k} \tilde{f}^k_e
        ([\mathbf{x}_i, \mathbf{x}_j]) \\
        \mathbf{x}'_j &= \tilde{f}_v \big( \big[ \mathbf{x}_j,
        \textstyle\sum_{i \neq j} \tilde{\mathbf{h}}_{(i,j)} \big] \big)

    Args:
        edge_dim: Number of channels of the graph.
        hidden_channels: Size of all hidden layers.
        **kwargs: Arguments of :class:`torch_geometric.nn.MessagePassing`.
    """
    def __init__(self, in_channels: int, out_channels: int, edge_dim: int,
                 hidden_channels: int = 256, **kwargs: Any) -> None:
        kwargs.setdefault('aggr', ScatterSum())
        super().__init__(node_dim=0, **kwargs)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.edge_dim = edge_dim
        self.hidden_channels = hidden = hidden_channels
        # The message networks, stacked along their channels.
        self.weight1 = Parameter(torch.empty(edge_dim, 2 * in_channels, hidden))
        self.bias1 = Parameter(torch.empty(edge_dim, hidden))
        self.weight2 = Parameter(torch.empty(edge_dim, hidden, hidden))
        self.bias2 = Parameter(torch.empty(edge_dim, hidden))
        self.node_mlp = node_mlp(in_channels + hidden, hidden, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        reset_stacked(self.weight1, self.bias1)
        reset_stacked(self.weight2, self.bias2)
        reset(self.node_mlp)

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
        pair = torch.cat([x_i, x_j], dim=-1)  # [num_edges, (T,) 2 * F]
        size = pair.size()[:-1] + (self.hidden_channels, )
        pair = pair.view(-1, pair.size(-1))
        out = pair.new_zeros(size)
        # One product of all channels, or slices, cost half as much again.
        for weight1, bias1, weight2, bias2, z in zip(self.weight1, self.bias1,
                                                     self.weight2, self.bias2,
                                                     edge_attr.unbind(-1)):
            h = torch.addmm(bias1, pair, weight1).relu_()
            h = torch.addmm(bias2, h, weight2).relu_()
            out = torch.addcmul(out, z.view((-1, ) + (1, ) * (len(size) - 1)),
                                h.view(size))
        return out


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
    bound = 1 / math.sqrt(weight.size(1))
    torch.nn.init.uniform_(weight, -bound, bound)
    torch.nn.init.uniform_(bias, -bound, bound)


def check_edge_attr(edge_attr: Tensor, edge_index: Tensor,
                    num_channels: int) -> None:
    """One row would be spread over all edges, further channels dropped."""
    if edge_attr.size() != (edge_index.size(1), num_channels):
        raise ValueError(
            f"Expected edge attributes of shape [{edge_index.size(1)}, "
            f"{num_channels}], but got {list(edge_attr.size())}.")
