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
    out = tmp_path / 'runs' / name
    run('infer.py', f'@{name}.args')
    assert 'do NOT hold' in (out / 'summary.txt').read_text()
    edges = pd.read_csv(out / 'edges.csv')
    assert {*edges.sender} <= {*table.particle}
    assert edges.probability.between(0, 1).all()
    assert (out / 'report.html').exists() and (out / 'heatmap.png').exists()
