"""Reproduce the paper's tables and figures, at a scale that you can afford.

    python benchmarks/reproduce.py --table 1 2 3 --scale smoke     # a minute
    python benchmarks/reproduce.py --table 1 2 --scale laptop      # hours
    python benchmarks/reproduce.py --table 1 2 --scale paper --list

A cell, DATASET-MODEL-REGIME-SEED, is a training run in RUNS/SCALE/CELL and its
measurement on the test split, RESULTS/SCALE/CELL.json. --list prints each as a
command of its own, for any scheduler. Of all results that are there:

    --table 1               edge accuracies: models learned and supervised
    --table 2               rollout errors: models learned and given true graphs
    --table 3               numbers of parameters; nothing is trained
    --table laws            force laws from scratch
    --table nri             NRI's six settings, and its charges clamped: laws
                            from scratch, and models learned; DATASET_10 has ten
                            particles
    --figure trajectories   four test systems, 50 steps from one state alone, by
                            each model
    --figure compression    section 3.1: with and without the split of observed
                            and predicted halves
    --figure curves         validation of the paper's recipe and of quick, over
                            minutes of training; --scale paper trains the former
                            until it is stopped, and goes on with it
"""
import argparse
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pandas as pd
import tables
import torch
from matplotlib.figure import Figure

from pyg_fnri import evaluation
from pyg_fnri.datasets.spec import Systems, box_half_width, open_dataset
from pyg_fnri.evaluation.report import ACCURACY, ROLLOUT_MSE
from pyg_fnri.inference import refine
from pyg_fnri.loader import SystemLoader
from pyg_fnri.nn.models import MODELS
from pyg_fnri.plot import plot_trajectories
from pyg_fnri.training import Config, RelationalInference, fit, load_checkpoint
from pyg_fnri.transforms import ReconstructTrajectory, SplitTrajectory

#: Of rollouts along either half; table 2 has three of them.
HORIZONS = (1, 5, 10, 20, 40)
#: Of the paper's data sets.
LAYERS = {
    'springs_charges': ['springs', 'charges'],
    'springs_charges_fsprings': ['springs', 'charges', 'finite springs']
}
PAPER = list(LAYERS)
#: Rows without a model: what is scored, and where that is in the figures.
BASELINES = {
    'random': ('edge_accuracy', 'random_accuracy'),
    'majority class': ('edge_accuracy', 'majority_accuracy'),
    'static': ('rollout_mse', 'static_mse'),
    'linear': ('rollout_mse', 'linear_mse')
}
#: Edge accuracies (%) on NRI's own simulators: the best unsupervised ones
#: published, then those of NRI's supervised encoder.
NRI = {
    'nri_springs': (99.9, 99.9),
    'nri_springs_10': (99.6, 99.4),
    'nri_charged': (94.3, 95.4),
    'nri_charged_10': (86.2, 89.7),
    'nri_charged_clamped': (94.3, 95.4),
    'nri_charged_clamped_10': (86.2, 89.7),
    'kuramoto': (98.1, 99.3),
    'kuramoto_10': (82.8, 94.3)
}
#: The paper's table 3: data set -> model -> number of parameters of encoder
#: and decoder.
PARAMETERS: dict[str, dict[str, tuple[int, int]]] = {
    'springs_charges': {
        'nri': (710_660, 406_020),
        'fnri': (710_660, 406_020),
        'sfnri': (710_146, 269_828)
    },
    'springs_charges_fsprings': {
        'nri': (711_688, 678_404),
        'fnri': (711_174, 542_212),
        'sfnri': (710_403, 337_924)
    }
}
#: Data sets, models and regimes of a table or figure.
PARTS: dict[str, tuple[list[str], list[str], list[str]]] = {
    '1': (PAPER, list(MODELS), ['learned', 'supervised']),
    '2': (PAPER, list(MODELS), ['learned', 'true_graph']),
    '3': ([], [], []),
    'laws': (PAPER + ['nri_springs', 'nri_charged'], ['fnri'], ['scratch']),
    'nri': (list(NRI), ['fnri'], ['scratch', 'learned']),
    'trajectories': (PAPER[:1], list(MODELS), ['learned']),
    'compression': (PAPER[:1], ['fnri'], ['split', 'unsplit']),
    'curves': (PAPER[:1], ['fnri'], ['learned'])
}
#: Of these, a single seed.
SINGLE = ('trajectories', 'curves')
#: Rows by regime and kind of figures.
ROWS = {
    'nri': {
        ('learned', 'run'): 'quick recipe',
        ('scratch', 'refined'): 'laws from scratch'
    },
    'laws': {
        ('learned', 'run'): 'quick recipe',
        ('scratch', 'run'): 'laws from scratch, one relaxation',
        ('scratch', 'refined'): 'laws from scratch, refined'
    },
    'compression': {
        (regime, f'{static}{half}'): f'{label}, {half}'
        for static, regime, label in (('', 'unsplit', 'without the split'),
                                      ('', 'split', 'with the split'),
                                      ('static, ', 'split', 'static'))
        for half in ('observed', 'following')
    }
}


