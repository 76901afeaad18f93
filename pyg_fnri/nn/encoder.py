"""Encoders: trajectories in, logits of the edge types out."""
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import degree

from pyg_fnri.nn.aggr import ScatterSum
from pyg_fnri.nn.mlp import MLP, reset_linear


class Encoder(MessagePassing):
    r"""What the encoders share: from embeddings of the edges to those of the
    particles and back, and from there to logits (supplement, eqs. 4-6).

    .. math::
        \mathbf{h}^2_j &= f^1_v \big( \tfrac{1}{N}
        \textstyle\sum_{i \neq j} \mathbf{h}^1_{(i,j)} \big) \\
        \mathbf{h}^2_{(i,j)} &= f^2_e([\mathbf{h}^2_i, \mathbf{h}^2_j,
        \mathbf{h}^1_{(i,j)}])

    As in the authors' code, the sum is divided by :math:`N`, and the second
    edge function also sees the first edge embedding. :math:`N` is taken as
    the number of senders of a particle plus itself: the number of particles
    where the graph is fully connected, and the size of the neighbourhood on
    any other candidate graph, so no batch vector is needed.

    A subclass embeds trajectories in :meth:`forward`, and calls
    :meth:`init_passes` and :meth:`passes`.

    Args:
        in_channels (int): Number of features of a particle in a frame.
        out_channels (int): Number of logits per edge.
        hidden_channels (int, optional): Size of all embeddings.
            (default: :obj:`256`)
        dropout (float, optional): Dropout probability of the hidden layer of
            each MLP. (default: :obj:`0.0`)
        **kwargs (optional): Arguments of
            :class:`torch_geometric.nn.MessagePassing`.
    """
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 256,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault('aggr', ScatterSum())
        super().__init__(node_dim=0, **kwargs)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.hidden_channels = hidden_channels
        self.dropout = dropout

    def init_passes(self, edge_channels: int) -> None:
        """Makes the networks of :meth:`passes`, after those of the subclass:
        the order of the weights is part of checkpoints.

        Args:
            edge_channels: Number of features that an edge starts with.
        """
        hidden, dropout = self.hidden_channels, self.dropout
        self.edge_mlp1 = MLP(edge_channels, hidden, hidden, dropout)
        self.node_mlp2 = MLP(hidden, hidden, hidden, dropout)
        self.edge_mlp2 = MLP(3 * hidden, hidden, hidden, dropout)
        self.lin = torch.nn.Linear(hidden, self.out_channels)

    def reset_parameters(self) -> None:
        """Draws new weights."""
        super().reset_parameters()
        for mlp in (self.edge_mlp1, self.node_mlp2, self.edge_mlp2):
            mlp.reset_parameters()
        reset_linear(self.lin)

    def passes(self, h_edge: Tensor, edge_index: Tensor,
               num_nodes: int) -> Tensor:
        """The logits :obj:`[num_edges, out_channels]` of the features
        :obj:`[num_edges, edge_channels]` that the edges start with."""
        h_edge = self.edge_mlp1(h_edge)  # [num_edges, hidden]
        # propagate_type: (edge_attr: Tensor)
        h = self.propagate(edge_index, edge_attr=h_edge,
                           size=(num_nodes, num_nodes))
        receiver = edge_index[1 if self.flow == 'source_to_target' else 0]
        num_particles = degree(receiver, num_nodes, dtype=h.dtype) + 1
        h = self.node_mlp2(h / num_particles.unsqueeze(-1))
        # edge_updater_type: (x: Tensor)
        pair = self.edge_updater(edge_index, x=h)
        h_edge = self.edge_mlp2(torch.cat([pair, h_edge], dim=-1))
        return self.lin(h_edge)

    def edge_update(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        """Receiver first, then sender, as in the authors' code."""
        return torch.cat([x_i, x_j], dim=-1)

    def message(self, edge_attr: Tensor) -> Tensor:
        """The message is the embedding of the edge."""
        return edge_attr


class MLPEncoder(Encoder):
    r"""The encoder of NRI, fNRI and sfNRI (supplement, eqs. 3-6): it embeds
    each trajectory as a whole,

    .. math::
        \mathbf{h}^1_i &= f_{emb}(\mathbf{x}_i) \\
        \mathbf{h}^1_{(i,j)} &= f^1_e([\mathbf{h}^1_i, \mathbf{h}^1_j]),

    and goes on as every :class:`~pyg_fnri.nn.encoder.Encoder`.

    Args:
        in_channels (int): Number of features of a particle in a frame.
        num_steps (int): Number of observed frames.
        out_channels (int): Number of logits per edge.
        hidden_channels (int, optional): Size of all embeddings.
            (default: :obj:`256`)
        dropout (float, optional): Dropout probability of the hidden layer of
            each MLP. (default: :obj:`0.0`)
        **kwargs (optional): Arguments of
            :class:`torch_geometric.nn.MessagePassing`.

    Shapes:
        - **input:** trajectories :math:`(|\mathcal{V}|, T, F)`, edge indices
          :math:`(2, |\mathcal{E}|)`
        - **output:** logits :math:`(|\mathcal{E}|, C)`
    """
    def __init__(
        self,
        in_channels: int,
        num_steps: int,
        out_channels: int,
        hidden_channels: int = 256,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, hidden_channels, dropout,
                         **kwargs)
        self.num_steps = num_steps
        self.node_mlp1 = MLP(num_steps * in_channels, hidden_channels,
                             hidden_channels, dropout)
        self.init_passes(2 * hidden_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        self.node_mlp1.reset_parameters()
        super().reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Infers the logits :obj:`[num_edges, out_channels]`.

        Args:
            x: Observed trajectories, :obj:`[num_nodes, num_steps,
                in_channels]`, in the units that the model was trained in.
            edge_index: Candidate edges, :obj:`[2, num_edges]`.

        Raises:
            ValueError: If :obj:`x` has another shape.
        """
        check_trajectories(x, self.num_steps, self.in_channels)
        h = self.node_mlp1(x.flatten(1))  # [num_nodes, hidden]
        # edge_updater_type: (x: Tensor)
        h_edge = self.edge_updater(edge_index, x=h)
        return self.passes(h_edge, edge_index, x.size(0))

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.in_channels}, "
                f"num_steps={self.num_steps}, "
                f"out_channels={self.out_channels}, "
                f"hidden_channels={self.hidden_channels}, "
                f"dropout={self.dropout})")


def check_trajectories(x: Tensor, num_steps: int, num_features: int) -> None:
    """Raises a ValueError unless :obj:`x` is :obj:`[num_nodes, num_steps,
    num_features]`."""
    if x.dim() != 3 or x.size()[1:] != (num_steps, num_features):
        raise ValueError(
            f"The encoder was built for trajectories of shape [num_nodes, "
            f"{num_steps}, {num_features}] (particles, observed frames, "
            f"features), but got {list(x.size())}; cut the trajectories to "
            f"the observed frames, for example with "
            f"`SplitTrajectory({num_steps})`.")
