"""The message passing layer over a multiplex graph."""
import math
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from pyg_fnri.nn.aggr import ScatterSum


class MultiplexConv(MessagePassing):
    r"""One message network per channel of a multiplex graph, and a node
    network over the sum of the messages (eqs. 1 and 2 of the paper, without
    the residual):

    .. math::
        \tilde{\mathbf{h}}_{(i,j)} &= \sum_{k} z_{ij,k} \tilde{f}^k_e
        ([\mathbf{x}_i, \mathbf{x}_j]) \\
        \mathbf{x}'_j &= \tilde{f}_v \big( \big[ \mathbf{x}_j,
        \textstyle\sum_{i \neq j} \tilde{\mathbf{h}}_{(i,j)} \big] \big)

    Each :math:`\tilde{f}^k_e` has two layers, ReLU after both;
    :math:`\tilde{f}_v` has two hidden ReLU layers and a linear one.

    Args:
        in_channels (int): Number of features of a node.
        out_channels (int): Number of features of a node afterwards.
        edge_dim (int): Number of channels of the graph.
        hidden_channels (int, optional): Size of all hidden layers.
            (default: :obj:`256`)
        **kwargs (optional): Arguments of
            :class:`torch_geometric.nn.MessagePassing`.

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F_{in})` or
          :math:`(|\mathcal{V}|, T, F_{in})`, edge indices
          :math:`(2, |\mathcal{E}|)`, edge attributes
          :math:`(|\mathcal{E}|, C)`
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})` or
          :math:`(|\mathcal{V}|, T, F_{out})`
    """
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        edge_dim: int,
        hidden_channels: int = 256,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault('aggr', ScatterSum())
        super().__init__(node_dim=0, **kwargs)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.edge_dim = edge_dim
        self.hidden_channels = hidden = hidden_channels
        # The message networks, stacked along their channels.
        self.weight1 = _empty(edge_dim, 2 * in_channels, hidden)
        self.bias1 = _empty(edge_dim, hidden)
        self.weight2 = _empty(edge_dim, hidden, hidden)
        self.bias2 = _empty(edge_dim, hidden)
        self.node_mlp = torch.nn.Sequential(
            torch.nn.Linear(in_channels + hidden, hidden),
            torch.nn.ReLU(inplace=True),
            torch.nn.Linear(hidden, hidden),
            torch.nn.ReLU(inplace=True),
            torch.nn.Linear(hidden, out_channels),
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights, PyTorch's default of a linear layer."""
        super().reset_parameters()
        for weight, bias in ((self.weight1, self.bias1), (self.weight2,
                                                          self.bias2)):
            bound = 1 / math.sqrt(weight.size(1))
            torch.nn.init.uniform_(weight, -bound, bound)
            torch.nn.init.uniform_(bias, -bound, bound)
        for module in self.node_mlp:
            if isinstance(module, torch.nn.Linear):
                module.reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor,
                edge_attr: Tensor) -> Tensor:
        """Passes messages over all channels.

        Args:
            x: Node features, :obj:`[num_nodes, in_channels]` or
                :obj:`[num_nodes, num_steps, in_channels]`.
            edge_index: :obj:`[2, num_edges]`.
            edge_attr: Weight of each edge in each channel, :obj:`[num_edges,
                edge_dim]`.

        Raises:
            ValueError: If the shapes do not fit.
        """
        if x.dim() not in (2, 3) or x.size(-1) != self.in_channels:
            raise ValueError(f"Expected node features of shape [num_nodes, "
                             f"{self.in_channels}] or [num_nodes, num_steps, "
                             f"{self.in_channels}], but got {list(x.size())}.")
        if edge_attr.dim() != 2 or edge_attr.size(1) != self.edge_dim:
            raise ValueError(
                f"Expected edge attributes of shape [num_edges, "
                f"{self.edge_dim}] (one weight per channel), but got "
                f"{list(edge_attr.size())}; `edge_dim` sets the number of "
                f"channels.")
        if edge_attr.size(0) != edge_index.size(1):
            # One row would otherwise be spread over all edges.
            raise ValueError(
                f"Expected one row of edge attributes per edge, but got "
                f"{edge_attr.size(0)} rows for {edge_index.size(1)} edges.")
        # propagate_type: (x: Tensor, edge_attr: Tensor)
        out = self.propagate(edge_index, x=x, edge_attr=edge_attr)
        return self.node_mlp(torch.cat([x, out], dim=-1))

    def message(self, x_i: Tensor, x_j: Tensor, edge_attr: Tensor) -> Tensor:
        """The sum over channels of the weighted messages."""
        pair = torch.cat([x_i, x_j], dim=-1)  # [num_edges, (T,) 2 * F]
        size = pair.size()[:-1] + (self.hidden_channels, )
        pair = pair.view(-1, pair.size(-1))
        out = pair.new_zeros(size)
        # A product a channel: one product of all of them at once, or weights
        # sliced by position, cost half as much again, mostly in copies.
        for weight1, bias1, weight2, bias2, z in zip(self.weight1.unbind(),
                                                     self.bias1.unbind(),
                                                     self.weight2.unbind(),
                                                     self.bias2.unbind(),
                                                     edge_attr.unbind(-1)):
            h = torch.addmm(bias1, pair, weight1).relu_()
            h = torch.addmm(bias2, h, weight2).relu_()
            out = torch.addcmul(out, z.view((-1, ) + (1, ) * (len(size) - 1)),
                                h.view(size))
        return out

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.in_channels}, "
                f"{self.out_channels}, edge_dim={self.edge_dim}, "
                f"hidden_channels={self.hidden_channels})")


def _empty(*size: int) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.empty(*size))
