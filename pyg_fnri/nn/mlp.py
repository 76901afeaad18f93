"""The two-layer perceptron that the encoder is built of."""
import torch
import torch.nn.functional as F
from torch import Tensor


class MLP(torch.nn.Module):
    r"""Linear, ELU, dropout, linear, ELU, batch norm: the functions
    :math:`f_{emb}, f_e, f_v` of the paper's encoder (supplement, eqs. 3-6).

    Batch norm runs over all nodes or edges of the batch. Weights start
    Xavier-normal, biases at 0.1, as in the authors' code.

    Args:
        in_channels (int): Size of each input.
        hidden_channels (int): Size of the hidden layer.
        out_channels (int): Size of each output.
        dropout (float, optional): Dropout probability of the hidden layer
            (0.5 in the paper's supervised runs). (default: :obj:`0.0`)
    """
    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.dropout = dropout
        self.lin1 = torch.nn.Linear(in_channels, hidden_channels)
        self.lin2 = torch.nn.Linear(hidden_channels, out_channels)
        self.norm = torch.nn.BatchNorm1d(out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights."""
        for lin in (self.lin1, self.lin2):
            reset_linear(lin)
        self.norm.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Maps :obj:`[*, in_channels]` to :obj:`[*, out_channels]`, where
        :obj:`*` is one dimension of nodes or edges.

        Raises:
            ValueError: If batch norm has fewer than two rows to train on.
        """
        if self.training and x.size(0) < 2:
            # Of no row at all, batch norm would take a mean of NaN and keep it.
            raise ValueError(
                f"Batch norm needs at least two nodes and two edges in a batch "
                f"to train on, but got {x.size(0)}; use larger batches, or "
                f"call `eval()` to infer without training.")
        x = F.elu(self.lin1(x))
        x = F.dropout(x, self.dropout, self.training)
        return self.norm(F.elu(self.lin2(x)))

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.in_channels}, "
                f"{self.lin1.out_features}, {self.out_channels}, "
                f"dropout={self.dropout})")


def reset_linear(lin: torch.nn.Linear) -> None:
    """Xavier-normal weights and biases of 0.1."""
    torch.nn.init.xavier_normal_(lin.weight)
    torch.nn.init.constant_(lin.bias, 0.1)
