"""Measure how robust laws and graphs are that are found from scratch.

    python benchmarks/robustness.py --scale smoke            # seconds
    python benchmarks/robustness.py --cell '*-seed0'         # half an hour

On systems of springs and charges, laws are found without labels and with an
untrained encoder, then the graphs of unseen systems. A curve varies one thing,
such as the noise. Two are of positions alone: velocities are derived of them.
50,000 systems take 12 GiB of memory. Makes robustness.md and robustness.png of
all points that are there.
"""
import time
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from tables import (HOW_TO_READ, load, make_parser, means, publish, run_study,
                    save_figure)
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.evaluation import law_curves
from pyg_fnri.inference import refine, sample_posterior
from pyg_fnri.laws import discover_force_laws
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy, EdgePosterior, graph_report
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.simulation import Charge, FiniteSpring, Newtonian, Spring
from pyg_fnri.training import Config, build_module
from pyg_fnri.transforms import SplitTrajectory

NAME, TYPES, LAYERS = 'springs_charges', (2, 2), ('spring', 'charge')


class Condition(NamedTuple):
    """What a curve varies."""
    num_observed: int = 49  # Training systems have as many again.
    noise_percent: float = 0  # Of each feature's standard deviation.
    num_training: int = 500
    num_particles: int = 5  # Of unseen systems; laws are from systems of 5.
    interval: float = 0.1  # In seconds.
    num_test: int = 500
    positions_alone: bool = False
    beads: bool = False  # Windows of one recording, see :func:`record_beads`.


#: A field of :class:`Condition` for each curve, its values, those of the scale
#: smoke, and what else the curve's points have in common.
CURVES: dict[str, tuple[Any, ...]] = {
    'frames': ('num_observed', (10, 15, 20, 30, 49), (4, 6)),
    'noise': ('noise_percent', (0, 0.5, 1, 2, 5), (0, 5)),
    'systems':
    ('num_training', (10, 20, 50, 100, 500, 1_000, 5_000, 50_000), (4, 6)),
    'particles': ('num_particles', (3, 5, 8, 10, 15, 20), (3, 5)),
    'interval': ('interval', (0.05, 0.1, 0.2, 0.3, 0.5), (0.1, 0.2)),
    'positions': ('noise_percent', (0, 0.2, 0.5, 1, 2, 5), (0, 5),
                  dict(positions_alone=True)),
    'beads': ('num_observed', (100, 150, 200, 300, 1_000, 3_000), (100, ),
              dict(positions_alone=True, beads=True, noise_percent=1,
                   num_particles=8))
}
#: Where posteriors are sampled, too: frames leave graphs in doubt.
SAMPLED = ('frames', 'noise')
#: Where figures are in a record, and their columns.
COLUMNS = {
    'refined.combined': 'combined',
    'law_error.spring': 'spring law error',
    'law_error.charge': 'charge law error',
    'refined.calibration_error': 'ECE',
    'sampled.combined': 'sampled',
    'sampled.calibration_error': 'sampled ECE',
    'confirmed': 'confirmed',
    'discovery_seconds': 's of laws',
    'refined.seconds': 's of graphs'
}
STANDARD = {
    'laptop': Condition(),
    'smoke': Condition(num_observed=6, num_training=6, num_test=3)
}


def main(argv: Optional[list[str]] = None) -> None:
    args = make_parser(__doc__, 'robustness', STANDARD).parse_args(argv)
    smoke, standard = args.scale == 'smoke', STANDARD[args.scale]
    out = Path(args.results, 'smoke' * smoke, 'robustness')
    points = points_of(standard, smoke)
    run_study(points,
              lambda name: measure(name, *points[name], smoke, args.root),
              lambda: report(out, standard, args.scale), out, args)


def points_of(standard: Condition,
              smoke: bool) -> dict[str, tuple[Condition, bool, int]]:
    """Condition, whether posteriors are sampled, and seed, by name."""
    # A point of all curves.
    points = {f'standard-seed{s}': (standard, True, s) for s in range(3)}
    for seed, (name, (field, *values)) in product(range(3), CURVES.items()):
        for value in values[smoke]:
            condition = standard._replace(**fixed_of(name), **{field: value})
            if condition != standard:
                point = f'{name}-{value:g}-seed{seed}'
                points[point] = condition, name in SAMPLED, seed
    return points


