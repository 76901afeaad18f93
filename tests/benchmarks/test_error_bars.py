import json
import shutil
from pathlib import Path

import pytest
import torch
from error_bars import INTERVAL, main, simulate

RESULTS = Path(__file__).parents[2] / 'results' / 'error_bars'


def test_motion_is_smooth_and_slowed_down():
    x = simulate(0, 3, 30).x
    position, velocity = x.chunk(2, dim=-1)
    central = (position[:, 2:] - position[:, :-2]) / (2 * INTERVAL)
    error = (central - velocity[:, 1:-1]).abs().median()
    assert error < 1e-2 * velocity.abs().median()
    # Forces of pairs add nothing to the momentum.
    rate = torch.gradient(velocity, spacing=INTERVAL, dim=1)[0]
    speed = velocity.norm(dim=-1, keepdim=True)
    turned = torch.stack([-velocity[..., 1], velocity[..., 0]], dim=-1)
    alone = 0.2 * turned - (0.1 + 0.05 * speed) * velocity - 0.05 * position
    total = (rate - alone).view(3, 5, 30, 2).sum(1)[:, 1:-1]
    assert total.abs().median() < 2e-2 * rate.abs().median()


def test_report_of_the_committed_results(tmp_path):
    shutil.copytree(RESULTS, tmp_path / 'error_bars')
    main(['--report-only', '--results', str(tmp_path)])
    table = (tmp_path / 'error_bars' / 'table.md').read_text()
    assert table == (RESULTS / 'table.md').read_text()


@pytest.mark.slow
def test_intervals_from_simulation_to_report(tmp_path):
    main(['--scale', 'smoke', '--results', str(tmp_path), '--cell', '*-seed0'])
    out = tmp_path / 'smoke' / 'error_bars'
    off = json.loads((out / 'noise-2-seed0.json').read_text())['off']
    assert set(off) == {'law', 'drag', 'turning', 'field'}
    assert '90' in (out / 'table.md').read_text()
