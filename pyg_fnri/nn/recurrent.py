"""A layer and a decoder with a memory."""
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.inits import reset

from pyg_fnri.nn.aggr import ScatterSum
from pyg_fnri.nn.decoder import Decoder
from pyg_fnri.nn.multiplex_conv import (
    check_edge_attr,
    empty,
    node_mlp,
    reset_stacked,
)


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
        in_channels: Number of features of a node.
        out_channels: Number of features of a node afterwards.
        edge_dim: Number of channels of the graph.
        hidden_channels: Size of the hidden state and of all hidden layers.
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
        # The first layers of all message networks: one part for the receiver
        # and one for the sender, so that they run once a particle, not once
        # an edge.
        self.lin_i = torch.nn.Linear(hidden, edge_dim * hidden)
        self.lin_j = torch.nn.Linear(hidden, edge_dim * hidden, bias=False)
        # The second layers, stacked along their channels.
        self.weight = empty(edge_dim, hidden, hidden)
        self.bias = empty(edge_dim, hidden)
        self.gru = torch.nn.GRUCell(hidden + in_channels, hidden)
        self.node_mlp = node_mlp(hidden, hidden, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights, PyTorch's default of each layer."""
        super().reset_parameters()
        self.lin_i.reset_parameters()
        self.lin_j.reset_parameters()
        reset_stacked(self.weight, self.bias)
        self.gru.reset_parameters()
        reset(self.node_mlp)

    def forward(self, x: Tensor, h: Optional[Tensor], edge_index: Tensor,
                edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        """Moves on by one step: features :obj:`[num_nodes, in_channels]` of a
        frame and hidden states :obj:`[num_nodes, hidden_channels]` (None at the
        start, for zeros) become :obj:`out_channels` features and new hidden
        states, over edges of weights :obj:`[num_edges, edge_dim]`."""
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
        """The sum over channels of the weighted messages."""
        pair = torch.tanh(receiver_i + sender_j)  # [num_edges, C, hidden]
        out = torch.zeros_like(pair[:, 0])
        for h, weight, bias, z in zip(pair.unbind(1), self.weight.unbind(),
                                      self.bias.unbind(),
                                      edge_attr.split(1, dim=-1)):
            h = torch.addmm(bias, h, weight).tanh()
            out = torch.addcmul(out, z, h)
        return out


class RecurrentDecoder(Decoder):
    r"""Predicts trajectories by a step that remembers those before it (NRI,
    https://arxiv.org/abs/1802.04687, section 3.1),

    .. math::
        \Delta^t, \mathbf{h}^{t+1} &= f(\mathbf{x}^t, \mathbf{h}^t,
        \mathbf{z}) \\
        \boldsymbol{\mu}^{t+1} &= \mathbf{x}^t + \Delta^t

    The hidden state starts at zero and runs on through all frames. During
    burn-in, the first :obj:`burn_in` frames, :math:`\mathbf{x}^t` is the true
    state; after the last of them only every :obj:`pred_steps`-th is, and the
    others are the decoder's own predictions. With a burn-in of one frame,
    :class:`RolloutDecoder` looks at the same frames.

    Args:
        layer: Any layer that is called as :obj:`layer(x, h, edge_index,
            edge_attr)`, with None for :obj:`h` at the start, and gives the
            change of each state and the new :obj:`h`, such as
            :class:`RecurrentConv`.
        burn_in: Number of first frames whose true states the decoder sees, at
            least one.
    """
    def __init__(self, layer: torch.nn.Module, burn_in: int) -> None:
        super().__init__(layer)
        if burn_in < 1:
            raise ValueError(f"Expected a burn_in of at least 1 frame, but got "
                             f"{burn_in}.")
        self.burn_in = burn_in

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                pred_steps: int = 1) -> Tensor:
        if pred_steps > 1 and self.burn_in >= x.size(1) - 1:
            raise ValueError(
                f"A burn_in of {self.burn_in} frames leaves no frame to "
                f"predict over {pred_steps} steps of {x.size(1)} frames; "
                f"shorten the burn-in or take pred_steps=1.")
        looks = range(self.burn_in - 1, x.size(1), pred_steps)
        h, out, state = None, [], x[:, 0]
        for t, truth in enumerate(x[:, :-1].unbind(1)):
            if t < self.burn_in or t in looks:
                state = truth
            state, h = self._step(state, h, edge_index, edge_attr)
            out.append(state)
        return torch.stack(out, dim=1)

    def one_step(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                 frame: Optional[Tensor] = None) -> Tensor:
        # The memory of a frame is made by all frames before.
        out = self(x, edge_index, edge_attr, pred_steps=1)
        return out if frame is None else out.index_select(1, frame)

    def predict(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                num_steps: int) -> Tensor:
        h = None
        for truth in x.unbind(1):
            state, h = self._step(truth, h, edge_index, edge_attr)
        out = []
        for t in range(num_steps):
            if t > 0:
                state, h = self._step(state, h, edge_index, edge_attr)
            out.append(state)
        return torch.stack(out, dim=1)

    def _step(self, x: Tensor, h: Optional[Tensor], edge_index: Tensor,
              edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        change, h = self.layer(x, h, edge_index, edge_attr)
        return x + change, h
