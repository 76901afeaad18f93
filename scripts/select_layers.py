"""Compare numbers of layers and types on your own trajectories.

How many kinds of interaction are there, with how many types each? Nobody can
tell from a model that was told. This trains one for each candidate and seed,
a while, and compares them on held-out systems:

    python scripts/select_layers.py --data my.csv --window 50 \\
        --num-observed 25 --out runs/layers

Candidates are written with commas: 2,2 is two layers of two types, no
interaction included. Compare others, with more seeds, for longer; what has
been trained in --out already is not trained again, and a comparison that was
stopped goes on when started again. Started twice at once, two processes share
the runs.

    python scripts/select_layers.py --data my.csv --out runs/layers \\
        --candidates 2 3 2,2 --seeds 0 1 2

All other options are those of scripts/train.py, such as --batch-size, which
has to be lower for a few dozen systems, and --position or --max-gap, which say
how a table or an array is read. See how it does where the truth is
known, on simulated trajectories that are cut off from it:

    python scripts/select_layers.py --name springs_charges --num-systems 5000 \\
        --out runs/layers_known

Graphs are inferred from the observed frames of the held-out systems, and the
frames that follow predicted with them. By the one-standard-error rule, the
smallest candidate is recommended whose error over 10 steps (geometric mean
over systems) is above that of the best one by at most one standard error of
their difference, over systems and seeds. The smallest is the one with the
fewest types that stand for an interaction, then the fewest combinations.

The table beside it: errors in 1e-5 of min-max units; "to best", how many times
the best one's error; "shuffled", how many times higher the error is if types
are dealt out to other pairs (1: the graph plays no part); NLL, the
reconstruction loss; entropy of the posterior, of its maximum; "used", types
that have at least 1 % of the edges and cannot be replaced by another type;
agreement of the graphs of different seeds, what chance gives, and what is left
when adjusted for that (1: the same, 0: chance); "right", edges that are, where
the truth is known and has such layers.

Runs are kept short, half of what scripts/train.py takes, and that errs both
ways: an interaction may not be found yet, and while graphs are in doubt
(entropy), layers too many help prediction by grading that doubt. Compare again
with a higher --max-steps, in another --out, before believing it.

Writes into --out: selection.json, selection.csv and selection.png; runs/ holds
the models, runs/2-2-seed-0/best.ckpt and so on, for scripts/infer.py.
"""
import argparse
import contextlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Optional

import numpy as np
from filelock import FileLock, Timeout
from rich.console import Console

from pyg_fnri.convert import to_pandas
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.sources import content_digest
from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.held_out import HeldOut, measure_held_out
from pyg_fnri.experiments.selection import Selection, select
from pyg_fnri.experiments.selection_record import selection_record
from pyg_fnri.experiments.selection_report import (
    selection_frame,
    selection_paragraph,
    selection_table,
)
from pyg_fnri.experiments.sibling import load_sibling
from pyg_fnri.loader import SystemLoader
from pyg_fnri.opening import check_directions, open_dataset
from pyg_fnri.plot import plot_selection
from pyg_fnri.training import load_checkpoint
from pyg_fnri.training.reading_arguments import as_options
from pyg_fnri.transforms import SplitTrajectory
from pyg_fnri.writing import check_writable, written_whole

CANDIDATES = [Candidate.from_name(n) for n in ('2', '3', '2,2', '2,3', '2,2,2')]
#: Options of scripts/train.py that are this script's to give.
GIVEN = ('--num-edge-types', '--seed', '--regime', '--resume', '--overwrite',
         '--null-prior', '--split-by')
#: Half of what the recipe takes.
MAX_STEPS = 4_000


