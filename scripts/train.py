"""Train NRI, fNRI or sfNRI on trajectories; without labels, unless told to.

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
import ast
import math
import sys
from typing import Any, Optional

import torch
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from pyg_fnri.opening import (
    Systems,
    describe_files,
    frame_interval,
    open_dataset,
)
from pyg_fnri.training import (
    MODELS,
    RECIPES,
    REGIMES,
    Config,
    build_module,
    check_run,
    checkpoint_to_resume,
    fit,
    make_trainer,
    quiet_lightning,
    start_run,
)
from pyg_fnri.transforms import ReconstructTrajectory, SplitTrajectory


def yes_or_no(text: str) -> bool:
    """A truth value."""
    if text not in ('yes', 'no'):
        raise argparse.ArgumentTypeError(f"must be yes or no, not '{text}'")
    return text == 'yes'


#: Fields of a recipe that have an option of their own.
OPTIONS: dict[str, tuple[Any, str]] = {
    'hidden_channels': (int, 'size of all hidden layers'),
    'batch_size': (int, 'systems in a batch'),
    'learning_rate': (float, 'learning rate of Adam'),
    'max_epochs': (int, 'passes over the training split'),
    'max_steps': (int, 'steps of the optimiser'),
    'encoder': (str, 'mlp, or cnn: convolutions over time, any length'),
    'decoder': (str, 'mlp, or gru: remembers the states before'),
    'burn_in': (int, 'true states that a gru decoder sees first'),
    'dropout': (float, "dropout in the encoder's hidden layers"),
    'tau': (float, 'temperature of the samples'),
    'hard': (yes_or_no, 'yes: one-hot samples, with the gradient of soft ones'),
    'drop_null': (yes_or_no, 'yes: type 0 of each layer is no interaction, '
                  'without a network of its own'),
    'symmetries': (yes_or_no, 'yes: turn and mirror systems at random in '
                   'training'),
}


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars='@')
    parser.convert_arg_line_to_args = str.split  # type: ignore[assignment]
    simulated = parser.add_argument_group('simulated data')
    simulated.add_argument(
        '--name', default='springs_charges',
        help="springs_charges (the paper's I+C), springs_charges_fsprings "
        "(I+C+F), nri_springs, nri_charged or kuramoto [%(default)s]")
    simulated.add_argument('--num-particles', type=int, default=5,
                           help='particles in a system [%(default)s]')
    simulated.add_argument('--num-systems', type=int, nargs=3,
                           default=[50_000, 10_000,
                                    10_000], metavar=('TRAIN', 'VAL', 'TEST'),
                           help='systems in each split [50000 10000 10000]')

    simulated.add_argument(
        '--split-by', default='system', choices=('system', 'graph'),
        help='graph: no two splits share an interaction graph, whatever the '
        'order of the particles [%(default)s]')

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
    model.add_argument(
        '--regime', default='learned', choices=REGIMES,
        help='learned: without labels; supervised: the encoder alone, on true '
        'graphs; true_graph: the decoder alone, given them [%(default)s]')
    for option, (kind, text) in OPTIONS.items():
        model.add_argument(f"--{option.replace('_', '-')}", type=kind,
                           help=f"{text} [the recipe's]")
    model.add_argument(
        '--null-prior', type=float, nargs='+', metavar='P',
        help='prior probability of no interaction in each '
        'layer; a high one makes for sparse graphs [uniform]')
    model.add_argument(
        '--option', type=assignment, action='append', default=[],
        metavar='NAME=VALUE',
        help='any other field of the recipe, such as pred_steps=5; may be '
        'given more than once')
    model.add_argument(
        '--unsplit', action='store_true',
        help='let the decoder reconstruct the frames that the encoder sees, '
        'as NRI did, not those that follow: graphs may then come to compress '
        'trajectories rather than to mean interactions')
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
        misplaced = given & {'name', 'num_particles', 'num_systems', 'split_by'}
        if misplaced:
            option = min(misplaced).replace('_', '-')
            parser.error(f'--{option} is for simulated data; leave it out, or '
                         f'leave out --data')
    return args


def assignment(text: str) -> tuple[str, Any]:
    """A name and a value, a Python literal or a plain word."""
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not '{text}'")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, math.inf if value == 'inf' else value


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
    try:
        check_run(args.out, args.resume, args.overwrite)
        data = describe_data(args)
        transform = (ReconstructTrajectory
                     if args.unsplit else SplitTrajectory)(args.num_observed)
        train, val = (open_dataset(data, args.root, name, transform)
                      for name in ('train', 'val'))
        module = build_module(make_config(args, data, train))
        last = None
        if args.resume:
            last = checkpoint_to_resume(args.out, module.config)
        trainer = make_trainer(module, len(train), args.out, args.val_every,
                               args.accelerator, last)
        if not args.resume:
            arguments = sys.argv[1:] if argv is None else argv
            start_run(args.out, ['python', 'scripts/train.py', *arguments])
        module.fit_units(train._data.x)
    except (MisconfigurationException, OSError, RuntimeError, TypeError,
            ValueError) as error:
        sys.exit(str(error))
    print(f'{module.model}\n{module.recipe}\n{len(train)} training systems, '
          f'results in {args.out}')
    minutes = fit(trainer, module, train, val[:args.num_val], args.out, last)
    print(f'{trainer.global_step} steps in {minutes:.1f} minutes; best '
          f'checkpoint: {args.out}/best.ckpt')


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
        'split_by': args.split_by,
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
    options: dict[str, Any] = dict(args.option)
    options.update((option, getattr(args, option))
                   for option in (*OPTIONS, 'null_prior')
                   if getattr(args, option) is not None)
    if args.directed:
        options['undirected'] = False
    return Config(
        in_channels=dataset.num_node_features,
        num_observed=args.num_observed,
        num_edge_types=num_edge_types(args, dataset),
        names=dataset.names,
        model=args.model,
        regime=args.regime,
        recipe=args.recipe,
        options=options,
        unsplit=args.unsplit,
        seed=args.seed,
        data=data,
    )


if __name__ == '__main__':
    main()
