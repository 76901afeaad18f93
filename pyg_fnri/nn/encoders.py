"""Encoders: trajectories in, logits of the edge types out."""
from typing import Any, Union

import torch
import torch.nn.functional as F
from torch import Tensor, distributed
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import degree

from pyg_fnri.nn.aggr import ScatterSum
from pyg_fnri.nn.latent import reverse_edges
from pyg_fnri.nn.multiplex_conv import dot

#: Of distances, whose sums an :class:`EquivariantEncoder` can take off.
POWERS = (-3, -2, -1, 0, 1, 2)
#: Below it, in the encoder's units, they no longer grow.
LEAST_DISTANCE = 0.1


class BatchNorm(torch.nn.BatchNorm1d):
    """Over the rows of all processes, as if they were one batch."""
    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and distributed.is_available()
                and distributed.is_initialized()
                and distributed.get_world_size() > 1):
            return super().forward(x)
        from torch.distributed.nn.functional import all_reduce
        rows = x.transpose(0, 1).flatten(1).to(self.weight.dtype)  # [C, rows]
        total = torch.cat([rows.sum(1), rows.new_tensor([rows.size(1)])])
        total, number = all_reduce(total).split([len(rows), 1])
        centred = rows - (total / number).unsqueeze(1)
        var = all_reduce(centred.square().sum(1)) / number
        known: Any = self  # All of it is there by default.
        with torch.no_grad():
            known.running_mean.lerp_(total / number, self.momentum)
            known.running_var.lerp_(var * number / (number - 1), self.momentum)
            known.num_batches_tracked += 1
        scale = self.weight * torch.rsqrt(var + self.eps)
        out: Tensor = centred * scale.unsqueeze(1) + self.bias.unsqueeze(1)
        return out.view(len(out), len(x), *x.shape[2:]).transpose(0, 1).to(x)