class Scale(NamedTuple):
    """How far runs go: recipe and options of the paper's regimes, and of those
    that section 3.1 compares."""
    networks: tuple[str, dict[str, Any]]
    halves: tuple[str, dict[str, Any]]
    seeds: tuple[int, ...] = (0, 1, 2)
    num_systems: tuple[int, ...] = (50_000, 10_000, 10_000)
    #: All that laws from scratch look at.
    num_scratch: tuple[int, ...] = (1_000, 200, 2_000)
    num_val: int = 2_000
    val_every: int = 1_000

    def recipe(self, regime: str) -> tuple[str, dict[str, Any]]:
        if regime == 'scratch':
            return 'laws', {}
        return self.halves if 'split' in regime else self.networks


TINY = dict(hidden_channels=8, batch_size=16, max_steps=3)
# Rollouts from a state and the graph alone: single steps have nothing to
# compress, and an encoder of invariants would keep little of it. Their errors
# are larger, so that a smaller variance would have graphs sure too early.
LONG = dict(encoder='mlp', final_tau=2.0, final_share=0.0, num_starts=1,
            pred_steps=48, variance=10.0, max_steps=2_000)
SCALES = {
    'smoke':
    Scale(('quick', TINY), ('paper', TINY), (0, ), (64, 32, 32), (64, 32, 32),
          val_every=1),
    'laptop':
    Scale(('quick', {}), ('quick', LONG)),
    'paper':
    Scale(('paper', {}), ('paper', {}), seeds=(0, 1, 2, 3, 4), num_val=10_000,
          val_every=390)
}


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = tables.make_parser(__doc__, 'reproduce', SCALES)
    add = parser.add_argument
    add('--table', nargs='+', choices=list(PARTS)[:5], default=[])
    add('--figure', nargs='+', choices=list(PARTS)[5:], default=[])
    args = parser.parse_args(argv)
    if not (args.table or args.figure or args.cell):
        parser.error('say what to reproduce: --table, --figure or --cell')
    return args


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    out, runs = (Path(place, args.scale) for place in (args.results, args.runs))
    parts = [*args.table, *args.figure]

    def report() -> None:
        for part in parts:
            names = cells_of([part], args.scale)
            if part == 'trajectories':
                draw_trajectories([runs / c for c in names], args.root, out)
            elif part == 'curves':
                draw_curves(names[0], Path(args.runs), out.parent)
            else:
                write_table(part, out, args.scale)

    tables.run_study(cells_of(parts or PARTS, args.scale),
                     lambda name: run(name, runs / name, args.scale, args.root),
                     report, out, args)


def cells_of(parts: Iterable[str], scale: str) -> list[str]:
    """What tables and figures are made of, seed by seed."""
    size = SCALES[scale]
    cells = [(*row, seed) for part in parts
             for seed in size.seeds[:1 if part in SINGLE else None]
             for row in product(*PARTS[part])]
    cells = sorted(dict.fromkeys(cells), key=lambda cell: cell[-1])
    return ['-'.join(map(str, cell)) for cell in cells]


