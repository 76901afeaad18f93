"""Recipes: how a model is built, and what its training minimises; a new one is
a frozen dataclass that overrides what differs."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Optional

from pyg_fnri import nn

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch_geometric.data import Data

    from pyg_fnri.nn import NRI, RelationalAutoEncoder

#: Encoders by name: of features, frames, logits, hidden units and dropout.
ENCODERS: dict[str, Callable[..., torch.nn.Module]] = {
    'mlp': lambda *sizes: nn.MLPEncoder(*sizes),
    'cnn': lambda channels, num_steps, *sizes: nn.CNNEncoder(channels, *sizes),
    'equivariant': lambda *sizes: nn.EquivariantEncoder(*sizes)
}
#: Decoders by name: of features, edge channels, hidden units and `burn_in`.
DECODERS: dict[str, Callable[..., nn.Decoder]] = {
    'mlp':
    lambda channels, *sizes, burn_in: nn.RolloutDecoder(
        nn.MultiplexConv(channels, channels, *sizes)),
    'equivariant':
    lambda channels, *sizes, burn_in: nn.RolloutDecoder(
        nn.EquivariantConv(channels, channels, *sizes)),
    'gru':
    lambda channels, *sizes, burn_in: nn.RecurrentDecoder(
        nn.RecurrentConv(channels, channels, *sizes), burn_in)
}

#: Squared errors, which reports measure: how decoders learn over given graphs.
KNOWN_GRAPH: dict[str, Any] = dict(delta=math.inf, num_frames=8, focus=0.5)


def _check(settings: Any, holds: Callable[[Any], bool], expected: str, *names:
           str) -> None:
    for name in names:
        if not holds(value := getattr(settings, name)):
            raise ValueError(f"{name} must be {expected}, but is {value!r}.")


@dataclass(frozen=True)
class Recipe(ABC):
    """What all recipes set.

    Args:
        drop_null: Whether type 0 of each layer-graph has no network.
        noise: Whether sfNRI's sigmoids are trained under noise, which presses
            them to 0 or 1.
        undirected: Whether both directions of a pair are one interaction.
        shared: Whether all systems, of the same particles, have one graph.
        null_prior: Prior of type 0 in each layer-graph; uniform by default.
    """
    drop_null: bool = False
    noise: bool = False
    undirected: bool = False
    shared: bool = False
    null_prior: Optional[Sequence[float]] = None

    @classmethod
    def defaults(cls, model: type[NRI], regime: str) -> dict[str, Any]:
        """The fields that are set otherwise for a model or a regime."""
        return {}

    @property
    def sizes(self) -> dict[str, Any]:
        """Of networks; those that laws take the place of are small."""
        return dict(hidden_channels=1)

    def build(self, model: type[NRI], in_channels: int, num_steps: int,
              num_edge_types: Sequence[int]) -> RelationalAutoEncoder:
        """A new model of the given class."""
        latent: dict[str, Any] = {
            'undirected': self.undirected,
            'shared': self.shared
        }
        if self.null_prior is not None:
            if 'prior' not in model.latent_options:
                raise ValueError(f'{model.__name__} takes no null_prior.')
            _check(self, lambda v: len(v) == len(num_edge_types),
                   f'of {len(num_edge_types)} layer-graphs', 'null_prior')
            latent['prior'] = [[p, *[(1 - p) / (k - 1)] * (k - 1)]
                               for p, k in zip(self.null_prior, num_edge_types)]
        # sfNRI has no channel of type 0, others draw samples anyway.
        for name in {'drop_null', 'noise'}.intersection(model.latent_options):
            latent[name] = getattr(self, name)
        out = model(in_channels, num_steps, num_edge_types,
                    scaling=self.build_scaling(in_channels), **self.sizes,
                    **latent)
        out.encoder = self.build_encoder(in_channels, num_steps,
                                         out.latent.num_logits)
        return out

    @abstractmethod
    def build_scaling(self, num_features: int) -> nn.Scaling:
        """The units that a model works in, to be fitted."""

    @abstractmethod
    def build_encoder(self, in_channels: int, num_steps: int,
                      out_channels: int) -> torch.nn.Module:
        """A new encoder, to logits :obj:`[num_edges, out_channels]`."""

    def fit_units(self, model: RelationalAutoEncoder, x: Tensor) -> None:
        """Fits the model's units to :obj:`[num_nodes, T, num_features]`."""
        model.scaling.fit(x)


