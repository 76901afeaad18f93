"""Measure a trained model beside the paper's figures, and draw what it sees.

    python scripts/evaluate.py --checkpoint runs/demo/best.ckpt

Infers the interaction graph of each test system from its first 49 frames and
predicts its last 49 with it; a decoder alone is given the true graph, an
encoder alone predicts nothing. Prints the paper's rows beside ours, what can
be had without a model, and how far the model's probabilities can be trusted.
Writes into --out: metrics.json, trajectories.png (predicted against true),
graph.png (inferred against true), reliability.png and, where the decoder is
made of force laws (see scripts/em.py), laws.png and laws.csv. With --refine,
each graph is also improved by what the decoder makes of the same 49 frames.

    python scripts/evaluate.py --checkpoint runs/demo/best.ckpt \\
        --refine --samples 32

also says how sure that can be: probabilities are averaged over 32 graphs drawn
from the posterior, given the decoder's errors, whose size and tails are fitted
without labels. It takes a few times as long. Pictures are then of these.

Accuracies are strict: one relabelling of layers and types for the whole data
set. Where the truth is not known, there are none. Errors are mean squared
errors in units of 1e-5 of positions and velocities min-max scaled with the
training split's extremes, as in the paper.
"""
import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Optional

import torch
from rich.progress import track
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.datasets.spec import Systems, open_dataset
from pyg_fnri.datasets.stored import check_writable, written_whole
from pyg_fnri.evaluation import (
    Graph,
    LawCurves,
    best_figures,
    evaluate,
    guessing_accuracy,
    law_curves,
    print_report,
    published,
    write_pictures,
)
from pyg_fnri.inference import refine, sample_posterior
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import Relabelling
from pyg_fnri.nn import ForceLawDecoder, RelationalAutoEncoder
from pyg_fnri.training import RelationalInference, load_checkpoint
from pyg_fnri.transforms import SplitTrajectory

#: Gives the graphs of a model and a batch.
Infer = Callable[[RelationalAutoEncoder, Data], Graph]

#: Systems in a batch, as in the paper: whether batches agree about what the
#: model's labels mean depends on it.
BATCH_SIZE = 128


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
    parser.add_argument('--samples', type=int, metavar='N',
                        help='with --refine, also draw N graphs of each')
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
        check_samples(args)
        module = load_checkpoint(args.checkpoint)
        if args.refine:
            module.require('encoder', 'decoder')
        check_writable(out)
        dataset = open_systems(module, args)
        kept = FirstGraphs(first_guess(module), args.num_drawn)
        report = measure(module, dataset, kept, 'evaluating')
        report.update(measure_floors(module, dataset, args.root))
        for name, infer in better_guesses(args).items():
            kept = FirstGraphs(infer, args.num_drawn)
            report[name] = measure(module, dataset, kept, name)
        laws = find_laws(module, dataset, report)
        if laws is not None and laws.error is not None:
            report['law_error'] = dict(zip(laws.names, laws.error))
        print_report(module, dataset, report, BATCH_SIZE)
        save_report(module, args, report, out)
        written = ['metrics.json']
        if laws is not None:
            laws.save(os.path.join(out, 'laws.csv'))
            written.append('laws.csv')
        written += write_pictures(module, dataset, best_figures(report),
                                  kept.graphs, laws, out)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        sys.exit(str(error))
    print(f"\nwritten into {out}: {', '.join(written)}")


class FirstGraphs:
    """Infers graphs, and keeps the types :obj:`[num_edges, num_layers]` of
    the first systems: alone, they could be inferred otherwise.

    Args:
        infer: Gives the graphs of a batch.
        num: How many to keep, of the first batch at the most.
    """
    def __init__(self, infer: Infer, num: int) -> None:
        self.infer = infer
        self.num = num
        self.graphs: list[Tensor] = []

    def __call__(self, model: RelationalAutoEncoder, data: Data) -> Graph:
        graph = self.infer(model, data)
        if not self.graphs:
            system = data.batch[data.edge_index[1]]
            counts = system.bincount(minlength=data.num_graphs).tolist()
            self.graphs = list(graph[0].split(counts)[:self.num])
        return graph


def check_samples(args: argparse.Namespace) -> None:
    """Raises a ValueError unless as many samples can be drawn."""
    if args.samples is not None and not (args.refine and args.samples >= 1):
        with_it = 'with' if args.refine else 'without'
        raise ValueError(f"--samples is {args.samples}, {with_it} --refine: "
                         f"expected at least 1, with --refine, which the "
                         f"samples start from.")


def first_guess(module: RelationalInference) -> Infer:
    """The graph that a model is measured with."""
    if module.config.regime == 'true_graph':
        return lambda model, data: (module.true_types(data), None)
    return RelationalAutoEncoder.infer


def better_guesses(args: argparse.Namespace) -> dict[str, Infer]:
    """What is asked for beyond it, the best one last."""
    guesses: dict[str, Infer] = {}
    if args.refine:
        guesses['refined'] = refine
    if args.samples is not None:
        guesses['sampled'] = partial(sample_posterior, num_samples=args.samples)
    return guesses


def measure(module: RelationalInference, dataset: Systems, infer: Infer,
            doing: str) -> dict[str, Any]:
    """All figures of one way to infer graphs."""
    start = time.monotonic()
    batches = track(SystemLoader(dataset, BATCH_SIZE), doing, transient=True)
    horizons = published.HORIZONS if module.is_trained('decoder') else ()
    report = evaluate(module.model, batches, module.units,
                      module.config.num_edge_types, horizons,
                      partial(infer, module.model), module.linear_step)
    report['seconds'] = time.monotonic() - start
    return report


def measure_floors(module: RelationalInference, dataset: Systems,
                   root: str) -> dict[str, Any]:
    """The accuracy of guesses, where there are graphs to guess."""
    if module.config.regime == 'true_graph' or 'edge_label' not in dataset[0]:
        return {}
    train = open_dataset(module.config.data, root, 'train')
    return guessing_accuracy(true_types(train), true_types(dataset),
                             module.config.num_edge_types)


def find_laws(module: RelationalInference, dataset: Systems,
              report: dict[str, Any]) -> Optional[LawCurves]:
    """The force laws that the model predicts with, if it does."""
    layer = module.model.decoder.layer
    if 'rollout_mse' not in report or not isinstance(layer, ForceLawDecoder):
        return None
    return law_curves(layer, dataset, best_figures(report).get('relabelling'))


def true_types(dataset: Systems) -> Tensor:
    """The true types of all edges, :obj:`[num_edges, num_layers]`."""
    return torch.cat([b.edge_label for b in SystemLoader(dataset, 1000)])


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


def save_report(module: RelationalInference, args: argparse.Namespace,
                report: dict[str, Any], out: str) -> None:
    """All numbers, with what they are numbers of."""
    config = module.config
    plain = {
        **_readable(report),
        'layers': list(config.names),
        'units': {
            'edge_accuracy':
            'fraction; one relabelling for all systems',
            'rollout_mse':
            'mean square of min-max scaled features',
            'entropy':
            'nats',
            'calibration_error':
            'fraction; 15 bins of equal width',
            'law_error':
            'fraction; at the distances seen of pairs that it '
            'acts on, 1 to 99 %',
        },
        'checkpoint': args.checkpoint,
        'split': args.split,
        'config': {
            'model': config.model,
            'regime': config.regime,
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


if __name__ == '__main__':
    main()
