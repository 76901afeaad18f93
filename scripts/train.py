"""Train NRI, fNRI or sfNRI on trajectories, without labels.

The main job, minutes on two cores:

    python scripts/train.py @scripts/configs/demo.args

The paper's setting, days on two cores:

    python scripts/train.py --recipe paper --out runs/paper

Your own trajectories, a table with the columns time, particle, x, y and, where
there are several systems, system; cut into windows, of which the first 25
frames are observed and the last 25 predicted:

    python scripts/train.py --data my.csv --num-edge-types 2 2 \\
        --window 50 --num-observed 25 --out runs/mine

Writes into --out: best.ckpt (lowest validation loss), last.ckpt, metrics.csv
and curves.png; logs to TensorBoard too where that is installed. A directory
that holds a run is left alone unless --overwrite or --resume is given. Look at
the result with scripts/evaluate.py; get graphs with scripts/infer.py.
"""
import argparse
import importlib.util
import os
import shlex
import shutil
import sys
import time
from dataclasses import asdict
from typing import Any, Optional

import pandas as pd
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint, RichProgressBar
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from pyg_fnri.loader import SystemLoader
from pyg_fnri.opening import (
    Systems,
    describe_files,
    frame_interval,
    open_dataset,
)
from pyg_fnri.plot import plot_curves
from pyg_fnri.recipes import Recipe
from pyg_fnri.training import (
    MODELS,
    RECIPES,
    Config,
    ValidationLines,
    load_checkpoint,
    quiet_lightning,
)
from pyg_fnri.transforms import SplitTrajectory
from pyg_fnri.writing import check_writable


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars='@')
    parser.convert_arg_line_to_args = str.split  # type: ignore[assignment]
    simulated = parser.add_argument_group('simulated data')
    simulated.add_argument(
        '--name', default='springs_charges',
        help='springs_charges (the paper\'s I+C) or '
        'springs_charges_fsprings (I+C+F) [%(default)s]')
    simulated.add_argument('--num-particles', type=int, default=5,
                           help='particles in a system [%(default)s]')
    simulated.add_argument('--num-systems', type=int, nargs=3,
                           default=[50_000, 10_000,
                                    10_000], metavar=('TRAIN', 'VAL', 'TEST'),
                           help='systems in each split [50000 10000 10000]')

    own = parser.add_argument_group(
        'your own data', 'instead of simulated ones; split 8 : 1 : 1 by '
        'system, or in time where there is only one')
    own.add_argument(
        '--data', metavar='FILE',
        help='.csv, .parquet, or an array [S, N, T, F] of positions, then '
        'velocities, in .npy or .npz')
    own.add_argument(
        '--edges', metavar='FILE',
        help='candidate edges, a table with the columns sender, '
        'receiver and perhaps system [all pairs]')
    own.add_argument(
        '--interactions', metavar='FILE',
        help='the truth where it is known, to measure by: sender, '
        'receiver, type and perhaps system and layer')
    own.add_argument('--window', type=positive, metavar='T',
                     help='cut recordings into windows of so many frames')
    near = own.add_mutually_exclusive_group()
    near.add_argument(
        '--neighbours', type=positive, metavar='K',
        help='only pairs of which one is among the K that come '
        'closest to the other may interact')
    near.add_argument('--radius', type=float, metavar='R',
                      help='only pairs that come within R of each other may')

    data = parser.add_argument_group('data of either kind')
    data.add_argument('--root', default='datasets', metavar='DIR',
                      help='where data sets are kept, or made [%(default)s]')
    data.add_argument(
        '--data-seed', type=int, default=0,
        help='seed of the simulation, or of the split '
        '[%(default)s]')
    data.add_argument(
        '--num-observed', type=int, default=49,
        help='frames that the encoder sees; the decoder '
        'predicts as many, the last ones [%(default)s]')

    model = parser.add_argument_group('model and training')
    model.add_argument('--model', default='fnri', choices=MODELS,
                       help='which model [%(default)s]')
    model.add_argument(
        '--num-edge-types', type=int, nargs='+', metavar='K',
        help='types in each layer, no interaction included; '
        "needed where the truth is not known [the truth's]")
    model.add_argument(
        '--directed', action='store_true',
        help='infer each direction of a pair by itself; the '
        'recipe paper always does')
    model.add_argument(
        '--recipe', default='quick', choices=RECIPES,
        help='quick: minutes on two cores; paper: the paper\'s '
        'experimental section, 500 epochs [%(default)s]')
    for name, kind, text in (
        ('hidden-channels', int, 'size of all hidden layers'),
        ('batch-size', int, 'systems in a batch'),
        ('learning-rate', float, 'learning rate of Adam'),
        ('max-epochs', int, 'passes over the training split'),
        ('max-steps', int, 'steps of the optimiser'),
    ):
        model.add_argument(f'--{name}', type=kind,
                           help=f"{text} [the recipe's]")
    model.add_argument('--seed', type=int, default=0,
                       help='seed of weights, batches, samples [%(default)s]')
    model.add_argument('--num-val', type=positive, default=2_000,
                       help='validation systems looked at [%(default)s]')
    model.add_argument('--val-every', type=positive, default=1_000,
                       metavar='STEPS',
                       help='steps between validations [%(default)s]')

    run = parser.add_argument_group('run')
    run.add_argument('--out', default='runs/train', metavar='DIR',
                     help='where results go [%(default)s]')
    run.add_argument('--resume', action='store_true',
                     help='go on with the run in --out')
    run.add_argument('--overwrite', action='store_true',
                     help='replace the run in --out')
    run.add_argument(
        '--threads', type=positive,
        help="PyTorch's threads on the CPU; a small model gains little from a "
        'second one, and loses much where the cores are busy [as PyTorch '
        'decides]')
    run.add_argument(
        '--accelerator', default='auto',
        help='auto, cpu, gpu, ... as Lightning has it '
        '[%(default)s]')
    args = parser.parse_args(argv)
    given = {
        name
        for name, value in vars(args).items()
        if value != parser.get_default(name)
    }
    if args.data is None:
        misplaced = given & {
            'edges', 'interactions', 'window', 'neighbours', 'radius'
        }
        if misplaced:
            parser.error(f'--{min(misplaced)} is for data of your own; name '
                         f'them with --data')
    else:
        misplaced = given & {'name', 'num_particles', 'num_systems'}
        if misplaced:
            option = min(misplaced).replace('_', '-')
            parser.error(f'--{option} is for simulated data; leave it out, or '
                         f'leave out --data')
    return args


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least "
                                         f"1, not '{text}'")
    return int(text)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    quiet_lightning()
    check_out(args)
    try:
        data = describe_data(args)
        split = SplitTrajectory(args.num_observed)
        train, val = (open_dataset(data, args.root, name, split)
                      for name in ('train', 'val'))
        module = make_config(args, data, train).build()
        last = None
        if args.resume:
            last = checkpoint_to_resume(args.out, module.config)
        trainer = make_trainer(args, module.recipe, len(train), last)
        if not args.resume:
            start_run(args.out, sys.argv[1:] if argv is None else argv)
    except (MisconfigurationException, OSError, RuntimeError, TypeError,
            ValueError) as error:
        sys.exit(str(error))
    module.fit_units(train._data.x)
    recipe = module.recipe
    print(f'{module.model}\n{recipe}\n{len(train)} training systems, results '
          f'in {args.out}')

    start = time.monotonic()
    trainer.fit(
        module,
        SystemLoader(train, recipe.batch_size, shuffle=True, drop_last=True,
                     generator=torch.Generator().manual_seed(args.seed)),
        SystemLoader(val[:args.num_val], batch_size=500),
        ckpt_path=last,
    )
    minutes = (time.monotonic() - start) / 60
    history = pd.read_csv(os.path.join(args.out, 'metrics.csv'))
    plot_curves(history).savefig(os.path.join(args.out, 'curves.png'))
    print(f'{trainer.global_step} steps in {minutes:.1f} minutes; best '
          f'checkpoint: {args.out}/best.ckpt')


