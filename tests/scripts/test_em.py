from dataclasses import replace

import pytest
from short_discovery import shorten

from pyg_fnri.nn import ForceLawDecoder
from pyg_fnri.training import build_module, load_checkpoint, save_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore:Of . starts, one alone')


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('em')


@pytest.fixture
def short(monkeypatch):
    """A single iteration."""
    shorten(monkeypatch)


@pytest.mark.slow
def test_laws_of_own_data_and_their_pictures(script, short, load_script,
                                             own_run, own_root, tmp_path):
    arguments = ['--root', own_root, '--out', str(tmp_path)]
    script.main([
        *arguments, '--checkpoint',
        str(own_run / 'best.ckpt'), '--num-systems', '8', '--num-distilled', '0'
    ])
    layer = load_checkpoint(str(tmp_path / 'best.ckpt')).model.decoder.layer
    assert isinstance(layer, ForceLawDecoder)
    # As the table tells, which knows of no walls.
    assert layer.interval == pytest.approx(0.1) and layer.half_width is None
    load_script('evaluate').main(
        [*arguments, '--checkpoint',
         str(tmp_path / 'best.ckpt')])
    header = (tmp_path / 'laws.csv').read_text().splitlines()[0]
    assert header == 'distance,law 0,law 1'
    assert (tmp_path / 'laws.png').read_bytes().startswith(b'\x89PNG')


def test_an_encoder_is_needed(script, own_run, own_root, tmp_path):
    config = load_checkpoint(str(own_run / 'best.ckpt')).config
    module = build_module(replace(config, regime='true_graph'))
    save_checkpoint(module, str(tmp_path / 'half.ckpt'))
    with pytest.raises(SystemExit, match='needs a trained encoder'):
        script.main([
            '--root', own_root, '--checkpoint',
            str(tmp_path / 'half.ckpt'), '--out',
            str(tmp_path / 'out')
        ])
    assert not (tmp_path / 'out' / 'best.ckpt').exists()


@pytest.mark.slow
def test_result_has_its_seed_and_says_what_it_saw(script, short, tiny_run,
                                                  tiny_root, tmp_path, capsys):
    script.main([
        '--checkpoint',
        str(tiny_run / 'best.ckpt'), '--root', tiny_root, '--out',
        str(tmp_path / 'new'), '--num-systems', '8', '--num-distilled', '16',
        '--distilled-steps', '2', '--half-width', '0', '--seed', '5'
    ])
    files = {path.name for path in (tmp_path / 'new').iterdir()}
    assert files == {
        'laws.ckpt', 'em.csv', 'em.png', 'taught', 'check.txt', 'best.ckpt'
    }
    module = load_checkpoint(str(tmp_path / 'new' / 'best.ckpt'))
    assert module.config.recipe == 'quick' and module.config.seed == 5
    assert module.config.laws == {
        'interval': pytest.approx(0.1),
        'half_width': None
    }
    text = capsys.readouterr().out
    for line in ('Laws and graphs of 8 training systems, after some starts',
                 "start 0   from the encoder's graphs   held-out cost ",
                 'start 1   from random graphs   held-out cost ',
                 'iteration 1   changed', '   accuracy_charge 0.',
                 'graphs of 16 training systems:', 'evaluate.py --refine',
                 (tmp_path / 'new' / 'check.txt').read_text()):
        assert line in text


@pytest.mark.parametrize('arguments, message', [
    (['--num-distilled', '15'], 'takes 16 systems.* learn from 15'),
    (['--num-distilled', '-1'
      ], 'num_distilled must be a whole number of at least 0'),
    (['--interval', 'nan'], 'interval must be a time above 0, but is nan'),
    (['--half-width', '-2'], 'half_width must be a distance of at least 0'),
])
def test_wrong_arguments_end_in_one_sentence(script, tiny_run, tiny_root,
                                             tmp_path, arguments, message):
    with pytest.raises(SystemExit, match=message) as error:
        script.main([
            '--checkpoint',
            str(tiny_run / 'best.ckpt'), '--root', tiny_root, '--out',
            str(tmp_path), *arguments
        ])
    assert '\n' not in str(error.value) and not list(tmp_path.iterdir())


def test_no_training_run_is_replaced(script, tiny_run):
    before = sorted(tiny_run.rglob('*'))
    for name, message in (('best.ckpt', 'would replace .* it comes from'),
                          ('last.ckpt', 'holds a run of scripts/train.py')):
        with pytest.raises(SystemExit, match=message):
            script.main(
                ['--checkpoint',
                 str(tiny_run / name), '--out',
                 str(tiny_run)])
    assert sorted(tiny_run.rglob('*')) == before
