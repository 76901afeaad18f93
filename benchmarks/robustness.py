"""Measure how robust laws and graphs are that are found from scratch.

    python benchmarks/robustness.py --scale smoke     # seconds
    python benchmarks/robustness.py --seeds 0         # half an hour, one core

On systems of springs and charges, laws are found without labels and with an
untrained encoder, then the graphs of unseen systems. A curve varies one thing:

    frames      observed frames, of training systems and of unseen ones
    noise       Gaussian noise on all frames
    systems     number of training systems; 50,000 take 12 GiB of memory
    particles   particles of the unseen systems, with laws from systems of 5
    interval    time between two frames

Writes a JSON file for each point into --out, and of all that are there
robustness.md and robustness.png. What is there is not measured again.

The ablations beside the curves were measured at commit 1799bda, whose
scripts/robustness.py could take parts of the method out.
"""
import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pandas as pd
import torch
from matplotlib.figure import Figure
from reproduce import save_figure
from tables import means, provenance, publish, save_json
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.evaluation import law_curves
from pyg_fnri.inference import Refined, refine, sample_posterior
from pyg_fnri.laws import discover_force_laws
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import (
    EdgeAccuracy,
    expected_calibration_error,
    make_posterior,
)
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.plot.style import COLORS
from pyg_fnri.simulation import Charge, Newtonian, Spring
from pyg_fnri.training import Config, build_module
from pyg_fnri.transforms import SplitTrajectory

NAME, TYPES, LAYERS = 'springs_charges', (2, 2), ('spring', 'charge')
#: Frames that are simulated: the first and the last of them are looked at.
NUM_FRAMES = 99


class Condition(NamedTuple):
    """What a curve varies. Training systems have as many frames again that
    follow those observed; noise is in per cent of each feature's standard
    deviation, the interval in seconds."""
    num_observed: int = 49
    noise_percent: float = 0
    num_training: int = 500
    num_particles: int = 5
    interval: float = 0.1
    num_test: int = 500


class Scale(NamedTuple):
    standard: Condition
    values: dict[str, tuple[float, ...]]
    num_pilot: int = 100
    max_starts: int = 5
    num_restarts: int = 24


NOTE = (
    'Laws are found on 500 systems of springs and charges (I+C) of 5 particles, '
    'with an untrained encoder and no label, from 49 frames and as many that '
    'follow, 0.1 s apart and without noise; then the graphs of 500 unseen '
    'systems from 49 frames. A curve varies one of these. Combined, spring, '
    'charge: strict edge accuracy of the refined graphs in per cent. Law error: '
    'mean absolute error of a law over its mean size, in per cent, at the '
    'distances seen; none where no law stands for one force alone. ECE: '
    'expected calibration error. Sampled: by Gibbs sampling. Confirmed: per cent '
    'of the runs in which two starts found equally good laws. ± is the standard '
    'error of the mean over seeds, each of which has systems, weights and starts '
    'of its own.')
#: Field of :class:`Condition`, axis, whether the posterior is sampled, too:
#: where the frames leave graphs uncertain.
CURVES = {
    'frames': ('num_observed', 'observed frames', True),
    'noise': ('noise_percent', 'noise (%)', True),
    'systems': ('num_training', 'training systems', False),
    'particles': ('num_particles', 'particles', False),
    'interval': ('interval', 'interval (s)', False),
}
SCALES = {
    'laptop':
    Scale(
        Condition(), {
            'frames': (10, 15, 20, 30, 49),
            'noise': (0, 0.5, 1, 2, 5),
            'systems': (10, 20, 50, 100, 500, 1_000, 5_000, 50_000),
            'particles': (3, 5, 8, 10, 15, 20),
            'interval': (0.05, 0.1, 0.2, 0.3, 0.5),
        }),
    'smoke':
    Scale(
        Condition(num_observed=6, num_training=6, num_test=3), {
            'frames': (4, 6),
            'noise': (0, 5),
            'systems': (4, 6),
            'particles': (3, 5),
            'interval': (0.1, 0.2),
        }, 3, 2, 1),
}


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--curve', nargs='+', choices=CURVES, default=list(CURVES))
    add('--seeds', nargs='+', type=int, default=[0, 1, 2])
    add('--scale', choices=SCALES, default='laptop')
    add('--report-only', action='store_true', help='measure nothing')
    add('--root', default='datasets', metavar='DIR')
    add('--out', metavar='DIR',
        help='[results/robustness, or results/smoke/robustness]')
    add('--threads', type=int, default=1, help="PyTorch's [%(default)s]")
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    smoke = 'smoke' if args.scale == 'smoke' else ''
    out, scale = Path(
        args.out or Path('results', smoke, 'robustness')), SCALES[args.scale]
    for path, condition, seed, sampled in points(args, scale, out):
        if args.report_only or is_measured(path, condition, sampled):
            continue
        start = time.perf_counter()
        figures = measure(condition, seed, sampled, args.scale, args.root)
        save_json(
            path, {
                'point': path.stem,
                'condition': condition._asdict(),
                'sampled_too': sampled,
                'figures': figures,
                'seconds': time.perf_counter() - start,
                'provenance': provenance()
            })
        print(path.stem, figures.get('failed') or figures['refined'])
    report(out, scale, f'python benchmarks/robustness.py --scale {args.scale}')


