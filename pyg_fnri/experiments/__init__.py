"""The paper's experiments: which runs there are, at which scale, and what
tables and figures become of their results."""
from .cell import MODELS, NAMES, Cell, grid
from .compression import (
    HALVES,
    compression_curves,
    compression_report,
    measure_halves,
)
from .figures import write_compression, write_trajectories
from .law_table import law_report
from .paper_tables import accuracy_report, error_report, parameter_report
from .part import Part
from .publish import publish
from .report import Report, Summary, Table
from .results import load_results, provenance, save_result
from .runner import Runner
from .scale import SCALES, Scale
from .trajectories import draw_continuations

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
