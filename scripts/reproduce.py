"""Reproduce the paper's tables and figures, at a scale that you can afford.

Seconds, to see that all works:

    python scripts/reproduce.py --table 1 2 3 --scale smoke

Hours on two cores, a smaller model on the paper's data:

    python scripts/reproduce.py --table 1 2 --scale laptop

Started twice at once, two processes share the runs. Stopped and started again,
it goes on where it was. The paper's full setting is for GPUs: print each run as
a command of its own, for any scheduler, and make the tables in the end.

    python scripts/reproduce.py --table 1 2 --scale paper --list
    python scripts/reproduce.py --table 1 2 --scale paper --report-only

Runs, or cells, are named DATASET-MODEL-REGIME-SEED. Each is a run of
scripts/train.py in runs/reproduce/SCALE/CELL, then of scripts/evaluate.py on
the test split, and leaves results/SCALE/CELL.json. Tables and figures are made
of all that is there, with the paper's figures beside ours: table1.md to
table3.md, laws.md, trajectories.png, compression.md, .json and .png in
results/SCALE.

    --table 1               edge accuracies: models learned and supervised
    --table 2               rollout errors: models learned and given true graphs
    --table 3               numbers of parameters; nothing is trained
    --table laws            beyond the paper: force laws, from a trained encoder
                            and from nothing, and graphs refined by them
    --figure trajectories   four test systems, 50 steps from one state alone
    --figure compression    section 3.1: fNRI trained with and without the split
                            of observed and predicted halves

A part of them:

    python scripts/reproduce.py --table 1 --names springs_charges --seeds 0 1
    python scripts/reproduce.py --cell springs_charges-fnri-learned-0
"""
import argparse
import os
import shlex
import sys
import traceback
from typing import Optional

from filelock import Timeout
from rich.console import Console

from pyg_fnri.datasets.stored import check_writable
from pyg_fnri.experiments import (
    MODELS,
    NAMES,
    SCALES,
    Cell,
    Part,
    Report,
    Runner,
    Scale,
    accuracy_report,
    error_report,
    law_report,
    load_results,
    parameter_report,
    publish,
    write_compression,
    write_trajectories,
)
from pyg_fnri.experiments.cell import MORE_NAMES, REGIMES, TABLES
from pyg_fnri.experiments.sibling import load_sibling

#: What writes a figure.
WRITERS = {
    'trajectories': write_trajectories,
    'compression': write_compression,
}
#: Where things are kept, unless told otherwise.
PLACES = {
    'root': 'datasets',
    'runs': os.path.join('runs', 'reproduce'),
    'results': 'results',
}


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_argument_group('what to reproduce')
    what.add_argument('--table', nargs='+', choices=TABLES, default=[],
                      help='tables of the paper, and one beyond it')
    what.add_argument('--figure', nargs='+', choices=WRITERS, default=[],
                      help='figures of the paper')
    what.add_argument('--cell', nargs='+', type=cell_of, default=[],
                      metavar='CELL', help='single runs, without a report')
    what.add_argument('--scale', choices=SCALES, default='laptop',
                      help='how far each run goes [%(default)s]')

    part = parser.add_argument_group('a part of it')
    part.add_argument(
        '--names', nargs='+', choices=NAMES + MORE_NAMES, metavar='NAME',
        help='data sets, of ' + ', '.join(NAMES + MORE_NAMES) +
        " [the paper's; of laws all]")
    part.add_argument(
        '--models', nargs='+', choices=MODELS, metavar='MODEL',
        help='models, of ' + ', '.join(MODELS) +
        ' [all; of figures and laws fnri]')
    part.add_argument('--regimes', nargs='+', choices=REGIMES, metavar='REGIME',
                      help='regimes, of ' + ', '.join(REGIMES) + ' [all]')
    part.add_argument(
        '--seeds', nargs='+', type=int, metavar='SEED',
        help="seeds [the scale's; of the trajectories the first "
        "of them]")

    how = parser.add_argument_group('how')
    how.add_argument('--list', action='store_true',
                     help='print a command for each run, and stop')
    how.add_argument(
        '--report-only', action='store_true',
        help='run nothing; make tables and figures of the '
        'results there are')
    how.add_argument(
        '--again', action='store_true',
        help='forget the results of these runs, and start them '
        'anew')
    for name, text in (('root', 'where data sets are kept, or made'),
                       ('runs', 'where runs are kept'), ('results',
                                                         'where results go')):
        how.add_argument(f'--{name}', default=PLACES[name], metavar='DIR',
                         help=f'{text} [%(default)s]')
    args = parser.parse_args(argv)
    if not (args.table or args.figure or args.cell):
        parser.error('say what to reproduce: --table, --figure or --cell')
    for number in args.seeds or []:
        if number < 0:
            parser.error(f'--seeds must be at least 0, not {number}')
    if args.again and (args.list or args.report_only):
        parser.error('--again is for running; leave out --list and '
                     '--report-only')
    return args