@dataclass(frozen=True)
class NetworkRecipe(Recipe):
    """What recipes set that train networks.

    Args:
        hidden_channels: Size of all hidden layers.
        batch_size: Systems in a batch, of each device.
        learning_rate: Adam's, before its schedule.
        max_epochs: Passes over the training split, -1 for no limit.
        max_steps: Steps of the optimiser, -1 for no limit.
        tau: Temperature of the samples.
        hard: Whether samples are one-hot, with the gradient of soft ones.
        dropout: Probability of the dropout in the encoder's hidden layers.
        l2: Weight of the encoder's squared weights in the loss.
        encoder: `mlp`; `cnn`, convolutions over time, of any length; or
            `equivariant`, of positions and velocities, `quick`'s choice where
            data have them.
        decoder: `mlp`; `gru`, which remembers the states before; or
            `equivariant`, whose messages add up, `quick`'s choice beside such
            an encoder.
        burn_in: True states that a `gru` decoder sees first.
        num_starts: Short runs without labels, of which the best one goes on.
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
    encoder: str = 'mlp'
    decoder: str = 'mlp'
    burn_in: int = 10
    num_starts: int = 1

    #: Fields that have to be above 0.
    positive: ClassVar[Sequence[str]] = ('hidden_channels', 'batch_size',
                                         'learning_rate', 'tau')

    def __post_init__(self) -> None:
        _check(self, lambda v: 0 < v < math.inf, 'above 0', *self.positive)
        _check(self, lambda v: v >= 1 or v == -1,
               'at least 1, or -1 for no limit', 'max_epochs', 'max_steps')
        _check(self, lambda v: v >= 0, 'at least 0', 'l2')
        _check(self, lambda v: v >= 1, 'at least 1', 'num_starts')
        for name, known in (('encoder', ENCODERS), ('decoder', DECODERS)):
            _check(self, known.__contains__, f"one of {', '.join(known)}", name)

    @property
    def sizes(self) -> dict[str, Any]:
        return dict(hidden_channels=self.hidden_channels, dropout=self.dropout)

    def build(self, model: type[NRI], in_channels: int, num_steps: int,
              num_edge_types: Sequence[int]) -> RelationalAutoEncoder:
        out = super().build(model, in_channels, num_steps, num_edge_types)
        out.decoder = DECODERS[self.decoder](in_channels,
                                             out.latent.num_channels,
                                             self.hidden_channels,
                                             burn_in=self.burn_in)
        return out

    def build_encoder(self, in_channels: int, num_steps: int,
                      out_channels: int) -> torch.nn.Module:
        return ENCODERS[self.encoder](in_channels, num_steps, out_channels,
                                      self.hidden_channels, self.dropout)

    @abstractmethod
    def reconstruction(self, model: RelationalAutoEncoder, data: Data,
                       edge_attr: Tensor,
                       generator: Optional[torch.Generator] = None) -> Tensor:
        """The reconstruction term per particle, given a graph; of random
        frames where :obj:`generator` is given, of all otherwise."""

    @abstractmethod
    def schedule(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The learning rate's schedule, as Lightning wants it."""

    def temperature(self, step: int) -> float:
        """That of the samples, at a step of the optimiser."""
        return self.tau

    @property
    def num_joint(self) -> float:
        """Steps in which encoder and decoder learn together."""
        return math.inf

    def last_stage(self, step: int) -> Optional[QuickRecipe]:
        """Without labels, by what the decoder learns over given graphs from
        some step on."""
        return None


