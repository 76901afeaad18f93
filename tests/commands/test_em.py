from dataclasses import replace

import pytest

from pyg_fnri.training import build_module, load_checkpoint, save_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore:Of . starts, one alone')

SHORT = ['--num-fitted', '8', '--num-pilot', '4', '--max-starts', '2']


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('em')


def test_result_has_its_seed_and_says_what_it_saw(script, tiny_run, tiny_root,
                                                  tmp_path, capsys):
    script.main([
        '--checkpoint',
        str(tiny_run / 'best.ckpt'), '--root', tiny_root, '--out',
        str(tmp_path / 'new'), *SHORT, '--num-distilled', '0', '--half-width',
        '0', '--seed', '5', '--terms', 'drag'
    ])
    files = {path.name for path in (tmp_path / 'new').iterdir()}
    assert files == {'laws.ckpt', 'em.csv', 'em.png', 'check.txt', 'best.ckpt'}
    config = load_checkpoint(str(tmp_path / 'new' / 'best.ckpt')).config
    assert config.recipe == 'quick' and config.seed == 5
    assert config.laws['half_width'] is None
    text = capsys.readouterr().out
    assert (tmp_path / 'new' / 'check.txt').read_text() in text
    assert 'pyg-fnri evaluate --refine' in text


def test_what_cannot_work_is_told(script, tiny_run, tiny_root, tmp_path):
    whole, half = str(tiny_run / 'best.ckpt'), str(tmp_path / 'half.ckpt')
    config = replace(load_checkpoint(whole).config, regime='true_graph')
    save_checkpoint(build_module(config), half)
    before = sorted(tiny_run.rglob('*'))
    for checkpoint, out, message in ((half, tmp_path, 'needs a trained'),
                                     (whole, tiny_run, 'would replace')):
        with pytest.raises(SystemExit, match=message):
            script.main([
                '--checkpoint', checkpoint, '--root', tiny_root, '--out',
                str(out)
            ])
    assert sorted(tiny_run.rglob('*')) == before
