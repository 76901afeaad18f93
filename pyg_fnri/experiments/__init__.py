"""The paper's experiments: which runs there are, at which scale, and what
tables and figures become of their results."""
from pyg_fnri.experiments.cell import MODELS, NAMES, Cell, grid
from pyg_fnri.experiments.compression import (
    HALVES,
    compression_curves,
    compression_report,
    measure_halves,
)
from pyg_fnri.experiments.figures import write_compression, write_trajectories
from pyg_fnri.experiments.law_table import law_report
from pyg_fnri.experiments.paper_tables import (
    accuracy_report,
    error_report,
    parameter_report,
)
from pyg_fnri.experiments.part import Part
from pyg_fnri.experiments.publish import publish
from pyg_fnri.experiments.report import Report, Summary, Table
from pyg_fnri.experiments.results import load_results, provenance, save_result
from pyg_fnri.experiments.runner import Runner
from pyg_fnri.experiments.scale import SCALES, Scale
from pyg_fnri.experiments.trajectories import draw_continuations

__all__ = [
    'Cell',
    'HALVES',
    'MODELS',
    'NAMES',
    'Part',
    'Report',
    'Runner',
    'SCALES',
    'Scale',
    'Summary',
    'Table',
    'accuracy_report',
    'compression_curves',
    'compression_report',
    'draw_continuations',
    'error_report',
    'grid',
    'law_report',
    'load_results',
    'measure_halves',
    'parameter_report',
    'provenance',
    'publish',
    'save_result',
    'write_compression',
    'write_trajectories',
]
