import json
import shutil
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure
from robustness import (STANDARD, Condition, batch_of, main, observe,
                        open_systems, points_of, read, record_beads)
from tables import load
from torch_geometric.data import Data

from pyg_fnri.inference.smoothing import is_derived

RESULTS = Path(__file__).parents[2] / 'results' / 'robustness'


def test_report_of_committed_points(tmp_path, monkeypatch):
    monkeypatch.setattr(Figure, 'savefig',
                        lambda figure, path, **kwargs: Path(path).touch())
    shutil.copytree(RESULTS, tmp_path / 'robustness')
    main(['--report-only', '--results', str(tmp_path)])
    table = (tmp_path / 'robustness' / 'robustness.md').read_text()
    assert table == (RESULTS / 'robustness.md').read_text()
    # Points that are there are not measured again.
    points = points_of(Condition(), smoke=False)
    for name, record in load(RESULTS, '*-seed*').items():
        if not name.startswith('ablation'):
            condition, sampled, seed = points[name]
            found = {**Condition._field_defaults, **record['condition']}
            assert condition._asdict().items() <= found.items()
            assert sampled <= ('sampled' in record['figures'])
            assert name.endswith(str(seed))


def test_failed_points_have_no_figures(tmp_path):
    record = dict(point='noise-5-seed3', figures={'failed': 'Too much.'},
                  condition=Condition(noise_percent=5)._asdict())
    (tmp_path / 'noise-5-seed3.json').write_text(json.dumps(record))
    frame = read(tmp_path)
    assert frame['seed'].tolist() == [3] and frame['combined'].isna().all()


def test_noise_is_independent_and_of_its_size():
    data = Data(x=torch.zeros(50, 40, 4), y=torch.zeros(50, 40, 4))
    noise = torch.tensor([0.1, 0.2, 0., 3.])
    out = observe(data, Condition(), noise, torch.Generator().manual_seed(0))
    for key in ('x', 'y'):
        torch.testing.assert_close(out[key].flatten(0, 1).std(0), noise,
                                   rtol=0.1, atol=0.)
    assert not torch.equal(out.x, out.y) and data.x.eq(0).all()


def test_positions_alone_have_derived_velocities():
    data = Data(x=torch.randn(5, 9, 4))
    alone = Condition(positions_alone=True, interval=0.2)
    noise = torch.full((4, ), 0.1)
    generator = torch.Generator().manual_seed(0)
    for condition, derived in ((alone, True), (Condition(), False)):
        out = observe(data, condition, noise, generator)
        assert is_derived(out.x, 0.2) == derived
        assert not torch.equal(out.x[..., :2], data.x[..., :2])


@pytest.mark.slow
def test_beads_are_slowed_down():
    batch = record_beads(Condition(num_observed=1_000), 0)
    assert batch.x.shape == (24, 1_000, 4) and batch.num_graphs == 3
    speed = batch.x[..., 2:].square().mean((1, 2)).view(3, 8).mean(1)
    assert speed[0] > speed[1] > speed[2] > 0.1 * speed[0]


def test_systems_at_another_interval(tmp_path):
    small = STANDARD['smoke']
    for interval, name in ((0.1, 'springs_charges'),
                           (0.2, 'springs_charges-every_200_ms')):
        condition = small._replace(interval=interval, num_particles=3)
        dataset = open_systems(condition, 0, 'test', str(tmp_path))
        assert dataset.frame_interval == pytest.approx(interval)
        assert dataset.name == name
        batch = batch_of(condition, 0, 'test', str(tmp_path))
        assert batch.x.shape == batch.y.shape == (9, 6, 4)


@pytest.mark.slow
def test_curves_from_scratch(tmp_path):
    main([
        '--scale', 'smoke', '--cell', 'particles-3-seed0', 'standard-seed0',
        '--root',
        str(tmp_path / 'root'), '--results',
        str(tmp_path)
    ])
    found = load(tmp_path / 'smoke' / 'robustness')
    standard = found['standard-seed0']['figures']
    point = found['particles-3-seed0']
    assert point['condition']['num_particles'] == 3
    assert 0 <= point['figures']['refined']['combined'] <= 1
    assert standard['law_error'] == point['figures']['law_error']
    assert 'sampled' in standard