def fixed_of(curve: str) -> dict[str, Any]:
    return dict(*CURVES[curve][3:])


def measure(name: str, condition: Condition, sampled: bool, seed: int,
            smoke: bool, root: str) -> dict[str, Any]:
    """A point; where there is nothing to find, `failed` is the reason."""
    laws = condition  # Those of a curve share them.
    if not condition.beads:
        laws = condition._replace(num_particles=5)
    # Other systems, but the same recording of beads.
    types, other = TYPES[condition.beads:], not condition.beads
    try:
        model, noise, figures = find_laws(laws, seed, smoke, root)
        figures = dict(figures)  # Those of the laws are shared.
        test = observe(batch_of(condition, seed, 'test', root), condition,
                       noise,
                       torch.Generator().manual_seed(seed + other))
        ways = {'refined': refine, 'sampled': sample_posterior}
        for way in ways if sampled else ['refined']:
            start = time.process_time()
            graph = ways[way](model, test, num_restarts=1 if smoke else 24)
            seconds = time.process_time() - start
            score = graph_report([
                EdgePosterior(graph.edge_type, graph.posterior, test.edge_index,
                              test.edge_label)
            ], types, types)
            ece = score['calibration_error']['combined']
            figures[way] = dict(score['edge_accuracy'], calibration_error=ece,
                                seconds=seconds)
    except ValueError as error:
        figures = {'failed': str(error)}
    return dict(point=name, condition=condition._asdict(), figures=figures)


@lru_cache(maxsize=1)
def find_laws(
        condition: Condition, seed: int, smoke: bool,
        root: str) -> tuple[RelationalAutoEncoder, Tensor, dict[str, Any]]:
    """A model of laws from training systems, their noise and its figures."""
    clean = batch_of(condition, seed, 'train', root)
    noise = condition.noise_percent / 100 * clean.x.flatten(0, 1).std(0)
    generator = torch.Generator().manual_seed(seed)
    data = observe(clean, condition, noise, generator)
    types = TYPES[condition.beads:]
    module = build_module(Config(4, condition.num_observed, types, seed=seed))
    module.fit_units(data.x)
    model = module.with_laws(
        interval=condition.interval,
        half_width=None if condition.beads else 5.0).model.eval()
    iterations: list[Any] = []
    start = time.process_time()
    discovery = discover_force_laws(model, data, generator,
                                    num_pilot=3 if smoke else 100,
                                    max_starts=2 if smoke else 5,
                                    on_iteration=iterations.append)
    seconds = time.process_time() - start
    figures = dict(confirmed=discovery.confirmed, noise=noise.tolist(),
                   discovery_seconds=seconds)
    if condition.beads:
        return model, noise, figures
    accuracy = EdgeAccuracy(TYPES)
    accuracy.update(iterations[-1].edge_type, data.edge_label)
    curves = law_curves(model.decoder.layer,
                        open_systems(condition, seed, 'test', root),
                        accuracy.compute().relabelling)
    law_error = curves.error and dict(zip(curves.names, curves.error))
    return model, noise, dict(figures, law_error=law_error)


def open_systems(condition: Condition, seed: int, split: str,
                 root: str) -> ParticleSystems:
    """I+C, 99 frames, at the interval and of the size asked for."""
    standard = Newtonian((Spring(), Charge()))
    every = round(condition.interval / standard.step_size)
    system = replace(standard, sample_every=every, num_steps=100 * every)
    own = {} if system == standard else {'system': system}
    return ParticleSystems(root, f'{NAME}-every_{every}_ms' if own else NAME,
                           split, condition.num_particles,
                           (condition.num_training, 1, condition.num_test),
                           seed, **own,
                           transform=SplitTrajectory(condition.num_observed))


def batch_of(condition: Condition, seed: int, split: str, root: str) -> Data:
    if condition.beads:
        return record_beads(condition, seed)
    dataset = open_systems(condition, seed, split, root)
    return next(iter(SystemLoader(dataset, len(dataset))))


