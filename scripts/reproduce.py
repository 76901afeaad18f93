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
table3.md, trajectories.png, compression.md, .json and .png in results/SCALE.

    --table 1               edge accuracies: models learned and supervised
    --table 2               rollout errors: models learned and given true graphs
    --table 3               numbers of parameters; nothing is trained
    --figure trajectories   four test systems, 50 steps from one state alone
    --figure compression    section 3.1: fNRI trained with and without the split
                            of observed and predicted halves

A part of them:

    python scripts/reproduce.py --table 1 --names springs_charges --seeds 0 1
    python scripts/reproduce.py --cell springs_charges-fnri-learned-0
"""
import argparse
import json
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from filelock import Timeout
from rich.console import Console
from rich.table import Table as RichTable

from pyg_fnri.experiments import (
    MODELS,
    NAMES,
    SCALES,
    Cell,
    Report,
    Runner,
    Scale,
    accuracy_report,
    compression_curves,
    compression_report,
    draw_continuations,
    error_report,
    grid,
    load_results,
    parameter_report,
)
from pyg_fnri.experiments.cell import REGIMES, TABLES
from pyg_fnri.experiments.sibling import load_sibling
from pyg_fnri.opening import open_dataset
from pyg_fnri.plot.compression import plot_compression
from pyg_fnri.training import load_checkpoint
from pyg_fnri.transforms import SplitTrajectory
from pyg_fnri.writing import check_writable, written_whole

FIGURES = ('trajectories', 'compression')
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
    what.add_argument('--table', type=int, nargs='+', choices=TABLES,
                      default=[], help='tables of the paper')
    what.add_argument('--figure', nargs='+', choices=FIGURES, default=[],
                      help='figures of the paper')
    what.add_argument('--cell', nargs='+', type=cell, default=[],
                      metavar='CELL', help='single runs, without a report')
    what.add_argument('--scale', choices=SCALES, default='laptop',
                      help='how far each run goes [%(default)s]')

    part = parser.add_argument_group('a part of it')
    part.add_argument('--names', nargs='+', choices=NAMES, metavar='NAME',
                      help='data sets, of ' + ', '.join(NAMES) + ' [all]')
    part.add_argument(
        '--models', nargs='+', choices=MODELS, metavar='MODEL',
        help='models, of ' + ', '.join(MODELS) + ' [all; of figures fnri]')
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


def cell(text: str) -> Cell:
    """A cell by its name."""
    try:
        return Cell.from_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    scale = SCALES[args.scale]
    cells = chosen_cells(args, scale)
    if not cells and set(args.table) != {3}:
        sys.exit('None of the runs that these tables and figures need is among '
                 'the --names, --models and --regimes asked for.')
    if args.list:
        print(*(command_of(cell, args) for cell in cells), sep='\n')
        return
    results = os.path.join(args.results, scale.name)
    try:
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
    cells = list(args.cell)
    for number in args.table:
        cells += grid(args.names or NAMES, args.models or MODELS,
                      chosen_regimes(args, TABLES[number]), args.seeds
                      or scale.seeds)
    for figure in args.figure:
        cells += figure_cells(figure, args, scale)
    return sorted(dict.fromkeys(cells), key=lambda cell: cell.seed)


def figure_cells(figure: str, args: argparse.Namespace,
                 scale: Scale) -> list[Cell]:
    """Of figures, fNRI on springs and charges unless asked for others."""
    regimes: tuple[str, ...]
    seeds = args.seeds or scale.seeds
    if figure == 'trajectories':
        regimes, seeds = ('learned', ), seeds[:1]
    else:
        regimes = scale.compression
    return grid(args.names or NAMES[:1], args.models or ['fnri'],
                chosen_regimes(args, regimes), seeds)


def chosen_regimes(args: argparse.Namespace,
                   regimes: Sequence[str]) -> list[str]:
    return [r for r in regimes if args.regimes is None or r in args.regimes]


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
    scale = runner.scale
    found = load_results(results)
    for number in args.table:
        command = (f'python scripts/reproduce.py --table {number} --scale '
                   f'{scale.name}')
        if number == 1:
            made = accuracy_report(found, scale.name, command)
        elif number == 2:
            made = error_report(found, scale.name, command)
        else:
            made = parameter_report(command)
        publish(made, os.path.join(results, f'table{number}.md'))
    failed = []
    for figure in args.figure:
        draw = draw_trajectories
        if figure == 'compression':
            draw = draw_compression
        try:
            draw(runner, args, results)
        except (OSError, ValueError) as error:
            print(error)
            failed.append(f'figure {figure}')
    return failed


def publish(made: Report, path: str) -> None:
    """Prints a report, and writes it as Markdown."""
    # Logs have no edge to wrap at.
    console = Console(width=None if sys.stdout.isatty() else 160)
    for part in made.tables:
        table = RichTable(title=f'{made.title}, {part.title}',
                          title_justify='left')
        for index, column in enumerate(part.columns):
            table.add_column(column, justify='right' if index else 'left',
                             overflow='fold')
        for row in part.rows:
            table.add_row(*row)
        console.print(table)
    with written_whole(path) as name:
        Path(name).write_text(made.markdown(), encoding='utf-8')
    print(f'written into {path}')


def draw_trajectories(runner: Runner, args: argparse.Namespace,
                      results: str) -> None:
    """A picture for each of the cells asked for; usually there is one."""
    cells = figure_cells('trajectories', args, runner.scale)
    for cell in cells:
        module = load_checkpoint(runner.checkpoint(cell))
        # The last 50 of 99 frames: they follow the 49 observed ones.
        dataset = open_dataset(module.config.data, args.root, 'test',
                               SplitTrajectory(module.config.num_observed, 50))
        name = 'trajectories.png'
        if len(cells) > 1:
            name = f'trajectories-{cell.name}.png'
        path = os.path.join(results, name)
        with written_whole(path) as part:
            draw_continuations(module, dataset).savefig(part, format='png')
        print(f'written into {path}: 50 steps of each of the first four test '
              f'systems, predicted in one go from the last of the 49 frames '
              f'that the encoder of {cell.name} saw')


def draw_compression(runner: Runner, args: argparse.Namespace,
                     results: str) -> None:
    """Table, figures behind it, and picture of section 3.1."""
    scale = runner.scale
    found = load_results(results)
    command = ('python scripts/reproduce.py --figure compression --scale '
               f'{scale.name}')
    made = compression_report(found, scale.compression, scale.name, command)
    publish(made, os.path.join(results, 'compression.md'))
    cells = figure_cells('compression', args, scale)
    pairs = dict.fromkeys((cell.dataset, cell.model) for cell in cells)
    curves = {}
    for dataset, model in pairs:
        panels = compression_curves(found, scale.compression, dataset, model)
        prefix = f'{MODELS[model]}, {dataset}, ' if len(pairs) > 1 else ''
        curves.update({prefix + title: c for title, c in panels.items()})
    if not curves:
        raise ValueError('None of the runs that the figure of compression '
                         'needs has a result yet; leave out --report-only.')
    with written_whole(os.path.join(results, 'compression.json')) as part:
        Path(part).write_text(json.dumps(curves, indent=2) + '\n')
    path = os.path.join(results, 'compression.png')
    with written_whole(path) as part:
        plot_compression(curves).savefig(part, format='png')
    print(f'written into {path}')


if __name__ == '__main__':
    main()
