"""The message passing layer with a memory, over a multiplex graph."""
import math
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from pyg_fnri.nn.aggr import ScatterSum


class RecurrentConv(MessagePassing):
    r"""NRI's recurrent layer (https://arxiv.org/abs/1802.04687, section 3.1):
    one message network per channel of a multiplex graph between the hidden
    states of particles, a gated recurrent unit and an output network,

    .. math::
        \tilde{\mathbf{h}}^t_{(i,j)} &= \sum_k z_{ij,k} \tilde{f}^k_e
        ([\mathbf{h}^t_i, \mathbf{h}^t_j]) \\
        \mathbf{h}^{t+1}_j &= \mathrm{GRU} \big( \big[ \textstyle
        \sum_{i \neq j} \tilde{\mathbf{h}}^t_{(i,j)}, \mathbf{x}^t_j \big],
        \mathbf{h}^t_j \big) \\
        \mathbf{x}'_j &= f_{out}(\mathbf{h}^{t+1}_j)

    Each :math:`\tilde{f}^k_e` has two layers, tanh after both;
    :math:`f_{out}` has two hidden ReLU layers and a linear one.

    Args:
        in_channels (int): Number of features of a node.
        out_channels (int): Number of features of a node afterwards.
        edge_dim (int): Number of channels of the graph.
        hidden_channels (int, optional): Size of the hidden state and of all
            hidden layers. (default: :obj:`256`)
        **kwargs (optional): Arguments of
            :class:`torch_geometric.nn.MessagePassing`.

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F_{in})`, hidden
          states :math:`(|\mathcal{V}|, H)`, edge indices
          :math:`(2, |\mathcal{E}|)`, edge attributes
          :math:`(|\mathcal{E}|, C)`
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`, hidden
          states :math:`(|\mathcal{V}|, H)`
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
        # The first layers of all message networks: one part for the receiver
        # and one for the sender, so that they run once a particle, not once
        # an edge.
        self.lin_i = torch.nn.Linear(hidden, edge_dim * hidden)
        self.lin_j = torch.nn.Linear(hidden, edge_dim * hidden, bias=False)
        # The second layers, stacked along their channels.
        self.weight = torch.nn.Parameter(torch.empty(edge_dim, hidden, hidden))
        self.bias = torch.nn.Parameter(torch.empty(edge_dim, hidden))
        self.gru = torch.nn.GRUCell(hidden + in_channels, hidden)
        self.node_mlp = torch.nn.Sequential(
            torch.nn.Linear(hidden, hidden),
            torch.nn.ReLU(inplace=True),
            torch.nn.Linear(hidden, hidden),
            torch.nn.ReLU(inplace=True),
            torch.nn.Linear(hidden, out_channels),
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights, PyTorch's default of each layer."""
        super().reset_parameters()
        self.lin_i.reset_parameters()
        self.lin_j.reset_parameters()
        bound = 1 / math.sqrt(self.hidden_channels)
        torch.nn.init.uniform_(self.weight, -bound, bound)
        torch.nn.init.uniform_(self.bias, -bound, bound)
        self.gru.reset_parameters()
        for module in self.node_mlp:
            if isinstance(module, torch.nn.Linear):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        h: Optional[Tensor],
        edge_index: Tensor,
        edge_attr: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Passes messages over all channels and moves on by one step.

        Args:
            x: Node features, :obj:`[num_nodes, in_channels]`.
            h: Hidden states, :obj:`[num_nodes, hidden_channels]`; None at the
                start, for zeros.
            edge_index: :obj:`[2, num_edges]`.
            edge_attr: Weight of each edge in each channel, :obj:`[num_edges,
                edge_dim]`.

        Returns:
            Features :obj:`[num_nodes, out_channels]` and the new hidden
            states.

        Raises:
            ValueError: If the shapes do not fit.
        """
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise ValueError(
                f"Expected node features of one frame, [num_nodes, "
                f"{self.in_channels}], but got {list(x.size())}; pass the "
                f"frames of a trajectory one after the other, as "
                f"RecurrentDecoder does.")
        if h is None:
            h = x.new_zeros(x.size(0), self.hidden_channels)
        if h.size() != (x.size(0), self.hidden_channels):
            raise ValueError(
                f"Expected hidden states of shape [{x.size(0)}, "
                f"{self.hidden_channels}] (particles, hidden channels), but "
                f"got {list(h.size())}; start with None.")
        if edge_attr.size() != (edge_index.size(1), self.edge_dim):
            raise ValueError(
                f"Expected edge attributes of shape [{edge_index.size(1)}, "
                f"{self.edge_dim}] (edges, channels), but got "
                f"{list(edge_attr.size())}; `edge_dim` sets the number of "
                f"channels.")
        size = (-1, self.edge_dim, self.hidden_channels)
        # propagate_type: (receiver: Tensor, sender: Tensor, edge_attr: Tensor)
        out = self.propagate(edge_index, receiver=self.lin_i(h).view(size),
                             sender=self.lin_j(h).view(size),
                             edge_attr=edge_attr)
        h = self.gru(torch.cat([out, x], dim=-1), h)
        return self.node_mlp(h), h

    def message(self, receiver_i: Tensor, sender_j: Tensor,
                edge_attr: Tensor) -> Tensor:
        """The sum over channels of the weighted messages."""
        pair = torch.tanh(receiver_i + sender_j)  # [num_edges, C, hidden]
        out = torch.zeros_like(pair[:, 0])
        for h, weight, bias, z in zip(pair.unbind(1), self.weight.unbind(),
                                      self.bias.unbind(),
                                      edge_attr.split(1, dim=-1)):
            h = torch.addmm(bias, h, weight).tanh()
            out = torch.addcmul(out, z, h)
        return out

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.in_channels}, "
                f"{self.out_channels}, edge_dim={self.edge_dim}, "
                f"hidden_channels={self.hidden_channels})")
