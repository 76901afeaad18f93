"""What all recipes have in common."""
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.nn import NRI, RelationalAutoEncoder, Scaling
from pyg_fnri.recipes.networks import DECODERS, ENCODERS
from pyg_fnri.transforms import random_symmetries


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
        hard: Whether samples are one-hot, with the gradient of soft ones.
        dropout: Probability of the dropout in the encoder's hidden layers.
        l2: Weight of the encoder's squared weights in the loss.
        drop_null: Whether type 0 of each layer-graph is the hard-coded
            non-edge, in models that leave that open.
        undirected: Whether both directions of a pair are one interaction.
        null_prior: Prior probability of type 0 in each layer-graph, the rest
            in equal shares; uniform by default. A high one makes for sparse
            graphs.
        encoder: A key of :obj:`ENCODERS`.
        decoder: A key of :obj:`DECODERS`.
        burn_in: True states that a recurrent decoder sees first.
        symmetries: Whether systems are turned and mirrored at random, as a
            box allows.

    Raises:
        ValueError: If a value is out of range.
    """
    hidden_channels: int = 256
    batch_size: int = 128
    learning_rate: float = 5e-4
    max_epochs: int = -1
    max_steps: int = -1
    tau: float = 0.5
    hard: bool = False
    dropout: float = 0.0
    l2: float = 0.0
    drop_null: bool = False
    undirected: bool = False
    null_prior: Optional[Sequence[float]] = None
    encoder: str = 'mlp'
    decoder: str = 'mlp'
    burn_in: int = 10
    symmetries: bool = False

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
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be a probability below 1, but is "
                             f"{self.dropout}.")
        if not 0 <= self.l2 < math.inf:
            raise ValueError(f"l2 must be at least 0, but is {self.l2}.")
        for name, known in (('encoder', ENCODERS), ('decoder', DECODERS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, "
                                 f"but is {getattr(self, name)!r}.")

    @classmethod
    def defaults(cls, model: type[NRI], regime: str) -> dict[str, Any]:
        """The fields that are set otherwise for a model or a regime
        (:obj:`'learned'`, :obj:`'supervised'` or :obj:`'true_graph'`)."""
        return {}

    def build(
        self,
        model: type[NRI],
        in_channels: int,
        num_steps: int,
        num_edge_types: Sequence[int],
    ) -> RelationalAutoEncoder:
        """A new model of the given class.

        Raises:
            ValueError: If :obj:`null_prior` does not fit the model.
        """
        out = model(in_channels, num_steps, num_edge_types,
                    self.hidden_channels, self.dropout,
                    scaling=self.scaling(in_channels),
                    **self._latent_options(model, num_edge_types))
        latent = out.latent
        out.encoder = self.build_encoder(in_channels, num_steps,
                                         latent.num_logits)
        out.decoder = DECODERS[self.decoder](in_channels, latent.num_channels,
                                             self.hidden_channels, self.burn_in)
        return out

    def build_encoder(self, in_channels: int, num_steps: int,
                      out_channels: int) -> torch.nn.Module:
        """A new encoder, to logits :obj:`[num_edges, out_channels]`."""
        return ENCODERS[self.encoder](in_channels, num_steps, out_channels,
                                      self.hidden_channels, self.dropout)

    @abstractmethod
    def scaling(self, in_channels: int) -> Scaling:
        """The units that the model works in, to be fitted."""

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

    def augment(self, batch: Data, generator: torch.Generator) -> Data:
        """The batch as it is trained on, where this recipe wants it another
        each time."""
        if not self.symmetries:
            return batch
        return random_symmetries(batch, generator)

    def _latent_options(
        self,
        model: type[NRI],
        num_edge_types: Sequence[int],
    ) -> dict[str, Any]:
        """Arguments of the latent graph."""
        options: dict[str, Any] = {}
        if self.null_prior is not None:
            options['prior'] = _prior(self.null_prior, num_edge_types)
        if options.keys() - set(model.latent_options):
            raise ValueError(f"{model.__name__} has no prior that null_prior "
                             f"could set; train NRI or fNRI.")
        # Others have no channel of type 0, or none that could be dropped.
        if 'drop_null' in model.latent_options:
            options['drop_null'] = self.drop_null
        return {'undirected': self.undirected, **options}


def _prior(null_prior: Sequence[float],
           num_edge_types: Sequence[int]) -> list[list[float]]:
    """Probabilities of the types of each interaction."""
    if len(null_prior) != len(num_edge_types):
        raise ValueError(f"null_prior must hold a probability for each of the "
                         f"{len(num_edge_types)} layer-graphs, but is "
                         f"{null_prior}.")
    return [[p, *[(1 - p) / (k - 1)] * (k - 1)]
            for p, k in zip(null_prior, num_edge_types)]
