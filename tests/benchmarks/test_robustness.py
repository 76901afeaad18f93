import json
import shutil
from pathlib import Path

import pytest
import torch
from robustness import (
    STANDARD,
    Condition,
    add_noise,
    batch_of,
    is_measured,
    main,
    open_systems,
    read,
)
from torch_geometric.data import Data

RESULTS = Path(__file__).parents[2] / 'results' / 'robustness'


def test_committed_points_are_not_measured_again():
    standard, noisy = Condition(), Condition(noise_percent=5)
    assert is_measured(RESULTS / 'standard-seed0.json', standard, True)
    assert is_measured(RESULTS / 'noise-5-seed2.json', noisy, True)
    assert not is_measured(RESULTS / 'noise-5-seed2.json', standard, True)
    fewer = Condition(num_training=10)
    assert is_measured(RESULTS / 'systems-10-seed0.json', fewer, False)
    assert not is_measured(RESULTS / 'systems-10-seed0.json', fewer, True)


def test_report_of_committed_points(tmp_path):
    shutil.copytree(RESULTS, tmp_path / 'out')
    main(['--report-only', '--out', str(tmp_path / 'out')])
    table = (tmp_path / 'out' / 'robustness.md').read_text()
    assert table.count('\n## ') == 6
    assert '| 5.0 | 99.15 ± 0.21 | 99.96 ± 0.02 | 99.18 ± 0.20 |' in table
    assert '| ablation-not_disentangled | 64.15 ± 1.13 |' in table
    assert (tmp_path / 'out' / 'robustness.png').read_bytes()[1:4] == b'PNG'


def test_failed_points_have_no_figures(tmp_path):
    record = {
        'point': 'noise-5-seed3',
        'sampled_too': True,
        'condition': Condition(noise_percent=5)._asdict(),
        'figures': {
            'failed': 'There is nothing.'
        }
    }
    (tmp_path / 'noise-5-seed3.json').write_text(json.dumps(record))
    frame = read(tmp_path)
    assert frame['seed'].tolist() == [3] and frame['combined'].isna().all()


def test_noise_is_independent_and_of_its_size():
    data = Data(x=torch.zeros(50, 40, 4), y=torch.zeros(50, 40, 4))
    noise = torch.tensor([0.1, 0.2, 0., 3.])
    out = add_noise(data, noise, torch.Generator().manual_seed(0))
    for key in ('x', 'y'):
        torch.testing.assert_close(out[key].flatten(0, 1).std(0), noise,
                                   rtol=0.1, atol=0.)
    assert not torch.equal(out.x, out.y) and data.x.eq(0).all()


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
        '--scale', 'smoke', '--curve', 'particles', '--seeds', '0', '--root',
        str(tmp_path / 'root'), '--out',
        str(tmp_path / 'out')
    ])
    record = json.loads(
        (tmp_path / 'out' / 'particles-3-seed0.json').read_text())
    assert record['condition']['num_particles'] == 3
    assert 0 <= record['figures']['refined']['combined'] <= 1
    standard = json.loads(
        (tmp_path / 'out' / 'standard-seed0.json').read_text())
    assert standard['figures']['law_error'] == record['figures']['law_error']
    assert 'sampled' in standard['figures']
