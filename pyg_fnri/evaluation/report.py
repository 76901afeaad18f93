"""A report of what a model is worth: tables, pictures, one file of numbers."""
import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Optional

import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from torch import Tensor

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.spec import Systems, box_half_width, length_unit
from pyg_fnri.datasets.stored import write_picture, write_text
from pyg_fnri.evaluation.evaluate import BATCH_SIZE, HORIZONS, roll_out
from pyg_fnri.evaluation.law_curves import LawCurves
from pyg_fnri.metrics import Relabelling
from pyg_fnri.plot import plot_multiplex, plot_reliability, plot_trajectories
from pyg_fnri.training import RelationalInference

#: The paper's table 1: data set -> row -> combined accuracy, then one per
#: layer-graph, in per cent; means of five runs.
ACCURACY: dict[str, dict[str, tuple[float, ...]]] = {
    'springs_charges': {
        'random': (25.0, 50.0, 50.0),
        'nri (learned)': (89.1, 97.9, 91.0),
        'fnri (learned)': (94.0, 98.0, 95.8),
        'sfnri (learned)': (88.8, 97.6, 91.1),
        'nri (supervised)': (98.3, 98.6, 99.7),
        'fnri (supervised)': (98.3, 98.8, 99.4),
        'sfnri (supervised)': (98.0, 98.3, 99.6)
    },
    'springs_charges_fsprings': {
        'random': (12.5, 50.0, 50.0, 50.0),
        'nri (learned)': (57.9, 88.5, 87.3, 70.7),
        'fnri (learned)': (63.3, 86.9, 97.7, 69.2),
        'sfnri (learned)': (45.1, 90.0, 98.2, 52.4),
        'nri (supervised)': (80.9, 92.4, 99.0, 84.4),
        'fnri (supervised)': (81.8, 93.3, 99.3, 85.8),
        'sfnri (supervised)': (81.0, 92.9, 99.2, 85.2)
    }
}
#: Its table 2: data set -> row -> error in 1e-5 at each horizon.
ROLLOUT_MSE: dict[str, dict[str, tuple[float, ...]]] = {
    'springs_charges': {
        'static': (19.4, 283.0, 783.0),
        'nri (learned)': (0.88, 4.05, 11.5),
        'fnri (learned)': (0.80, 3.54, 9.93),
        'sfnri (learned)': (1.03, 3.32, 9.68),
        'nri (true graph)': (0.85, 1.59, 3.20),
        'fnri (true graph)': (0.70, 1.30, 2.52),
        'sfnri (true graph)': (0.86, 1.32, 2.77)
    },
    'springs_charges_fsprings': {
        'static': (12.8, 274.0, 782.0),
        'nri (learned)': (0.95, 8.67, 29.1),
        'fnri (learned)': (0.81, 7.78, 26.8),
        'sfnri (learned)': (0.77, 5.69, 19.3),
        'nri (true graph)': (0.75, 1.55, 3.43),
        'fnri (true graph)': (0.51, 0.97, 2.44),
        'sfnri (true graph)': (0.56, 0.89, 2.28)
    }
}
#: Ways to infer graphs that may have metrics of their own in a report.
BETTER = ('refined', 'sampled')
#: Rows beyond the paper's tables: metric to title and unit.
BEYOND = {
    'auroc': ('AUROC of any interaction (%)', 100),
    'average_precision': ('average precision (%)', 100),
    'calibration_error': ('expected calibration error (%)', 100),
    'brier_score': ('Brier score (0 to 2)', 1),
    'entropy': ('posterior entropy (nats)', 1),
    'entropy_share': ('posterior entropy (% of the maximum)', 100),
    'asymmetric_share': ('pairs of two types (%)', 100),
    'asymmetry': ('difference of the directions (%)', 100)
}
#: What the numbers of a saved report mean.
UNITS = {
    'edge_accuracy': 'fraction; one relabelling for all systems',
    'rollout_mse': 'mean square of min-max scaled features',
    'entropy': 'nats',
    'calibration_error': 'fraction; 15 bins of equal width',
    'law_error': 'fraction; at distances of pairs that it acts on, 1 to 99 %',
    'laws': 'accelerations of unit mass; standard errors',
    'terms': 'accelerations are these numbers times vectors; standard errors'
}
Metrics = Mapping[str, Any]
Rows = dict[str, Sequence[Optional[float]]]


