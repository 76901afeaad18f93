"""Recordings that nobody here made, from raw file to verdict; minutes."""
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

SCRIPTS = Path(__file__).parents[1] / 'scripts'


@pytest.mark.slow
@pytest.mark.parametrize('name, package, num_tracks, num_frames',
                         [('fish', 'trajectorytools', 100, 300),
                          ('soccer', 'kloppy', 268, 17_871)])
def test_recordings_end_in_a_verdict(tmp_path, name, package, num_tracks,
                                     num_frames):
    pytest.importorskip(package)

    def run(script, *arguments):
        subprocess.run([sys.executable, SCRIPTS / script, *arguments],
                       cwd=tmp_path, check=True)

    run('examples/recordings.py', name, f'runs/{name}.csv')
    table = pd.read_csv(tmp_path / 'runs' / f'{name}.csv')
    assert table.particle.nunique() == num_tracks
    assert table.time.nunique() == num_frames
    run('train.py', f'@{name}.args')
    out, checkpoint = tmp_path / 'runs' / name, f'runs/{name}/best.ckpt'
    assert (out /
            'check.txt').read_text().startswith('The force laws do NOT hold')
    run('evaluate.py', '--refine', '--checkpoint', checkpoint)
    run('infer.py', '--checkpoint', checkpoint, '--data', f'runs/{name}.csv',
        '--window', '30', '--out', f'runs/{name}/graphs')
    edges = pd.read_csv(out / 'graphs' / 'edges.csv')
    assert {*edges.sender} <= {*table.particle}
    assert edges.probability.between(0, 1).all()
    assert (out / 'laws.png').exists() and (out / 'graphs/heatmap.png').exists()
