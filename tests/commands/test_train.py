import math
import shlex
import shutil
import signal

import pandas as pd
import pytest
import torch
from small_training import assert_same_state

from pyg_fnri.commands.cli import CONFIGS
from pyg_fnri.nn import CNNEncoder, ForceLawDecoder
from pyg_fnri.training import load_checkpoint
from pyg_fnri.training.trainer import ProgressLines

#: The files of a run.
FILES = {'best.ckpt', 'last.ckpt', 'metrics.csv', 'curves.png', 'command.txt'}
LAWS_FILES = {
    'command.txt', 'laws.ckpt', 'em.csv', 'em.png', 'check.txt', 'best.ckpt'
}


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('train')


@pytest.fixture(scope='module')
def laws_arguments(tiny_arguments):
    """Arguments of the recipe laws, of as little as can be."""
    networks = tiny_arguments.index('--hidden-channels')
    return [
        *tiny_arguments[:networks], *tiny_arguments[networks + 6:], '--recipe',
        'laws', '--option', 'num_fitted=8', '--option', 'num_pilot=4',
        '--option', 'max_starts=2', '--option', 'terms='
    ]


@pytest.fixture(scope='module')
def laws_run(script, laws_arguments, tmp_path_factory):
    """The directory of such a run, not to be changed."""
    out = tmp_path_factory.mktemp('runs') / 'laws'
    script.main([*laws_arguments, '--out', str(out)])
    return out


def test_laws_refuse_options_of_networks(script, laws_arguments, tmp_path):
    with pytest.raises(SystemExit, match='max_steps'):
        script.main([
            *laws_arguments, '--max-steps', '9', '--out',
            str(tmp_path / 'run')
        ])


@pytest.fixture
def copied_run(tiny_run, tmp_path):
    """A run that may be changed."""
    return shutil.copytree(tiny_run, tmp_path / 'run')


def names(directory):
    return set(contents(directory))


def contents(directory):
    """Names and bytes of all files."""
    return {
        path.name: path.is_file() and path.read_bytes()
        for path in directory.iterdir()
    }


def read_checkpoint(path):
    return torch.load(path, weights_only=True)


def assert_same_weights(path, other):
    assert_same_state(*(read_checkpoint(p)['state_dict']
                        for p in (path, other)))


def test_run_leaves_checkpoints_metrics_and_curves(tiny_run):
    assert names(tiny_run) == FILES
    assert (tiny_run / 'curves.png').read_bytes().startswith(b'\x89PNG')
    command = (tiny_run / 'command.txt').read_text()
    assert command.startswith('pyg-fnri train ')
    assert ' --max-steps 3 ' in command
    history = pd.read_csv(tiny_run / 'metrics.csv')
    for name in ('train_loss', 'train_kl', 'val_loss', 'val_accuracy',
                 'val_accuracy_spring', 'val_accuracy_charge'):
        curve = history[['step', name]].dropna()
        assert curve['step'].tolist() == [0, 1, 2], name
        assert curve[name].map(math.isfinite).all(), name
    # The best is that of the lowest error, the last that of the last step.
    best = read_checkpoint(tiny_run / 'best.ckpt')['global_step']
    assert best - 1 == history.set_index('step')['val_rollout_mse'].idxmin()
    assert read_checkpoint(tiny_run / 'last.ckpt')['global_step'] == 3
    config = load_checkpoint(str(tiny_run / 'last.ckpt')).config
    assert config.names == ['spring', 'charge'] and config.num_observed == 49
    assert config.data['num_systems'] == [64, 32, 32]


def test_resumed_run_goes_on_at_its_last_step(script, tiny_arguments,
                                              copied_run):
    history = pd.read_csv(copied_run / 'metrics.csv')
    # It was stopped two steps after its last checkpoint.
    late = history.tail(1).assign(step=4)
    pd.concat([history, late]).to_csv(copied_run / 'metrics.csv', index=False)
    command = (copied_run / 'command.txt').read_bytes()
    script.main([
        *tiny_arguments, '--out',
        str(copied_run), '--max-steps', '5', '--resume'
    ])
    assert (copied_run / 'command.txt').read_bytes() == command
    last = read_checkpoint(copied_run / 'last.ckpt')
    adam = last['optimizer_states'][0]['state'].values()
    # The encoder's begins anew, where messages begin to teach it.
    assert {int(parameter['step']) for parameter in adam} == {3, 5}
    resumed = pd.read_csv(copied_run / 'metrics.csv')
    for name in ('train_loss', 'val_loss'):
        curve = resumed[['step', name]].dropna()
        assert curve['step'].tolist() == [0, 1, 2, 3, 4], name
        assert curve[name].tolist()[:3] == history[name].dropna().tolist()
    best = read_checkpoint(copied_run / 'best.ckpt')['global_step']
    assert best - 1 == resumed.set_index('step')['val_rollout_mse'].idxmin()


