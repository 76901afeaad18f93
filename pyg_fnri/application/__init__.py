"""A trained model applied to other systems: their interaction graphs, as
tables, networks and pictures."""
from .drawing import draw_graphs
from .files import check_results, present_results, write_results
from .graphs import InferredGraphs, infer_each, infer_shared
from .sizes import check_sizes
from .systems import OwnSystems, observe, open_systems

__all__ = [
    'InferredGraphs',
    'OwnSystems',
    'check_results',
    'check_sizes',
    'draw_graphs',
    'infer_each',
    'infer_shared',
    'observe',
    'open_systems',
    'present_results',
    'write_results',
]
