"""Train NRI, fNRI or sfNRI on trajectories; without labels, unless told to.

The main job, a minute on two cores: force laws from scratch, without any
network:

    pyg-fnri train @demo.args

Networks alone; the paper's setting, days on two cores:

    pyg-fnri train --out runs/quick
    pyg-fnri train --recipe paper --out runs/paper

Force laws of a recording of your own with the columns time, particle, x and y,
which is cut, checked and held out in time by itself:

    pyg-fnri train --recipe laws --data my.csv --num-edge-types 2 \\
        --out runs/mine

Your own table, with the columns time, particle, x, y and perhaps system, cut
into windows of 25 observed and 25 predicted frames; one with other names and
unequal masses; an array of positions alone, from which velocities are derived:

    pyg-fnri train --data my.csv --num-edge-types 2 2 \\
        --window 50 --num-observed 25 --out runs/mine
    pyg-fnri train --data birds.csv --system flock --time t \\
        --particle bird --position east north --option mass=weight
    pyg-fnri train --data pos.npy --position 0 1 --time-step 0.1

Writes into --out: best.ckpt (lowest error of rollouts of validation systems),
last.ckpt, metrics.csv and curves.png; the recipe laws writes laws.ckpt, em.csv,
em.png, check.txt and best.ckpt. Look at the result with pyg-fnri evaluate; get
graphs with pyg-fnri infer.
"""
import argparse
import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Optional, cast

from pyg_fnri.commands.cli import (OptionParser, Run, describe_data,
                                   errors_in_one_line, given, open_splits)
from pyg_fnri.training import RECIPES, Config, NetworkRecipe

log = logging.getLogger(__name__)


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = OptionParser('pyg-fnri train', __doc__)
    parser.add_data()
    parser.add_fields('model', Config,
                      ['model', 'num_edge_types', 'recipe', 'regime', 'seed'],
                      ['unsplit'])
    parser.add_fields('training', NetworkRecipe,
                      ['batch_size', 'max_steps', 'shared'], [])
    parser.add_fields(
        'run', Run,
        ['num_observed', 'directed', 'out', 'resume', 'overwrite', 'threads'])
    for name, recipe in RECIPES.items():
        parser.add_fields(f'recipe {name}', recipe)
    return cast(argparse.Namespace, parser.parse_args(argv))


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    options = given(args, *RECIPES.values())
    words = sys.argv[1:] if argv is None else argv
    with errors_in_one_line(lambda: go_on(args, words)):
        import torch

        from pyg_fnri.training import check_run, fit
        run = Run(**given(args, Run))
        if run.directed:
            options['undirected'] = False
        if run.threads is not None:
            torch.set_num_threads(run.threads)
        data = describe_data(args)
        # Before data are made, which takes minutes; fit checks it again.
        check_run(run.out, run.resume, run.overwrite,
                  data.get('files', {}).values())
        num_observed, (train, val) = open_splits(
            run, data, 'train', 'val', unsplit=vars(args).get('unsplit', False))
        config = Config.for_dataset(
            train,
            **given(args, Config) | {
                'num_observed': num_observed,
                'data': data,
                'options': options
            })
        fit(config, train, val[:run.num_val], run.out, val_every=run.val_every,
            accelerator=run.accelerator, devices=run.devices,
            precision=run.precision, resume=run.resume, overwrite=run.overwrite,
            command=['pyg-fnri', 'train', *words])
        refine = ' --refine' if config.recipe == 'laws' else ''
        log.info(
            'look at the result with\n    pyg-fnri evaluate%s '
            '--checkpoint %s/best.ckpt', refine, run.out)


def go_on(args: argparse.Namespace, words: Sequence[str]) -> str:
    """How to go on with a run that was stopped, or to begin it again."""
    options, command = vars(args), shlex.join(['pyg-fnri', 'train', *words])
    out = Path(options.get('out', Run.out))
    note = out / 'command.txt'
    begun = options.get('resume') or (note.exists() and note.read_text('utf-8')
                                      == f'{command}\n')
    if begun and any((out / f'{of}.ckpt').exists() for of in ('last', 'laws')):
        command = command.replace(' --overwrite', '')
        return f"go on with: {command}{' --resume' * ('resume' not in options)}"
    again = ' --overwrite' * bool(begun and not options.get('overwrite'))
    return f'start again with: {command}{again}'