class MLP(torch.nn.Module):
    """Linear, ELU, dropout, linear, ELU, batch norm over all rows:
    :math:`f_{emb}, f_e, f_v` (supplement, eqs. 3-6). Initial weights as in the
    authors' code."""
    def __init__(self, in_channels: int, hidden_channels: int,
                 out_channels: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.lin1 = torch.nn.Linear(in_channels, hidden_channels)
        self.lin2 = torch.nn.Linear(hidden_channels, out_channels)
        self.norm = BatchNorm(out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset(self.lin1, self.lin2)
        self.norm.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.size(0) < 2:
            # Of no row at all, batch norm would take a mean of NaN and keep it.
            raise ValueError(f"Training needs at least two nodes and edges, "
                             f"but got {x.size(0)}; use larger batches.")
        x = F.dropout(F.elu(self.lin1(x)), self.dropout, self.training)
        x = self.norm(F.elu(self.lin2(x)))
        return x


class Encoder(MessagePassing):
    r"""Passes from edges to particles and back to logits (supplement, eqs.
    4-6):

    .. math::
        \mathbf{h}^2_j &= f^1_v \big( \tfrac{1}{N}
        \textstyle\sum_{i \neq j} \mathbf{h}^1_{(i,j)} \big) \\
        \mathbf{h}^2_{(i,j)} &= f^2_e([\mathbf{h}^2_i, \mathbf{h}^2_j,
        \mathbf{h}^1_{(i,j)}])

    As in the authors' code, :math:`f^2_e` also sees :math:`\mathbf{h}^1`, and
    :math:`N` is the number of senders plus one. A subclass embeds trajectories
    :obj:`[num_nodes, num_steps, in_channels]` in :meth:`forward`, and calls
    :meth:`init_passes` and :meth:`passes`.

    Args:
        out_channels: Number of logits per edge.
        hidden_channels: Size of all embeddings.
        **kwargs: Arguments of :class:`torch_geometric.nn.MessagePassing`.
    """
    def __init__(self, in_channels: int, out_channels: int,
                 hidden_channels: int = 256, dropout: float = 0.0,
                 **kwargs: Any) -> None:
        kwargs.setdefault('aggr', ScatterSum())
        super().__init__(node_dim=0, **kwargs)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.hidden_channels = hidden_channels
        self.dropout = dropout

    def init_passes(self, edge_channels: int) -> None:
        """Makes the networks of :meth:`passes`, and draws all weights."""
        hidden, dropout = self.hidden_channels, self.dropout
        self.edge_mlp1 = MLP(edge_channels, hidden, hidden, dropout)
        self.node_mlp2 = MLP(hidden, hidden, hidden, dropout)
        self.edge_mlp2 = MLP(3 * hidden, hidden, hidden, dropout)
        self.lin = torch.nn.Linear(hidden, self.out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for part in self.children():
            if part is not self.lin:
                part.reset_parameters()
        _reset(self.lin)

    def passes(self, h_edge: Tensor, edge_index: Tensor,
               num_nodes: int) -> Tensor:
        """Logits :obj:`[num_edges, out_channels]` of edges that start with
        features :obj:`[num_edges, edge_channels]`."""
        h_edge = self.edge_mlp1(h_edge)  # [num_edges, hidden]
        # propagate_type: (edge_attr: Tensor)
        h = self.propagate(edge_index, edge_attr=h_edge,
                           size=(num_nodes, num_nodes))
        receiver = edge_index[1 if self.flow == 'source_to_target' else 0]
        num_particles = degree(receiver, num_nodes, dtype=h.dtype) + 1
        h = self.node_mlp2(h / num_particles.unsqueeze(-1))
        # edge_updater_type: (x: Tensor)
        pair = self.edge_updater(edge_index, x=h)
        h_edge = self.lin(self.edge_mlp2(torch.cat([pair, h_edge], dim=-1)))
        return h_edge

    def edge_update(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        # Receiver first, as in the authors' code.
        return torch.cat([x_i, x_j], dim=-1)

    def message(self, edge_attr: Tensor) -> Tensor:
        return edge_attr


class MLPEncoder(Encoder):
    r"""Embeds each trajectory of :obj:`num_steps` frames as a whole
    (supplement, eq. 3): :math:`\mathbf{h}^1_i = f_{emb}(\mathbf{x}_i)` and
    :math:`\mathbf{h}^1_{(i,j)} = f^1_e([\mathbf{h}^1_i, \mathbf{h}^1_j])`.
    Other arguments as for :class:`Encoder`."""
    def __init__(self, in_channels: int, num_steps: int, out_channels: int,
                 hidden_channels: int = 256, dropout: float = 0.0,
                 **kwargs: Any) -> None:
        super().__init__(in_channels, out_channels, hidden_channels, dropout,
                         **kwargs)
        self.num_steps = num_steps
        self.node_mlp1 = MLP(num_steps * in_channels, hidden_channels,
                             hidden_channels, dropout)
        self.init_passes(2 * hidden_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        check_trajectories(x, self.num_steps, self.in_channels)
        h = self.node_mlp1(x.flatten(1))  # [num_nodes, hidden]
        # edge_updater_type: (x: Tensor)
        h_edge = self.edge_updater(edge_index, x=h)
        return self.passes(h_edge, edge_index, x.size(0))


class TrajectoryCNN(torch.nn.Module):
    r"""Embeds sequences of 14 frames or more by two convolutions, and attention
    over what pooling leaves of time (NRI's supplement): :math:`\sum_t a_t
    \mathbf{W} \mathbf{h}_t` with :math:`\mathbf{a} =
    \mathrm{softmax}_t(\mathbf{w}^\top \mathbf{h}_t)`."""
    def __init__(self, in_channels: int, out_channels: int,
                 dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.conv1 = torch.nn.Conv1d(in_channels, out_channels, kernel_size=5)
        self.norm1 = BatchNorm(out_channels)
        self.conv2 = torch.nn.Conv1d(out_channels, out_channels, kernel_size=5)
        self.norm2 = BatchNorm(out_channels)
        self.conv_value = torch.nn.Conv1d(out_channels, out_channels, 1)
        # The softmax would cancel a bias.
        self.conv_score = torch.nn.Conv1d(out_channels, 1, 1, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        _reset(self.conv1, self.conv2, self.conv_value, self.conv_score)
        self.norm1.reset_parameters()
        self.norm2.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """:obj:`[num_edges, in_channels, num_steps]`, out without time."""
        h = self.norm1(F.relu(self.conv1(x)))
        h = F.dropout(h, self.dropout, self.training)
        h = F.max_pool1d(h, kernel_size=2)
        h = self.norm2(F.relu(self.conv2(h)))
        attention = self.conv_score(h).softmax(-1)  # [num_edges, 1, T']
        return torch.sum(attention * self.conv_value(h), -1)


class CNNEncoder(Encoder):
    r"""Embeds the joint trajectory of each pair, of 14 frames or more (NRI,
    https://arxiv.org/abs/1802.04687, section 3.1): :math:`\mathbf{h}^1_{(i,j)}
    = f^1_e(f_{CNN}([\mathbf{x}_i, \mathbf{x}_j]))`. Arguments as for
    :class:`Encoder`."""
    def __init__(self, in_channels: int, out_channels: int,
                 hidden_channels: int = 256, dropout: float = 0.0,
                 **kwargs: Any) -> None:
        super().__init__(in_channels, out_channels, hidden_channels, dropout,
                         **kwargs)
        self.cnn = TrajectoryCNN(2 * in_channels, hidden_channels, dropout)
        self.init_passes(hidden_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        # edge_updater_type: (x: Tensor)
        pair = self.edge_updater(edge_index, x=x)  # [num_edges, T, 2 * F]
        h_edge = self.cnn(pair.transpose(1, 2))
        return self.passes(h_edge, edge_index, x.size(0))


class EquivariantEncoder(Encoder):
    r"""Embeds what is seen along the line between two particles, so that turns,
    mirrors and translations change nothing. Not in the paper.

    Of each frame, their distance :math:`r`, and how far each one's vector
    :math:`\mathbf{a}_i`, such as its acceleration, points to the other,
    :math:`g_{ij} = \mathbf{a}_i \cdot \mathbf{u}_{ij}` with the unit vector
    :math:`\mathbf{u}_{ij}` from :math:`i` to :math:`j`, give
    :math:`\mathbf{h}_{(i,j)}`, by logarithms of :math:`r`, :math:`g_{ij}` and
    :math:`g_{ji}`. In each round, vector messages take off what other pairs
    explain, and :math:`\mathbf{h}` also sees what is left:

    .. math::
        w_{ij} &= \textstyle\sum_p c_p(\mathbf{h}_{(i,j)}) \, r^p \\
        g_{ij} &= \big( \mathbf{a}_i - \textstyle\sum_k w_{ik}
        \mathbf{u}_{ik} \big) \cdot \mathbf{u}_{ij} + w_{ij}

    Args:
        in_channels: Number of positions and as many of vectors, 2 * d.
        num_rounds: Number of rounds. Other arguments as for :class:`Encoder`.
    """
    def __init__(self, in_channels: int, num_steps: int, out_channels: int,
                 hidden_channels: int = 256, dropout: float = 0.0,
                 num_rounds: int = 2, **kwargs: Any) -> None:
        super().__init__(in_channels, out_channels, hidden_channels, dropout,
                         **kwargs)
        if in_channels % 2:
            raise ValueError(f"Expected positions and as many vectors, but got "
                             f"{in_channels} features; take MLPEncoder.")
        self.num_steps = num_steps
        sizes = hidden_channels, hidden_channels, dropout
        self.pair_mlp = MLP(3 * num_steps, *sizes)
        self.strengths = torch.nn.ModuleList(
            torch.nn.Linear(hidden_channels, len(POWERS))
            for _ in range(num_rounds))
        self.round_mlps = torch.nn.ModuleList(
            MLP(2 * num_steps + hidden_channels, *sizes)
            for _ in range(num_rounds))
        self.init_passes(hidden_channels)

    def reset_parameters(self) -> None:
        for part in (self.pair_mlp, *self.round_mlps, self.edge_mlp1,
                     self.node_mlp2, self.edge_mlp2):
            part.reset_parameters()
        for p in self.strengths.parameters():  # At first, little is taken off.
            torch.nn.init.normal_(p, std=0.05)
        _reset(self.lin)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        check_trajectories(x, self.num_steps, self.in_channels)
        # Each axis by itself, [num_nodes, d, T].
        place, vector = (k.contiguous() for k in x.transpose(1, 2).chunk(2, 1))
        receiver, sender = edge_index.flip(0)
        if self.flow == 'target_to_source':
            receiver, sender = sender, receiver
        reverse = reverse_edges(edge_index)
        line = torch.sub(*(place.index_select(0, of)
                           for of in (sender, receiver)))  # [num_edges, d, T]
        square = dot(line, line, dim=1).clamp(min=LEAST_DISTANCE**2)
        distance = square.sqrt()
        line = line / distance.unsqueeze(1)

        def along(vector: Tensor, own: Any = 0.0) -> list[Tensor]:
            pull = dot(vector.index_select(0, receiver), line, dim=1) + own
            pull = signed_log(pull)
            return [pull, pull.index_select(0, reverse)]

        h = self.pair_mlp(torch.cat([distance.log(), *along(vector)], dim=-1))
        powers = torch.stack([distance**p for p in POWERS], dim=1)
        for strength, mlp in zip(self.strengths, self.round_mlps):
            own = torch.bmm(strength(h).unsqueeze(1), powers)
            # propagate_type: (edge_attr: Tensor)
            out = self.propagate(edge_index, edge_attr=(own * line).flatten(1),
                                 size=(x.size(0), x.size(0)))
            left = vector - out.view_as(vector)
            h = mlp(torch.cat([*along(left, own.squeeze(1)), h], dim=-1))
        return self.passes(h, edge_index, x.size(0))


class UniformEncoder(torch.nn.Module):
    """Knows nothing: all types are as likely, of trajectories of any length.
    For force laws, which need no encoder to start from."""
    def __init__(self, out_channels: int) -> None:
        super().__init__()
        self.out_channels = out_channels

    def reset_parameters(self) -> None:
        pass

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x.new_zeros(edge_index.size(1), self.out_channels)


def signed_log(x: Tensor) -> Tensor:
    r""":math:`\mathrm{sgn}(x) \log (1 + |x|)`."""
    return x.abs().log1p().copysign(x)


def check_trajectories(x: Tensor, num_steps: int, num_features: int) -> None:
    if x.dim() != 3 or x.size()[1:] != (num_steps, num_features):
        raise ValueError(
            f"Expected trajectories of shape [num_nodes, {num_steps}, "
            f"{num_features}], but got {list(x.size())}; cut them by "
            f"`SplitTrajectory({num_steps})`.")


def _reset(*layers: Union[torch.nn.Linear, torch.nn.Conv1d]) -> None:
    for layer in layers:
        torch.nn.init.xavier_normal_(layer.weight)
        if layer.bias is not None:
            torch.nn.init.constant_(layer.bias, 0.1)