def print_report(module: RelationalInference, dataset: Systems,
                 report: Metrics) -> None:
    """Prints the paper's tables 1 and 2 with our rows, and what comes on top,
    of what :func:`~pyg_fnri.evaluation.measure` gives, perhaps with the same
    under :obj:`refined` and :obj:`sampled`, :obj:`law_error` by name, and
    laws :obj:`in_words`."""
    config = module.config
    console = Console(markup=False, emoji=False)
    where = f"{dataset.name}, {report['num_systems']} systems"
    # A user's file may be called as one of the paper's systems.
    name = dataset.name if isinstance(dataset, ParticleSystems) else ''
    row = f"{config.model} ({config.regime.replace('_', ' ')}), ours"
    ours = {row: report}
    ours |= {f'{row}, {way}': report[way] for way in BETTER if way in report}
    if 'edge_accuracy' in report:
        console.print(
            make_table(f'Edge accuracy (%), {where}',
                       ['', 'combined', *layer_names(module)],
                       accuracy_rows(ours, config.model, name), '.1f',
                       bold=[f'{row}, strict' for row in ours]))
    if 'rollout_mse' in report:
        steps = [f'{h} step{"s"[:h - 1]}' for h in report['rollout_mse']]
        console.print(
            make_table(
                f'Rollout mean squared error (1e-5, min-max units), {where}',
                ['', *steps], error_rows(ours, config.model, name), bold=ours))
    for title, metrics in ours.items():
        if 'entropy' in metrics:
            console.print(
                make_table(f'Beyond accuracy, {title}, {where}',
                           ['', 'combined', *layer_names(module, metrics)],
                           beyond_rows(metrics)))
    for title, metrics in ours.items():
        if 'relabelling' in metrics:
            agreement = metrics['relabelling_consistency']
            print(f"{title}: relabelling found: {metrics['relabelling']}; "
                  f"{agreement['share']:.1%} of {agreement['num_batches']} "
                  f"batches of {BATCH_SIZE} systems agree")
    if 'law_error' in report:
        errors = ', '.join(f'{name} {error:.1%}'
                           for name, error in report['law_error'].items())
        print(f'Relative error of the force laws: {errors}')
    for name, said in report.get('in_words', {}).items():
        print(f'{name}: {said}')
    if module.verdict:
        print(module.verdict)


def make_table(title: str, columns: Sequence[str], rows: Mapping[str,
                                                                 Sequence[Any]],
               form: str = '.3g', bold: Collection[str] = ()) -> Table:
    """A table for the terminal, some rows bold; a dash for None."""
    table = Table(title=title, title_justify='left')
    for index, column in enumerate(columns):
        table.add_column(column, justify='right' if index else 'left')
    for row, values in rows.items():
        cells = [
            v if isinstance(v, str) else '-' if v is None else format(v, form)
            for v in values
        ]
        table.add_row(row, *cells, style='bold' if row in bold else None)
    return table


def accuracy_rows(reports: Mapping[str, Metrics], model: str,
                  dataset: str) -> Rows:
    """Edge accuracies in per cent: the paper's table 1, guesses, then ours."""
    kinds = 'random', f'{model} (learned)', f'{model} (supervised)'
    rows = _paper_rows(ACCURACY, dataset, kinds)
    first = next(iter(reports.values()))
    for row, kind in (('random, ours', 'random_accuracy'),
                      ('majority class', 'majority_accuracy')):
        if kind in first:
            rows[row] = _all_layers(first[kind], 100)
    for row, report in reports.items():
        rows[f'{row}, strict'] = _all_layers(report['edge_accuracy'], 100)
        rows[f"{row}, authors' joint metric"] = _all_layers(
            report['joint_edge_accuracy'], 100)
    return rows


def error_rows(reports: Mapping[str, Metrics], model: str,
               dataset: str) -> Rows:
    """Rollout errors in 1e-5: the paper's table 2, baselines, then ours."""
    first = next(iter(reports.values()))
    kinds = 'static', f'{model} (learned)', f'{model} (true graph)'
    rows: Rows = {
        row: [dict(zip(HORIZONS, values)).get(h) for h in first['rollout_mse']]
        for row, values in _paper_rows(ROLLOUT_MSE, dataset, kinds).items()
    }
    ours = [('static, ours', first.get('static_mse')),
            ('linear step', first.get('linear_mse'))]
    ours += [(row, report['rollout_mse']) for row, report in reports.items()]
    return rows | {
        row: [1e5 * error for error in errors.values()]
        for row, errors in ours if errors
    }


def beyond_rows(report: Metrics) -> Rows:
    return {
        row: _all_layers(report[key], scale)
        for key, (row, scale) in BEYOND.items() if key in report
    }


def _paper_rows(table: Mapping[str, Mapping[str, Sequence[float]]],
                dataset: str, kinds: Sequence[str]) -> Rows:
    rows = table.get(dataset, {})
    return {f'{kind}, paper': rows[kind] for kind in kinds if kind in rows}