def parse_args(
        argv: Optional[list[str]] = None
) -> tuple[argparse.Namespace, list[str]]:
    """This script's arguments, and the others, which are for training."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fromfile_prefix_chars='@', allow_abbrev=False)
    parser.convert_arg_line_to_args = str.split  # type: ignore[assignment]
    parser.add_argument(
        '--candidates', nargs='+', type=candidate, default=CANDIDATES,
        metavar='K,K', help='types of each layer, with commas [' +
        ' '.join(c.name for c in CANDIDATES) + ']')
    parser.add_argument(
        '--seeds', nargs='+', type=int, default=[0, 1], metavar='SEED',
        help='a run of each candidate for each '
        'of them [0 1]')
    parser.add_argument('--split', default='test', choices=('val', 'test'),
                        help='systems to compare on [%(default)s]')
    parser.add_argument(
        '--max-steps', type=int, default=MAX_STEPS,
        help='steps of the optimiser in each run '
        '[%(default)s]')
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept, or made [%(default)s]')
    parser.add_argument('--out', default='runs/layers', metavar='DIR',
                        help='where results go [%(default)s]')
    own = parser.add_argument_group('your own data')
    own.add_argument(
        '--data', metavar='FILE',
        help='as for scripts/train.py; --window, --neighbours, '
        '--system, --time, --particle, --position, --velocity, --time-step, '
        '--max-gap and so on say how it is read, see there')
    own.add_argument(
        '--interactions', metavar='FILE',
        help='the truth where it is known, to measure by; '
        'nothing is trained on or chosen by it')
    simulated = parser.add_argument_group('simulated data')
    simulated.add_argument(
        '--name', help='springs_charges or another one of '
        'scripts/train.py')
    simulated.add_argument('--num-particles', type=int,
                           help='particles in a system [5]')
    simulated.add_argument(
        '--num-systems', type=int, metavar='S',
        help='systems in all; split 8 : 1 : 1, as your own '
        '[5000]')
    simulated.add_argument(
        '--data-seed', type=int, default=0,
        help='seed of the simulation, or of the split of '
        'your own data [%(default)s]')
    args, rest = parser.parse_known_args(argv)
    if (args.data is None) == (args.name is None):
        parser.error('name either your own data by --data, or simulated ones '
                     'by --name')
    if args.data is not None and os.path.isdir(args.data):
        parser.error(f"--data is the folder '{args.data}', which may hold the "
                     f"truth; name a table or an array, and the truth, if "
                     f"there is one, by --interactions")
    simulated_alone = (args.num_particles, args.num_systems) != (None, None)
    if args.name is None and simulated_alone:
        parser.error('--num-particles and --num-systems are for simulated '
                     'data; leave them out')
    if args.name is not None and args.interactions is not None:
        parser.error('--interactions is for data of your own; the truth of '
                     'simulated ones is known')
    for option in GIVEN:
        if any(a == option or a.startswith(f'{option}=') for a in rest):
            parser.error(f'{option} differs from run to run, or is what is '
                         f'compared; leave it out')
    if min(args.seeds) < 0:
        parser.error(f'--seeds must be at least 0, not {min(args.seeds)}')
    args.seeds = list(dict.fromkeys(args.seeds))
    args.candidates = sorted(set(args.candidates), key=lambda c: c.size)
    return args, rest


def candidate(text: str) -> Candidate:
    """A candidate by its name."""
    try:
        return Candidate.from_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(argv: Optional[list[str]] = None) -> None:
    args, rest = parse_args(argv)
    train = load_train()
    try:
        check_writable(args.out)
        if args.name is not None:
            args.data, args.interactions = simulate(args)
        shared = [
            '--data', args.data, '--data-seed',
            str(args.data_seed), '--root', args.root, '--max-steps',
            str(args.max_steps), *rest
        ]
        if args.interactions is not None:
            check_truth(args, shared, train)
        failed = train_all(args, shared, train)
        runs = measure_all(args, failed)
        selection = select(runs)
        report(selection, runs, args, shared)
    except (ImportError, OSError, TypeError, ValueError) as error:
        sys.exit(as_options(str(error)))
    if failed:
        sys.exit('Failed, and left out: ' +
                 ', '.join(f'{c.name} with seed {seed}'
                           for c, seed in failed) + '; see above for why.')


def load_train() -> ModuleType:
    """scripts/train.py as a module."""
    return load_sibling(__file__, 'train')


def check_truth(args: argparse.Namespace, shared: list[str],
                train: ModuleType) -> None:
    """Makes sure, before the work and not after it, that there is a truth and
    that models can be measured by it."""
    parsed = train.parse_args([*shared, '--interactions', args.interactions])
    data = train.describe_data(parsed)
    dataset = open_dataset(data, args.root, args.split)
    recipe = train.make_config(parsed, data, dataset).build_recipe()
    check_directions(dataset, recipe.undirected)


def simulate(args: argparse.Namespace) -> tuple[str, str]:
    """Files of simulated trajectories, and of the truth by itself."""
    num_particles = 5 if args.num_particles is None else args.num_particles
    num_systems = 5_000 if args.num_systems is None else args.num_systems
    systems = ParticleSystems(args.root, args.name, 'train', num_particles,
                              (num_systems, 1, 1), args.data_seed)
    folder = os.path.join(args.out, 'simulated')
    os.makedirs(folder, exist_ok=True)
    name = f'{args.name}-{num_particles}-{num_systems}-{args.data_seed}'
    table = os.path.join(folder, f'{name}.npy')
    truth = os.path.join(folder, f'{name}-truth.csv')
    batch = next(iter(SystemLoader(systems, batch_size=num_systems)))
    with written_whole(table) as part, open(part, 'wb') as file:
        x = batch.x.view(num_systems, num_particles, *batch.x.shape[1:])
        np.save(file, x.numpy())
    with written_whole(truth) as part:
        edges = to_pandas(batch, batch.edge_label, systems.names)
        edges[edges['type'] > 0].drop(columns='probability').to_csv(
            part, index=False)
    return table, truth


def directory(args: argparse.Namespace, of: Candidate, seed: int) -> str:
    """Where a run is."""
    return os.path.join(args.out, 'runs',
                        f"{of.name.replace(',', '-')}-seed-{seed}")


def train_all(args: argparse.Namespace, shared: list[str],
              train: ModuleType) -> list[tuple[Candidate, int]]:
    """Trains what has not been trained; tells what failed."""
    console = Console()
    # All candidates of a seed before those of the next.
    runs = [(c, seed) for seed in args.seeds for c in args.candidates]
    failed, spent, done = [], 0., 0
    for number, (of, seed) in enumerate(runs, 1):
        left = len(runs) - number + 1
        to_go = f', about {spent / done * left:.0f} minutes to go' if done \
            else ''
        console.rule(f'types {of.name}, seed {seed} ({number} of {len(runs)}'
                     f'{to_go})')
        start = time.monotonic()
        try:
            if not train_one(args, of, seed, shared, train):
                print('trained already')
                continue
        except Timeout:
            raise OSError(f"Another process is training in "
                          f"'{directory(args, of, seed)}'; start again when "
                          f"it is done.") from None
        except RuntimeError:  # Another candidate may still fit or converge.
            traceback.print_exc()
            failed.append((of, seed))
        done += 1
        spent += (time.monotonic() - start) / 60
    return failed


def train_one(args: argparse.Namespace, of: Candidate, seed: int,
              shared: list[str], train: ModuleType) -> bool:
    """Trains a run or goes on with it; tells whether there was anything to do.

    Raises:
        ValueError: If it has been trained on other data or with other
            settings.
    """
    out = directory(args, of, seed)
    arguments = [
        *shared, '--num-edge-types', *map(str, of.num_edge_types), '--seed',
        str(seed), '--out', out
    ]
    settings = {
        'arguments': shared,
        'data': train.describe_data(train.parse_args(arguments)),
    }
    settings = json.loads(json.dumps(settings))
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with FileLock(f'{out}.lock', timeout=0):
        files = os.listdir(out) if os.path.isdir(out) else []
        finished = os.path.join(out, 'finished.json')
        if 'finished.json' in files:
            check_settings(finished, settings)
            return False
        if 'last.ckpt' in files:
            arguments.append('--resume')
        elif files:  # Stopped before there was anything to go on with.
            arguments.append('--overwrite')
        try:
            train.main(arguments)
        except ValueError as error:  # Of weights that are finite no more.
            raise RuntimeError(str(error)) from error
        with written_whole(finished) as part:
            Path(part).write_text(json.dumps(settings, indent=2) + '\n')
    return True


def check_settings(path: str, settings: dict[str, Any]) -> None:
    """Makes sure that a finished run belongs to this comparison."""
    try:
        old = json.loads(Path(path).read_text())
        changed = [key for key in settings if old[key] != settings[key]]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"'{path}' does not tell how the run beside it was "
                         f"made; delete its folder to train it again.") \
            from None
    if 'data' in changed:
        raise ValueError(f"The run in '{os.path.dirname(path)}' was trained on "
                         f"other data than these, or others now that the file "
                         f"has changed; name another directory with --out.")
    if changed:
        raise ValueError(
            f"The run in '{os.path.dirname(path)}' was trained "
            f"with {' '.join(old['arguments'])}, but this command "
            f"has {' '.join(settings['arguments'])}; repeat those, "
            f"or name another directory with --out.")


def measure_all(
    args: argparse.Namespace,
    failed: list[tuple[Candidate, int]],
) -> dict[Candidate, list[HeldOut]]:
    """Measures all runs on the held-out systems."""
    out: dict[Candidate, list[HeldOut]] = {}
    console = Console()
    for of in args.candidates:
        for seed in args.seeds:
            if (of, seed) in failed:
                continue
            with console.status(f'measuring types {of.name}, seed {seed}'):
                out.setdefault(of, []).append(measure(args, of, seed))
    return out


def measure(args: argparse.Namespace, of: Candidate, seed: int) -> HeldOut:
    module = load_checkpoint(
        os.path.join(directory(args, of, seed), 'best.ckpt'))
    data = module.config.data
    if args.interactions is not None:
        path = os.path.abspath(args.interactions)
        data = {
            **data,
            'files': {
                **data['files'], 'interactions': path
            },
            'digests': {
                **data['digests'], 'interactions': content_digest(path)
            },
        }
    dataset = open_dataset(data, args.root, args.split,
                           SplitTrajectory(module.config.num_observed))
    return measure_held_out(module, SystemLoader(dataset, batch_size=250),
                            dataset.num_edge_types)


def report(selection: Selection, runs: dict[Candidate, list[HeldOut]],
           args: argparse.Namespace, shared: list[str]) -> None:
    """Prints the evidence, and writes it."""
    frame = selection_frame(selection)
    paragraph = selection_paragraph(selection)
    horizon = selection.horizon
    # Logs have no edge to wrap at.
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(
        selection_table(
            selection, f'{args.data}, {selection.num_systems} systems of the '
            f'{args.split} split, {args.max_steps} steps of training a run'))
    console.print(paragraph, highlight=False)
    for warning in selection.warnings:
        console.print(f'Warning: {warning}', style='yellow', highlight=False)
    figure = plot_selection(frame, horizon)
    record = {
        **selection_record(selection, runs),
        'split': args.split,
        'arguments': shared,
    }
    with contextlib.ExitStack() as stack:
        csv, picture, text = (stack.enter_context(
            written_whole(os.path.join(args.out, name)))
                              for name in ('selection.csv', 'selection.png',
                                           'selection.json'))
        frame.to_csv(csv, index=False)
        figure.savefig(picture, format='png')
        Path(text).write_text(
            json.dumps(record, indent=2, allow_nan=False) + '\n')
    print(f'written into {args.out}: selection.json, selection.csv, '
          f'selection.png')


if __name__ == '__main__':
    main()
