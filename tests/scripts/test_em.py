from dataclasses import replace

import pytest

from pyg_fnri.nn import ForceLawDecoder
from pyg_fnri.training import build_module, load_checkpoint, save_checkpoint


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('em')


def test_laws_of_own_data_and_their_pictures(script, load_script, own_run,
                                             own_root, tmp_path):
    arguments = ['--root', own_root, '--out', str(tmp_path)]
    script.main([
        *arguments, '--checkpoint',
        str(own_run / 'best.ckpt'), '--num-systems', '8', '--num-taught', '0'
    ])
    layer = load_checkpoint(str(tmp_path / 'best.ckpt')).model.decoder.layer
    assert isinstance(layer, ForceLawDecoder)
    # As the table tells, which knows of no walls.
    assert layer.interval == pytest.approx(0.1) and layer.half_width is None
    load_script('evaluate').main(
        [*arguments, '--checkpoint',
         str(tmp_path / 'best.ckpt')])
    header = (tmp_path / 'laws.csv').read_text().splitlines()[0]
    assert header == 'distance_m,law 0,law 1'
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
