"""The encoders and decoders that a recipe can name."""
from collections.abc import Callable

import torch

from pyg_fnri.nn import (
    CNNEncoder,
    Decoder,
    MLPEncoder,
    MultiplexConv,
    RecurrentConv,
    RecurrentDecoder,
    RolloutDecoder,
)


def cnn_encoder(in_channels: int, num_steps: int, out_channels: int,
                hidden_channels: int, dropout: float) -> CNNEncoder:
    """The encoder of trajectories of any length."""
    return CNNEncoder(in_channels, out_channels, hidden_channels, dropout)


def mlp_decoder(in_channels: int, edge_dim: int, hidden_channels: int,
                burn_in: int) -> RolloutDecoder:
    """The decoder without a memory, which needs no frames to begin with."""
    return RolloutDecoder(
        MultiplexConv(in_channels, in_channels, edge_dim, hidden_channels))


def gru_decoder(in_channels: int, edge_dim: int, hidden_channels: int,
                burn_in: int) -> RecurrentDecoder:
    """The decoder with a memory, which sees some true frames first."""
    return RecurrentDecoder(
        RecurrentConv(in_channels, in_channels, edge_dim, hidden_channels),
        burn_in)


#: Encoders by name: of features, frames, logits, the size of hidden layers
#: and the probability of their dropout.
ENCODERS: dict[str, Callable[[int, int, int, int, float], torch.nn.Module]] = {
    'mlp': MLPEncoder,
    'cnn': cnn_encoder,
}
#: Decoders by name: of features, channels, the size of hidden layers and the
#: true states that one with a memory sees first.
DECODERS: dict[str, Callable[[int, int, int, int], Decoder]] = {
    'mlp': mlp_decoder,
    'gru': gru_decoder,
}
