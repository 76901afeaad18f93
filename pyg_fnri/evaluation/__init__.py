"""What a trained model is worth, and what it infers of other systems."""
from pyg_fnri.evaluation.evaluate import evaluate, measure, measure_guesses
from pyg_fnri.evaluation.law_curves import LawCurves, find_laws, law_curves
from pyg_fnri.evaluation.report import (best_metrics, make_table, print_report,
                                        save_report, write_pictures)

__all__ = [
    'LawCurves', 'best_metrics', 'evaluate', 'find_laws', 'law_curves',
    'make_table', 'measure', 'measure_guesses', 'print_report', 'save_report',
    'write_pictures'
]
