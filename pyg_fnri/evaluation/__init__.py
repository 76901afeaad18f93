"""What a trained model is worth, beside the paper's figures and its floors."""
from pyg_fnri.evaluation.evaluate import Graph, evaluate
from pyg_fnri.evaluation.guesses import guessing_accuracy
from pyg_fnri.evaluation.law_curves import LawCurves, law_curves
from pyg_fnri.evaluation.pictures import write_pictures
from pyg_fnri.evaluation.printing import best_figures, print_report
from pyg_fnri.evaluation.tables import (
    accuracy_table,
    beyond_table,
    error_table,
)

__all__ = [
    'Graph',
    'LawCurves',
    'accuracy_table',
    'best_figures',
    'beyond_table',
    'error_table',
    'evaluate',
    'guessing_accuracy',
    'law_curves',
    'print_report',
    'write_pictures',
]