def run(name: str, out: Path, scale: str, root: str) -> dict[str, Any]:
    """Trains a cell, or goes on with it, and measures it."""
    dataset, model, regime, seed = name.split('-')
    size, unsplit = SCALES[scale], regime == 'unsplit'
    ten = dataset.endswith('_10')
    number = size.num_scratch if regime == 'scratch' else size.num_systems
    data = dict(name=dataset.removesuffix('_10'),
                num_particles=10 if ten else 5, seed=0, split_by='system',
                num_systems=number)
    split = ReconstructTrajectory if unsplit else SplitTrajectory
    train, val = (open_dataset(data, root, part, split(49))
                  for part in ('train', 'val'))
    recipe, options = size.recipe(regime)
    has_labels = regime in ('supervised', 'true_graph')
    config = Config.for_dataset(train, 49, data=data, model=model,
                                recipe=recipe, options=options,
                                regime=regime if has_labels else 'learned',
                                unsplit=unsplit, seed=int(seed))
    resume = any((out / f'{of}.ckpt').exists() for of in ('last', 'laws'))
    module = fit(config, train, val[:size.num_val], str(out),
                 val_every=size.val_every, resume=resume, overwrite=not resume)
    return dict(cell=name, scale=scale, num_systems=number,
                figures=measure_cell(regime, module, out, root))


def measure_cell(regime: str, module: RelationalInference, out: Path,
                 root: str) -> dict[str, Any]:
    """All figures of a trained model, on test systems."""
    has_laws = regime == 'scratch'
    test = open_dataset(module.config.data, root, 'test', SplitTrajectory(49))
    if has_laws:  # Graphs are refined, which is slow.
        test = test[:2_000]
    figures, _ = evaluation.measure(module, test)
    figures |= evaluation.measure_guesses(module, test, root)
    if has_laws:
        refined, types = evaluation.measure(module, test,
                                            partial(refine, module.model))
        laws = evaluation.find_laws(module, test, refined, types)
        figures['refined'] = refined
        if laws is not None and laws.error is not None:
            figures['law_error'] = dict(zip(laws.names, laws.error))
    if regime == 'learned' and module.recipe.teaches:
        alone, _ = evaluation.measure(module, test, module.model.one_pass)
        figures['encoder'] = alone
    if 'split' in regime:
        figures['halves'] = {
            half: measure_half(module, test[:2_000], half)
            for half in ('observed', 'following')
        }
    return figures


def measure_half(module: RelationalInference, test: Systems,
                 half: str) -> dict[str, Any]:
    """Errors of rollouts along the frames that the encoder saw, or those that
    follow."""
    batches = list(SystemLoader(test, 500))
    for batch in batches if half == 'observed' else []:
        batch.y = batch.x
    figures = evaluation.evaluate(module.model, batches, module.units,
                                  module.config.num_edge_types, HORIZONS)
    return {key: figures[key] for key in ('rollout_mse', 'static_mse')}


def load_results(out: Path) -> pd.DataFrame:
    """The results of all cells by seed, a row for each kind of figures."""
    results = tables.load(out, '*-*-*-*').items()
    rows = [row for item in results for row in rows_of(*item)]
    return pd.DataFrame(rows).sort_values('seed', kind='stable')


