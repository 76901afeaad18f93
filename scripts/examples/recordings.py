"""Real recordings as tables, from packages that nobody here wrote.

    python scripts/examples/recordings.py fish runs/fish.csv
    python scripts/examples/recordings.py soccer runs/soccer.csv

- fish: 100 juvenile zebrafish in a dish, 300 frames, from the package
  `trajectorytools`; in pixels and numbers of frames.
- soccer: the players in view of a broadcast match, first half, 10 frames a
  second, from the test files of `kloppy`; in metres and seconds.

Both are columns time, particle, x, y, without rows of who is not there.
"""
import argparse
import os
from importlib.util import find_spec
from typing import Optional

import numpy as np
import pandas as pd


def fish() -> pd.DataFrame:
    folder = os.path.dirname(find_spec('trajectorytools').origin)
    x = np.load(os.path.join(folder, 'data', 'test_trajectories.npy'))
    time, number = np.indices(x.shape[:2]).reshape(2, -1)
    return pd.DataFrame({
        'time': time,
        'particle': number,
        'x': x[..., 0].ravel(),
        'y': x[..., 1].ravel()
    })


def soccer() -> pd.DataFrame:
    from kloppy import skillcorner
    folder = os.path.join(os.path.dirname(find_spec('kloppy').origin), 'tests',
                          'files', 'skillcorner_')
    match = skillcorner.load(meta_data=f'{folder}match_data.json',
                             raw_data=f'{folder}structured_data.json',
                             coordinates='skillcorner')
    return pd.DataFrame([(round(frame.timestamp.total_seconds(), 1),
                          str(player), seen.coordinates.x, seen.coordinates.y)
                         for frame in match.frames if frame.period.id == 1
                         for player, seen in frame.players_data.items()
                         if seen.coordinates is not None],
                        columns=['time', 'particle', 'x', 'y'])


RECORDINGS = {'fish': fish, 'soccer': soccer}


def main(argv: Optional[list[str]] = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('recording', choices=RECORDINGS)
    parser.add_argument('out', metavar='FILE')
    args = parser.parse_args(argv)
    table = RECORDINGS[args.recording]().dropna()
    os.makedirs(os.path.dirname(args.out) or '.', exist_ok=True)
    table.to_csv(args.out, index=False)
    print(f'{args.out}: {table.particle.nunique()} tracks, '
          f'{table.time.nunique()} frames')


if __name__ == '__main__':
    main()
