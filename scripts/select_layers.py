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
import os
import sys
from types import ModuleType
from typing import Optional

from rich.console import Console

from pyg_fnri.datasets.spec import check_directions, open_dataset
from pyg_fnri.datasets.stored import check_writable
from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.candidate_runs import CandidateRuns
from pyg_fnri.experiments.selection import Selection, select
from pyg_fnri.experiments.selection_files import write_selection
from pyg_fnri.experiments.selection_report import (
    selection_paragraph,
    selection_table,
)
from pyg_fnri.experiments.sibling import load_sibling
from pyg_fnri.experiments.simulated_files import write_simulated

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
        comparison = CandidateRuns(args.candidates, args.seeds, args.out, train,
                                   shared)
        failed = comparison.train_all()
        runs = comparison.measure_all(failed, args.root, args.split,
                                      args.interactions)
        selection = select(runs)
        print_evidence(selection, args)
        written = write_selection(args.out, selection, runs, split=args.split,
                                  arguments=shared)
        print(f"written into {args.out}: {', '.join(written)}")
    except (ImportError, OSError, TypeError, ValueError) as error:
        sys.exit(str(error))
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
    return write_simulated(os.path.join(args.out,
                                        'simulated'), args.root, args.name,
                           num_particles, num_systems, args.data_seed)


def print_evidence(selection: Selection, args: argparse.Namespace) -> None:
    """What is recommended, on what evidence, and what speaks against it."""
    # Logs have no edge to wrap at.
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(
        selection_table(
            selection, f'{args.data}, {selection.num_systems} systems of the '
            f'{args.split} split, {args.max_steps} steps of training a run'))
    console.print(selection_paragraph(selection), highlight=False)
    for warning in selection.warnings:
        console.print(f'Warning: {warning}', style='yellow', highlight=False)


if __name__ == '__main__':
    main()
