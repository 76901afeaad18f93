"""A trained model applied to other systems: their interaction graphs, as
tables, networks and pictures."""
from pyg_fnri.application.drawing import draw_graphs
from pyg_fnri.application.files import (
    check_results,
    present_results,
    write_results,
)
from pyg_fnri.application.graphs import (
    InferredGraphs,
    infer_each,
    infer_shared,
)
from pyg_fnri.application.sizes import check_sizes
from pyg_fnri.application.systems import OwnSystems, observe, open_systems

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