def points(args: argparse.Namespace, scale: Scale,
           out: Path) -> Iterator[tuple[Path, Condition, int, bool]]:
    """All that has to be measured, and where it goes."""
    for seed in args.seeds:
        for curve in args.curve:
            field, _, sampled = CURVES[curve]
            for value in scale.values[curve]:
                condition = scale.standard._replace(**{field: value})
                name = f'{curve}-{value:g}-seed{seed}'
                if condition == scale.standard:  # A point of all curves.
                    name, sampled = f'standard-seed{seed}', True
                yield out / f'{name}.json', condition, seed, sampled


def condition_of(record: dict[str, Any]) -> Condition:
    """Older records tell the method, too."""
    return Condition(*(record['condition'][f] for f in Condition._fields))


def is_measured(path: Path, condition: Condition, sampled: bool) -> bool:
    if not path.exists():
        return False
    record = json.loads(path.read_text())
    return (condition_of(record) == condition
            and record['sampled_too'] >= sampled)


def measure(condition: Condition, seed: int, sampled: bool, scale: str,
            root: str) -> dict[str, Any]:
    """Figures of a point; where there is nothing to find, the reason."""
    num_restarts = SCALES[scale].num_restarts
    laws = condition._replace(num_particles=5)  # Those of a curve share them.
    try:
        model, noise, figures = find_laws(laws, seed, scale, root)
        test = add_noise(batch_of(condition, seed, 'test', root), noise,
                         torch.Generator().manual_seed(seed + 1))
        figures = dict(figures)
        for name, infer in (('refined', refine), ('sampled', sample_posterior)):
            if name == 'refined' or sampled:
                start = time.process_time()
                graph = infer(model, test, num_restarts=num_restarts)
                seconds = time.process_time() - start
                figures[name] = {**score(graph, test), 'seconds': seconds}
    except ValueError as error:
        return {'failed': str(error)}
    return figures


@lru_cache(maxsize=1)
def find_laws(
        condition: Condition, seed: int, scale: str,
        root: str) -> tuple[RelationalAutoEncoder, Tensor, dict[str, Any]]:
    """A model of laws from training systems, their noise and its figures."""
    clean = batch_of(condition, seed, 'train', root)
    noise = condition.noise_percent / 100 * clean.x.flatten(0, 1).std(0)
    generator = torch.Generator().manual_seed(seed)
    data = add_noise(clean, noise, generator)
    module = build_module(
        Config(data.x.size(-1), condition.num_observed, TYPES, seed=seed))
    module.fit_units(data.x)
    model = module.with_laws(interval=condition.interval,
                             half_width=5.0).model.eval()
    accuracy = EdgeAccuracy(TYPES)

    def compare(progress: Any) -> None:
        accuracy.reset()
        accuracy.update(progress.edge_type, data.edge_label)

    start = time.process_time()
    discovery = discover_force_laws(model, data, generator,
                                    num_pilot=SCALES[scale].num_pilot,
                                    max_starts=SCALES[scale].max_starts,
                                    on_iteration=compare)
    seconds = time.process_time() - start
    result = accuracy.compute()
    curves = law_curves(model.decoder.layer,
                        open_systems(condition, seed, 'test', root),
                        result.relabelling)
    error = curves.error and dict(zip(curves.names, curves.error))
    return model, noise, {
        'confirmed': discovery.confirmed,
        'num_starts': len(discovery.starts),
        'law_error': error,
        'noise': noise.tolist(),
        'training_accuracy': result.combined.item(),
        'discovery_seconds': seconds
    }


def open_systems(condition: Condition, seed: int, split: str,
                 root: str) -> ParticleSystems:
    """I+C, at the interval and of the size asked for."""
    standard = Newtonian((Spring(), Charge()))
    every = round(condition.interval / standard.step_size)
    system = replace(standard, sample_every=every,
                     num_steps=(NUM_FRAMES + 1) * every)
    name = NAME if system == standard else f'{NAME}-every_{every}_ms'
    return ParticleSystems(root, name, split, condition.num_particles,
                           (condition.num_training, 1, condition.num_test),
                           seed, system=system if name != NAME else None,
                           transform=SplitTrajectory(condition.num_observed))


def batch_of(condition: Condition, seed: int, split: str, root: str) -> Data:
    dataset = open_systems(condition, seed, split, root)
    return next(iter(SystemLoader(dataset, len(dataset))))


