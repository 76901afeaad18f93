"""Layers and models."""
from typing import TYPE_CHECKING

from pyg_fnri import lazily

if TYPE_CHECKING:
    from pyg_fnri.nn.aggr import ScatterSum
    from pyg_fnri.nn.decoder import Decoder, RolloutDecoder
    from pyg_fnri.nn.encoders import (MLP, CNNEncoder, Encoder,
                                      EquivariantEncoder, MLPEncoder,
                                      UniformEncoder)
    from pyg_fnri.nn.force_law import ForceLaw, ForceLawDecoder
    from pyg_fnri.nn.latent import CategoricalLatent, Latent, SigmoidLatent
    from pyg_fnri.nn.linear_step import (LinearStep, OverLinearStep,
                                         ResidualEncoder, Walls)
    from pyg_fnri.nn.models import (FNRI, MODELS, NRI, SFNRI,
                                    RelationalAutoEncoder)
    from pyg_fnri.nn.multiplex_conv import EquivariantConv, MultiplexConv
    from pyg_fnri.nn.rate_law import EvenLaw, RateLawDecoder, rate_laws
    from pyg_fnri.nn.recurrent import RecurrentConv, RecurrentDecoder
    from pyg_fnri.nn.scaling import (MinMaxScaling, Scaling, StandardScaling,
                                     known_masses, per_mass)
    from pyg_fnri.nn.terms import (Central, NodeTerm, PairTerm, ParticleTerm,
                                   Term)
else:
    __getattr__, __dir__ = lazily(__name__)

__all__ = [
    'CNNEncoder', 'CategoricalLatent', 'Central', 'Decoder', 'Encoder',
    'EquivariantConv', 'EquivariantEncoder', 'EvenLaw', 'FNRI', 'ForceLaw',
    'ForceLawDecoder', 'Latent', 'LinearStep', 'MLP', 'MLPEncoder', 'MODELS',
    'MinMaxScaling', 'MultiplexConv', 'NRI', 'NodeTerm', 'OverLinearStep',
    'PairTerm', 'ParticleTerm', 'RateLawDecoder', 'RecurrentConv',
    'RecurrentDecoder', 'RelationalAutoEncoder', 'ResidualEncoder',
    'RolloutDecoder', 'SFNRI', 'Scaling', 'ScatterSum', 'SigmoidLatent',
    'StandardScaling', 'Term', 'UniformEncoder', 'Walls', 'known_masses',
    'per_mass', 'rate_laws'
]
