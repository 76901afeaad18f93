"""What a trained model is worth, beside the paper's figures and its floors."""
from pyg_fnri.evaluation.evaluate import Graph, encoder_graph, evaluate
from pyg_fnri.evaluation.guesses import guessing_accuracy
from pyg_fnri.evaluation.law_curves import LawCurves, law_curves
from pyg_fnri.evaluation.tables import (
    accuracy_table,
    beyond_table,
    error_table,
)

__all__ = [
    'Graph',
    'LawCurves',
    'accuracy_table',
    'beyond_table',
    'encoder_graph',
    'error_table',
    'evaluate',
    'guessing_accuracy',
    'law_curves',
]
