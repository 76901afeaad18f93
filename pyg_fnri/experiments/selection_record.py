"""A comparison of layers and types as a file keeps it."""
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.held_out import HeldOut
from pyg_fnri.experiments.selection import Selection
from pyg_fnri.experiments.selection_report import (
    UNIT,
    selection_frame,
    selection_paragraph,
)


def selection_record(
    selection: Selection,
    runs: Mapping[Candidate, Sequence[HeldOut]],
) -> dict[str, Any]:
    """The recommendation and all of its evidence, as JSON can hold it: None
    stands for what is not known, or is not finite.

    Errors are in 1e-5 of min-max units: geometric means over systems and
    seeds; of single runs arithmetic ones, as in the paper's tables.

    Args:
        selection (Selection): The comparison.
        runs (mapping): The measurements that it has been made of.
    """
    horizon = selection.horizon
    return _finite({
        'recommended':
        list(selection.choice.candidate.num_edge_types),
        'best':
        list(selection.best.candidate.num_edge_types),
        'rule':
        f'the smallest candidate whose logarithm of the error over '
        f'{horizon} steps is above that of the best one by at most '
        f'one standard error of the difference, over systems and '
        f'seeds',
        'paragraph':
        selection_paragraph(selection),
        'warnings':
        selection.warnings,
        'num_systems':
        selection.num_systems,
        'unit':
        '1e-5 of min-max units; geometric means over systems and '
        'seeds',
        'static': {
            h: UNIT * e.mean
            for h, e in selection.static.items()
        },
        'linear': {
            h: UNIT * e.mean
            for h, e in selection.linear.items()
        },
        'candidates':
        selection_frame(selection).to_dict('records'),
        'runs':
        [_figures(of, run) for of, found in runs.items() for run in found],
    })


def _figures(of: Candidate, run: HeldOut) -> dict[str, Any]:
    """Of one run."""
    return {
        'candidate': of.name,
        'mse': {
            h: UNIT * float(e.mean())
            for h, e in run.errors.items()
        },
        'nll': run.nll,
        'entropy_share': run.entropy,
        'type_shares': run.shares,
        'type_worth': run.worth,
        'edge_accuracy': run.accuracy,
    }


def _finite(value: Any) -> Any:
    """With None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
