"""Beyond the paper's tables: what force laws add."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from pyg_fnri.evaluation.published import (
    ACCURACY,
    HORIZONS,
    ROLLOUT_MSE,
    published,
)
from pyg_fnri.experiments.cell import MORE_NAMES, NAMES, TABLES, Cell
from pyg_fnri.experiments.paper_tables import LAYERS, TITLES
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

#: What `scripts/evaluate.py` says of one way to infer graphs.
Figures = Mapping[str, Any]


@dataclass(frozen=True)
class Way:
    """One way to infer graphs, of the runs of one regime.

    Args:
        heading: Of its row.
        regime: Of the runs.
        part: The part of a result's figures that is about it; None where it
            is the whole. Laws are shown where they are at work, with
            :obj:`'refined'`.
    """
    heading: str
    regime: str
    part: Optional[str] = None


WAYS = (
    Way('quick recipe, one pass', 'learned'),
    Way('laws from nothing, refined', 'nothing', 'refined'),
    Way('em: encoder at the start, one pass', 'em', 'before'),
    Way('em: encoder taught, one pass', 'em'),
    Way('em: refined', 'em', 'refined'),
)
#: The paper's rows of fNRI to compare with.
PAPER = ('learned', 'supervised', 'true graph')


def law_report(results: Mapping[Cell, Result], scale: str,
               command: str) -> Report:
    """Accuracies and errors of fNRI with force laws, beside those without.

    A data set without any run with laws has no table.

    Args:
        results: All results of a scale.
        scale: Its name.
        command: What makes this report.
    """
    shown: dict[Cell, Result] = {}
    tables = []
    for name in NAMES + MORE_NAMES:
        runs = {
            way.regime: of_row(results, name, 'fnri', way.regime)
            for way in WAYS
        }
        if not any(runs[regime] for regime in TABLES['laws']):
            continue
        tables.append(_table(name, runs))
        shown.update((Cell(name, 'fnri', regime, seed), run)
                     for regime, found in runs.items()
                     for seed, run in found.items())
    return Report('Force laws', tables, [
        'Edge accuracy in per cent, strict: one relabelling for all systems. '
        'MSE of rollouts of 1, 10 and 20 steps in units of 1e-5 of min-max '
        'scaled positions and velocities. Law error: mean absolute error of '
        'each law over its mean size, in per cent, at the distances seen '
        '(1 to 99 %) of pairs that it acts on; n where it is of fewer runs '
        'than the row, as layers of the others stand for no single force. '
        'ECE: expected calibration error of the combined types, in per cent. '
        'Refined: the graphs of unseen systems, by what the laws make of the '
        'observed frames. From nothing: no encoder has been trained. Minutes '
        'are of training, all stages. The paper gives means of 5 runs.',
        *notes_of_runs(shown, scale, command),
    ])


def _table(name: str, runs: Mapping[str, Mapping[int, Result]]) -> Table:
    """The table of a data set, given its runs by regime and seed."""
    layers = LAYERS.get(name, ())
    columns = [
        'fNRI', 'combined', *layers, *(f'MSE {h}' for h in HORIZONS),
        'law error', 'ECE', 'seeds', 'minutes a run'
    ]
    rows = []
    for kind in PAPER:
        row = _paper_row(name, kind, len(layers))
        if row is not None:  # Of NRI's systems, the paper has no figures.
            rows.append(row)
    for way in WAYS:
        found = {
            seed: run
            for seed, run in runs[way.regime].items()
            if way.part is None or way.part in run['figures']
        }
        if found:
            rows.append(_our_row(way, found, len(layers)))
    return Table(TITLES.get(name, name), columns, rows)


def _paper_row(name: str, kind: str, num_layers: int) -> Optional[list[str]]:
    """Dashes for what it does not give; None if it gives nothing."""
    accuracy = published(ACCURACY, name, f'fnri ({kind})')
    error = published(ROLLOUT_MSE, name, f'fnri ({kind})')
    if accuracy is None and error is None:
        return None
    accuracies = [f'{value:.1f}' for value in accuracy or ()]
    errors = [f'{value:.{decimals_of(value)}f}' for value in error or ()]
    return [
        f'paper, {kind}', *(accuracies or [MISSING] * (1 + num_layers)),
        *(errors or [MISSING] * len(HORIZONS)), MISSING, MISSING, '5 runs',
        MISSING
    ]


def _our_row(way: Way, runs: Mapping[int, Result],
             num_layers: int) -> list[str]:
    """Means over seeds."""
    whole = [run['figures'] for run in runs.values()]
    figures = [f if way.part is None else f[way.part] for f in whole]
    accuracies = [_accuracies(f, num_layers) for f in figures]
    return [
        way.heading,
        *(_text(column, 1) for column in zip(*accuracies)),
        *(_error(figures, str(h)) for h in HORIZONS),
        _law_error(whole) if way.part == 'refined' else MISSING,
        _text([100 * f['calibration_error']['combined'] for f in figures], 1),
        seeds_text(runs),
        MISSING if way.part == 'before' else minutes_text(runs),
    ]


def _accuracies(figures: Figures, num_layers: int) -> list[float]:
    """Combined and, where there are several, of each layer, in per cent."""
    accuracy = figures['edge_accuracy']
    layers = accuracy['layers'][:num_layers]
    return [100 * value for value in (accuracy['combined'], *layers)]


def _error(figures: Sequence[Figures], horizon: str) -> str:
    """Of rollouts, in units of 1e-5; short trajectories have none."""
    errors = [f.get('rollout_mse', {}).get(horizon) for f in figures]
    return _text([1e5 * error for error in errors if error is not None])


def _law_error(figures: Sequence[Figures]) -> str:
    """Of each law, in per cent."""
    errors = [f['law_error'].values() for f in figures if 'law_error' in f]
    if not errors:
        return MISSING
    text = ' / '.join(
        _text([100 * error for error in law], 1) for law in zip(*errors))
    if len(errors) < len(figures):
        text += f' (n = {len(errors)})'
    return text


def _text(values: Sequence[float], decimals: Optional[int] = None) -> str:
    """Mean and standard error, by default with as many decimals as the
    paper's errors have."""
    summary = Summary.of(values)
    if summary is None:
        return MISSING
    if decimals is None:
        decimals = decimals_of(summary.mean)
    return summary.text(decimals)
