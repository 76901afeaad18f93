"""Measure a trained model beside the paper's numbers, and draw what it sees.

    pyg-fnri evaluate --checkpoint runs/demo/best.ckpt

Infers the interaction graph of each test system from its first 49 frames, with
force laws by one relaxation, and predicts its last 49 with it; a decoder alone
is given the true graph, an encoder alone predicts nothing. Prints the paper's
rows beside ours, baselines, and how far the model's probabilities can be
trusted. Writes into --out: metrics.json, trajectories.png, graph.png,
reliability.png and, where the decoder is made of force laws (see pyg-fnri
train), laws.png and laws.csv: with standard errors, and in words.

With --refine, each graph is also improved by what the decoder makes of the same
49 frames; with --refine --samples 32, probabilities are also averaged over 32
graphs drawn from the posterior, which takes a few times as long. Pictures are
of the best graphs.

Accuracies are strict: one relabelling of layers and types for the whole data
set. Errors are mean squared errors in units of 1e-5 of positions and velocities
min-max scaled with the training split's extremes, as in the paper.
"""
import argparse
import os
from functools import partial
from typing import Any, Optional

from pyg_fnri.commands.cli import errors_in_one_line


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='pyg-fnri evaluate', description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--checkpoint', required=True, metavar='FILE',
                        help='written by pyg-fnri train')
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept, or made [%(default)s]')
    parser.add_argument('--data', metavar='FILE',
                        help='where the trajectories of training are now')
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
    args = parser.parse_args(argv)
    if args.samples is not None and not (args.refine and args.samples > 0):
        parser.error('--samples takes a number from 1 on, with --refine, '
                     'which the samples start from')
    return args


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    out = args.out or os.path.dirname(args.checkpoint) or '.'
    with errors_in_one_line():
        from pyg_fnri.datasets.spec import open_dataset
        from pyg_fnri.datasets.stored import check_writable
        from pyg_fnri.evaluation import (best_metrics, find_laws, measure,
                                         measure_guesses, print_report,
                                         save_report, write_pictures)
        from pyg_fnri.inference import refine, sample_posterior
        from pyg_fnri.training import load_checkpoint
        from pyg_fnri.transforms import SplitTrajectory
        module = load_checkpoint(args.checkpoint)
        if args.refine:
            module.require('encoder', 'decoder')
        check_writable(out)
        dataset: Any = open_dataset(module.config.data, args.root, args.split,
                                    SplitTrajectory(module.config.num_observed),
                                    args.data)
        if args.num_systems is not None:
            if not 1 <= args.num_systems <= len(dataset):
                raise ValueError(f'--num-systems is {args.num_systems}, but '
                                 f'the {args.split} split has 1 to '
                                 f'{len(dataset)}.')
            dataset = dataset[:args.num_systems]
        report, types = measure(module, dataset)
        report |= measure_guesses(module, dataset, args.root, args.data)
        ways = {}  # The best last.
        if args.refine:
            ways['refined'] = partial(refine, module.model)
        if args.samples is not None:
            ways['sampled'] = partial(sample_posterior, module.model,
                                      num_samples=args.samples)
        for way, infer in ways.items():
            report[way], types = measure(module, dataset, infer, way)
        best = best_metrics(report)
        laws = find_laws(module, dataset, best, types)
        if laws is not None:
            report |= laws.metrics()
            if laws.error is not None:
                report['law_error'] = dict(zip(laws.names, laws.error))
        print_report(module, dataset, report)
        save_report(module, report, os.path.join(out, 'metrics.json'),
                    checkpoint=args.checkpoint, split=args.split)
        written = ['metrics.json']
        if laws is not None:
            laws.save(os.path.join(out, 'laws.csv'))
            written.append('laws.csv')
        written += write_pictures(module, dataset, best, types, laws, out,
                                  args.num_drawn)
    print(f"\nwritten into {out}: {', '.join(written)}")
