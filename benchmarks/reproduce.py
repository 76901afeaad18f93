"""Reproduce the paper's tables and figures, at a scale that you can afford.

    python benchmarks/reproduce.py --table 1 2 3 --scale smoke     # a minute
    python benchmarks/reproduce.py --table 1 2 --scale laptop      # hours
    python benchmarks/reproduce.py --table 1 2 --scale paper --list

A cell, DATASET-MODEL-REGIME-SEED, is a training run in RUNS/SCALE/CELL and its
measurement on the test split, RESULTS/SCALE/CELL.json. What is there is not run
again, what was stopped goes on, and several processes share the cells; --list
prints each as a command of its own, for any scheduler. Tables and figures are
made of all results that are there:

    --table 1               edge accuracies: models learned and supervised
    --table 2               rollout errors: models learned and given true graphs
    --table 3               numbers of parameters; nothing is trained
    --table laws            force laws, from a trained encoder and from scratch
    --figure trajectories   four test systems, 50 steps from one state alone
    --figure compression    section 3.1: with and without the split of observed
                            and predicted halves
"""
import argparse
import shutil
import sys
import time
import traceback
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pandas as pd
import tables
import torch
from filelock import FileLock, Timeout
from matplotlib.figure import Figure
from tables import LAYERS, Cell

from pyg_fnri.datasets.spec import Systems, box_half_width, open_dataset
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.evaluation import evaluate, find_laws, measure, measure_guesses
from pyg_fnri.evaluation.published import ACCURACY, ROLLOUT_MSE
from pyg_fnri.inference import refine
from pyg_fnri.loader import SystemLoader
from pyg_fnri.plot import plot_trajectories
from pyg_fnri.training import Config, RelationalInference, fit, load_checkpoint
from pyg_fnri.transforms import ReconstructTrajectory, SplitTrajectory

#: Of rollouts along either half; table 2 has three of them.
HORIZONS = (1, 5, 10, 20, 40)
PAPER, MODELS = list(LAYERS), ['nri', 'fnri', 'sfnri']
#: Data sets, models and regimes of a table or figure.
PARTS: dict[str, tuple[list[str], list[str], list[str]]] = {
    '1': (PAPER, MODELS, ['learned', 'supervised']),
    '2': (PAPER, MODELS, ['learned', 'true_graph']),
    '3': ([], [], []),
    'laws':
    (PAPER + ['nri_springs', 'nri_charged'], ['fnri'], ['em', 'scratch']),
    'trajectories': (PAPER[:1], ['fnri'], ['learned']),
    'compression': (PAPER[:1], ['fnri'], ['split', 'unsplit']),
}
#: Rows by regime and kind of figures.
ROWS = {
    'laws': {
        ('learned', 'run'): 'quick recipe, one pass',
        ('scratch', 'refined'): 'laws from scratch, refined',
        ('em', 'before'): 'em: encoder at the start, one pass',
        ('em', 'run'): 'em: encoder distilled, one pass',
        ('em', 'refined'): 'em: refined',
    },
    'compression': {
        ('unsplit', 'observed'): 'without the split, observed',
        ('unsplit', 'following'): 'without the split, following',
        ('split', 'observed'): 'with the split, observed',
        ('split', 'following'): 'with the split, following',
        ('split', 'static, observed'): 'static, observed',
        ('split', 'static, following'): 'static, following',
    }
}


class Scale(NamedTuple):
    """How far runs go: recipe and options of the paper's regimes, of those
    that section 3.1 compares, and the options that em and scratch add."""
    learned: tuple[str, dict[str, Any]]
    halves: tuple[str, dict[str, Any]]
    em: dict[str, Any] = {}
    seeds: tuple[int, ...] = (0, 1, 2)
    law_seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    num_systems: tuple[int, ...] = (50_000, 10_000, 10_000)
    num_val: int = 2_000
    val_every: int = 1_000

    def recipe(self, regime: str) -> tuple[str, dict[str, Any]]:
        if regime == 'scratch':  # One step, in which nothing is learned.
            return 'em', {**self.em, 'max_steps': 1, 'num_distilled': 0}
        if regime == 'em':
            return 'em', self.em
        return self.halves if 'split' in regime else self.learned


TINY = dict(hidden_channels=8, batch_size=16, max_steps=3)
# Rollouts from a state and the graph alone, whose channels are all there for
# something else to be kept in: single steps have nothing to compress.
LONG = dict(pred_steps=48, undirected=False, drop_null=False, batch_size=32,
            max_steps=3_000)
