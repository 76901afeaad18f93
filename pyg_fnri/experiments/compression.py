"""Section 3.1: does a model predict, or only reconstruct what it has seen?"""
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.evaluation import evaluate
from pyg_fnri.experiments.cell import MODELS, Cell
from pyg_fnri.experiments.paper_tables import TITLES
from pyg_fnri.experiments.report import (
    MISSING,
    Report,
    Summary,
    Table,
    decimals_of,
    minutes_text,
    notes_of_runs,
    seeds_text,
)
from pyg_fnri.experiments.results import Result, of_row
from pyg_fnri.training import RelationalInference

#: Frames that the encoder saw, and those that follow them.
HALVES = ('observed', 'following')
HORIZONS = (1, 5, 10, 20, 40)
WORDS = {
    'learned': 'with the split',
    'split': 'with the split',
    'unsplit': 'without the split'
}


def measure_halves(module: RelationalInference,
                   batches: Iterable[Data]) -> dict[str, Any]:
    """Errors of rollouts along the frames that the encoder saw, and along
    those that follow, both with the graph inferred from the former.

    Args:
        module: A trained module.
        batches: Hold :obj:`x` (observed) and :obj:`y` (following). They are
            gone through twice.

    Returns:
        For each of :obj:`HALVES`: :obj:`rollout_mse` and :obj:`static_mse`,
        horizon to error, in the units of reports.
    """
    def infer(batch: Data) -> tuple[Tensor, None]:
        return module.model.predict(batch), None  # Only rollouts are measured.

    out = {}
    for half in HALVES:
        chosen = batches if half == 'following' else _along_observed(batches)
        report = evaluate(module.model, chosen, module.units,
                          module.config.num_edge_types, HORIZONS, infer)
        out[half] = {
            kind: {
                str(h): error
                for h, error in report[kind].items()
            }
            for kind in ('rollout_mse', 'static_mse')
        }
    return out


def compression_curves(
    results: Mapping[Cell, Result],
    regimes: Sequence[str],
    dataset: str,
    model: str,
) -> dict[str, dict[str, dict[int, float]]]:
    """What :func:`~pyg_fnri.plot.plot_compression` draws: panel to line to
    horizon to mean error; empty of regimes that have not run."""
    out = {}
    for regime in regimes:
        runs = of_row(results, dataset, model, regime)
        if not runs:
            continue
        lines: dict[str, dict[int, float]] = {}
        for label, half, kind in (
            ('frames seen', 'observed', 'rollout_mse'),
            ('frames that follow', 'following', 'rollout_mse'),
            ('static, frames seen', 'observed', 'static_mse'),
            ('static, frames that follow', 'following', 'static_mse'),
        ):
            curve = {h: _summary(runs, half, kind, h) for h in HORIZONS}
            lines[label] = {h: s.mean for h, s in curve.items() if s}
        accuracy = _accuracy(runs)
        title = f'trained {WORDS[regime]}'
        if accuracy is not None:
            title += f'; edges {accuracy.mean:.0f}% right'
        out[title] = lines
    return out


def compression_report(
    results: Mapping[Cell, Result],
    regimes: Sequence[str],
    scale: str,
    command: str,
) -> Report:
    """Errors on both halves, of models trained with and without the split.

    Args:
        results: All results of a scale.
        regimes: The two to compare, with the split first.
        scale: The scale's name.
        command: What makes this report.
    """
    shown = {c: r for c, r in results.items() if c.regime in regimes}
    pairs = dict.fromkeys((cell.dataset, cell.model) for cell in shown
                          if cell.regime == regimes[1])
    tables = [
        _table(results, regimes, dataset, model) for dataset, model in pairs
    ]
    shown = {c: r for c, r in shown.items() if (c.dataset, c.model) in pairs}
    return Report('Section 3.1: compression', tables, [
        'One model, trained once to predict the frames that follow those '
        'that its encoder saw (with the split), and once to reconstruct the '
        'latter (without it). Mean squared error of rollouts of 1 to 40 '
        'steps, with the most probable graph, in units of 1e-5 of min-max '
        'scaled positions and velocities; lower is better. A model that '
        'compresses reconstructs the frames seen better than it predicts '
        'those that follow, and its edges are little better than guesses. '
        'The halves are not equally hard, as the rows "static" show, that '
        'nothing moves: compare the trainings on each half.',
        *notes_of_runs(shown, scale, command),
    ])


def _table(results: Mapping[Cell, Result], regimes: Sequence[str], dataset: str,
           model: str) -> Table:
    rows = []
    for regime in regimes:
        runs = of_row(results, dataset, model, regime)
        accuracy = _accuracy(runs)
        for half in HALVES:
            rows.append([
                WORDS[regime], half, *_cells(runs, half, 'rollout_mse'),
                MISSING if accuracy is None else accuracy.text(1),
                seeds_text(runs),
                minutes_text(runs)
            ])
    both = {
        number: run
        for number, run in enumerate(
            run for regime in regimes
            for run in of_row(results, dataset, model, regime).values())
    }
    first = {n: run for n, run in both.items() if n == 0}
    rows += [[
        'static', half, *_cells(first, half, 'static_mse'), MISSING, MISSING,
        MISSING
    ] for half in HALVES]
    columns = [
        'trained', 'frames', '1 step', *(f'{h} steps' for h in HORIZONS[1:]),
        'edges right in all layers, %', 'seeds', 'minutes a run'
    ]
    return Table(f'{MODELS[model]}, {TITLES[dataset]}', columns, rows)


def _cells(runs: Mapping[int, Result], half: str, kind: str) -> list[str]:
    summaries = [_summary(runs, half, kind, h) for h in HORIZONS]
    return [
        MISSING if s is None else s.text(decimals_of(s.mean)) for s in summaries
    ]


def _summary(runs: Mapping[int, Result], half: str, kind: str,
             horizon: int) -> Optional[Summary]:
    errors = (run['figures']['halves'][half][kind] for run in runs.values())
    return Summary.of(1e5 * e[str(horizon)] for e in errors
                      if str(horizon) in e)


def _accuracy(runs: Mapping[int, Result]) -> Optional[Summary]:
    return Summary.of(100 * run['figures']['edge_accuracy']['combined']
                      for run in runs.values())


def _along_observed(batches: Iterable[Data]) -> Iterator[Data]:
    for batch in batches:
        batch = batch.clone()
        batch.y = batch.x
        yield batch
