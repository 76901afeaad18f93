"""Measure a trained model beside the paper's figures, and draw what it sees.

    python scripts/evaluate.py --checkpoint runs/demo/best.ckpt

Infers the interaction graph of each test system from its first 49 frames and
predicts its last 49 with it. Prints the paper's rows beside ours and writes
into --out: metrics.json, trajectories.png (predicted against true) and
graph.png (inferred against true).

Accuracies are strict: one relabelling of layers and types for the whole data
set. Errors are mean squared errors in units of 1e-5 of positions and
velocities min-max scaled with the training split's extremes, as in the paper.
"""
import argparse
import json
import os
import sys
import tempfile
from typing import Any, Optional

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from pyg_fnri import published
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.evaluation import evaluate
from pyg_fnri.loader import SystemLoader
from pyg_fnri.plot import plot_multiplex, plot_trajectories
from pyg_fnri.training import RelationalInference, load_checkpoint
from pyg_fnri.transforms import SplitTrajectory


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars='@')
    parser.convert_arg_line_to_args = str.split  # type: ignore[assignment]
    parser.add_argument('--checkpoint', required=True, metavar='FILE',
                        help='written by scripts/train.py')
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept, or made [%(default)s]')
    parser.add_argument('--split', default='test',
                        choices=('train', 'val', 'test'),
                        help='which systems [%(default)s]')
    parser.add_argument('--num-systems', type=int, metavar='S',
                        help='only the first S systems [all]')
    parser.add_argument('--num-drawn', type=int, default=4, metavar='S',
                        choices=range(1, 13),
                        help='systems to draw, 1 to 12 [%(default)s]')
    parser.add_argument('--out', metavar='DIR',
                        help="where results go [the checkpoint's directory]")
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    out = args.out or os.path.dirname(args.checkpoint) or '.'
    try:
        module = load_checkpoint(args.checkpoint)
        check_out(out)
        dataset = open_dataset(module, args)
        batches = track(SystemLoader(dataset, batch_size=500), 'evaluating',
                        transient=True)
        report = evaluate(module.model, batches, module.units,
                          dataset.num_edge_types, published.HORIZONS)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(str(error))
    print_report(module, dataset.name, report)
    save_report(module, args, report, out)
    draw(module, dataset, report, args.num_drawn, out)
    print(f'\nwritten: {out}/metrics.json, trajectories.png, graph.png')


