"""Decoders: past states and a graph in, the states that follow out."""
from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch_geometric.nn.inits import reset


class Decoder(torch.nn.Module, ABC):
    """Predicts trajectories over a latent graph by a :obj:`layer` for changes
    of the state. Methods take true states :obj:`x`, :obj:`[num_nodes, T,
    num_features]`, and the graph, :obj:`[2, num_edges]` and :obj:`[num_edges,
    num_channels]`."""
    #: Number of true states that a decoder sees before the first rollout.
    burn_in = 1

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def reset_parameters(self) -> None:
        reset(self.layer)

    @abstractmethod
    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                pred_steps: int = 1) -> Tensor:
        """Predicts frames 1, ..., T - 1, looking at the true state every
        :obj:`pred_steps` steps."""

    @abstractmethod
    def one_step(self, x: Tensor, edge_index: Tensor,
                 edge_attr: Tensor) -> Tensor:
        """Predicts frames 1, ..., T - 1, each by one step from the true past.
        """

    @abstractmethod
    def predict(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                num_steps: int) -> Tensor:
        """The states after the last of :obj:`x`, :obj:`[num_nodes, num_steps,
        num_features]`."""


class RolloutDecoder(Decoder):
    r"""Repeats the step :math:`\boldsymbol{\mu}^{t+1} = \boldsymbol{\mu}^t +
    f(\boldsymbol{\mu}^t, \mathbf{z})` (supplement, section 1.5), with :math:`f`
    the :obj:`layer`, from the true state every :obj:`pred_steps` steps (the
    paper's :math:`M`)."""
    def step(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        return torch.add(x, self.layer(x, edge_index, edge_attr))

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                pred_steps: int = 1) -> Tensor:
        num_steps = x.size(1) - 1
        # All starts run side by side: [num_nodes, num_starts, num_features].
        state = x[:, :-1:pred_steps]
        states = []
        for _ in range(min(pred_steps, num_steps)):
            state = self.step(state, edge_index, edge_attr)
            states.append(state)
        out = torch.stack(states, dim=2).flatten(1, 2)
        return out[:, :num_steps]

    def one_step(self, x: Tensor, edge_index: Tensor,
                 edge_attr: Tensor) -> Tensor:
        return self.step(x[:, :-1], edge_index, edge_attr)

    def predict(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor,
                num_steps: int) -> Tensor:
        state = x[:, -1]
        states = []
        for _ in range(num_steps):
            state = self.step(state, edge_index, edge_attr)
            states.append(state)
        return torch.stack(states, dim=1)
