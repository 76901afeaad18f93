"""Inference beyond one pass of an encoder: refined graphs, graphs that systems
share, force laws, and whether these hold."""
from pyg_fnri.inference.discovery import Discovery, Start, discover_force_laws
from pyg_fnri.inference.em import Progress, fit_force_laws
from pyg_fnri.inference.law_check import check_laws
from pyg_fnri.inference.law_verdict import LawCheck
from pyg_fnri.inference.motion import check_motion
from pyg_fnri.inference.pooling import (
    pool_posteriors,
    shared_candidates,
    shared_graph,
)
from pyg_fnri.inference.refine import refine
from pyg_fnri.inference.sampling import sample_posterior
from pyg_fnri.inference.search import Refined
from pyg_fnri.inference.sweep import Stage
from pyg_fnri.inference.teaching import with_inferred_graphs

__all__ = [
    'Discovery',
    'LawCheck',
    'Progress',
    'Refined',
    'Stage',
    'Start',
    'check_laws',
    'check_motion',
    'discover_force_laws',
    'fit_force_laws',
    'pool_posteriors',
    'refine',
    'sample_posterior',
    'shared_candidates',
    'shared_graph',
    'with_inferred_graphs',
]
