"""Latent graphs: what the logits of the encoder mean.

NRI, fNRI and sfNRI differ in nothing else. A new family is a new subclass of
:class:`Latent`.
"""
from pyg_fnri.nn.latent.categorical import CategoricalLatent
from pyg_fnri.nn.latent.latent import (
    Latent,
    check_edge_types,
    most_probable,
    reverse_edges,
)
from pyg_fnri.nn.latent.mixed import MixedLatent
from pyg_fnri.nn.latent.node import NodeLatent
from pyg_fnri.nn.latent.sigmoid import SigmoidLatent

__all__ = [
    'CategoricalLatent',
    'Latent',
    'MixedLatent',
    'NodeLatent',
    'SigmoidLatent',
    'check_edge_types',
    'most_probable',
    'reverse_edges',
]
