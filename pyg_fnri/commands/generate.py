"""Make a data set of simulated particle systems, and print its card.

    pyg-fnri generate --name springs_charges       # some minutes
    pyg-fnri generate --num-particles 10 --num-systems 500 100 100

With --split-by graph, no graph that is tested on, however its particles are
numbered, is in the training data. What exists already is not made again.
pyg-fnri train and pyg-fnri evaluate make the data they need by themselves.
"""
from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Optional

from pyg_fnri.commands.cli import (OptionParser, SimulatedData,
                                   errors_in_one_line, given)

if TYPE_CHECKING:
    from pyg_fnri.datasets import ParticleSystems


def main(argv: Optional[list[str]] = None) -> None:
    parser = OptionParser('pyg-fnri generate', __doc__)
    parser.add_argument('--root', default='datasets', metavar='DIR',
                        help='where data sets are kept [%(default)s]')
    parser.add_argument('--seed', type=int, default=0,
                        help='seed of the simulation [%(default)s]')
    parser.add_fields('systems', SimulatedData,
                      ['name', 'num_particles', 'num_systems', 'split_by'])
    args = parser.parse_args(argv)
    systems = SimulatedData(**given(args, SimulatedData))
    splits = []
    with errors_in_one_line():
        from pyg_fnri.datasets import ParticleSystems
        from pyg_fnri.datasets.stored import SPLITS
        for split in SPLITS:
            print(f'{systems.name}, {split} split', file=sys.stderr)
            splits.append(
                ParticleSystems(args.root, split=split, seed=args.seed,
                                **asdict(systems)))
        print_card(splits)


def interacting_share(dataset: ParticleSystems) -> dict[str, float]:
    """The share of the pairs that interact, by the name of the layer; of each
    type by itself where a layer has more than one."""
    share = {}
    for name, num_types, label in zip(dataset.names, dataset.num_edge_types,
                                      dataset.edge_label.t()):
        for type in range(1, num_types):
            key = name if num_types == 2 else f'{name}, type {type}'
            share[key] = (label == type).double().mean().item()
    return share


def static_error(train: ParticleSystems, test: ParticleSystems,
                 num_frames: int = 49) -> dict[int, float]:
    """The error at each horizon of predicting that nothing moves (Static in
    table 2), min-max scaled by the training split as in the paper."""
    from pyg_fnri.evaluation.evaluate import HORIZONS
    from pyg_fnri.metrics import RolloutMSE, static_rollout
    from pyg_fnri.nn import MinMaxScaling
    scaling = MinMaxScaling(train.num_node_features).fit(train.x)
    y = scaling(test.x[:, -num_frames:])
    mse = RolloutMSE(HORIZONS)
    mse.update({h: static_rollout(y, h) for h in HORIZONS}, y[:, 1:])
    return {h: error.item() for h, error in mse.compute().items()}


def checksum(dataset: ParticleSystems) -> str:
    """SHA-256 of the trajectories, [N, T, F] little-endian float32."""
    x = dataset.x.contiguous().numpy().astype('<f4', copy=False)
    return hashlib.sha256(x.tobytes()).hexdigest()


def print_card(splits: Sequence[ParticleSystems]) -> None:
    from rich.console import Console

    from pyg_fnri.evaluation import make_table
    from pyg_fnri.evaluation.evaluate import HORIZONS
    from pyg_fnri.evaluation.report import ROLLOUT_MSE
    train, _, test = splits
    console = Console(soft_wrap=True, markup=False, emoji=False)
    console.print(
        f'{train.name}: {train.system}; {train.num_particles} particles, '
        f'{train.x.shape[1]} frames, {train.frame_interval:g} s apart, seed '
        f'{train.seed}, split by {train.split_by}')
    rows: dict[str, list[Any]] = {}
    for dataset in splits:
        console.print(f'  {dataset.processed_paths[0]}')
        share = interacting_share(dataset)
        start = checksum(dataset)[:16]
        rows[dataset.split] = [f'{len(dataset):,}', *share.values(), start]
    console.print(
        make_table('Share of the pairs that interact',
                   ['split', 'systems', *share, 'SHA-256 of x'], rows, '.3f'))
    paper = ROLLOUT_MSE.get(train.name, {}).get('static')
    errors = static_error(train, test).values()
    rows = {'here, test split': [1e5 * error for error in errors]}
    if paper and train.num_particles == 5 and train.split_by == 'system':
        rows = {'paper': [*paper], **rows}
    console.print(
        make_table('Static rollout, mean squared error (1e-5, min-max units)',
                   ['', *(f'{h} step{"s"[:h - 1]}' for h in HORIZONS)], rows,
                   '.1f'))
