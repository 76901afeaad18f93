"""Infer the interaction graphs of your own trajectories, and the force laws.

    pyg-fnri infer my.csv --out graphs

Force laws are fitted from scratch, of the fewest layers by which they hold on
frames held out; where laws do not hold, networks are trained as well, and taken
if they predict better. What was found, and whether to believe it, is printed.
It is pf.infer('my.csv') of Python. Writes into --out:

- report.html: all of it on one page, to show to others; summary.txt,
- edges.csv: system, sender, receiver, layer, type, probability of that type; an
  apostrophe before a name that a spreadsheet would take for a formula,
- graphs.graphml: the interactions of all systems, each a part of its own,
- graph.png, heatmap.png: the graph of the first system, and how probable each
  interaction is; laws.csv, laws.png; trajectories.png, of held-out frames,
- changes.csv, changes.png, of windows: which interactions come and go,
- model.ckpt, systems.pt: for pf.load('graphs').

Other trajectories, by laws or networks that were trained before; they are read
as those were, where options do not say otherwise:

    pyg-fnri infer other.csv --checkpoint graphs --out others
    pyg-fnri infer other.csv --checkpoint runs/mine/best.ckpt --out others

Layer 0 may be any kind of interaction: nobody told what layers are.
"""
import argparse
import os
import time
from typing import Any, Optional

from pyg_fnri.commands.cli import (OptionParser, OwnData, errors_in_one_line,
                                   given)


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = OptionParser('pyg-fnri infer', __doc__)
    for name in ('data', '--data'):
        parser.add_argument(
            name, nargs='?' if name == 'data' else None, metavar='FILE',
            default=argparse.SUPPRESS,
            help='trajectories: a table .csv or .parquet, an '
            'array .npy or .npz, or a folder of NRI\'s code')
    parser.add_argument('--checkpoint', metavar='PATH',
                        help='a result, or a trained model, to infer by')
    parser.add_argument(
        '--layers', nargs='+', type=int, metavar='K', default=argparse.SUPPRESS,
        help='types of each layer, no interaction included '
        '[the fewest layers that do]')
    parser.add_argument(
        '--method', default=argparse.SUPPRESS,
        choices=('auto', 'laws', 'networks'), help='what explains motion '
        '[auto: laws, or networks where no laws hold]')
    parser.add_argument('--directed', action='store_true',
                        default=argparse.SUPPRESS,
                        help='infer each direction of a pair by itself')
    parser.add_argument('--shared', action='store_true',
                        help='one graph for all systems, of the same particles')
    parser.add_argument('--seed', type=int, default=argparse.SUPPRESS,
                        help='of all randomness [0]')
    parser.add_fields(
        'how trajectories are read', OwnData,
        ['system', 'time', 'particle', 'position', 'time_step', 'window'], [
            'velocity', 'mass', 'axes', 'every', 'max_gap', 'min_particles',
            'project', 'edges', 'stride', 'neighbours', 'radius'
        ])
    parser.add_argument(
        '--stay', type=float, default=0.5, metavar='P',
        help='how probably pairs stay as they are from window '
        'to window; more than 0.5 smooths changes [%(default)s]')
    parser.add_argument('--out', required=True, metavar='DIR',
                        help='where results go; made if need be')
    parser.add_argument('--overwrite', action='store_true',
                        help='replace results in --out')
    args: argparse.Namespace = parser.parse_args(argv)
    if not 0 < args.stay < 1:
        parser.error(f'--stay must be between 0 and 1, but is {args.stay:g}')
    if args.checkpoint is not None and _settings(args):
        parser.error(f'--{min(_settings(args))} is of a fit, and --checkpoint '
                     f'is of one already; leave one of them out')
    if 'data' not in args:
        parser.error('name the trajectories: pyg-fnri infer FILE --out DIR')
    return args


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """Of a fit, those that were given."""
    names = {'layers', 'method', 'directed', 'seed'}
    return {name: vars(args)[name] for name in names & vars(args).keys()}


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    start = time.monotonic()
    options: dict[str, Any] = given(args, OwnData)
    data = options.pop('data')
    with errors_in_one_line():
        from pyg_fnri.estimator import GraphEstimator, load, present_results
        there = present_results(args.out)
        if there and not args.overwrite:
            raise ValueError(f"'{args.out}' holds {there[0]} already; allow to "
                             f"--overwrite the results there, or name another "
                             f"directory.")
        if args.checkpoint is not None:
            model = load(args.checkpoint)
            model.shared |= args.shared
            result = model.infer(data, **options)
        else:
            result = GraphEstimator(shared=args.shared,
                                    **_settings(args)).fit(data, **options)
        result.save(args.out, args.stay)
    print(result)
    if args.shared and 'window' in options:
        print('windows of one recording are not independent: these '
              'probabilities are overconfident')
    print(f'{time.monotonic() - start:.0f} seconds; written into {args.out}: '
          f"{', '.join(present_results(args.out))}\nlook at "
          f"{os.path.join(args.out, 'report.html')}")