def record_beads(condition: Condition, seed: int) -> Data:
    """Windows of a recording of 3,000 frames of a chain of eight beads, four
    more pairs of which are joined as well, with a little friction."""
    rng, spring, size = np.random.default_rng(seed), FiniteSpring(0.5, 1.0), 8
    joined = np.eye(size, k=1, dtype=bool)
    others = np.argwhere(np.triu(np.ones_like(joined), 2))
    joined[tuple(rng.permutation(others)[:4].T)] = True
    joined |= joined.T
    position, velocity = rng.normal(0, [[[1.5]], [[0.5]]], (2, size, 2))
    velocity -= velocity.mean(0)
    frames, step = [], condition.interval / 20
    for number in range(3_000 * 20):
        if number % 20 == 0:
            frames.append(np.concatenate([position, velocity], axis=-1))
        offset = position[:, None] - position
        distance = np.sqrt((offset**2).sum(-1) + np.eye(size))
        force = joined * spring.magnitude(distance) / distance
        force = np.einsum('ij,ijd->id', force, offset)
        velocity = velocity + step * (force - 0.002 * velocity)
        position = position + step * velocity
    x, window = np.stack(frames, axis=1), condition.num_observed
    starts = range(0, x.shape[1] - window + 1, window)
    return Batch.from_data_list([
        from_trajectory(x[:, start:start + window], joined[None])
        for start in starts
    ])


def observe(data: Data, condition: Condition, noise: Tensor,
            generator: torch.Generator) -> Data:
    """With independent Gaussian noise of a standard deviation per feature; of
    positions alone with velocities as tables derive them."""
    out = data.clone()
    for key in ('x', 'y') if 'y' in data else ('x', ):
        drawn = torch.randn(data[key].size(), generator=generator)
        out[key] = data[key] + noise * drawn
        if condition.positions_alone:
            position = out[key].chunk(2, dim=-1)[0]
            velocity, = torch.gradient(position, spacing=condition.interval,
                                       dim=1, edge_order=2)
            out[key] = torch.cat([position, velocity], dim=-1)
    return out


def read(out: Path) -> pd.DataFrame:
    """A row for each point that is there, in per cent and seconds."""
    found = pd.json_normalize([*load(out, '*-seed*').values()])
    # Points that failed, or were not sampled, have fewer columns.
    columns = [f'figures.{column}' for column in COLUMNS]
    frame = found.reindex(columns=columns).set_axis(COLUMNS.values(), axis=1)
    layers = found.get('figures.refined.layers', frame['combined'])
    for number, layer in enumerate(LAYERS):
        frame[layer] = layers.astype(object).str[number]
    percent = [1 if 's of' in name else 100 for name in frame]
    frame = frame.astype(float) * percent
    for field, default in Condition._field_defaults.items():
        column = found.get(f'condition.{field}')
        frame[field] = default if column is None else column.fillna(default)
    frame[['point', 'seed']] = found['point'].str.extract('(.*)-seed(.*)')
    return frame.astype({'seed': int}).sort_values(['point', 'seed'])


def report(out: Path, standard: Condition, scale: str) -> None:
    """Tables and picture of all points that are there."""
    frame, tables = read(out), {}
    ablated = frame['point'].str.startswith('ablation')
    shown = dict.fromkeys(['combined', *LAYERS, *COLUMNS.values()])
    figure = Figure((15, 5.4), layout='constrained')
    axes = figure.subplots(2, len(CURVES), sharey='row', sharex='col').T
    for (above, below), (name, (field, *_)) in zip(axes, CURVES.items()):
        fixed = standard._asdict() | fixed_of(name)
        del fixed[field]
        same = (frame[list(fixed)] == pd.Series(fixed)).all(axis=1)
        runs = frame[same & ~ablated].sort_values([field, 'seed'])
        if runs.empty:
            continue
        tables[name] = means(runs, field, shown, 2)
        lines = runs.groupby(field).mean(numeric_only=True)
        lines[['combined', *LAYERS]].plot(ax=above, style='o-',
                                          ylabel='edge accuracy (%)')
        lines.filter(like='law error').plot(ax=below, style='o-', xlabel=name,
                                            logx=name == 'systems', logy=True,
                                            ylabel='law error (%)',
                                            legend=False)
    if ablated.any():
        tables['ablations'] = means(frame[ablated], 'point', shown, 2)
    note = (f'Made by `python benchmarks/robustness.py --scale {scale}`; '
            f'ablations at commit 1799bda. In per cent, and seconds of one '
            f'core; ± is the standard error of the mean over seeds. '
            f'{HOW_TO_READ}')
    publish(out / 'robustness.md',
            'How robust laws and graphs from scratch are', tables, [note])
    save_figure(figure, out / 'robustness.png')


if __name__ == '__main__':
    main()
