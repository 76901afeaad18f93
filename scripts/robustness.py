"""Measure how robust laws and graphs are that are found from nothing.

Seconds, to see that all works; then all curves and ablations, of one seed or
of three, about three quarters of an hour of one core each, and 12 GiB of memory
for 50,000 training systems:

    python scripts/robustness.py --scale smoke
    python scripts/robustness.py --seeds 0
    python scripts/robustness.py --seeds 0 1 2

On systems of springs and charges, laws are found without labels and with an
untrained encoder, then the graphs of 500 unseen systems. A curve varies one
quantity:

    frames      observed frames, of training systems and of unseen ones
    noise       Gaussian noise on all frames
    systems     number of training systems
    particles   particles of the unseen systems, with laws from systems of 5
    interval    time between two frames

An ablation takes one part of the method out. Two of them compare a trained
encoder that is heard with one that is only started from; they are left out
unless --encoder names a checkpoint of scripts/train.py.

    python scripts/robustness.py --curve noise frames
    python scripts/robustness.py --ablations --encoder runs/demo/best.ckpt

Writes into --out a JSON file for each point, whatever came of it, and of all
that is there robustness.md and robustness.png. Stopped and started again, it
goes on where it was.
"""
import argparse
import os
import sys
import time
from pathlib import Path
from typing import Optional

import torch

from pyg_fnri.datasets.stored import check_writable, written_whole
from pyg_fnri.experiments.ablations import ABLATIONS
from pyg_fnri.experiments.law_finding import NAME, TYPES, LawFinder
from pyg_fnri.experiments.robustness import CURVES, STUDIES, Study
from pyg_fnri.experiments.robustness_records import Records
from pyg_fnri.experiments.robustness_report import (
    robustness_curves,
    robustness_report,
)
from pyg_fnri.plot import plot_robustness
from pyg_fnri.training import RelationalInference, load_checkpoint


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--curve', nargs='+', choices=CURVES, default=[], metavar='CURVE',
        help='what to vary, of ' + ', '.join(CURVES) +
        ' [all, and the ablations]')
    parser.add_argument('--ablations', action='store_true',
                        help='take parts of the method out')
    parser.add_argument('--encoder', metavar='FILE',
                        help='a checkpoint, for the ablations of the encoder')
    parser.add_argument('--seeds', nargs='+', type=int, default=[0, 1, 2],
                        metavar='SEED', help='seeds [0 1 2]')
    parser.add_argument('--scale', choices=STUDIES, default='full',
                        help='how far it goes [%(default)s]')
    parser.add_argument(
        '--report-only', action='store_true',
        help='measure nothing; make table and figure of what '
        'is there')
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept, or made [%(default)s]')
    parser.add_argument(
        '--out', metavar='DIR', help='where results go [results/robustness, or '
        'results/smoke/robustness]')
    parser.add_argument('--threads', type=int, default=1,
                        help="PyTorch's threads [%(default)s]")
    args = parser.parse_args(argv)
    if min(args.seeds) < 0:
        parser.error(f'--seeds must be at least 0, not {min(args.seeds)}')
    if not args.curve and not args.ablations:
        args.curve, args.ablations = list(CURVES), True
    if args.out is None:
        middle = [] if args.scale == 'full' else [args.scale]
        args.out = os.path.join('results', *middle, 'robustness')
    return args


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    study, records = STUDIES[args.scale], Records(args.out)
    try:
        check_writable(args.out)
        if not args.report_only:
            measure(args, study, records)
        report(args, study, records)
    except (OSError, ValueError) as error:
        sys.exit(str(error))


def measure(args: argparse.Namespace, study: Study, records: Records) -> None:
    """Measures the points asked for that are not there yet."""
    encoder = load_encoder(args.encoder, study) if args.encoder else None
    names = list(ABLATIONS) if args.ablations else []
    left_out = [n for n in names if ABLATIONS[n].trained and encoder is None]
    if left_out:
        print(f"Left out for lack of --encoder: {'; '.join(left_out)}.")
    finder = LawFinder(study, args.root, encoder)
    points = study.points(args.curve, [n for n in names if n not in left_out],
                          args.seeds)
    for number, point in enumerate(points, 1):
        heading = f'{number} of {len(points)}, {point.name}'
        if records.load(point) is not None:
            print(f'{heading}: is there already')
            continue
        start = time.perf_counter()
        figures = finder.measure(point.condition, point.seed, point.sampled)
        seconds = time.perf_counter() - start
        records.save(
            point, figures, seconds=seconds,
            encoder=args.encoder if point.condition.method.trained else None)
        print(f'{heading}: {words(figures)}, {seconds:.0f} s', flush=True)


def words(figures: dict) -> str:
    if 'failed' in figures:
        return f"failed: {figures['failed']}"
    text = f"{100 * figures['refined']['combined']:.2f} % of the edges right"
    return text if figures['confirmed'] else f'{text}, laws not confirmed'


def load_encoder(path: str, study: Study) -> RelationalInference:
    """A trained encoder.

    Raises:
        ValueError: If it is none of springs and charges, or sees another
            number of frames.
    """
    module = load_checkpoint(path)
    module.require('encoder')
    config, expected = module.config, study.standard.num_observed
    if (tuple(config.num_edge_types) != TYPES or config.in_channels != 4
            or config.num_observed != expected
            or module.model.latent.num_layers != len(TYPES)):
        raise ValueError(
            f"The encoder of '{path}' is of {config.in_channels} features in "
            f"{config.num_observed} frames and edge types "
            f"{list(config.num_edge_types)}, by the model '{config.model}'; "
            f"expected 4 features, {expected} frames, and the layers "
            f"{list(TYPES)} of '{NAME}', by 'fnri' or 'sfnri'.")
    return module


def report(args: argparse.Namespace, study: Study, records: Records) -> None:
    """Writes tables and figure of all that is there."""
    seeds = seeds_there(records)
    command = f'python scripts/robustness.py --scale {study.name}'
    made = robustness_report(study, records, seeds, command)
    path = os.path.join(args.out, 'robustness.md')
    with written_whole(path) as part:
        Path(part).write_text(made.markdown(), encoding='utf-8')
    print(f'written into {path}')
    panels = robustness_curves(study, records, seeds)
    if panels:
        path = os.path.join(args.out, 'robustness.png')
        title = (f'Springs and charges (I+C), laws found from nothing, '
                 f'{study.standard.num_test} unseen systems a point; strict '
                 f'edge accuracy and relative error of laws')
        with written_whole(path) as part:
            plot_robustness(panels, title).savefig(part, format='png')
        print(f'written into {path}')


def seeds_there(records: Records) -> list[int]:
    """Seeds of which anything was measured, by the names of files."""
    texts = {
        path.stem.rpartition('-seed')[2]
        for path in Path(records.directory).glob('*-seed*.json')
    }
    return sorted(int(text) for text in texts if text.isdecimal())


if __name__ == '__main__':
    main()