def _all_layers(metric: Any, scale: float) -> list[Optional[float]]:
    """Of all layers together where that is defined, then of each, scaled."""
    values = [None, *metric]
    if isinstance(metric, Mapping):
        values = [metric['combined'], *metric['layers']]
    return [None if value is None else scale * value for value in values]


def best_metrics(report: Metrics) -> Metrics:
    """Those of the best way to infer graphs."""
    ways: list[Metrics] = [report[way] for way in BETTER if way in report]
    return [report, *ways][-1]


def layer_names(module: RelationalInference,
                metrics: Optional[Metrics] = None) -> list[str]:
    """Of the true layers, or of those predicted if metrics have no truth."""
    if metrics is None or 'relabelling' in metrics:
        num_layers = len(module.config.num_edge_types)
        return [module.layer_name(layer) for layer in range(num_layers)]
    num_layers = module.model.latent.num_layers
    return [f'predicted layer {layer}' for layer in range(num_layers)]


def save_report(module: RelationalInference, report: Metrics, path: str,
                **about: Any) -> None:
    config = module.config
    kept = 'model', 'regime', 'recipe', 'options', 'seed', 'data'
    plain = dict(_readable(report), layers=list(config.names), units=UNITS,
                 verdict=module.verdict or None, **about,
                 config={key: getattr(config, key)
                         for key in kept})
    write_text(path, json.dumps(plain, indent=2))


def _readable(report: Metrics) -> dict[str, Any]:
    return {
        key:
        _readable(value) if isinstance(value, dict) else
        str(value) if isinstance(value, Relabelling) else value
        for key, value in report.items()
    }


def write_pictures(module: RelationalInference, dataset: Systems,
                   metrics: Metrics, edge_type: Tensor,
                   laws: Optional[LawCurves], out: str,
                   num_drawn: int) -> list[str]:
    """Draws rollouts, a graph, calibration and force laws, as far as there are,
    from what :func:`~pyg_fnri.evaluation.measure` gives; returns file names."""
    relabelling = metrics.get('relabelling')
    pictures: dict[str, Figure] = {}
    if 'rollout_mse' in metrics and module.config.in_channels >= 4:
        pictures['trajectories.png'] = _draw_continuations(
            module, dataset, edge_type, relabelling, num_drawn)
    data = dataset[0]
    if 'entropy' in metrics and data.num_edges:  # It has been inferred.
        types = edge_type[:data.num_edges]
        pictures['graph.png'] = plot_multiplex(
            data.edge_index,
            types if relabelling is None else relabelling(types),
            data.get('edge_label'), names=list(module.config.names) or None)
    if 'reliability' in metrics:
        bins, errors = metrics['reliability'], metrics['calibration_error']
        panels = dict(zip(layer_names(module), bins['layers']))
        pictures['reliability.png'] = plot_reliability(
            dict(combined=bins['combined'], **panels),
            [errors['combined'], *errors['layers']])
    if laws is not None:
        pictures['laws.png'] = laws.plot()
    for name, picture in pictures.items():
        write_picture(os.path.join(out, name), picture)
    return list(pictures)


def _draw_continuations(module: RelationalInference, dataset: Systems,
                        edge_type: Tensor, relabelling: Optional[Relabelling],
                        num_drawn: int) -> Figure:
    """From the first state of :obj:`y` alone, as in the paper's figure."""
    model, start = module.model, 0
    frames, true, titles = [], [], []
    for i, data in zip(range(num_drawn), dataset):
        types = edge_type[start:start + data.num_edges]
        start += data.num_edges
        frames.append(roll_out(model, data, types, data.y.size(1)))
        true.append(data.y)
        title = f'{dataset.name} {i}'
        if relabelling is not None:
            right = (relabelling(types) == data.edge_label).all(-1)
            title = f'edges {right.double().mean():.0%} right'
        titles.append(title)
    return draw_rollouts(frames, true, titles=titles,
                         half_width=box_half_width(dataset),
                         unit=length_unit(dataset))


def draw_rollouts(frames: Sequence[Tensor], true: Sequence[Tensor],
                  **kwargs: Any) -> Figure:
    """Frames predicted from the first true one, over the true ones."""
    paths = [torch.cat([y[:, :1], x], dim=1) for x, y in zip(frames, true)]
    number = sum(not path.isfinite().all() for path in paths)
    if number:
        print(f'{number} of {len(paths)} rollouts drawn diverge: their '
              f'pictures end where they do')
    return plot_trajectories(paths, true, **kwargs)