def cell_of(text: str) -> Cell:
    """A cell by its name."""
    try:
        return Cell.from_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    scale = SCALES[args.scale]
    cells = chosen_cells(args, scale)
    if not cells and set(args.table) != {'3'}:
        sys.exit('None of the runs that these tables and figures need is among '
                 'the --names, --models and --regimes asked for.')
    results = os.path.join(args.results, scale.name)
    try:
        for cell in cells:
            scale.training(cell)  # Told before the work, not once for each.
        if args.list:
            print(*(command_of(cell, args) for cell in cells), sep='\n')
            return
        check_writable(results)
        runner = Runner(scale, run_script, args.root, args.runs, args.results)
        failed = []
        if not args.report_only:
            failed = run_cells(cells, runner, args.again)
        failed += report(runner, args, results)
    except (OSError, ValueError) as error:
        sys.exit(str(error).replace('--out', '--results'))
    if failed:
        sys.exit('Failed: ' + ', '.join(failed) + '; see above for why.')


def chosen_cells(args: argparse.Namespace, scale: Scale) -> list[Cell]:
    """The runs that the tables and figures asked for are made of, each once,
    all those of a seed before those of the next."""
    cells, part = list(args.cell), part_of(args)
    for table in args.table:
        cells += part.of_table(table, scale)
    for figure in args.figure:
        cells += part.of_figure(figure, scale)
    return sorted(dict.fromkeys(cells), key=lambda cell: cell.seed)


def part_of(args: argparse.Namespace) -> Part:
    return Part(args.names, args.models, args.regimes, args.seeds)


def command_of(cell: Cell, args: argparse.Namespace) -> str:
    """The command that runs one cell."""
    places = [
        word for name, default in PLACES.items()
        for word in (f'--{name}', getattr(args, name))
        if getattr(args, name) != default
    ]
    return shlex.join([
        'python', 'scripts/reproduce.py', '--cell', cell.name, '--scale',
        args.scale, *places
    ])


def run_cells(cells: list[Cell], runner: Runner, again: bool) -> list[str]:
    """Runs what has no result yet; tells what failed."""
    console = Console()
    failed = []
    for number, cell in enumerate(cells, 1):
        console.rule(f'{cell.name} ({number} of {len(cells)})')
        try:
            if not runner.run(cell, again):
                print(f'{runner.result(cell)} is there already')
                if not runner.has_current_settings(cell):
                    print('but was made with other settings than the scale '
                          'has now; --again makes it anew')
        except Timeout:
            print('another process is at it')
        except SystemExit as stop:
            if stop.code == 1:  # How Lightning answers to being interrupted.
                raise
            print(stop.code)
            failed.append(cell.name)
        except Exception:  # Whatever it is, the other runs do not share it.
            traceback.print_exc()
            failed.append(cell.name)
    return failed


def run_script(name: str, arguments: list[str]) -> None:
    """Runs another script of this folder, in this process."""
    load_sibling(__file__, name).main(arguments)


def report(runner: Runner, args: argparse.Namespace, results: str) -> list[str]:
    """Writes and prints tables and figures; tells what failed."""
    part = part_of(args)
    for table in args.table:
        name = 'laws.md' if table == 'laws' else f'table{table}.md'
        publish(make_table(table, runner.scale.name, results),
                os.path.join(results, name))
    failed = []
    for figure in args.figure:
        cells = part.of_figure(figure, runner.scale)
        try:
            WRITERS[figure](runner, cells, results)
        except (OSError, ValueError) as error:
            print(error)
            failed.append(f'figure {figure}')
    return failed


def make_table(table: str, scale: str, results: str) -> Report:
    """A table of all results that there are."""
    command = f'python scripts/reproduce.py --table {table} --scale {scale}'
    if table == '3':
        return parameter_report(command)
    make = {'1': accuracy_report, '2': error_report, 'laws': law_report}[table]
    return make(load_results(results), scale, command)


if __name__ == '__main__':
    main()
