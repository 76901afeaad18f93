"""Infer the interaction graphs of your own trajectories.

    python scripts/infer.py --checkpoint runs/mine/best.ckpt --data my.csv \\
        --out runs/mine/graphs

Looks at the first frames of each system, as many as the model has been trained
to see; systems may have other numbers of particles than in training. Writes
into --out:

- edges.csv: system, sender, receiver, layer, type, probability of that type,
- graphs.graphml: the interactions of all systems in one file, each a part of
  its own, with the names of system and particle at the nodes,
- graph.png and heatmap.png: the graph of the first system, and how probable
  each interaction is,
- trajectories.png: predicted from the last frame looked at, over true ones,
  of the first systems, where frames remain.

Trajectories are read as they were in training, which the checkpoint remembers;
options such as --position say otherwise. Of a folder of arrays as the research
code of NRI and fNRI has it, graphs of the test systems are inferred.

Layers and types are numbered as the model does, which was not told what they
are: layer 0 may be any kind of interaction. Where the recipe is quick, type 0
is no interaction.

    python scripts/infer.py --checkpoint runs/mine/best.ckpt --data my.csv \\
        --shared --out runs/mine/graph

infers one graph of recordings of the same particles, one organism or one
experiment repeated: it pools what all systems tell about each pair, and with
--refine, each is refined first. Systems count as independent observations.
Windows of one recording are not quite that, so that the probabilities are
overconfident.
"""
import argparse
import time
from typing import Optional

import pandas as pd

from pyg_fnri.datasets.reading import Reading
from pyg_fnri.evaluation import (
    OwnSystems,
    check_results,
    check_sizes,
    draw_graphs,
    infer_each,
    infer_shared,
    open_systems,
    present_results,
    write_results,
)
from pyg_fnri.training import RelationalInference, load_checkpoint
from pyg_fnri.training.cli import (
    OptionParser,
    OwnData,
    errors_in_one_line,
    given,
)


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = OptionParser(__doc__)
    parser.add_argument('--checkpoint', required=True, metavar='FILE',
                        help='written by scripts/train.py or scripts/em.py')
    parser.add_argument(
        '--data', required=True, metavar='FILE',
        help='trajectories as for scripts/train.py, with the '
        'same features')
    parser.add_fields(
        'how they are read, where not as in training', OwnData,
        ['system', 'time', 'particle', 'position', 'time_step', 'window'],
        ['velocity', 'mass', 'max_gap', 'edges', 'stride'])
    parser.add_argument(
        '--refine', action='store_true',
        help='improve each graph by what the decoder makes of '
        'the same frames')
    parser.add_argument(
        '--shared', action='store_true',
        help='one graph for all systems, which must have the '
        'same particles [a graph each]')
    parser.add_argument('--out', required=True, metavar='DIR',
                        help='where results go; made if need be')
    parser.add_argument('--overwrite', action='store_true',
                        help='replace results in --out')
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept [%(default)s]')
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    start = time.monotonic()
    own = given(args, OwnData)
    with errors_in_one_line():
        check_results(args.out, args.overwrite)
        module = load_checkpoint(args.checkpoint)
        module.require('encoder', *['decoder'] * args.refine)
        dataset = open_systems(module.config, args.data, args.root,
                               edges=own.get('edges'), window=own.get('window'),
                               stride=own.get('stride'),
                               reading=given(args, Reading))
        check_sizes(module.units, dataset._data.x)
        infer = infer_shared if args.shared else infer_each
        table, network, first = infer(module, dataset, args.refine)
        pictures = draw_graphs(module, first, dataset.system_names[:len(first)],
                               dataset.particle_names[0])
        write_results(args.out, table, network, pictures)
    print(f'{describe(module, dataset, args.shared)} in '
          f'{time.monotonic() - start:.1f} seconds')
    print_summary(table)
    if args.shared and 'window' in own:
        print('windows of one recording are not independent: these '
              'probabilities are overconfident')
    print(f'written into {args.out}: ' + ', '.join(present_results(args.out)))


def describe(module: RelationalInference, dataset: OwnSystems,
             shared: bool) -> str:
    """How many systems there are, and how much of them was looked at."""
    number = f"{len(dataset)} system{'s' * (len(dataset) > 1)}"
    if dataset.split != 'all':
        number += f" of the split '{dataset.split}'"
    num_steps, observed = dataset[0].x.size(1), module.config.num_observed
    frames = f', the first {observed} of {num_steps} frames,' * (num_steps
                                                                 > observed)
    return f"{'one graph of ' * shared}{number}{frames}"


def print_summary(table: pd.DataFrame) -> None:
    """What was found, and how sure the model is of it."""
    for layer, rows in table.groupby('layer'):
        shares = rows['type'].value_counts(normalize=True).sort_index()
        print(f'layer {layer}: ' +
              ', '.join(f'type {kind} {share:.1%}'
                        for kind, share in shares.items()) +
              f' of the candidate edges; mean probability '
              f'{rows["probability"].mean():.2f}')


if __name__ == '__main__':
    main()
