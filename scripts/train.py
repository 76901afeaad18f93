"""Train NRI, fNRI or sfNRI on simulated trajectories, without labels.

The main job, minutes on two cores:

    python scripts/train.py @scripts/configs/demo.args

The paper's setting, days on two cores:

    python scripts/train.py --recipe paper --out runs/paper

Writes into --out: best.ckpt (lowest validation loss), last.ckpt, metrics.csv
and curves.png; logs to TensorBoard too where that is installed. A directory
that holds a run is never overwritten; --resume goes on with it. Look at the
result with scripts/evaluate.py.
"""
import argparse
import importlib.util
import logging
import os
import shutil
import sys
import time
import warnings
from typing import Any, Optional

import pandas as pd
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint, RichProgressBar
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.loader import SystemLoader
from pyg_fnri.plot import plot_curves
from pyg_fnri.training import MODELS, RECIPES, Config
from pyg_fnri.transforms import SplitTrajectory


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars='@')
    parser.convert_arg_line_to_args = str.split  # type: ignore[assignment]
    data = parser.add_argument_group('data')
    data.add_argument('--root', default='datasets', metavar='DIR',
                      help='where data sets are kept, or made [%(default)s]')
    data.add_argument(
        '--name', default='springs_charges',
        help='springs_charges (the paper\'s I+C) or '
        'springs_charges_fsprings (I+C+F) [%(default)s]')
    data.add_argument('--num-particles', type=int, default=5,
                      help='particles in a system [%(default)s]')
    data.add_argument('--num-systems', type=int, nargs=3,
                      default=[50_000, 10_000,
                               10_000], metavar=('TRAIN', 'VAL', 'TEST'),
                      help='systems in each split [50000 10000 10000]')
    data.add_argument('--data-seed', type=int, default=0,
                      help='seed of the simulation [%(default)s]')
    data.add_argument(
        '--num-observed', type=int, default=49,
        help='frames that the encoder sees; the decoder '
        'predicts as many, the last ones [%(default)s]')

    model = parser.add_argument_group('model and training')
    model.add_argument('--model', default='fnri', choices=MODELS,
                       help='which model [%(default)s]')
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
    model.add_argument('--num-val', type=int, default=2_000,
                       help='validation systems looked at [%(default)s]')
    model.add_argument('--val-every', type=int, default=1_000, metavar='STEPS',
                       help='steps between validations [%(default)s]')

    run = parser.add_argument_group('run')
    run.add_argument('--out', default='runs/train', metavar='DIR',
                     help='where results go [%(default)s]')
    run.add_argument('--resume', action='store_true',
                     help='go on with the run in --out')
    run.add_argument('--overwrite', action='store_true',
                     help='replace the run in --out')
    run.add_argument(
        '--accelerator', default='auto',
        help='auto, cpu, gpu, ... as Lightning has it '
        '[%(default)s]')
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    quiet_lightning()
    last = prepare_out(args)
    split = SplitTrajectory(args.num_observed)
    train, val = (ParticleSystems(args.root, name=args.name, split=name,
                                  num_particles=args.num_particles,
                                  num_systems=tuple(args.num_systems),
                                  seed=args.data_seed, transform=split)
                  for name in ('train', 'val'))
    module = make_config(args, train).build()
    module.fit_units(train._data.x)
    recipe = module.recipe
    print(f'{module.model}\n{recipe}\n{len(train)} training systems, results '
          f'in {args.out}')

    trainer = pl.Trainer(
        accelerator=args.accelerator,
        max_epochs=recipe.max_epochs,
        max_steps=recipe.max_steps,
        val_check_interval=args.val_every,
        check_val_every_n_epoch=None,
        callbacks=[
            ModelCheckpoint(args.out, 'best', monitor='val_loss',
                            save_last=True, enable_version_counter=False),
            RichProgressBar(refresh_rate=20),
        ],
        logger=make_loggers(args.out),
        log_every_n_steps=50,
        num_sanity_val_steps=0,
        enable_model_summary=False,
    )
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


def prepare_out(args: argparse.Namespace) -> Optional[str]:
    """Makes sure that --out can be written and loses nothing; the checkpoint
    to go on from, if any."""
    last = os.path.join(args.out, 'last.ckpt')
    if args.resume:
        if not os.path.exists(last):
            sys.exit(f"There is no run to resume in '{args.out}': {last} does "
                     f"not exist. Leave out --resume to start one.")
        return last
    if os.path.isdir(args.out) and os.listdir(args.out):
        if not args.overwrite:
            sys.exit(f"'{args.out}' holds a run already; go on with it by "
                     f"--resume, replace it by --overwrite, or name another "
                     f"directory with --out.")
        shutil.rmtree(args.out)
    try:
        os.makedirs(args.out, exist_ok=True)
        with open(os.path.join(args.out, 'command.txt'), 'w') as file:
            file.write(' '.join(sys.argv) + '\n')
    except OSError as error:
        sys.exit(f"Cannot write to '{args.out}' ({error.strerror}); name "
                 f"another directory with --out.")
    return None


def make_config(args: argparse.Namespace, dataset: ParticleSystems) -> Config:
    """The configuration that the checkpoint will hold."""
    options = {
        option: getattr(args, option)
        for option in ('hidden_channels', 'batch_size', 'learning_rate',
                       'max_epochs', 'max_steps')
        if getattr(args, option) is not None
    }
    return Config(
        in_channels=dataset.num_node_features,
        num_observed=args.num_observed,
        num_edge_types=dataset.num_edge_types,
        names=dataset.names,
        model=args.model,
        recipe=args.recipe,
        options=options,
        seed=args.seed,
        data={
            'name': args.name,
            'num_particles': args.num_particles,
            'num_systems': args.num_systems,
            'seed': args.data_seed,
        },
    )


def quiet_lightning() -> None:
    """Keeps advertisements and warnings about what is meant out of sight."""
    logging.getLogger('pytorch_lightning.utilities.rank_zero').setLevel(
        logging.WARNING)
    for message in ('.*exists and is not empty.*', '.*LeafSpec.*',
                    '.*does not have many workers.*'):
        warnings.filterwarnings('ignore', message)


def make_loggers(out: str) -> list[Any]:
    """CSV always, TensorBoard where it is installed."""
    loggers: list[Any] = [CSVLogger(out, name='', version='')]
    if importlib.util.find_spec('tensorboard') is not None:
        loggers.append(TensorBoardLogger(out, name='', version=''))
    return loggers


if __name__ == '__main__':
    main()