@dataclass(frozen=True)
class PaperRecipe(NetworkRecipe):
    r"""The paper's experimental section: 500 epochs of 10-step rollouts, Adam
    at 5e-4, halved every 200 epochs; a Gaussian likelihood in min-max units.

    Args:
        variance: :math:`\sigma^2` of the likelihood, in min-max units squared.
        pred_steps: :math:`M`, steps between two true states.
    """
    max_epochs: int = 500
    variance: float = 5e-5
    pred_steps: int = 10

    positive = (*NetworkRecipe.positive, 'variance', 'pred_steps')

    def build_scaling(self, num_features: int) -> nn.Scaling:
        return nn.MinMaxScaling(num_features)

    @classmethod
    def defaults(cls, model: type[NRI], regime: str) -> dict[str, Any]:
        supervised = regime == 'supervised'
        out = {'dropout': 0.5} if supervised else {}
        if issubclass(model, nn.SFNRI):
            out['l2'] = 2e-5 if supervised else 5e-8
        return out

    def reconstruction(self, model: RelationalAutoEncoder, data: Data,
                       edge_attr: Tensor,
                       generator: Optional[torch.Generator] = None) -> Tensor:
        from pyg_fnri.losses import gaussian_nll
        y = model.scaling(data.y)
        out = model.decoder(y, data.edge_index, edge_attr, self.pred_steps)
        return gaussian_nll(out, y[:, 1:], self.variance)

    def schedule(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        from torch.optim.lr_scheduler import StepLR
        scheduler = StepLR(optimizer, step_size=200, gamma=0.5)
        return {'scheduler': scheduler, 'interval': 'epoch'}


@dataclass(frozen=True)
class QuickRecipe(NetworkRecipe):
    r"""Minutes on two cores instead of days.

    Residuals of :class:`~pyg_fnri.nn.LinearStep` in standardised units; single
    steps from random frames of both halves; a robust likelihood; a high
    temperature, which falls; an encoder and messages for which no direction is
    special, of which messages teach the encoder by mean-field inference; the
    null channel dropped; both directions of a pair tied.

    Args:
        variance: Of the likelihood's core, in units of the linear residual.
        delta: Where its tails begin, in these units; inf for a Gaussian.
        num_frames: Random frames that each step predicts from.
        pred_steps: Steps of rollouts; more than one: second half alone.
        focus: How far frames are drawn by the linear step's residual (towards
            1) rather than all alike (0); weights make up for it.
        warmup_steps: Steps in which the learning rate rises linearly.
        final_rate: Where its cosine decay ends, as a fraction.
        final_tau: Where the temperature ends, which falls by a factor a step.
        final_share: Of the steps, the last ones, in which the decoder learns
            squared errors, as :obj:`true_graph` does. An equivariant one: over
            the graphs by which its messages explain frames, and the encoder
            learns these, too (by default, 0.6); others: over the encoder's,
            which stay (0.25).
    """
    hidden_channels: int = 64
    batch_size: int = 64
    learning_rate: float = 2e-3
    max_steps: int = 5_000
    tau: float = 2.0
    encoder: str = 'equivariant'
    decoder: str = ''
    num_starts: int = 3
    variance: float = 0.02
    delta: float = 1.0
    num_frames: int = 6
    pred_steps: int = 1
    focus: float = 0.0
    warmup_steps: int = 100
    final_rate: float = 0.02
    final_tau: float = 1.0
    final_share: float = -1
    drop_null: bool = True
    noise: bool = True
    undirected: bool = True

    positive = (*NetworkRecipe.positive, 'max_steps', 'variance', 'num_frames',
                'pred_steps', 'warmup_steps', 'final_tau')

    def build_scaling(self, num_features: int) -> nn.Scaling:
        return nn.StandardScaling(num_features)

    def __post_init__(self) -> None:
        if not self.decoder:
            equivariant = self.encoder == 'equivariant'
            object.__setattr__(self, 'decoder',
                               'equivariant' if equivariant else 'mlp')
        if self.final_share == -1:
            share = 0.6 if self.teaches else 0.25
            object.__setattr__(self, 'final_share', share)
        super().__post_init__()
        _check(self, lambda v: 0 <= v < 1, 'at least 0 and below 1', 'focus',
               'final_share')

    @classmethod
    def defaults(cls, model: type[NRI], regime: str) -> dict[str, Any]:
        if regime == 'supervised':
            return dict(max_steps=12_000, final_share=0.0, decoder='mlp')
        if regime == 'true_graph':
            # Of NRI's joint types, each is that of few pairs.
            factored = issubclass(model, (nn.FNRI, nn.SFNRI))
            return dict(max_steps=8_000 if factored else 12_000,
                        final_share=0.0, **KNOWN_GRAPH)
        return {}

    def build(self, model: type[NRI], in_channels: int, num_steps: int,
              num_edge_types: Sequence[int]) -> RelationalAutoEncoder:
        out = super().build(model, in_channels, num_steps, num_edge_types)
        linear_step = nn.LinearStep(in_channels)
        out.decoder.layer = nn.OverLinearStep(out.decoder.layer, linear_step)
        # It sees twice the features, in one frame less.
        equivariant = isinstance(out.encoder, nn.EquivariantEncoder)
        channels = in_channels if equivariant else 2 * in_channels
        inner = self.build_encoder(channels, num_steps - 1,
                                   out.latent.num_logits)
        out.encoder = nn.ResidualEncoder(inner, linear_step)
        return out

    def fit_units(self, model: RelationalAutoEncoder, x: Tensor) -> None:
        super().fit_units(model, x)
        linear_step: Any = model.encoder.linear_step
        linear_step.fit(model.scaling(x[:nn.linear_step.NUM_FITTED]))

    def reconstruction(self, model: RelationalAutoEncoder, data: Data,
                       edge_attr: Tensor,
                       generator: Optional[torch.Generator] = None) -> Tensor:
        import torch

        from pyg_fnri.losses import huber_nll
        graph = (data.edge_index, edge_attr)
        decoder: Any = model.decoder
        linear_step: Any = model.encoder.linear_step
        if self.pred_steps > 1:
            y = model.scaling(data.y)
            out = decoder(y, *graph, self.pred_steps)
            return huber_nll(out, y[:, 1:], linear_step.scale, self.variance,
                             self.delta)
        weight = None
        if generator is None or not isinstance(decoder, nn.RolloutDecoder):
            # A memory needs all frames before the one that it predicts.
            halves = [model.scaling(data.x), model.scaling(data.y)]
            target = torch.cat([half[:, 1:] for half in halves], dim=1)
            out = torch.cat([decoder.one_step(half, *graph) for half in halves],
                            dim=1)
        else:
            state, target, weight = self.draw(model, data, generator)
            out = decoder.step(state, *graph)
        return huber_nll(out, target, linear_step.scale, self.variance,
                         self.delta, weight)

    def draw(self, model: RelationalAutoEncoder, data: Data,
             generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """States in random frames, those that follow, and weights."""
        import torch

        from pyg_fnri.losses import draw_frames
        halves = [model.scaling(data.x), model.scaling(data.y)]
        state = torch.cat([half[:, :-1] for half in halves], dim=1)
        target = torch.cat([half[:, 1:] for half in halves], dim=1)
        num_all = state.size(1)
        num_frames = min(self.num_frames, num_all)
        if self.focus == 0:
            frame = torch.randperm(num_all, generator=generator,
                                   device=state.device)[:num_frames]
            state, target = (k.index_select(1, frame) for k in (state, target))
            weight = state.new_full(state.size()[:2], num_all / num_frames)
        else:
            linear_step: Any = model.encoder.linear_step
            residual = (target - linear_step(state)) / linear_step.scale
            frame, weight = draw_frames(residual, data.get('batch'), num_frames,
                                        self.focus, generator)
            index = frame.unsqueeze(-1).expand(-1, -1, state.size(-1))
            state, target = state.gather(1, index), target.gather(1, index)
        return state, target, weight

    @property
    def teaches(self) -> bool:
        """Whether messages find the graphs of the last stage, which the
        encoder learns."""
        return self.decoder == 'equivariant'

    def splits(self, step: int) -> bool:
        """Whether to mend types that stand for one: from time to time, until
        too little is left to learn from."""
        tenth = max(1, self.max_steps // 10)
        return step % tenth == 0 and step <= 7 * tenth

    @property
    def num_joint(self) -> float:
        return (1 - self.final_share) * self.max_steps

    def temperature(self, step: int) -> float:
        phase = min(1.0, step / self.num_joint)
        end = min(self.tau, self.final_tau)
        return self.tau * math.pow(end / self.tau, phase)

    def last_stage(self, step: int) -> Optional[QuickRecipe]:
        if step < self.num_joint:
            return None
        return replace(self, **KNOWN_GRAPH)

    def schedule(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        from torch.optim.lr_scheduler import LambdaLR

        def decay(phase: float) -> float:
            cosine = (1 + math.cos(math.pi * min(1.0, phase))) / 2
            return self.final_rate + (1 - self.final_rate) * cosine

        def decoder(step: int) -> float:
            if step < self.num_joint:
                warm = min(1.0, (step + 1) / self.warmup_steps)
                return warm * decay(step / self.num_joint)
            left = self.max_steps - self.num_joint
            return decay((step - self.num_joint) / left) / 2 if left else 0.0

        def encoder(step: int) -> float:
            # It has nothing to learn from graphs that are its own.
            learns = self.teaches or step < self.num_joint
            return decoder(step) if learns else 0.0

        return {
            'scheduler': LambdaLR(optimizer, [encoder, decoder]),
            'interval': 'step'
        }


@dataclass(frozen=True)
class LawsRecipe(Recipe):
    """Force laws from scratch, by expectation-maximisation: no network is
    trained, and laws infer graphs.

    Args:
        num_fitted: Training systems that laws and graphs are fitted on, of at
            most 10,000 particles unless they share a graph.
        num_pilot: Systems that starts are tried on, and held out, at the most.
        max_starts: Starts at the most.
        interval: Time between two frames, by default as the data tell.
        half_width: Distance from the origin to each wall; by default the
            simulation's. Where it is 0 or unknown, the data tell of walls.
        terms: What may be added to central laws: names of terms, 'one-way',
            'finer-tables', or 'auto' for all; empty for none.
    """
    num_fitted: int = 1_000
    num_pilot: int = 100
    max_starts: int = 5
    interval: Optional[float] = None
    half_width: Optional[float] = None
    terms: Sequence[str] = ('auto', )
    drop_null: bool = True
    noise: bool = True
    undirected: bool = True

    def __post_init__(self) -> None:
        _check(self, lambda v: v >= 1, 'at least 1', 'num_fitted', 'num_pilot',
               'max_starts')
        _check(self, lambda v: v is None or 0 < v < math.inf, 'above 0',
               'interval')
        _check(self, lambda v: v is None or 0 <= v < math.inf, 'at least 0',
               'half_width')

    @classmethod
    def defaults(cls, model: type[NRI], regime: str) -> dict[str, Any]:
        if regime != 'learned':
            raise ValueError(f"The recipe laws has no regime {regime}.")
        return {}

    def build_scaling(self, num_features: int) -> nn.Scaling:
        return nn.StandardScaling(num_features)

    def build_encoder(self, in_channels: int, num_steps: int,
                      out_channels: int) -> torch.nn.Module:
        return nn.UniformEncoder(out_channels)


#: Recipes by name.
RECIPES: dict[str, type[Recipe]] = {
    'quick': QuickRecipe,
    'paper': PaperRecipe,
    'laws': LawsRecipe
}
