"""The recipe em of scripts/train.py, in stages."""
import shutil

import numpy as np
import pytest
from short_discovery import shorten
from written_runs import FILES, assert_same_weights

from pyg_fnri.nn import ForceLawDecoder
from pyg_fnri.training import load_checkpoint


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('train')


@pytest.fixture(scope='module')
def em_arguments(tiny_arguments):
    """Arguments of the recipe em, whose laws take a single iteration."""
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        yield [
            *tiny_arguments, '--recipe', 'em', '--option', 'num_fitted=8',
            '--option', 'num_distilled=16', '--option', 'distilled_steps=2'
        ]


@pytest.fixture(scope='module')
def em_run(script, em_arguments, tmp_path_factory):
    """The directory of such a run, not to be changed."""
    out = tmp_path_factory.mktemp('runs') / 'em'
    script.main([*em_arguments, '--out', str(out)])
    return out


@pytest.mark.filterwarnings('ignore:Of . starts, one alone')
def test_em_begins_with_the_quick_recipe(em_run, tiny_run):
    assert {path.name
            for path in em_run.iterdir()} == {
                'command.txt', 'quick', 'laws.ckpt', 'em.csv', 'em.png',
                'taught', 'check.txt', 'best.ckpt'
            }
    quick = em_run / 'quick'
    assert {path.name for path in quick.iterdir()} == FILES - {'command.txt'}
    assert_same_weights(quick / 'best.ckpt', tiny_run / 'best.ckpt')


def test_em_ends_with_laws(em_run):
    module = load_checkpoint(str(em_run / 'best.ckpt'))
    assert isinstance(module.model.decoder.layer, ForceLawDecoder)
    assert module.config.recipe == 'em' and module.recipe.distilled_steps == 2
    assert module.config.laws['half_width'] == 5
    module.require('encoder', 'decoder')


@pytest.mark.filterwarnings('ignore:The dirpath has changed')
@pytest.mark.parametrize('lost', [
    [],
    pytest.param(['best.ckpt', 'taught', 'laws.ckpt'], marks=pytest.mark.slow),
])
def test_em_goes_on_after_its_last_finished_stage(script, em_arguments, em_run,
                                                  tmp_path, lost):
    run = shutil.copytree(em_run, tmp_path / 'run')
    for path in (run / name for name in lost):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    script.main([*em_arguments, '--out', str(run), '--resume'])
    for name in ('quick/best.ckpt', 'quick/last.ckpt', 'laws.ckpt',
                 'best.ckpt'):
        assert_same_weights(em_run / name, run / name)


@pytest.mark.parametrize('arguments, message', [
    (['--max-steps', '9'], "'max_steps': 3.* this command has .*: 9"),
    (['--option', 'num_distilled=32'
      ], "'num_distilled': 16.* this command has"),
])
def test_em_of_other_settings_is_not_resumed(script, em_arguments, em_run,
                                             arguments, message):
    before = sorted(em_run.rglob('*'))
    with pytest.raises(SystemExit, match=message):
        script.main([*em_arguments, '--out',
                     str(em_run), '--resume'] + arguments)
    assert sorted(em_run.rglob('*')) == before


def test_run_of_another_recipe_has_no_stages_to_resume(script, em_arguments,
                                                       tiny_arguments, em_run,
                                                       tiny_run):
    with pytest.raises(SystemExit, match='holds no quick/last.ckpt'):
        script.main([*em_arguments, '--out', str(tiny_run), '--resume'])
    with pytest.raises(SystemExit, match='holds no last.ckpt'):
        script.main([*tiny_arguments, '--out', str(em_run), '--resume'])


@pytest.mark.parametrize('arguments, message', [
    (['--option', 'num_distilled=5'], 'takes 16 systems.* learn from 5'),
    (['--option', 'interval=0'], 'interval must be a time above 0'),
    (['--regime', 'supervised'], "regime must be 'learned'"),
])
def test_em_that_cannot_end_does_not_begin(script, em_arguments, tmp_path,
                                           arguments, message):
    out = tmp_path / 'run'
    with pytest.raises(SystemExit, match=message):
        script.main([*em_arguments, '--out', str(out), *arguments])
    assert not (out / 'quick').exists()


def test_em_of_arrays_needs_the_time_between_frames(script, own_arguments,
                                                    tmp_path):
    np.save(tmp_path / 'a.npy',
            np.random.default_rng(0).normal(size=(20, 3, 16, 4)))
    with pytest.raises(SystemExit, match='do not tell the time.*--option'):
        script.main([
            *own_arguments, '--data',
            str(tmp_path / 'a.npy'), '--recipe', 'em', '--root',
            str(tmp_path), '--out',
            str(tmp_path / 'run')
        ])
