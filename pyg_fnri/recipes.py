"""Recipes: how a model is built and what its training minimises.

A new recipe is a frozen dataclass that overrides what differs.
"""
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, StepLR
from torch_geometric.data import Data

from pyg_fnri.losses import gaussian_nll, huber_nll
from pyg_fnri.nn import (
    NRI,
    SFNRI,
    LinearStep,
    MinMaxScaling,
    MLPEncoder,
    OverLinearStep,
    RelationalAutoEncoder,
    ResidualEncoder,
    StandardScaling,
)


@dataclass(frozen=True)
class Recipe(ABC):
    """What all recipes set.

    Args:
        hidden_channels: Size of all hidden layers.
        batch_size: Systems in a batch.
        learning_rate: Adam's, before its schedule.
        max_epochs: Passes over the training split, -1 for no limit.
        max_steps: Steps of the optimiser, -1 for no limit.
        tau: Temperature of the samples.

    Raises:
        ValueError: If a value is out of range.
    """
    hidden_channels: int = 256
    batch_size: int = 128
    learning_rate: float = 5e-4
    max_epochs: int = -1
    max_steps: int = -1
    tau: float = 0.5

    def __post_init__(self) -> None:
        for name in ('hidden_channels', 'batch_size', 'learning_rate', 'tau'):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be a number above 0, but is "
                                 f"{value}.")
        for name in ('max_epochs', 'max_steps'):
            value = getattr(self, name)
            if value < 1 and value != -1:
                raise ValueError(f"{name} must be at least 1, or -1 for no "
                                 f"limit, but is {value}.")

    @abstractmethod
    def build(
        self,
        model: type[NRI],
        in_channels: int,
        num_steps: int,
        num_edge_types: Sequence[int],
    ) -> RelationalAutoEncoder:
        """A new model of the given class."""

    @abstractmethod
    def fit_units(self, model: RelationalAutoEncoder, x: Tensor) -> None:
        """Fits the units of the model to trajectories of the training split,
        :obj:`[num_nodes, T, num_features]`."""

    @abstractmethod
    def reconstruction(
        self,
        model: RelationalAutoEncoder,
        data: Data,
        edge_attr: Tensor,
        generator: Optional[torch.Generator] = None,
    ) -> Tensor:
        """The reconstruction term per particle, of the trajectories in
        :obj:`data` given a graph; of random frames of them where
        :obj:`generator` is given, of all otherwise."""

    @abstractmethod
    def schedule(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The learning rate's schedule, as Lightning wants it."""


@dataclass(frozen=True)
class PaperRecipe(Recipe):
    r"""The paper's experimental section: 500 epochs of 10-step rollouts.

    Adam at 5e-4, halved every 200 epochs; batches of 128; :math:`\tau = 0.5`;
    Gaussian likelihood of variance 5e-5 in min-max units; a true state every
    :math:`M = 10` steps.

    Args:
        variance: :math:`\sigma^2` of the likelihood, in min-max units squared.
        pred_steps: :math:`M`.
    """
    max_epochs: int = 500
    variance: float = 5e-5
    pred_steps: int = 10

    def build(
        self,
        model: type[NRI],
        in_channels: int,
        num_steps: int,
        num_edge_types: Sequence[int],
    ) -> RelationalAutoEncoder:
        return model(in_channels, num_steps, num_edge_types,
                     self.hidden_channels, scaling=MinMaxScaling(in_channels))

    def fit_units(self, model: RelationalAutoEncoder, x: Tensor) -> None:
        model.scaling.fit(x)

    def reconstruction(
        self,
        model: RelationalAutoEncoder,
        data: Data,
        edge_attr: Tensor,
        generator: Optional[torch.Generator] = None,
    ) -> Tensor:
        y = model.scaling(data.y)
        out = model.decoder(y, data.edge_index, edge_attr, self.pred_steps)
        return gaussian_nll(out, y[:, 1:], self.variance)

    def schedule(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        scheduler: LRScheduler = StepLR(optimizer, step_size=200, gamma=0.5)
        return {'scheduler': scheduler, 'interval': 'epoch'}


@dataclass(frozen=True)
class QuickRecipe(Recipe):
    r"""Minutes on two cores instead of days.

    What makes the difference: encoder and decoder work on standardised
    inputs and on what a least-squares linear step leaves over
    (:class:`~pyg_fnri.nn.LinearStep`); one-step targets at random frames of
    both halves of the trajectory (the observed one has the close encounters,
    and one step from a true state leaves nothing to compress); a robust
    likelihood; the null channel dropped; both directions of a pair tied.

    Args:
        variance: Variance of the likelihood's core, in units of the linear
            step's residual.
        num_frames: Random frames that each step predicts from.
        warmup_steps: Steps in which the learning rate rises linearly.
        final_rate: Where its cosine decay ends, as a fraction.
        undirected: Whether both directions of a pair are one interaction.
    """
    hidden_channels: int = 64
    batch_size: int = 64
    learning_rate: float = 2e-3
    max_steps: int = 8_000
    variance: float = 0.02
    num_frames: int = 6
    warmup_steps: int = 100
    final_rate: float = 0.02
    undirected: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, since the "
                             f"learning rate's decay ends there, but is "
                             f"{self.max_steps}.")

    def build(
        self,
        model: type[NRI],
        in_channels: int,
        num_steps: int,
        num_edge_types: Sequence[int],
    ) -> RelationalAutoEncoder:
        options: dict[str, Any] = {'undirected': self.undirected}
        if not issubclass(model, SFNRI):  # Its null types have no channel.
            options['drop_null'] = True
        out = model(in_channels, num_steps, num_edge_types,
                    self.hidden_channels, scaling=StandardScaling(in_channels),
                    **options)
        linear_step = LinearStep(in_channels)
        out.decoder.layer = OverLinearStep(out.decoder.layer, linear_step)
        out.encoder = ResidualEncoder(
            MLPEncoder(2 * in_channels, num_steps - 1, out.latent.num_logits,
                       self.hidden_channels), linear_step)
        return out

    def fit_units(self, model: RelationalAutoEncoder, x: Tensor) -> None:
        model.scaling.fit(x)
        # A few thousand particles settle 24 numbers.
        _linear_step(model).fit(model.scaling(x[:5_000]))

    def reconstruction(
        self,
        model: RelationalAutoEncoder,
        data: Data,
        edge_attr: Tensor,
        generator: Optional[torch.Generator] = None,
    ) -> Tensor:
        halves = [model.scaling(data.x), model.scaling(data.y)]
        state = torch.cat([half[:, :-1] for half in halves], dim=1)
        target = torch.cat([half[:, 1:] for half in halves], dim=1)
        num_steps = state.size(1)
        if generator is not None:
            frame = torch.randperm(num_steps, generator=generator,
                                   device=state.device)[:self.num_frames]
            state = state.index_select(1, frame)
            target = target.index_select(1, frame)
        out = model.decoder.step(state, data.edge_index, edge_attr)
        nll = huber_nll(out, target, _linear_step(model).scale, self.variance)
        return nll * (num_steps / state.size(1))

    def schedule(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        def rate(step: int) -> float:
            warm = min(1.0, (step + 1) / self.warmup_steps)
            phase = min(1.0, step / max(1, self.max_steps))
            decay = (1 + math.cos(math.pi * phase)) / 2
            return warm * (self.final_rate + (1 - self.final_rate) * decay)

        scheduler: LRScheduler = LambdaLR(optimizer, rate)
        return {'scheduler': scheduler, 'interval': 'step'}


def _linear_step(model: RelationalAutoEncoder) -> LinearStep:
    """The linear step that encoder and decoder share."""
    linear_step = model.encoder.linear_step
    assert isinstance(linear_step, LinearStep)
    return linear_step