SCALES = {
    'smoke':
    Scale(('quick', TINY), ('paper', TINY), {
        **TINY, 'distilled_steps': 3
    }, (0, ), (0, ), (64, 32, 32), val_every=1),
    'laptop':
    Scale(('quick', {}), ('quick', LONG)),
    'paper':
    Scale(('paper', {}), ('paper', {}), seeds=(0, 1, 2, 3, 4), num_val=10_000,
          val_every=390),
}


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--table', nargs='+', choices=list(PARTS)[:4], default=[])
    add('--figure', nargs='+', choices=list(PARTS)[4:], default=[])
    add('--cell', nargs='+', type=Cell.of, default=[], help='single runs')
    add('--scale', choices=SCALES, default='laptop')
    for name in ('names', 'models', 'regimes'):
        add(f'--{name}', nargs='+', help='only these [all]')
    add('--seeds', nargs='+', type=int, help="[the scale's]")
    add('--list', action='store_true', help='print a command for each run')
    add('--report-only', action='store_true', help='run nothing')
    add('--again', action='store_true', help='forget what is there of the runs')
    add('--threads', type=int, default=1, help="PyTorch's [%(default)s]")
    add('--root', default='datasets', metavar='DIR')
    add('--runs', default='runs/reproduce', metavar='DIR')
    add('--results', default='results', metavar='DIR')
    args = parser.parse_args(argv)
    if not (args.table or args.figure or args.cell):
        parser.error('say what to reproduce: --table, --figure or --cell')
    return args


def main(argv: Optional[list[str]] = None) -> None:
    args, failed = parse_args(argv), []
    torch.set_num_threads(args.threads)
    cells = [] if args.report_only else cells_of(args)
    for number, cell in enumerate(cells, 1):
        if args.list:
            print(f'python benchmarks/reproduce.py --cell {cell.name} --scale '
                  f'{args.scale}')
            continue
        print(f'{cell.name} ({number} of {len(cells)})', flush=True)
        try:
            run(cell, args)
        except Timeout:
            print('another process is at it')
        except Exception:  # Whatever it is, other runs do not share it.
            traceback.print_exc()
            failed.append(cell.name)
    for part in () if args.list else (*args.table, *args.figure):
        if part == 'trajectories':
            draw_trajectories(args)
        else:
            write_table(part, args)
    if failed:
        sys.exit('Failed: ' + ', '.join(failed) + '; see above for why.')


def cells_of(args: argparse.Namespace) -> list[Cell]:
    """What tables and figures are made of, seed by seed."""
    scale, cells = SCALES[args.scale], list(args.cell)
    for part in (*args.table, *args.figure):
        names, models, regimes = PARTS[part]
        seeds = args.seeds or (scale.law_seeds
                               if part == 'laws' else scale.seeds)
        cells += [
            Cell(*row, seed)
            for seed in (seeds[:1] if part == 'trajectories' else seeds) for row
            in product(args.names or names, args.models or models, regimes)
            if row[2] in (args.regimes or regimes)
        ]
    return sorted(dict.fromkeys(cells), key=lambda cell: cell.seed)


def run(cell: Cell, args: argparse.Namespace) -> None:
    """Trains a cell, or goes on with it, and measures it, unless its result
    is there."""
    out = Path(args.runs, args.scale, cell.name)
    path = Path(args.results, args.scale, f'{cell.name}.json')
    spent = Path(f'{out}.minutes')  # Before an interruption, too.
    out.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f'{out}.lock', timeout=0):
        if args.again:
            for file in (path, spent):
                file.unlink(missing_ok=True)
            shutil.rmtree(out, ignore_errors=True)
        if path.exists():
            print(f'{path} is there already')
            return
        minutes = float(spent.read_text()) if spent.exists() else 0.
        start = time.monotonic()
        try:
            module = train(cell, out, args)
        finally:
            minutes += (time.monotonic() - start) / 60
            spent.write_text(f'{minutes}')
        figures = measure_cell(cell, module, out, args.root)
        tables.save_json(
            path,
            dict(cell=cell.name, scale=args.scale, figures=figures,
                 minutes=minutes, num_systems=SCALES[args.scale].num_systems,
                 provenance=tables.provenance()))


def train(cell: Cell, out: Path,
          args: argparse.Namespace) -> RelationalInference:
    """The model of a cell, trained."""
    scale, unsplit = SCALES[args.scale], cell.regime == 'unsplit'
    data = dict(name=cell.dataset, num_particles=5, seed=0, split_by='system',
                num_systems=scale.num_systems)
    split = ReconstructTrajectory if unsplit else SplitTrajectory
    systems, val = (open_dataset(data, args.root, name, split(49))
                    for name in ('train', 'val'))
    recipe, options = scale.recipe(cell.regime)
    has_labels = cell.regime in ('supervised', 'true_graph')
    config = Config.for_dataset(systems, 49, data=data, model=cell.model,
                                recipe=recipe, options=options,
                                regime=cell.regime if has_labels else 'learned',
                                unsplit=unsplit, seed=cell.seed)
    resume = any(out.glob('**/last.ckpt'))
    return fit(config, systems, val[:scale.num_val], str(out),
               val_every=scale.val_every, resume=resume, overwrite=not resume)


