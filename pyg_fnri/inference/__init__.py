"""Refined graphs, graphs that systems share, and samples of the posterior."""
from pyg_fnri.inference.likelihood import AnnealingStep
from pyg_fnri.inference.paths import find_motions
from pyg_fnri.inference.pooling import pool_posteriors, shared_graph
from pyg_fnri.inference.refine import infer_graph, refine, sample_posterior
from pyg_fnri.inference.search import Refined

__all__ = [
    'AnnealingStep', 'Refined', 'find_motions', 'infer_graph',
    'pool_posteriors', 'refine', 'sample_posterior', 'shared_graph'
]
