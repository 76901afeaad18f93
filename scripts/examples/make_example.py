"""Make the example of a user's own trajectories, datasets/example.csv.

    python scripts/examples/make_example.py

Simulates 100 systems of five particles under springs of two kinds, without
walls, and writes them the way measurements come: positions alone, rounded to a
millimetre, five a second, in a table with a row per system, time and particle.
The true interactions go to a table of their own, example_interactions.csv, for
scripts/examples/compare_graphs.py to look at afterwards.
"""
import argparse
import os
from typing import Optional

import numpy as np
import pandas as pd

from pyg_fnri.convert import to_pandas
from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.stored import check_writable, written_whole
from pyg_fnri.simulation import FiniteSpring, Newtonian, Spring

#: Not the paper's: there are no walls, particles start further apart, finite
#: springs are stronger and longer, and the 50 frames are 0.2 s apart.
SYSTEM = Newtonian((Spring(0.1), FiniteSpring(0.3, 2.0)), box_half_width=None,
                   num_steps=10_200, sample_every=200, position_std=1.0)
PARTICLES = list('abcde')


def parse_args(argv: Optional[list[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', default='datasets', metavar='DIR',
                        help='where the tables go [%(default)s]')
    parser.add_argument('--num-systems', type=int, default=100,
                        help='systems to simulate [%(default)s]')
    parser.add_argument('--seed', type=int, default=0,
                        help='seed of all randomness [%(default)s]')
    return parser.parse_args(argv)


def main(argv: Optional[list[str]] = None) -> None:
    args = parse_args(argv)
    check_writable(args.out)
    edge_types = SYSTEM.draw_edge_types(args.seed, args.num_systems,
                                        len(PARTICLES))
    x = SYSTEM.simulate(edge_types, args.seed)
    tables = {
        'example.csv': trajectories(x[..., :SYSTEM.num_dimensions]),
        'example_interactions.csv': interactions(x, edge_types),
    }
    for name, table in tables.items():
        path = os.path.join(args.out, name)
        with written_whole(path) as part:
            table.to_csv(part, index=False, float_format='%.3f')
        print(f'{path}: {len(table):,} rows, {os.path.getsize(path):,} bytes')


def trajectories(position: np.ndarray) -> pd.DataFrame:
    """Positions `[S, N, T, 2]`, a row per system, time and particle."""
    num_systems, num_particles, num_frames, _ = position.shape
    system, frame, particle = np.indices(
        (num_systems, num_frames, num_particles)).reshape(3, -1)
    time = SYSTEM.frame_interval * frame
    x, y = position[system, particle, frame].T
    return pd.DataFrame({
        'system': 1 + system,
        'time': [f'{t:.1f}' for t in time],
        'particle': np.array(PARTICLES)[particle],
        'x': x,
        'y': y,
    })


def interactions(x: np.ndarray, edge_types: np.ndarray) -> pd.DataFrame:
    """The pairs that interact, a row per direction and layer."""
    tables = [
        to_pandas(data, data.edge_label, names=list(SYSTEM.layers),
                  systems=[1 + number], particles=[PARTICLES])
        for number, data in enumerate(map(from_trajectory, x, edge_types))
    ]
    table = pd.concat(tables).query('type > 0')
    return table.drop(columns='probability')


if __name__ == '__main__':
    main()
