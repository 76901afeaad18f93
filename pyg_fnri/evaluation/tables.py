"""Reports as tables for the terminal, the paper's rows first."""
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from pyg_fnri.evaluation import published

#: Row, key of a report and unit of :func:`beyond_table`.
BEYOND = (
    ('AUROC of any interaction (%)', 'auroc', 100),
    ('average precision (%)', 'average_precision', 100),
    ('expected calibration error (%)', 'calibration_error', 100),
    ('Brier score (0 to 2)', 'brier_score', 1),
    ('posterior entropy (nats)', 'entropy', 1),
    ('posterior entropy (% of the maximum)', 'entropy_share', 100),
    ('pairs of two types (%)', 'asymmetric_share', 100),
    ('difference of the directions (%)', 'asymmetry', 100),
)


def accuracy_table(
    title: str,
    reports: Mapping[str, Mapping[str, Any]],
    layers: Sequence[str],
    model: str,
    dataset: str,
) -> Table:
    """Edge accuracies in per cent: the paper's table 1, then those of
    guesses, then ours.

    Args:
        title: Its title.
        reports: Row to what :func:`~pyg_fnri.evaluation.evaluate` gives; the
            first one may also hold the accuracies :obj:`random_accuracy` and
            :obj:`majority_accuracy` of guesses.
        layers: Names of the layer-graphs.
        model: Whose rows of the paper to show.
        dataset: On which of its data sets; others have no rows.
    """
    table = _make_table(title, ['combined', *layers])
    for row in ('random', f'{model} (learned)', f'{model} (supervised)'):
        values = published.published(published.ACCURACY, dataset, row)
        if values is not None:
            table.add_row(f'{row}, paper', *(f'{v:.1f}' for v in values))
    for row, key in (('random, ours', 'random_accuracy'),
                     ('majority class', 'majority_accuracy')):
        for report in list(reports.values())[:1]:
            if key in report:
                table.add_row(row, *_percent(report[key]))
    for row, report in reports.items():
        table.add_row(f'{row}, strict', *_percent(report['edge_accuracy']),
                      style='bold')
        table.add_row(f"{row}, authors' joint metric",
                      *_percent(report['joint_edge_accuracy']))
    return table


def error_table(
    title: str,
    reports: Mapping[str, Mapping[str, Any]],
    model: str,
    dataset: str,
) -> Table:
    """Errors of rollouts in units of 1e-5: the paper's table 2, then those
    without a model, then ours.

    Arguments as for :func:`accuracy_table`.
    """
    first = next(iter(reports.values()))
    horizons = list(first['rollout_mse'])
    table = _make_table(
        title, ['1 step' if h == 1 else f'{h} steps' for h in horizons])
    for row in ('static', f'{model} (learned)', f'{model} (true graph)'):
        values = published.published(published.ROLLOUT_MSE, dataset, row)
        if values is not None:
            paper = dict(zip(published.HORIZONS, values))
            table.add_row(
                f'{row}, paper',
                *(f'{paper[h]:.3g}' if h in paper else '-' for h in horizons))
    for row, key in (('static, ours', 'static_mse'), ('linear step',
                                                      'linear_mse')):
        if key in first:
            table.add_row(row, *_errors(first[key]))
    for row, report in reports.items():
        table.add_row(row, *_errors(report['rollout_mse']), style='bold')
    return table


def beyond_table(
    title: str,
    report: Mapping[str, Any],
    layers: Sequence[str],
) -> Table:
    """How far probabilities can be trusted, a column for each layer-graph.

    Args:
        title: Its title.
        report: What :func:`~pyg_fnri.evaluation.evaluate` gives.
        layers: Names of the layer-graphs, the true ones with truth, those
            predicted without.
    """
    table = _make_table(title, ['combined', *layers])
    for row, key, scale in BEYOND:
        values = report.get(key)
        if values is None:
            continue
        if isinstance(values, Mapping):
            values = [values['combined'], *values['layers']]
        else:  # Not defined for all layers together.
            values = [None, *values]
        table.add_row(
            row, *('-' if v is None else f'{scale * v:.3g}' for v in values))
    return table


def _make_table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify='left')
    table.add_column('')
    for column in columns:
        table.add_column(column, justify='right')
    return table


def _percent(accuracy: Mapping[str, Any]) -> list[str]:
    values = [accuracy['combined'], *accuracy['layers']]
    return [f'{100 * v:.1f}' for v in values]


def _errors(errors: Mapping[int, float]) -> list[str]:
    return [f'{1e5 * v:.3g}' for v in errors.values()]
