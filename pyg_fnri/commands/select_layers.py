"""Compare numbers of layers and types on your own trajectories.

    pyg-fnri select-layers --data my.csv --out runs/layers
    pyg-fnri select-layers --data my.csv --recipe quick --out runs/layers \\
        --candidates 2 3 2,2 --seeds 0 1 2 --max-steps 8000

How many kinds of interaction are there, with how many types each? Force laws
are fitted for each candidate (2,2 is two layers of two types, no interaction
included) and seed, the smallest first. The first one whose laws hold on
held-out systems is recommended; pyg-fnri infer chooses by the same rule.

Where no laws hold, or by --recipe quick, which trains networks, that is the
smallest candidate that predicts as well as the best, to one standard error. No
labels are used; where the truth is known, the table has the share of right
edges, too. Runs of networks are short by default; compare again with a higher
--max-steps, which trains on, before believing it.

Writes selection.csv and selection.png into --out, beside runs such as
OUT/2-2-seed-0/best.ckpt, for pyg-fnri infer.
"""
import os
from dataclasses import replace
from typing import Optional

from pyg_fnri.commands.cli import (OptionParser, Run, describe_data,
                                   errors_in_one_line, given, open_splits)
from pyg_fnri.training.recipes import NetworkRecipe


def types(text: str) -> tuple[int, ...]:
    """The types of each layer of a candidate."""
    return tuple(map(int, text.split(',')))


def main(argv: Optional[list[str]] = None) -> None:
    parser = OptionParser('pyg-fnri select-layers', __doc__)
    parser.add_argument('--candidates', nargs='+', type=types, metavar='K,K',
                        default=[(2, ), (3, ), (2, 2), (2, 3), (2, 2, 2)],
                        help='types of each layer [2 3 2,2 2,3 2,2,2]')
    parser.add_argument('--seeds', nargs='+', type=int, default=[0, 1],
                        help='of the runs of each candidate [0 1]')
    parser.add_data()
    parser.add_argument('--recipe', default='laws', choices=('laws', 'quick'),
                        help='force laws, or networks [%(default)s]')
    parser.add_fields('networks', NetworkRecipe,
                      ['hidden_channels', 'batch_size', 'max_steps'])
    parser.add_fields(
        'run', Run, ['num_observed', 'directed', 'out', 'threads'],
        ['accelerator', 'root', 'data_seed', 'num_val', 'val_every'])
    args = parser.parse_args(argv)
    import torch

    from pyg_fnri.datasets.stored import (check_writable, write_picture,
                                          write_table)
    from pyg_fnri.selection import plot_selection, select_layers
    from pyg_fnri.training import Config

    options = given(args, NetworkRecipe)
    if args.recipe == 'quick':
        options = {'max_steps': 4_000, **options}
    if 'directed' in args:
        options['undirected'] = False
    with errors_in_one_line():
        run = Run(**{'out': 'runs/layers', **given(args, Run)})
        if run.threads is not None:
            torch.set_num_threads(run.threads)
        check_writable(run.out)
        known = describe_data(args)
        vars(args).pop('interactions', None)  # Nothing is trained by them.
        data = describe_data(args)
        num_observed, (train, val) = open_splits(run, data, 'train', 'val')
        run = replace(run, num_observed=num_observed)
        _, (test, ) = open_splits(run, known, 'test')
        config = Config.for_dataset(train, num_observed, train.num_edge_types
                                    or args.candidates[0], data,
                                    recipe=args.recipe, options=options)
        found = select_layers(config, args.candidates, train, val[:run.num_val],
                              test, run.out, args.seeds,
                              val_every=run.val_every,
                              accelerator=run.accelerator)
    print(found.table.round(3).T.to_string())
    print('Recommended: --num-edge-types', *found.recommended)
    print(*(f'Warning: {warning}' for warning in found.warnings), sep='\n')
    write_table(os.path.join(run.out, 'selection.csv'), found.table)
    write_picture(os.path.join(run.out, 'selection.png'),
                  plot_selection(found.table))
