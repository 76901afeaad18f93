"""Measure a trained model beside the paper's figures, and draw what it sees.

    python scripts/evaluate.py --checkpoint runs/demo/best.ckpt

Infers the interaction graph of each test system from its first 49 frames and
predicts its last 49 with it. Prints the paper's rows beside ours and writes
into --out: metrics.json, trajectories.png (predicted against true), graph.png
(inferred against true) and, where the decoder is made of force laws (see
scripts/em.py), laws.png and laws.csv. With --refine, each graph is also
improved by what the decoder makes of the same 49 frames.

Accuracies are strict: one relabelling of layers and types for the whole data
set. Where the truth is not known, there are none. Errors are mean squared
errors in units of 1e-5 of positions and velocities min-max scaled with the
training split's extremes, as in the paper.
"""
import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Optional

import pandas as pd
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri import published
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.evaluation import evaluate
from pyg_fnri.inference import refine
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import Relabelling
from pyg_fnri.nn import ForceLawDecoder
from pyg_fnri.opening import Systems, open_dataset
from pyg_fnri.plot import plot_laws, plot_multiplex, plot_trajectories
from pyg_fnri.training import RelationalInference, load_checkpoint
from pyg_fnri.transforms import SplitTrajectory
from pyg_fnri.writing import check_writable, written_whole


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
    parser.add_argument('--refine', action='store_true',
                        help='also refine each graph by the decoder')
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
        check_writable(out)
        dataset = open_systems(module, args)
        report = measure(module, dataset)
        if args.refine:
            report['refined'] = measure(module, dataset, refined=True)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(str(error))
    print_report(module, dataset, report)
    save_report(module, args, report, out)
    draw(module, dataset, report, args.num_drawn, out)
    print(f'\nwritten into {out}: ' +
          ', '.join(name for name in ('metrics.json', 'trajectories.png',
                                      'graph.png', 'laws.png', 'laws.csv')
                    if os.path.exists(os.path.join(out, name))))


def infer_refined(module: RelationalInference) -> Callable[[Data], Tensor]:
    """Gives graphs that the decoder has improved."""
    return lambda data: refine(module.model, data).edge_type


def measure(module: RelationalInference, dataset: Systems,
            refined: bool = False) -> dict[str, Any]:
    """All figures of one way to infer graphs."""
    start = time.monotonic()
    batches = track(SystemLoader(dataset, batch_size=500),
                    'refining' if refined else 'evaluating', transient=True)
    report = evaluate(module.model, batches, module.units,
                      module.config.num_edge_types, published.HORIZONS,
                      infer_refined(module) if refined else None)
    report['seconds'] = time.monotonic() - start
    return report


def open_systems(module: RelationalInference,
                 args: argparse.Namespace) -> Systems:
    """The data set that the model was trained on, another split of it."""
    dataset = open_dataset(module.config.data, args.root, args.split,
                           SplitTrajectory(module.config.num_observed))
    if args.num_systems is not None:
        if not 1 <= args.num_systems <= len(dataset):
            raise ValueError(f"--num-systems is {args.num_systems}, but the "
                             f"{args.split} split has 1 to {len(dataset)}.")
        dataset = dataset[:args.num_systems]
    return dataset


def print_report(module: RelationalInference, dataset: Systems,
                 report: dict[str, Any]) -> None:
    """The paper's tables 1 and 2, our rows last; errors alone where the truth
    is not known."""
    model = module.config.model
    console = Console()
    where = f"{dataset.name}, {report['num_systems']} systems"
    # A user's file may be called as one of the paper's systems.
    name = dataset.name if isinstance(dataset, ParticleSystems) else ''
    ours = {f'{model} (learned), ours': report}
    if 'refined' in report:
        ours[f'{model} (learned), ours, refined'] = report['refined']
    if 'edge_accuracy' in report:
        print_accuracies(console, module, name, where, ours)
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
    for row, figures in ours.items():
        table.add_row(
            row, *(_error(1e5 * v) for v in figures['rollout_mse'].values()),
            style='bold')
    console.print(table)


def print_accuracies(console: Console, module: RelationalInference, name: str,
                     where: str, ours: dict[str, Any]) -> None:
    """The paper's table 1, our rows last."""
    model, names = module.config.model, list(module.config.names)
    table = Table(title=f'Edge accuracy (%), {where}', title_justify='left')
    for column in ['', 'combined', *names]:
        table.add_column(column, justify='left' if not column else 'right')
    for row in ('random', f'{model} (learned)', f'{model} (supervised)'):
        values = published.published(published.ACCURACY, name, row)
        if values:
            table.add_row(f'{row}, paper', *(f'{v:.1f}' for v in values))
    for row, figures in ours.items():
        for key, metric in (('edge_accuracy', 'strict'),
                            ('joint_edge_accuracy', "authors' joint metric")):
            values = [figures[key]['combined'], *figures[key]['layers']]
            table.add_row(f'{row}, {metric}',
                          *(f'{100 * v:.1f}' for v in values),
                          style='bold' if metric == 'strict' else '')
    console.print(table)


