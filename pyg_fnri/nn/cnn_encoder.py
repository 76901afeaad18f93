"""The convolutional encoder: each pair's joint trajectory, over time."""
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_fnri.nn.encoder import Encoder

KERNEL_SIZE = 5
#: The second convolution needs :obj:`KERNEL_SIZE` frames of those that the
#: first one and pooling leave.
MIN_STEPS = 3 * KERNEL_SIZE - 1


class TrajectoryCNN(torch.nn.Module):
    r"""Embeds sequences of any length from :obj:`MIN_STEPS` up: convolution,
    ReLU, batch norm, dropout, max-pooling by 2, convolution, ReLU, batch norm,
    and attention over what is then left of time, a weighted mean

    .. math::
        \sum_t a_t \mathbf{W} \mathbf{h}_t, \quad \mathbf{a} =
        \mathrm{softmax}_t(\mathbf{w}^\top \mathbf{h}_t)

    (NRI's supplement, https://arxiv.org/abs/1802.04687). Batch norm runs over
    all sequences and times. Weights start Xavier-normal, biases at 0.1, as in
    :class:`MLP`.

    Args:
        in_channels (int): Number of features at each time.
        out_channels (int): Size of all layers and of the embedding.
        dropout (float, optional): Dropout probability.
            (default: :obj:`0.0`)
    """
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.dropout = dropout
        self.conv1 = torch.nn.Conv1d(in_channels, out_channels, KERNEL_SIZE)
        self.norm1 = torch.nn.BatchNorm1d(out_channels)
        self.conv2 = torch.nn.Conv1d(out_channels, out_channels, KERNEL_SIZE)
        self.norm2 = torch.nn.BatchNorm1d(out_channels)
        self.conv_value = torch.nn.Conv1d(out_channels, out_channels, 1)
        # The softmax would cancel a bias.
        self.conv_score = torch.nn.Conv1d(out_channels, 1, 1, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for conv in (self.conv1, self.conv2, self.conv_value, self.conv_score):
            torch.nn.init.xavier_normal_(conv.weight)
            if conv.bias is not None:
                torch.nn.init.constant_(conv.bias, 0.1)
        self.norm1.reset_parameters()
        self.norm2.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Maps :obj:`[num_edges, in_channels, num_steps]` to
        :obj:`[num_edges, out_channels]`."""
        h = self.features(x)
        return (self.attention(h) * self.conv_value(h)).sum(-1)

    def features(self, x: Tensor) -> Tensor:
        """What attention chooses from, :obj:`[num_edges, out_channels,
        (num_steps - 4) // 2 - 4]`."""
        h = self.norm1(F.relu(self.conv1(x)))
        h = F.dropout(h, self.dropout, self.training)
        h = F.max_pool1d(h, kernel_size=2)
        return self.norm2(F.relu(self.conv2(h)))

    def attention(self, h: Tensor) -> Tensor:
        """The weight of each time of :meth:`features`, :obj:`[num_edges, 1,
        T]`; they sum to one."""
        return self.conv_score(h).softmax(-1)

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.in_channels}, "
                f"{self.out_channels}, dropout={self.dropout})")


class CNNEncoder(Encoder):
    r"""NRI's convolutional encoder (https://arxiv.org/abs/1802.04687,
    section 3.1 and supplement): it embeds the joint trajectory of each pair
    over time,

    .. math::
        \mathbf{h}^1_{(i,j)} = f^1_e(f_{CNN}([\mathbf{x}_i, \mathbf{x}_j])),

    and goes on as every :class:`~pyg_fnri.nn.encoder.Encoder`. The number of
    observed frames may differ from call to call, and interactions may show at
    any time of a long trajectory.

    Args:
        in_channels (int): Number of features of a particle in a frame.
        out_channels (int): Number of logits per edge.
        hidden_channels (int, optional): Size of all embeddings.
            (default: :obj:`256`)
        dropout (float, optional): Dropout probability of the convolutions and
            of the hidden layer of each MLP. (default: :obj:`0.0`)
        **kwargs (optional): Arguments of
            :class:`torch_geometric.nn.MessagePassing`.

    Shapes:
        - **input:** trajectories :math:`(|\mathcal{V}|, T, F)` with
          :math:`T \geq 14`, edge indices :math:`(2, |\mathcal{E}|)`
        - **output:** logits :math:`(|\mathcal{E}|, C)`
    """
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        hidden_channels: int = 256,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, hidden_channels, dropout,
                         **kwargs)
        self.cnn = TrajectoryCNN(2 * in_channels, hidden_channels, dropout)
        self.init_passes(hidden_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        self.cnn.reset_parameters()
        super().reset_parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Infers the logits :obj:`[num_edges, out_channels]`.

        Args:
            x: Observed trajectories, :obj:`[num_nodes, num_steps,
                in_channels]`, in the units that the model was trained in.
            edge_index: Candidate edges, :obj:`[2, num_edges]`.

        Raises:
            ValueError: If :obj:`x` has another shape or too few frames, or if
                there are fewer than two edges to train on.
        """
        if (x.dim() != 3 or x.size(1) < MIN_STEPS
                or x.size(2) != self.in_channels):
            raise ValueError(
                f"The convolutional encoder takes trajectories of shape "
                f"[num_nodes, num_steps, {self.in_channels}] (particles, "
                f"observed frames, features) with at least {MIN_STEPS} frames, "
                f"but got {list(x.size())}; observe more frames, or use "
                f"MLPEncoder, which takes any number.")
        if self.training and edge_index.size(1) < 2:
            # Of no edge at all, batch norm would keep a mean of NaN.
            raise ValueError(
                f"Batch norm needs at least two edges in a batch to train on, "
                f"but got {edge_index.size(1)}; use larger batches, or call "
                f"`eval()` to infer without training.")
        # edge_updater_type: (x: Tensor)
        pair = self.edge_updater(edge_index, x=x)  # [num_edges, T, 2 * F]
        h_edge = self.cnn(pair.transpose(1, 2))
        return self.passes(h_edge, edge_index, x.size(0))

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.in_channels}, "
                f"{self.out_channels}, "
                f"hidden_channels={self.hidden_channels}, "
                f"dropout={self.dropout})")