def check_out(args: argparse.Namespace) -> None:
    """Makes sure that results can go to --out, and that none get lost."""
    files = os.listdir(args.out) if os.path.isdir(args.out) else []
    if args.resume:
        if 'last.ckpt' not in files:
            sys.exit(f"There is no run to resume in '{args.out}': it holds no "
                     f"last.ckpt. Leave out --resume to start one.")
        return
    if files and not args.overwrite:
        sys.exit(f"'{args.out}' holds a run already; go on with it by "
                 f"--resume, replace it by --overwrite, or name another "
                 f"directory with --out.")
    if files and 'command.txt' not in files:
        sys.exit(f"'{args.out}' holds files, but no run that --overwrite could "
                 f"replace (it has no command.txt); name another directory "
                 f"with --out.")
    try:
        check_writable(args.out)
    except OSError as error:
        sys.exit(str(error))


def start_run(out: str, arguments: list[str]) -> None:
    """Empties --out, and notes the command."""
    shutil.rmtree(out)
    os.makedirs(out)
    with open(os.path.join(out, 'command.txt'), 'w') as file:
        file.write(f'python scripts/train.py {shlex.join(arguments)}\n')


def describe_data(args: argparse.Namespace) -> dict[str, Any]:
    """The data set, as the checkpoint will name it."""
    if args.data is not None:
        return describe_files(args.data, args.edges, args.interactions,
                              num_observed=args.num_observed,
                              window=args.window, neighbours=args.neighbours,
                              radius=args.radius, directed=args.directed,
                              seed=args.data_seed)
    return {
        'name': args.name,
        'num_particles': args.num_particles,
        'num_systems': args.num_systems,
        'seed': args.data_seed,
    }


