"""Inference beyond one pass of an encoder: refined graphs and force laws."""
from pyg_fnri.inference.em import fit_force_laws
from pyg_fnri.inference.refine import Stage
from pyg_fnri.inference.search import Refined, refine

__all__ = [
    'Refined',
    'Stage',
    'fit_force_laws',
    'refine',
]
