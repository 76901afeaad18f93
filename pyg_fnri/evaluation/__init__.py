"""What a trained model is worth, and what it infers of other systems."""
from pyg_fnri.evaluation.evaluate import (Graph, evaluate, measure,
                                          measure_guesses)
from pyg_fnri.evaluation.infer import (InferredGraphs, OwnSystems,
                                       check_results, check_sizes, draw_graphs,
                                       frames_looked_at, infer_graphs, observe,
                                       open_systems, present_results,
                                       write_results)
from pyg_fnri.evaluation.law_curves import LawCurves, find_laws, law_curves
from pyg_fnri.evaluation.report import (best_metrics, make_table, print_report,
                                        save_report, write_pictures)

__all__ = [
    'Graph', 'InferredGraphs', 'LawCurves', 'OwnSystems', 'best_metrics',
    'check_results', 'check_sizes', 'draw_graphs', 'evaluate', 'find_laws',
    'frames_looked_at', 'infer_graphs', 'law_curves', 'make_table', 'measure',
    'measure_guesses', 'observe', 'open_systems', 'present_results',
    'print_report', 'save_report', 'write_pictures', 'write_results'
]