def test_stopped_run_says_how_to_go_on(script, tiny_arguments, tmp_path,
                                       monkeypatch, capsys):
    def stop(callback, trainer, *args):
        if trainer.global_step == 2:
            signal.raise_signal(signal.SIGINT)

    arguments = [*tiny_arguments, '--out', str(tmp_path / 'run')]
    with monkeypatch.context() as patch:
        patch.setattr(ProgressLines, 'on_train_batch_end', stop)
        with pytest.raises(SystemExit, match='130'):
            script.main([*arguments, '--overwrite'])
    line, = capsys.readouterr().err.splitlines()
    assert line.startswith('stopped; go on with: pyg-fnri ')
    script.main(shlex.split(line.partition('pyg-fnri train ')[2]))
    last = read_checkpoint(tmp_path / 'run' / 'last.ckpt')
    assert last['global_step'] == 3


@pytest.mark.parametrize(
    'arguments, message',
    [(['--resume', '--option', 'hidden_channels=9'], 'options'),
     (['--resume', '--recipe', 'laws'], 'recipe'), ([], 'holds a run'),
     (['--overwrite', '--num-observed', '50'], 'at least 100 steps'),
     (['--overwrite', '--option', 'learning_rate=nan'], 'learning_rate'),
     (['--overwrite', '--option', 'accelerator=abacus'], 'abacus'),
     (['--overwrite', '--option', 'null_prior=1.5,.5'], 'priors')])
def test_wrong_arguments_end_in_one_sentence_and_lose_nothing(
        script, tiny_arguments, copied_run, arguments, message):
    before = contents(copied_run)
    with pytest.raises(SystemExit, match=message) as error:
        script.main([*tiny_arguments, '--out', str(copied_run), *arguments])
    assert '\n' not in str(error.value)
    assert contents(copied_run) == before


def test_run_is_replaced_on_demand(script, tiny_arguments, copied_run):
    (copied_run / 'last.ckpt').write_bytes(b'old')
    (copied_run / 'graph.png').write_bytes(b'of the old run')
    script.main([
        *tiny_arguments, '--out',
        str(copied_run), '--overwrite', '--recipe', 'paper', '--model', 'nri',
        '--option', 'max_epochs=1', '--max-steps', '-1', '--option',
        'val_every=1000'
    ])
    assert names(copied_run) == FILES
    # A run shorter than the interval is validated at its end.
    assert read_checkpoint(copied_run / 'best.ckpt')['global_step'] == 4


def test_what_is_no_run_is_never_replaced(script, tiny_arguments, tmp_path):
    thesis = tmp_path / 'thesis.tex'
    thesis.write_text('three years of work')
    for out, message in ((tmp_path, 'holds files'), (thesis, 'Cannot write'),
                         (thesis / 'run', 'Cannot write')):
        with pytest.raises(SystemExit, match=message):
            script.main([*tiny_arguments, '--out', str(out), '--overwrite'])
    assert contents(tmp_path) == {'thesis.tex': b'three years of work'}


def test_configs_are_understood(script):
    names = [path.name for path in CONFIGS.glob('*.args')]
    assert 'demo.args' in names
    for name in names:
        assert script.parse_args([f'@{name}']).out.startswith('runs/')


def test_options_of_the_recipe_reach_it(script, tiny_arguments, tmp_path):
    script.main([
        *tiny_arguments, '--max-steps', '1', '--out',
        str(tmp_path / 'run'), '--option', 'null_prior=0.7,0.6', '--option',
        'hard=yes', '--option', 'encoder=cnn', '--option', 'delta=inf',
        '--option', 'unsplit=yes', '--directed'
    ])
    module = load_checkpoint(str(tmp_path / 'run' / 'last.ckpt'))
    assert module.recipe.hard and module.recipe.delta == math.inf
    assert module.model.latent.prior[1] == [0.6, pytest.approx(0.4)]
    assert not module.model.latent.undirected
    assert isinstance(module.model.encoder.encoder, CNNEncoder)
    assert module.config.unsplit


@pytest.mark.filterwarnings('ignore:Of . starts, one alone')
def test_laws_are_kept_and_measured(load_script, laws_run, tiny_root, tmp_path):
    assert names(laws_run) == LAWS_FILES
    module = load_checkpoint(str(laws_run / 'best.ckpt'))
    assert isinstance(module.model.decoder.layer, ForceLawDecoder)
    assert module.config.recipe == 'laws'
    assert module.config.laws['half_width'] == 5
    module.require('encoder', 'decoder')
    load_script('evaluate').main([
        '--root', tiny_root, '--checkpoint',
        str(laws_run / 'best.ckpt'), '--out',
        str(tmp_path)
    ])
    assert (tmp_path / 'laws.csv').read_text().startswith('distance_m,')
    assert {'laws.png', 'metrics.json'} <= names(tmp_path)