def num_edge_types(args: argparse.Namespace, dataset: Systems) -> list[int]:
    """The truth's, or those asked for where there is none.

    Raises:
        ValueError: If there are none, or both and they differ.
    """
    true, asked = dataset.num_edge_types, args.num_edge_types
    if not true and asked is None:
        raise ValueError("How many layers and types to look for is not known "
                         "of these data; say it with --num-edge-types, e.g. "
                         "2 2 for two layers of interaction or none.")
    if true and asked is not None and asked != true:
        raise ValueError(f"--num-edge-types is {asked}, but the truth has "
                         f"{true}; leave it out, or the truth.")
    return true or asked


def make_config(args: argparse.Namespace, data: dict[str, Any],
                dataset: Systems) -> Config:
    """The configuration that the checkpoint will hold."""
    if args.data is not None:
        data = {**data, 'time_step': frame_interval(data, dataset)}
    options: dict[str, Any] = {
        option: getattr(args, option)
        for option in ('hidden_channels', 'batch_size', 'learning_rate',
                       'max_epochs', 'max_steps')
        if getattr(args, option) is not None
    }
    if args.directed and args.recipe == 'quick':
        options['undirected'] = False
    return Config(
        in_channels=dataset.num_node_features,
        num_observed=args.num_observed,
        num_edge_types=num_edge_types(args, dataset),
        names=dataset.names,
        model=args.model,
        recipe=args.recipe,
        options=options,
        seed=args.seed,
        data=data,
    )


def checkpoint_to_resume(out: str, config: Config) -> str:
    """The last checkpoint, if it was trained with the same settings.

    Raises:
        ValueError: If it was not, or is none.
    """
    last = os.path.join(out, 'last.ckpt')
    old, new = (asdict(c) for c in (load_checkpoint(last).config, config))
    for settings in (old, new):  # A run may be resumed to make it longer.
        for limit in ('max_epochs', 'max_steps'):
            settings['options'].pop(limit, None)
    for key in new:
        if old[key] != new[key]:
            raise ValueError(
                f"The run in '{out}' has {key} = {old[key]}, but this command "
                f"has {new[key]}; resume it with the settings in "
                f"{out}/command.txt, or start another with --out.")
    return last


def make_trainer(args: argparse.Namespace, recipe: Recipe, num_systems: int,
                 last: Optional[str]) -> pl.Trainer:
    """Lightning's trainer for a new run, or one that goes on.

    Raises:
        ValueError: If there are fewer systems than a batch takes.
    """
    num_steps = num_systems // recipe.batch_size
    if num_steps == 0:
        raise ValueError(f"A batch takes {recipe.batch_size} systems, but the "
                         f"training split has {num_systems}; ask for smaller "
                         f"batches with --batch-size.")
    limits = (recipe.max_epochs * num_steps, recipe.max_steps)
    # A run shorter than the interval is still looked at when it ends.
    val_every = min([args.val_every, *(n for n in limits if n > 0)])
    return pl.Trainer(
        accelerator=args.accelerator,
        max_epochs=recipe.max_epochs,
        max_steps=recipe.max_steps,
        val_check_interval=val_every,
        check_val_every_n_epoch=None,
        callbacks=[
            ModelCheckpoint(args.out, 'best', monitor='val_loss',
                            enable_version_counter=False),
            # Of its own, as `save_last` saves only when the best one is.
            ModelCheckpoint(args.out, 'last', enable_version_counter=False),
            RichProgressBar(refresh_rate=20),
            ValidationLines(),
        ],
        logger=make_loggers(args.out, last),
        log_every_n_steps=min(50, val_every),
        num_sanity_val_steps=0,
        enable_model_summary=False,
    )


def make_loggers(out: str, last: Optional[str]) -> list[Any]:
    """CSV always, TensorBoard where it is installed; a resumed run keeps what
    was logged up to its last checkpoint."""
    path = os.path.join(out, 'metrics.csv')
    csv = CSVLogger(out, name='', version='')
    if last is not None and os.path.exists(path):
        rows = pd.read_csv(path).set_index('step')
        done = torch.load(last, weights_only=True)['global_step']
        # Lightning's logger clears the file when it starts.
        for step, row in rows[rows.index < done].iterrows():
            csv.log_metrics(row.dropna().to_dict(), step)
        csv.save()
    loggers: list[Any] = [csv]
    if importlib.util.find_spec('tensorboard') is not None:
        loggers.append(TensorBoardLogger(out, name='', version=''))
    return loggers


if __name__ == '__main__':
    main()
