"""Arguments of a training run on the command line."""
import argparse
import ast
import math
from typing import Any

from pyg_fnri.training.config import MODELS, RECIPES, REGIMES
from pyg_fnri.training.reading_arguments import READING, add_reading_arguments


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


def add_data_arguments(parser: argparse.ArgumentParser) -> None:
    """What to train on: simulated data, or a user's own."""
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
        'velocities, in .npy or .npz; or a folder of arrays that the research '
        'code of NRI or fNRI has written, which has splits and truth of its '
        'own')
    add_reading_arguments(own)
    own.add_argument(
        '--edges', metavar='FILE',
        help='candidate edges, a table with the columns sender, '
        'receiver and perhaps system [all pairs]')
    own.add_argument(
        '--interactions', metavar='FILE',
        help='the truth where it is known, to measure by: sender, '
        'receiver, type and perhaps system and layer; a row for each '
        'direction. Of interactions that have no candidate edge, a warning '
        'says how many there are; they count in no figure')
    own.add_argument('--window', type=positive, metavar='T',
                     help='cut recordings into windows of so many frames')
    own.add_argument(
        '--stride', type=positive, metavar='T',
        help='frames from the start of one window to the next '
        '[as many as a window has]')
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


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """What to train, and how."""
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
        'experimental section, 500 epochs; em: quick, then force laws, from '
        'graphs and laws fitted in turn [%(default)s]')
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
        help='any other field of the recipe, such as pred_steps=5, or, of em, '
        'num_fitted, num_distilled, distilled_steps, interval and half_width '
        'scripts/em.py); may be given more than once')
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


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to, and by what means."""
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


def check_together(parser: argparse.ArgumentParser,
                   args: argparse.Namespace) -> None:
    """Ends the program if arguments do not go together."""
    given = {
        name
        for name, value in vars(args).items()
        if value != parser.get_default(name)
    }
    if args.data is None:
        misplaced = given & {
            'edges', 'interactions', 'window', 'stride', 'neighbours', 'radius',
            *READING
        }
        if misplaced:
            option = min(misplaced).replace('_', '-')
            parser.error(f'--{option} is for data of your own; name them with '
                         f'--data')
    else:
        misplaced = given & {'name', 'num_particles', 'num_systems', 'split_by'}
        if misplaced:
            option = min(misplaced).replace('_', '-')
            parser.error(f'--{option} is for simulated data; leave it out, or '
                         f'leave out --data')
    if args.stride is not None and args.window is None:
        parser.error('--stride says how far apart windows are; name their '
                     'length with --window')
    if args.recipe == 'em' and args.unsplit:
        parser.error('--unsplit is for training alone: laws are fitted to all '
                     'frames; leave it out, or use another --recipe')


def recipe_options(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of the recipe that are asked for."""
    options: dict[str, Any] = dict(args.option)
    options.update((option, getattr(args, option))
                   for option in (*OPTIONS, 'null_prior')
                   if getattr(args, option) is not None)
    if args.directed:
        options['undirected'] = False
    return options


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
