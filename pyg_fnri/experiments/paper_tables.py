"""The paper's three tables, with ours beside its figures."""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

from pyg_fnri.evaluation.published import (
    ACCURACY,
    EDGE_TYPES,
    HORIZONS,
    PARAMETERS,
    ROLLOUT_MSE,
    published,
)
from pyg_fnri.experiments.cell import MODELS, NAMES, TABLES, Cell
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
from pyg_fnri.nn.models import MODELS as CLASSES

#: What the paper calls its data sets, and the layers of each.
TITLES = {'springs_charges': 'I+C', 'springs_charges_fsprings': 'I+C+F'}
LAYERS = {
    'springs_charges': ('springs', 'charges'),
    'springs_charges_fsprings': ('springs', 'charges', 'finite springs'),
}
Values = Sequence[Optional[float]]


def accuracy_report(results: Mapping[Cell, Result], scale: str,
                    command: str) -> Report:
    """Table 1: edge accuracies.

    Args:
        results: All results of a scale.
        scale: Its name.
        command: What makes this report.
    """
    tables = []
    for name in NAMES:
        floors = _floors(results, name, TABLES['1'], [
            ('random',
             lambda figures: _accuracies(figures.get('random_accuracy'))),
            ('majority class',
             lambda figures: _accuracies(figures.get('majority_accuracy'))),
        ])
        tables.append(
            _table(results, name, '1', ['combined', *LAYERS[name]], ACCURACY,
                   floors,
                   lambda figures: _accuracies(figures.get('edge_accuracy')),
                   lambda value: 1))
    return Report('Table 1: edge accuracy', tables, [
        'Edge accuracy in per cent, higher is better. Ours is strict: types '
        'are known up to a relabelling of the layers and of the types within '
        'a layer, one for the whole data set. The paper relabels anew for '
        'each batch, which is more generous. Combined: right in all layers '
        'at once. Random: a guess for each edge, relabelled alike. Majority '
        'class: the most frequent type everywhere. The paper gives means of '
        '5 runs.',
        *notes_of_runs(_shown(results, TABLES['1']), scale, command),
    ])


def error_report(results: Mapping[Cell, Result], scale: str,
                 command: str) -> Report:
    """Table 2: errors of rollouts; arguments as of :func:`accuracy_report`."""
    tables = []
    for name in NAMES:
        floors = _floors(results, name, TABLES['2'], [
            ('static', lambda figures: _errors(figures.get('static_mse'))),
            ('linear', lambda figures: _errors(figures.get('linear_mse'))),
        ])
        tables.append(
            _table(results, name, '2', ['1 step', '10 steps', '20 steps'],
                   ROLLOUT_MSE, floors,
                   lambda figures: _errors(figures.get('rollout_mse')),
                   decimals_of))
    return Report('Table 2: rollout error', tables, [
        'Mean squared error of rollouts of so many steps along the predicted '
        'half, lower is better, in units of 1e-5 of positions and velocities '
        "min-max scaled to [-1, 1] with the training split's extremes. That "
        "unit depends on the training split's fastest particle: compare the "
        'rows "static", that nothing moves. Linear: the least-squares step '
        'that knows of no interaction. The paper gives means of 5 runs.',
        *notes_of_runs(_shown(results, TABLES['2']), scale, command),
    ])


def parameter_report(command: str) -> Report:
    """Table 3: numbers of edge types and parameters, counted."""
    tables = []
    for name in NAMES:
        rows = []
        for model, label in MODELS.items():
            ours = count_parameters(model, len(LAYERS[name]))
            theirs = PARAMETERS[name][model]
            rows.append([
                label, '+'.join(map(str, EDGE_TYPES[name][model])),
                *(f'{n:,}' for pair in zip(ours, theirs) for n in pair)
            ])
        columns = [
            'model', 'K', 'encoder, ours', 'encoder, paper', 'decoder, ours',
            'decoder, paper'
        ]
        tables.append(Table(TITLES[name], columns, rows))
    return Report('Table 3: parameters', tables, [
        'Numbers of parameters of our models as they are, with hidden size '
        '256, for 49 observed frames of 4 features; nothing is trained. K is '
        'the number of edge types of each layer, of sfNRI that of its '
        f'sigmoids. Made by `{command}`.'
    ])


