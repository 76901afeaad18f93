"""A layer and a decoder with a memory."""
from collections.abc import Container
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.inits import reset

from pyg_fnri.nn.aggr import ScatterSum
from pyg_fnri.nn.decoder import Decoder
from pyg_fnri.nn.multiplex_conv import check_edge_attr, node_mlp, reset_stacked


class RecurrentConv(MessagePassing):
    r"""NRI's recurrent layer (https://arxiv.org/abs/1802.04687, section 3.1);
    each :math:`\tilde{f}^k_e` has two tanh layers:

    .. math::
        \tilde{\mathbf{h}}^t_{(i,j)} &= \sum_k z_{ij,k} \tilde{f}^k_e
        ([\mathbf{h}^t_i, \mathbf{h}^t_j]) \\
        \mathbf{h}^{t+1}_j &= \mathrm{GRU} \big( \big[ \textstyle
        \sum_{i \neq j} \tilde{\mathbf{h}}^t_{(i,j)}, \mathbf{x}^t_j \big],
        \mathbf{h}^t_j \big) \\
        \mathbf{x}'_j &= f_{out}(\mathbf{h}^{t+1}_j)

    Arguments as for :class:`MultiplexConv`."""
    def __init__(self, in_channels: int, out_channels: int, edge_dim: int,
                 hidden_channels: int = 256, **kwargs: Any) -> None:
        kwargs.setdefault('aggr', ScatterSum())
        super().__init__(node_dim=0, **kwargs)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.edge_dim = edge_dim
        self.hidden_channels = hidden = hidden_channels
        # The first layers of all message networks in two parts, receivers'
        # and senders', so that they run once a particle, not once an edge.
        self.lin_i = torch.nn.Linear(hidden, edge_dim * hidden)
        self.lin_j = torch.nn.Linear(hidden, edge_dim * hidden, bias=False)
        # The second layers, stacked along their channels.
        self.weight = Parameter(torch.empty(edge_dim, hidden, hidden))
        self.bias = Parameter(torch.empty(edge_dim, hidden))
        self.gru = torch.nn.GRUCell(hidden + in_channels, hidden)
        self.node_mlp = node_mlp(hidden, hidden, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.lin_i.reset_parameters()
        self.lin_j.reset_parameters()
        reset_stacked(self.weight, self.bias)
        self.gru.reset_parameters()
        reset(self.node_mlp)

    def forward(self, x: Tensor, h: Optional[Tensor], edge_index: Tensor,
                edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        """From features :obj:`[num_nodes, in_channels]` and hidden states
        :obj:`[num_nodes, hidden_channels]` (None for zeros) to the next ones,
        by weights :obj:`[num_edges, edge_dim]`."""
        check_edge_attr(edge_attr, edge_index, self.edge_dim)
        if h is None:
            h = x.new_zeros(x.size(0), self.hidden_channels)
        size = (-1, self.edge_dim, self.hidden_channels)
        # propagate_type: (receiver: Tensor, sender: Tensor, edge_attr: Tensor)
        out = self.propagate(edge_index, receiver=self.lin_i(h).view(size),
                             sender=self.lin_j(h).view(size),
                             edge_attr=edge_attr)
        h = self.gru(torch.cat([out, x], dim=-1), h)
        return self.node_mlp(h), h

    def message(self, receiver_i: Tensor, sender_j: Tensor,
                edge_attr: Tensor) -> Tensor:
        pair = torch.tanh(receiver_i + sender_j)  # [num_edges, C, hidden]
        out = torch.zeros_like(pair[:, 0])
        for h, weight, bias, z in zip(pair.unbind(1), self.weight.unbind(),
                                      self.bias.unbind(),
                                      edge_attr.split(1, dim=-1)):
            h = torch.addmm(bias, h, weight).tanh()
            out = torch.addcmul(out, z, h)
        return out


class RecurrentDecoder(Decoder):
    r"""Predicts trajectories by a step with a memory (NRI,
    https://arxiv.org/abs/1802.04687, section 3.1), which starts at zero:
    :math:`\Delta^t, \mathbf{h}^{t+1} = f(\mathbf{x}^t, \mathbf{h}^t,
    \mathbf{z})` and :math:`\boldsymbol{\mu}^{t+1} = \mathbf{x}^t + \Delta^t`.
    :math:`\mathbf{x}^t` is the true state in the first :obj:`burn_in` frames
    and in every :obj:`pred_steps`-th after, otherwise the prediction."""
    def __init__(self, layer: torch.nn.Module, burn_in: int) -> None:
        super().__init__(layer)
        if burn_in < 1:
            raise ValueError(f"Expected a burn_in above 0, but got {burn_in}.")
        self.burn_in = burn_in

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                pred_steps: int = 1) -> Tensor:
        if pred_steps > 1 and self.burn_in >= x.size(1) - 1:
            raise ValueError(
                f"Expected a burn_in of less than {x.size(1) - 1} frames to "
                f"predict {pred_steps} steps, but got {self.burn_in}.")
        num_steps = x.size(1) - 1
        seen = {*range(self.burn_in)
                }.union(range(self.burn_in - 1, num_steps, pred_steps))
        out = self._run(x, seen, edge_index, edge_attr, num_steps)
        return torch.stack(out, dim=1)

    def one_step(self, x: Tensor, edge_index: Tensor,
                 edge_attr: Tensor) -> Tensor:
        # The memory of a frame is made by all frames before.
        x = self(x, edge_index, edge_attr, pred_steps=1)
        return x

    def predict(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                num_steps: int) -> Tensor:
        last = x.size(1) - 1
        out = self._run(x, range(last + 1), edge_index, edge_attr,
                        last + num_steps)
        return torch.stack(out[last:], dim=1)

    def _run(self, x: Tensor, seen: Container[int], edge_index: Tensor,
             edge_attr: Tensor, num_steps: int) -> list[Tensor]:
        h, out = None, list[Tensor]()
        for t in range(num_steps):
            state = x[:, t] if t in seen else out[-1]
            change, h = self.layer(state, h, edge_index, edge_attr)
            out.append(state + change)
        return out
