"""Inference beyond one pass of an encoder: refined graphs, graphs that systems
share, and force laws."""
from pyg_fnri.inference.em import Progress, fit_force_laws
from pyg_fnri.inference.pooling import (
    pool_posteriors,
    shared_candidates,
    shared_graph,
)
from pyg_fnri.inference.refine import refine
from pyg_fnri.inference.search import Refined
from pyg_fnri.inference.sweep import Stage
from pyg_fnri.inference.teaching import with_inferred_graphs

__all__ = [
    'Progress',
    'Refined',
    'Stage',
    'fit_force_laws',
    'pool_posteriors',
    'refine',
    'shared_candidates',
    'shared_graph',
    'with_inferred_graphs',
]
