"""Layers and models."""
from pyg_fnri.nn.aggr import ScatterSum
from pyg_fnri.nn.cnn_encoder import CNNEncoder
from pyg_fnri.nn.decoder import Decoder, RolloutDecoder
from pyg_fnri.nn.encoder import Encoder, MLPEncoder
from pyg_fnri.nn.force_law import ForceLaw
from pyg_fnri.nn.force_law_decoder import ForceLawDecoder
from pyg_fnri.nn.latent import (
    CategoricalLatent,
    Latent,
    MixedLatent,
    NodeLatent,
    SigmoidLatent,
)
from pyg_fnri.nn.linear_step import LinearStep, OverLinearStep, ResidualEncoder
from pyg_fnri.nn.masses import known_masses, per_mass
from pyg_fnri.nn.mlp import MLP
from pyg_fnri.nn.models import FNRI, NRI, SFNRI
from pyg_fnri.nn.multiplex_conv import MultiplexConv
from pyg_fnri.nn.recurrent_conv import RecurrentConv
from pyg_fnri.nn.recurrent_decoder import RecurrentDecoder
from pyg_fnri.nn.relational_auto_encoder import RelationalAutoEncoder
from pyg_fnri.nn.residual_force_laws import ResidualForceLaws
from pyg_fnri.nn.scaling import MinMaxScaling, Scaling, StandardScaling
from pyg_fnri.nn.walls import Walls

__all__ = [
    'CNNEncoder',
    'CategoricalLatent',
    'Decoder',
    'Encoder',
    'FNRI',
    'ForceLaw',
    'ForceLawDecoder',
    'Latent',
    'LinearStep',
    'MLP',
    'MLPEncoder',
    'MinMaxScaling',
    'MixedLatent',
    'MultiplexConv',
    'NRI',
    'NodeLatent',
    'OverLinearStep',
    'RecurrentConv',
    'RecurrentDecoder',
    'RelationalAutoEncoder',
    'ResidualEncoder',
    'ResidualForceLaws',
    'RolloutDecoder',
    'SFNRI',
    'ScatterSum',
    'Scaling',
    'SigmoidLatent',
    'StandardScaling',
    'Walls',
    'known_masses',
    'per_mass',
]