def check_out(out: str) -> None:
    """Makes sure, before the work, that results can be written."""
    try:
        os.makedirs(out, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        sys.exit(f"Cannot write to '{out}' ({error.strerror}); name another "
                 f"directory with --out.")


def open_dataset(module: RelationalInference,
                 args: argparse.Namespace) -> ParticleSystems:
    """The data set that the model was trained on, another split of it."""
    data = dict(module.config.data)
    if 'num_systems' not in data:
        raise ValueError(f"'{args.checkpoint}' does not tell which data set it "
                         f"was trained on; expected a file written by "
                         f"scripts/train.py. Evaluate others with "
                         f"pyg_fnri.evaluation.evaluate.")
    data['num_systems'] = tuple(data['num_systems'])
    dataset = ParticleSystems(
        args.root, split=args.split,
        transform=SplitTrajectory(module.config.num_observed), **data)
    if args.num_systems is not None:
        if not 1 <= args.num_systems <= len(dataset):
            raise ValueError(f"--num-systems is {args.num_systems}, but the "
                             f"{args.split} split has 1 to {len(dataset)}.")
        dataset = dataset[:args.num_systems]
    return dataset


def print_report(module: RelationalInference, name: str,
                 report: dict[str, Any]) -> None:
    """The paper's tables 1 and 2, our rows last."""
    model = module.config.model
    console = Console()
    where = f"{name}, {report['num_systems']} systems"
    names = list(module.config.names)

    table = Table(title=f'Edge accuracy (%), {where}', title_justify='left')
    for column in ['', 'combined', *names]:
        table.add_column(column, justify='left' if not column else 'right')
    for row in ('random', f'{model} (learned)', f'{model} (supervised)'):
        values = published.published(published.ACCURACY, name, row)
        if values:
            table.add_row(f'{row}, paper', *(f'{v:.1f}' for v in values))
    for key, row in (('edge_accuracy', 'ours, strict'),
                     ('joint_edge_accuracy', "ours, authors' joint metric")):
        if key in report:
            values = [report[key]['combined'], *report[key]['layers']]
            table.add_row(f'{model} (learned), {row}',
                          *(f'{100 * v:.1f}' for v in values),
                          style='bold' if key == 'edge_accuracy' else '')
    console.print(table)
    if 'relabelling' in report:
        console.print(f"relabelling found: {report['relabelling']}\n")

    table = Table(
        title=f'Rollout mean squared error (1e-5, min-max units), '
        f'{where}', title_justify='left')
    for column in ['', *(f'{h} steps' for h in report['rollout_mse'])]:
        table.add_column(column, justify='left' if not column else 'right')
    for row in ('static', f'{model} (learned)', f'{model} (true graph)'):
        values = published.published(published.ROLLOUT_MSE, name, row)
        if values:
            table.add_row(f'{row}, paper', *map(_error, values))
    table.add_row('static, ours',
                  *(_error(1e5 * v) for v in report['static_mse'].values()))
    table.add_row(f'{model} (learned), ours',
                  *(_error(1e5 * v) for v in report['rollout_mse'].values()),
                  style='bold')
    console.print(table)


def _error(value: float) -> str:
    return f'{value:.3g}'


def save_report(module: RelationalInference, args: argparse.Namespace,
                report: dict[str, Any], out: str) -> None:
    """All numbers, with what they are numbers of."""
    config = module.config
    plain = {
        **report,
        'relabelling': str(report.get('relabelling', '')),
        'layers': list(config.names),
        'units': {
            'edge_accuracy': 'fraction; one relabelling for all systems',
            'rollout_mse': 'mean square of min-max scaled features',
        },
        'checkpoint': args.checkpoint,
        'split': args.split,
        'config': {
            'model': config.model,
            'recipe': config.recipe,
            'options': config.options,
            'seed': config.seed,
            'data': config.data,
        },
    }
    path = os.path.join(out, 'metrics.json')
    with open(f'{path}.part', 'w') as file:
        json.dump(plain, file, indent=2)
    os.replace(f'{path}.part', path)


def draw(module: RelationalInference, dataset: ParticleSystems,
         report: dict[str, Any], num_drawn: int, out: str) -> None:
    """The two pictures, of the first systems of the split."""
    model = module.model
    predicted, true, titles = [], [], []
    for i, data in enumerate(dataset[:num_drawn]):
        edge_type = model.predict(data)
        with torch.no_grad():
            edge_attr = model.latent.encode_types(edge_type)
            # From the first state alone, as in the paper's figure.
            path = model.decode(data.y, data.edge_index, edge_attr,
                                data.y.size(1))
        predicted.append(torch.cat([data.y[:, :1], path], dim=1))
        true.append(data.y)
        title = f'{dataset.name} {i}'
        if 'relabelling' in report:
            right = (report['relabelling'](edge_type) == data.edge_label)
            title = f'edges {right.all(-1).double().mean():.0%} right'
        titles.append(title)
    plot_trajectories(predicted, true, titles=titles).savefig(
        os.path.join(out, 'trajectories.png'))

    data = dataset[0]
    edge_type = model.predict(data)
    if 'relabelling' in report:
        edge_type = report['relabelling'](edge_type)
    plot_multiplex(data.edge_index, edge_type,
                   data.edge_label if 'edge_label' in data else None,
                   names=list(module.config.names)).savefig(
                       os.path.join(out, 'graph.png'))


if __name__ == '__main__':
    main()
