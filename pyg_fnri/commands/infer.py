"""Infer the interaction graphs of your own trajectories.

    pyg-fnri infer --checkpoint runs/mine/best.ckpt --data my.csv \\
        --out runs/mine/graphs

Looks at the first frames of each system, as many as the model has been trained
to see, or at all frames where laws alone were fitted; systems may have other
numbers of particles than in training. Writes into --out:

- edges.csv: system, sender, receiver, layer, type, probability of that type,
- graphs.graphml: the interactions of all systems, each a part of its own,
- graph.png and heatmap.png: the graph of the first system, and how probable
  each interaction is,
- changes.csv and changes.png, of windows: how probable each interaction is in
  each, which come and go,
- trajectories.png: predicted from the last frame looked at, over true ones,
  of the first systems, where frames remain.

Trajectories are read as they were in training, which the checkpoint remembers;
options such as --position say otherwise. Of a folder of arrays as the research
code of NRI and fNRI has it, graphs of the test systems are inferred.

Layer 0 may be any kind of interaction: the model was not told what layers are.
Where the recipe is quick, type 0 is no interaction.

With --shared, infers one graph of recordings of the same particles: it pools
what all systems tell about each pair, with --refine after each is refined.
Systems count as independent, which windows of one recording are not quite:
their probabilities are overconfident.
"""
import argparse
import time
from typing import Optional

from pyg_fnri.convert import to_changes
from pyg_fnri.datasets.reading import Reading
from pyg_fnri.evaluation import (OwnSystems, check_results, check_sizes,
                                 draw_graphs, frames_looked_at, infer_graphs,
                                 open_systems, present_results, write_results)
from pyg_fnri.plot import plot_changes
from pyg_fnri.training import RelationalInference, load_checkpoint
from pyg_fnri.training.cli import (OptionParser, OwnData, errors_in_one_line,
                                   given)


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = OptionParser('pyg-fnri infer', __doc__)
    parser.add_argument('--checkpoint', required=True, metavar='FILE',
                        help='written by pyg-fnri train or pyg-fnri em')
    parser.add_argument('--data', required=True, metavar='FILE',
                        help='trajectories as for pyg-fnri train')
    parser.add_fields(
        'how they are read, where not as in training', OwnData,
        ['system', 'time', 'particle', 'position', 'time_step', 'window'], [
            'velocity', 'mass', 'axes', 'every', 'max_gap', 'min_particles',
            'project', 'edges', 'stride'
        ])
    parser.add_argument('--refine', action='store_true',
                        help='improve each graph by the decoder')
    parser.add_argument('--shared', action='store_true',
                        help='one graph for all systems, of the same particles')
    parser.add_argument(
        '--stay', type=float, default=0.5, metavar='P',
        help='how probably pairs stay as they are from window '
        'to window; more than 0.5 smooths changes [%(default)s]')
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
    files = {name: own.get(name) for name in ('edges', 'window', 'stride')}
    with errors_in_one_line():
        check_results(args.out, args.overwrite)
        module = load_checkpoint(args.checkpoint)
        # Without an encoder, graphs are found by refinement alone.
        refined = args.refine or not module.is_trained('encoder')
        module.require(*['decoder'] if refined else ['encoder'])
        dataset = open_systems(module.config, args.data, args.root,
                               given(args, Reading), **files)
        check_sizes(module.units, dataset._data.x)
        found = infer_graphs(module, dataset, refined, args.shared)
        pictures = draw_graphs(module, found.first, dataset.system_names,
                               dataset.particle_names[0])
        tables = {'edges.csv': found.table}
        if 'window' in own and not args.shared and len(dataset) > 1:
            changes = to_changes(found.table, args.stay)
            tables['changes.csv'] = changes
            pictures['changes.png'] = plot_changes(changes)
        write_results(args.out, tables, found.network, pictures)
    print(f'{describe(module, dataset, args.shared)} in '
          f'{time.monotonic() - start:.1f} seconds')
    for layer, rows in found.table.groupby('layer'):
        shares = rows['type'].value_counts(normalize=True).sort_index()
        words = [f'type {kind} {share:.1%}' for kind, share in shares.items()]
        print(f"layer {layer}: {', '.join(words)} of the candidate edges; "
              f"mean probability {rows['probability'].mean():.2f}")
    if args.shared and 'window' in own:
        print('windows of one recording are not independent: these '
              'probabilities are overconfident')
    if module.verdict:
        print(module.verdict)
    print(f'written into {args.out}: ' + ', '.join(present_results(args.out)))


def describe(module: RelationalInference, dataset: OwnSystems,
             shared: bool) -> str:
    """How many systems there are, and how much of them was looked at."""
    number = f"{len(dataset)} system{'s' * (len(dataset) > 1)}"
    if dataset.split != 'all':
        number += f" of the split '{dataset.split}'"
    num_steps, observed = dataset[0].x.size(1), frames_looked_at(module)
    if observed and num_steps > observed:
        number += f', the first {observed} of {num_steps} frames,'
    return f"{'one graph of ' * shared}{number}"