def count_parameters(model: str, num_layers: int) -> tuple[int, int]:
    """Parameters of the encoder and the decoder of a model of the paper's
    size, for so many layers of two types."""
    built = CLASSES[model](4, 49, [2] * num_layers, hidden_channels=256)
    encoder, decoder = (sum(p.numel() for p in part.parameters())
                        for part in (built.encoder, built.decoder))
    return encoder, decoder


def _table(
    results: Mapping[Cell, Result],
    name: str,
    table: str,
    quantities: Sequence[str],
    paper: dict[str, dict[str, tuple[float, ...]]],
    floors: Sequence[tuple[str, Values]],
    read: Callable[[dict[str, Any]], Values],
    decimals: Callable[[float], int],
) -> Table:
    """Floors first, then the models by regime, as in the paper."""
    nothing: list[Optional[Summary]] = [None] * len(quantities)
    rows = []
    for floor, values in floors:
        ours = [Summary.of([] if v is None else [v]) for v in values]
        theirs = published(paper, name, floor)
        rows.append([
            floor, *_beside(ours or nothing, theirs, decimals), MISSING, MISSING
        ])
    for regime in TABLES[table]:
        for model, label in MODELS.items():
            kind = regime.replace('_', ' ')
            runs = of_row(results, name, model, regime)
            columns = zip(*(read(run['figures']) for run in runs.values()))
            ours = [
                Summary.of(v for v in column if v is not None)
                for column in columns
            ]
            theirs = published(paper, name, f'{model} ({kind})')
            rows.append([
                f'{label} ({kind})',
                *_beside(ours or nothing, theirs, decimals),
                seeds_text(runs),
                minutes_text(runs)
            ])
    heads = [f'{q}, {whose}' for q in quantities for whose in ('ours', 'paper')]
    return Table(TITLES[name], ['', *heads, 'seeds', 'minutes a run'], rows)


def _beside(
    ours: Sequence[Optional[Summary]],
    theirs: Optional[Sequence[float]],
    decimals: Callable[[float], int],
) -> list[str]:
    """Ours and the paper's, in turn."""
    out = []
    for column, mine in enumerate(ours):
        paper = None if theirs is None else theirs[column]
        out.append(MISSING if mine is None else mine.text(decimals(mine.mean)))
        out.append(MISSING if paper is None else f'{paper:.{decimals(paper)}f}')
    return out


def _floors(
    results: Mapping[Cell, Result],
    name: str,
    regimes: Sequence[str],
    readers: Sequence[tuple[str, Callable[[dict[str, Any]], Values]]],
) -> list[tuple[str, Values]]:
    """Figures that depend on the data alone, from the first run that has
    them; empty where none has."""
    floors = []
    for floor, read in readers:
        found = (read(result['figures']) for cell, result in results.items()
                 if cell.dataset == name and cell.regime in regimes)
        values: Values = next(
            (v for v in found if any(value is not None for value in v)), ())
        floors.append((floor, values))
    return floors


def _accuracies(fractions: Optional[Mapping[str, Any]]) -> Values:
    """Combined, then by layer, in per cent; empty where there are none."""
    if fractions is None:
        return []
    return [100 * v for v in (fractions['combined'], *fractions['layers'])]


def _errors(errors: Optional[Mapping[str, float]]) -> Values:
    """By horizon, in units of 1e-5."""
    errors = errors or {}
    return [
        1e5 * errors[str(h)] if str(h) in errors else None for h in HORIZONS
    ]


def _shown(results: Mapping[Cell, Result],
           regimes: Sequence[str]) -> dict[Cell, Result]:
    return {c: result for c, result in results.items() if c.regime in regimes}
