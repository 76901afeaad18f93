"""Make the example of a user's own trajectories, datasets/example.csv.

    python scripts/examples/make_example.py

Simulates 100 systems of five particles under springs of two kinds, without
walls, and writes them the way measurements come: positions alone, rounded to a
millimetre, five a second. The true interactions go to example_interactions.csv,
for scripts/examples/compare_graphs.py.
"""
import argparse
import os
from typing import Optional

import numpy as np
import pandas as pd

from pyg_fnri.convert import to_pandas
from pyg_fnri.data import from_trajectory
from pyg_fnri.simulation import FiniteSpring, Newtonian, Spring

#: Not the paper's: there are no walls, particles start further apart, finite
#: springs are stronger and longer, and the 50 frames are 0.2 s apart.
SYSTEM = Newtonian((Spring(0.1), FiniteSpring(0.3, 2.0)), box_half_width=None,
                   num_steps=10_200, sample_every=200, position_std=1.0)
PARTICLES = list('abcde')


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', default='datasets', metavar='DIR')
    args = parser.parse_args(argv)
    edge_types = SYSTEM.draw_edge_types(0, 100, len(PARTICLES))
    x = SYSTEM.simulate(edge_types, 0)
    system, frame, particle = np.indices((100, 50, 5)).reshape(3, -1)
    time = [f'{t:.1f}' for t in SYSTEM.frame_interval * frame]
    name, position = np.array(PARTICLES)[particle], x[system, particle, frame]
    trajectories = pd.DataFrame(
        dict(system=1 + system, time=time, particle=name, x=position[:, 0],
             y=position[:, 1]))
    interactions = pd.concat([
        to_pandas(data, data.edge_label, names=list(SYSTEM.layers),
                  systems=[1 + number], particles=[PARTICLES])
        for number, data in enumerate(map(from_trajectory, x, edge_types))
    ]).query('type > 0').drop(columns='probability')
    for name, table in (('example.csv', trajectories),
                        ('example_interactions.csv', interactions)):
        path = os.path.join(args.out, name)
        table.to_csv(path, index=False, float_format='%.3f')
        print(f'{path}: {len(table):,} rows')


if __name__ == '__main__':
    main()