def _error(value: float) -> str:
    return f'{value:.3g}'


def save_report(module: RelationalInference, args: argparse.Namespace,
                report: dict[str, Any], out: str) -> None:
    """All numbers, with what they are numbers of."""
    config = module.config
    plain = {
        **_readable(report),
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
    with written_whole(os.path.join(out, 'metrics.json')) as path:
        with open(path, 'w') as file:
            json.dump(plain, file, indent=2)


def _readable(report: dict[str, Any]) -> dict[str, Any]:
    """With relabellings in words."""
    return {
        key:
        _readable(value) if isinstance(value, dict) else
        str(value) if isinstance(value, Relabelling) else value
        for key, value in report.items()
    }


def draw(module: RelationalInference, dataset: Systems, report: dict[str, Any],
         num_drawn: int, out: str) -> None:
    """The pictures, of the first systems of the split."""
    model = module.model
    infer, figures = model.predict, report
    if 'refined' in report:
        infer, figures = infer_refined(module), report['refined']
    relabelling = figures.get('relabelling')
    predicted, true, titles = [], [], []
    for i, data in enumerate(dataset[:num_drawn]):
        edge_type = infer(data)
        with torch.no_grad():
            edge_attr = model.latent.encode_types(edge_type)
            # From the first state alone, as in the paper's figure.
            path = model.decode(data.y, data.edge_index, edge_attr,
                                data.y.size(1))
        predicted.append(torch.cat([data.y[:, :1], path], dim=1))
        true.append(data.y)
        title = f'{dataset.name} {i}'
        if relabelling is not None:
            edge_type = relabelling(edge_type)
            right = (edge_type == data.edge_label).all(-1).double().mean()
            title = f'edges {right:.0%} right'
        titles.append(title)
        if i == 0 and data.num_edges:
            plot_multiplex(data.edge_index, edge_type, data.get('edge_label'),
                           names=list(module.config.names)
                           or None).savefig(os.path.join(out, 'graph.png'))
    if module.config.in_channels >= 4:  # There is a plane to draw in.
        plot_trajectories(predicted, true, titles=titles).savefig(
            os.path.join(out, 'trajectories.png'))
    if isinstance(model.decoder.layer, ForceLawDecoder):
        draw_laws(model.decoder.layer, dataset, relabelling, out)


def draw_laws(layer: ForceLawDecoder, dataset: Systems,
              relabelling: Optional[Relabelling], out: str) -> None:
    """The laws found, in the order of the true forces where one is known."""
    batch = next(iter(SystemLoader(dataset, 200)))
    position = torch.cat([batch.x, batch.y], dim=1)[..., :batch.x.size(-1) // 2]
    sender, receiver = batch.edge_index
    seen = (position[sender] - position[receiver]).norm(dim=-1).flatten()
    distance = torch.logspace(math.log10(seen.min()), math.log10(seen.max()),
                              200)
    with torch.no_grad():
        learned = layer.law(distance)
    channels = None
    if relabelling is not None:
        channels = law_of_layer(relabelling, learned.size(0))
    true = None
    names = [f'law {channel}' for channel in range(learned.size(0))]
    table = {'distance_m': distance}
    if channels is not None:
        learned, names = learned[channels], list(dataset.names)
    if channels is not None and isinstance(dataset, ParticleSystems):
        true = torch.stack([
            torch.tensor([force.magnitude(r) for r in distance.tolist()])
            for force in dataset.forces
        ]).float()
        table.update({f'{n}_true': f for n, f in zip(names, true)})
    table.update({n: f for n, f in zip(names, learned)})
    pd.DataFrame({
        k: v.numpy()
        for k, v in table.items()
    }).to_csv(os.path.join(out, 'laws.csv'), index=False)
    plot_laws(distance, learned, true, names=names,
              seen=seen).savefig(os.path.join(out, 'laws.png'))


def law_of_layer(relabelling: Relabelling,
                 num_channels: int) -> Optional[list[int]]:
    """The channel that stands for each force alone; None where a force has
    none, or more than one."""
    sizes = relabelling.predicted_edge_types
    if num_channels != len(sizes) or any(k != 2 for k in sizes):
        return None
    one_hot = torch.eye(len(sizes), dtype=torch.long)
    forces = relabelling(one_hot)  # Row: what one channel alone stands for.
    if not bool((forces.sum(0) == 1).all() and (forces.sum(1) == 1).all()):
        return None
    return forces.argmax(0).tolist()


if __name__ == '__main__':
    main()