def measure_cell(cell: Cell, module: RelationalInference, out: Path,
                 root: str) -> dict[str, Any]:
    """All figures of a trained model, on test systems."""
    has_laws = cell.regime in ('em', 'scratch')
    test = open_dataset(module.config.data, root, 'test', SplitTrajectory(49))
    if has_laws:  # Graphs are refined, which is slow.
        test = test[:2_000]
    infer = (module.model.infer if cell.regime != 'true_graph' else
             lambda batch: (module.true_types(batch), None))
    figures = measure(module, test, infer)[0] | measure_guesses(
        module, test, root)
    if has_laws:
        refined, _ = measure(module, test, partial(refine, module.model))
        laws = find_laws(module, test, refined)
        figures['refined'] = refined
        if laws is not None and laws.error is not None:
            figures['law_error'] = dict(zip(laws.names, laws.error))
    if cell.regime == 'em':
        before = load_checkpoint(str(out / 'quick' / 'best.ckpt'))
        figures['before'], _ = measure(before, test, before.model.infer)
    if cell.regime in ('split', 'unsplit'):
        figures['halves'] = {
            half: measure_half(module, test[:2_000], half)
            for half in ('observed', 'following')
        }
    return figures


def measure_half(module: RelationalInference, test: Systems,
                 half: str) -> dict[str, Any]:
    """Errors of rollouts along the frames that the encoder saw, or those that
    follow, with the graph inferred from the former."""
    batches = list(SystemLoader(test, 500))
    for batch in batches if half == 'observed' else []:
        batch.y = batch.x
    figures = evaluate(module.model, batches, module.units,
                       module.config.num_edge_types, HORIZONS)
    return {key: figures[key] for key in ('rollout_mse', 'static_mse')}


def write_table(part: str, args: argparse.Namespace) -> None:
    """Writes a table of all results that are there."""
    kind = 'figure' if part == 'compression' else 'table'
    command = (f'python benchmarks/reproduce.py --{kind} {part} --scale '
               f'{args.scale}')
    out, found = Path(args.results, args.scale), {}
    if part == '3':
        found = {name: tables.parameter_table(name) for name in PAPER}
        note = f'Made by `{command}`.'
    else:
        frame = tables.load_results(out)
        names, _, regimes = PARTS[part]
        used = [*regimes, 'learned'] if part == 'laws' else regimes
        frame = frame[frame['dataset'].isin(names) & frame['regime'].isin(used)]
        note = tables.notes_of(frame, command)
        for name in names:
            rows, layers = frame[frame['dataset'] == name], LAYERS.get(name, [])
            mse = [f'MSE {h}' for h in (1, 10, 20)]
            if not rows['regime'].isin(regimes).any():
                continue
            if part == '1':
                found[name] = tables.paper_table(rows, ['combined', *layers],
                                                 ACCURACY[name])
            elif part == '2':
                found[name] = tables.paper_table(rows, mse, ROLLOUT_MSE[name])
            else:
                rows = tables.rows_by_kind(rows[rows['model'] == 'fnri'],
                                           ROWS[part])
                figures = [
                    'combined', *layers, *(f'MSE {h}' for h in HORIZONS), 'ECE',
                    *rows.filter(like='law error'), 'minutes'
                ]
                found[name] = tables.means(rows, 'row', figures)
            if part == 'compression':
                draw_compression(rows, out / 'compression.png')
    stem = f'table{part}' if part in '123' else part
    title = {'1': 'Edge accuracy (%)', '2': 'Rollout errors (1e-5)'}
    tables.publish(out / f'{stem}.md', title.get(part, stem), found, [note])


def draw_trajectories(args: argparse.Namespace) -> None:
    """How four test systems go on after what the encoder saw, each predicted
    in one rollout from its last observed state alone."""
    cell = next(c for c in cells_of(args) if c.regime == 'learned')
    module = load_checkpoint(f'{args.runs}/{args.scale}/{cell.name}/best.ckpt')
    # The last 50 of 99 frames follow the 49 observed ones.
    test = open_dataset(module.config.data, args.root, 'test',
                        SplitTrajectory(49, 50))
    paths = [[
        torch.cat([data.x[:, -1:], y], dim=1)
        for y in (module.model.predict_trajectory(data, 50), data.y)
    ] for data in test[:4]]
    predicted, true = map(list, zip(*paths))
    save_figure(
        plot_trajectories(predicted, true, half_width=box_half_width(test)),
        Path(args.results, args.scale, 'trajectories.png'))


def draw_compression(rows: pd.DataFrame, path: Path) -> None:
    """Errors over the steps of rollouts, without and with the split."""
    figure = Figure((9, 3.6), layout='constrained')
    lines = rows.groupby('row', sort=False).mean(numeric_only=True)
    lines = lines.filter(like='MSE').rename(columns=lambda name: int(name[4:]))
    for ax, split in zip(figure.subplots(1, 2, sharey=True),
                         ('without', 'with ')):
        shown = lines.filter(regex=f'^({split}|static)',
                             axis=0).sort_index(axis=1)
        shown.T.plot(ax=ax, loglog=True, style=['o-', 'o-', '--', '--'],
                     xlabel='steps', ylabel='mean squared error (1e-5)')
    save_figure(figure, path)


def save_figure(figure: Figure, path: Path) -> None:
    with written_whole(str(path)) as part:
        figure.savefig(part, format='png', dpi=150)
    print(f'written into {path}')


if __name__ == '__main__':
    main()