def rows_of(name: str, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of a model with its own graphs (kind 'run') and with others, on
    either half of the frames, and of what is scored without a model."""
    dataset, model, regime, seed = name.split('-')
    figures = result['figures']
    kinds = dict(run=figures, refined=figures.get('refined', {}),
                 encoder=figures.get('encoder', {}))
    for kind, (key, name) in BASELINES.items():
        kinds[kind] = {key: figures.get(name)}
    for half, of in figures.get('halves', {}).items():
        kinds[half] = dict(of, edge_accuracy=figures.get('edge_accuracy'))
        kinds[f'static, {half}'] = {'rollout_mse': of['static_mse']}
    for kind, of in kinds.items():
        row = flat(of, LAYERS.get(dataset, []))
        if not row:
            continue
        if kind == 'refined':
            for law, error in figures.get('law_error', {}).items():
                row[f'{law} law error'] = 100 * error
        if kind in ('run', 'refined', 'encoder', 'observed', 'following'):
            row['minutes'] = result['minutes']
        yield dict(dataset=dataset, model=model, regime=regime, seed=int(seed),
                   kind=kind, **row, trained=result['num_systems'][0],
                   tested=figures['num_systems'],
                   machine=', '.join(map(str, result['provenance'].values())))


def flat(figures: Mapping[str, Any], layers: list[str]) -> dict[str, float]:
    """Accuracies in per cent, errors in 1e-5 of min-max units."""
    accuracy, row = figures.get('edge_accuracy'), {}
    if accuracy:
        shares = (accuracy['combined'], *accuracy['layers'])
        for name, share in zip(['combined', *layers], shares):
            row[name] = 100 * share
    for horizon, error in (figures.get('rollout_mse') or {}).items():
        row[f'MSE {horizon}'] = 1e5 * error
    if figures.get('calibration_error'):
        row['ECE'] = 100 * figures['calibration_error']['combined']
    return row


def write_table(part: str, out: Path, scale: str) -> None:
    """Writes a table of all results that are there."""
    kind = 'figure' if part == 'compression' else 'table'
    note = f'Made by `python benchmarks/reproduce.py --{kind} {part} --scale '
    note, found = f'{note}{scale}`', {}
    if part == '3':
        found = {name: parameter_table(name) for name in PAPER}
        note += '.'
    else:
        names, _, regimes = PARTS[part]
        used = [*regimes, 'learned'] if part == 'laws' else regimes
        frame = load_results(out)
        frame = frame[frame['dataset'].isin(names) & frame['regime'].isin(used)]
        trained, tested, machines = (' or '.join(map(str, frame[key].unique()))
                                     for key in ('trained', 'tested',
                                                 'machine'))
        note += (f'; trained on {trained} systems and measured on {tested} of '
                 f'the test split, with {machines}; ± is the standard error of '
                 f'the mean over seeds. {tables.HOW_TO_READ}')
        for name in names:
            rows, layers = frame[frame['dataset'] == name], LAYERS.get(name, [])
            if not rows['regime'].isin(regimes).any():
                continue
            if part in ROWS:
                rows = pd.concat([
                    rows[(rows['regime'] == regime) & (rows['kind'] == kind)
                         & (rows['model'] == 'fnri')].assign(row=label)
                    for (regime, kind), label in ROWS[part].items()
                ])
            if part == 'nri':
                rows = rows.assign(row=f'{name}, ' + rows['row'])
                ours = tables.means(rows, 'row', ['combined', 'ECE', 'minutes'])
                found.setdefault('strict, unsupervised', []).append(
                    ours.assign(
                        **{
                            'best published': NRI[name][0],
                            'NRI supervised': NRI[name][1]
                        }))
            elif part == '1':
                found[name] = paper_table(rows, ['combined', *layers],
                                          ACCURACY[name])
            elif part == '2':
                found[name] = paper_table(rows, ['MSE 1', 'MSE 10', 'MSE 20'],
                                          ROLLOUT_MSE[name])
            else:
                errors = [f'MSE {h}' for h in HORIZONS]
                found[name] = tables.means(rows, 'row', [
                    'combined', *layers, *errors, 'ECE',
                    *rows.filter(like='law error'), 'minutes'
                ])
            if part == 'compression':
                draw_compression(rows, out / 'compression.png')
    if part == 'nri':
        found = {name: pd.concat(rows) for name, rows in found.items()}
    stem = f'table{part}' if part in '123' else part
    title = {'1': 'Edge accuracy (%)', '2': 'Rollout errors (1e-5)'}
    tables.publish(out / f'{stem}.md', title.get(part, stem), found, [note])


def paper_table(frame: pd.DataFrame, columns: list[str],
                paper: Mapping[str, tuple[float, ...]]) -> pd.DataFrame:
    """Table 1 or 2: ours beside the paper's."""
    alone = frame['kind'] == 'encoder'
    regime = frame['regime'].str.replace('_', ' ').mask(alone, 'encoder alone')
    label = frame['model'] + ' (' + regime + ')'
    is_run = alone | (frame['kind'] == 'run')
    frame = frame.assign(row=frame['kind'].mask(is_run, label))
    # Baselines are the same in all runs.
    is_baseline = frame['kind'].isin(BASELINES)
    ours = frame[is_run | is_baseline & ~frame.duplicated('row')]
    ours = tables.means(ours.dropna(subset=columns[:1]), 'row',
                        [*columns, 'minutes'])
    theirs = pd.DataFrame.from_dict(paper, 'index', columns=columns)
    theirs = tables.means(theirs.assign(row=theirs.index, seed=''), 'row',
                          columns)
    ours = ours.rename(columns={name: f'{name}, ours' for name in columns})
    theirs = theirs[columns].add_suffix(', paper')
    return ours.join(theirs, how='outer').fillna(tables.MISSING)


def parameter_table(dataset: str) -> pd.DataFrame:
    """Table 3: numbers of parameters of untrained models, counted."""
    rows = {}
    for model, published in PARAMETERS[dataset].items():
        built = MODELS[model](4, 49, [2] * len(LAYERS[dataset]),
                              hidden_channels=256)
        ours = [
            sum(p.numel() for p in part.parameters())
            for part in (built.encoder, built.decoder)
        ]
        types = '+'.join(map(str, built.latent.num_edge_types))
        if model == 'sfnri':  # A sigmoid for each layer of two types.
            types = str(built.latent.num_logits)
        rows[model] = (types, *ours, *published)
    columns = 'K;encoder, ours;decoder, ours;encoder, paper;decoder, paper'
    return pd.DataFrame.from_dict(rows, 'index', columns=columns.split(';'))


def draw_trajectories(runs: Iterable[Path], root: str, out: Path) -> None:
    """How four test systems go on after what the encoder saw, each predicted
    in one rollout from its last observed state alone; a row for each run."""
    predicted, true, titles = [], [], []
    for run in runs:
        if not (run / 'best.ckpt').exists():  # Of a cell that is not yet made.
            continue
        module = load_checkpoint(str(run / 'best.ckpt'))
        # The last 50 of 99 frames follow the 49 observed ones.
        test = open_dataset(module.config.data, root, 'test',
                            SplitTrajectory(49, 50))
        for number, data in enumerate(test[:4]):
            start = data.x[:, -1:]
            rollout = module.model.predict_trajectory(data, 50)
            predicted.append(torch.cat([start, rollout], dim=1))
            true.append(torch.cat([start, data.y], dim=1))
            titles.append(f'{module.config.model}, system {number}')
    if not predicted:
        return
    figure = plot_trajectories(predicted, true, titles=titles,
                               half_width=box_half_width(test))
    tables.save_figure(figure, out / 'trajectories.png')


def draw_curves(name: str, runs: Path, results: Path) -> None:
    """Validation of a cell by two recipes over minutes of training, steps of
    which are taken to be equally long."""
    columns = ['val_loss', 'val_accuracy', 'val_rollout_mse']
    figure, found = Figure((10, 3.2), layout='constrained'), []
    for recipe, scale in (('quick', 'laptop'), ('paper', 'paper')):
        history = runs / scale / name / 'metrics.csv'
        if not history.exists():
            continue
        rows = pd.read_csv(history).dropna(subset=columns)
        spent = tables.minutes_of(results / scale / f'{name}.json')
        steps = rows.pop('step') + 1
        rows = rows[columns].assign(minutes=spent * steps / steps.max())
        # Recipes have losses of their own.
        rows['val_loss'] /= rows['val_loss'].abs().max()
        found.append(rows.assign(recipe=recipe))
    curves = pd.concat(found)
    for ax, column in zip(figure.subplots(1, 3), columns):
        for recipe, rows in curves.groupby('recipe'):
            rows.plot('minutes', column, ax=ax, logx=True, marker='.',
                      label=recipe, ylabel=column.removeprefix('val_'))
    tables.save_figure(figure, results / 'paper' / 'curves.png')
    tables.publish(
        results / 'paper' / 'curves.md', 'curves', {
            recipe: rows.set_index('minutes')[columns].round(4)
            for recipe, rows in curves.groupby('recipe')
        }, [])


def draw_compression(rows: pd.DataFrame, path: Path) -> None:
    """Errors over the steps of rollouts, without and with the split."""
    figure = Figure((9, 3.6), layout='constrained')
    lines = rows.groupby('row', sort=False).mean(numeric_only=True)
    lines = lines.filter(like='MSE').rename(columns=lambda name: int(name[4:]))
    lines = lines.sort_index(axis=1)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, split in zip(axes, ('without', 'with ')):
        shown = lines.filter(regex=f'^({split}|static)', axis=0)
        shown.T.plot(ax=ax, loglog=True, style=['o-', 'o-', '--', '--'],
                     xlabel='steps', ylabel='mean squared error (1e-5)')
    tables.save_figure(figure, path)


if __name__ == '__main__':
    main()