def add_noise(data: Data, noise: Tensor, generator: torch.Generator) -> Data:
    """Independent Gaussian noise of a standard deviation per feature."""
    out = data.clone()
    for key in ('x', 'y'):
        drawn = torch.randn(data[key].size(), generator=generator)
        out[key] = data[key] + noise * drawn
    return out


def score(graph: Refined, data: Data) -> dict[str, Any]:
    """Strict edge accuracies, and how far probabilities are off."""
    accuracy = EdgeAccuracy(TYPES)
    accuracy.update(graph.edge_type, data.edge_label)
    result = accuracy.compute()
    correct = (result.relabelling(graph.edge_type) == data.edge_label).all(-1)
    confidence = make_posterior(graph.edge_type, graph.posterior,
                                data.edge_index).confidence
    return {
        'combined': result.combined.item(),
        'layers': [layer.item() for layer in result.layers],
        'calibration_error': expected_calibration_error(confidence,
                                                        correct).item()
    }


def report(out: Path, scale: Scale, command: str) -> None:
    """Table and picture of all points that are there."""
    records = [json.loads(p.read_text()) for p in out.glob('*-seed*.json')]
    tables, panels, ablations = {}, {}, []
    for record in sorted(records, key=lambda r: r['point']):
        kind, name, *_ = record['point'].split('-')
        if kind == 'ablation':
            ablations.append({kind: name.replace('_', ' '), **row_of(record)})
    for field, axis, _ in CURVES.values():
        rows = []
        for record in records:
            condition = condition_of(record)
            standard = {field: getattr(scale.standard, field)}
            if (condition._replace(**standard) == scale.standard
                    and not record['point'].startswith('ablation')):
                value = getattr(condition, field)
                rows.append({axis: value, **row_of(record)})
        if rows:
            rows.sort(key=lambda row: (row[axis], row['seed']))
            tables[axis] = means(rows, 2, axis)
            panels[axis] = pd.DataFrame(rows).set_index(axis)
    if ablations:
        tables['ablations'] = means(ablations, 2, 'ablation')
    failed = sorted({
        f"{r['point']} failed: {r['figures']['failed']}"
        for r in records if 'failed' in r['figures']
    })
    publish(
        out / 'robustness.md', 'How robust laws and graphs from scratch are',
        tables, [
            NOTE, f'Made by `{command}`; ablations, where there are any, at '
            f'commit 1799bda.', *failed
        ])
    draw(panels, out / 'robustness.png')


def row_of(record: dict[str, Any]) -> dict[str, Any]:
    """A line of a table, in per cent and seconds of one core."""
    figures, seed = record['figures'], int(
        record['point'].rpartition('seed')[2])
    if 'failed' in figures:
        return {'combined': math.nan, 'seed': seed}
    refined, sampled = figures['refined'], figures.get('sampled', {})
    law_error = figures['law_error'] or {}
    accuracy = zip(('combined', *LAYERS),
                   (refined['combined'], *refined['layers']))
    share = {
        **dict(accuracy),
        **{
            f'{layer} law error': law_error.get(layer, math.nan)
            for layer in LAYERS
        },
        'ECE': refined['calibration_error'],
        'sampled': sampled.get('combined', math.nan),
        'sampled ECE': sampled.get('calibration_error', math.nan),
        'confirmed': figures['confirmed'],
    }
    return {
        **{
            key: 100 * value
            for key, value in share.items()
        },
        'CPU s of laws': figures['discovery_seconds'],
        'CPU s of graphs': refined['seconds'],
        'seed': seed,
    }


def draw(panels: dict[str, pd.DataFrame], path: Path) -> None:
    """Edge accuracies above, errors of laws below; a dot for each run, lines
    through their means."""
    figure = Figure((3 * len(panels), 5.4), layout='constrained')
    axes = figure.subplots(2, len(panels), squeeze=False, sharey='row',
                           sharex='col')
    columns = (('combined', *LAYERS),
               [f'{layer} law error' for layer in LAYERS])
    for column, (axis, frame) in enumerate(panels.items()):
        for ax, names in zip(axes[:, column], columns):
            for color, name in zip(COLORS, names):
                runs = frame[name].dropna()
                ax.plot(runs.index, runs, 'o', color=color, ms=3, alpha=0.6)
                mean = runs.groupby(level=0).mean()
                ax.plot(mean.index, mean, color=color, label=name)
            if frame.index.min() > 0 and frame.index.max(
            ) > 50 * frame.index.min():
                ax.set_xscale('log')
            ax.set_xlabel(axis)
    axes[0, 0].set_ylabel('edge accuracy (%)')
    axes[1, 0].set(ylabel='law error (%)', yscale='log')
    for ax in axes[:, 0]:
        ax.legend(fontsize=8)
    save_figure(figure, path)


if __name__ == '__main__':
    main()
