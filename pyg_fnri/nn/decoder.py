"""The decoder: a state and a graph in, the states that follow out."""
import torch
from torch import Tensor
from torch_geometric.nn.inits import reset


class RolloutDecoder(torch.nn.Module):
    r"""Predicts trajectories by repeating a step,

    .. math::
        \boldsymbol{\mu}^{t+1} = \boldsymbol{\mu}^t + f(\boldsymbol{\mu}^t,
        \mathbf{z}),

    that starts anew from the true state every :obj:`pred_steps` steps, the
    paper's :math:`M` (supplement, section 1.5).

    Args:
        layer (torch.nn.Module): Predicts the change of the state in one step:
            any layer that is called as :obj:`layer(x, edge_index, edge_attr)`
            and keeps the shape :obj:`[num_nodes, num_steps, num_features]`,
            such as :class:`MultiplexConv` or :class:`OverLinearStep`.
    """
    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def reset_parameters(self) -> None:
        """Draws new weights."""
        reset(self.layer)

    def step(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """The next state of each state: :obj:`[num_nodes, num_features]` or
        :obj:`[num_nodes, num_steps, num_features]`, same shape out."""
        return x + self.layer(x, edge_index, edge_attr)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        pred_steps: int = 1,
    ) -> Tensor:
        """Predicts frames 1, ..., T - 1 of :obj:`x`.

        Args:
            x: True states, :obj:`[num_nodes, T, num_features]`. Only frames 0,
                :obj:`pred_steps`, 2 :obj:`pred_steps`, ... are looked at.
            edge_index: :obj:`[2, num_edges]`.
            edge_attr: The latent graph, :obj:`[num_edges, num_channels]`.
            pred_steps: Steps between two looks at the true state.

        Returns:
            Predictions, :obj:`[num_nodes, T - 1, num_features]`.

        Raises:
            ValueError: If :obj:`x` has fewer than two frames or
                :obj:`pred_steps` is not positive.
        """
        if x.dim() != 3 or x.size(1) < 2:
            raise ValueError(
                f"Expected trajectories of shape [num_nodes, T, num_features] "
                f"with at least T = 2 frames, but got {list(x.size())}.")
        if pred_steps < 1:
            raise ValueError(f"Expected pred_steps of at least 1, but got "
                             f"{pred_steps}.")
        num_steps = x.size(1) - 1
        # All starts run side by side: [num_nodes, num_starts, num_features].
        state = x[:, :-1:pred_steps]
        states = []
        for _ in range(min(pred_steps, num_steps)):
            state = self.step(state, edge_index, edge_attr)
            states.append(state)
        out = torch.stack(states, dim=2).flatten(1, 2)
        return out[:, :num_steps]

    def predict(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        num_steps: int,
    ) -> Tensor:
        """Predicts the states that follow one state, with no look at any
        other.

        Args:
            x: The state, :obj:`[num_nodes, num_features]`.
            edge_index: :obj:`[2, num_edges]`.
            edge_attr: The latent graph, :obj:`[num_edges, num_channels]`.
            num_steps: Number of states to predict.

        Returns:
            Predictions, :obj:`[num_nodes, num_steps, num_features]`.

        Raises:
            ValueError: If :obj:`x` is not one state per node or
                :obj:`num_steps` is not positive.
        """
        if x.dim() != 2:
            raise ValueError(f"Expected one state per particle, [num_nodes, "
                             f"num_features], but got {list(x.size())}.")
        if num_steps < 1:
            raise ValueError(f"Expected num_steps of at least 1, but got "
                             f"{num_steps}.")
        states = []
        for _ in range(num_steps):
            x = self.step(x, edge_index, edge_attr)
            states.append(x)
        return torch.stack(states, dim=1)
