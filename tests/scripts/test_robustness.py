import json

import pytest

# Whole discoveries, if tiny ones.
pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('robustness')


@pytest.fixture(scope='module')
def smoke(script, tmp_path_factory):
    """A curve and the ablations, really run; for its arguments, again."""
    folder = tmp_path_factory.mktemp('robust')
    arguments = [
        '--scale', 'smoke', '--seeds', '0', '--curve', 'particles',
        '--ablations', '--root',
        str(folder / 'data'), '--out',
        str(folder / 'out')
    ]
    script.main(arguments)
    return folder / 'out', arguments


def test_smoke_leaves_points_tables_and_a_figure(smoke):
    out, _ = smoke
    points = {path.stem for path in out.glob('*.json')}
    assert points >= {
        'standard-seed0', 'particles-3-seed0', 'ablation-not_annealed-seed0',
        'ablation-Gaussian_likelihood-seed0'
    }
    assert not any('trained' in point for point in points)
    assert (out / 'robustness.png').read_bytes().startswith(b'\x89PNG')
    record = json.loads((out / 'standard-seed0.json').read_text())
    combined = record['figures']['refined']['combined']
    table = (out / 'robustness.md').read_text()
    assert f'| everything | {100 * combined:.2f} |' in table
    assert '## Ablations' in table and 'need a checkpoint' in table


def test_what_is_there_is_not_measured_again(script, smoke, monkeypatch,
                                             capsys):
    out, arguments = smoke
    before = (out / 'robustness.md').read_text()

    def measure(*args):
        raise AssertionError('measured again')

    monkeypatch.setattr(script.LawFinder, 'measure', measure)
    script.main(arguments)
    assert 'standard-seed0: is there already' in capsys.readouterr().out
    assert (out / 'robustness.md').read_text() == before


def test_a_point_that_fails_does_not_stop_the_others(script, smoke, monkeypatch,
                                                     capsys):
    out, arguments = smoke
    monkeypatch.setattr(script.LawFinder, 'measure',
                        lambda *args: {'failed': 'there is nothing to find'})
    script.main([*arguments, '--curve', 'interval'])
    assert 'interval-0.2-seed0: failed: there is nothing to find' in (
        capsys.readouterr().out)
    assert '| 0.2 | failed: there is nothing to find |' in (
        out / 'robustness.md').read_text()
    (out / 'interval-0.2-seed0.json').unlink()


def test_reporting_measures_nothing(script, tmp_path):
    script.main(['--scale', 'smoke', '--report-only', '--out', str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ['robustness.md']
    assert 'Nothing has been measured yet' in (tmp_path /
                                               'robustness.md').read_text()


def test_an_encoder_of_other_systems_is_told(script, own_run, tmp_path):
    with pytest.raises(SystemExit, match='expected 4 features, 49 frames'):
        script.main([
            '--ablations', '--encoder',
            str(own_run / 'best.ckpt'), '--out',
            str(tmp_path)
        ])


@pytest.mark.parametrize('arguments, message', [
    (['--curve', 'mass'], 'invalid choice'),
    (['--seeds', '-1'], 'must be at least 0, not -1'),
])
def test_wrong_arguments(script, capsys, arguments, message):
    with pytest.raises(SystemExit):
        script.main(arguments)
    assert message in capsys.readouterr().err
