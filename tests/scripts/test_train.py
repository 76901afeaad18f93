import math
import shutil

import pandas as pd
import pytest
import torch
from written_runs import FILES, assert_same_weights, read_checkpoint

from pyg_fnri.nn import CNNEncoder
from pyg_fnri.training import build_module, load_checkpoint


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('train')


@pytest.fixture
def copied_run(tiny_run, tmp_path):
    """A run that may be changed."""
    return shutil.copytree(tiny_run, tmp_path / 'run')


def contents(directory):
    """Names and bytes of all files."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_run_leaves_checkpoints_metrics_and_curves(tiny_run):
    assert {path.name for path in tiny_run.iterdir()} == FILES
    assert (tiny_run / 'curves.png').read_bytes().startswith(b'\x89PNG')
    command = (tiny_run / 'command.txt').read_text()
    assert command.startswith('python scripts/train.py --root ')
    assert ' --max-steps 3 ' in command


def test_metrics_hold_losses_and_accuracies_of_each_step(tiny_run):
    history = pd.read_csv(tiny_run / 'metrics.csv')
    for name in ('train_loss', 'train_kl', 'val_loss', 'val_accuracy',
                 'val_accuracy_spring', 'val_accuracy_charge'):
        curve = history[['step', name]].dropna()
        assert curve['step'].tolist() == [0, 1, 2], name
        assert curve[name].map(math.isfinite).all(), name
    accuracy = history['val_accuracy'].dropna()
    assert accuracy.between(0.2, 1).all()


def test_best_checkpoint_is_that_of_the_lowest_validation_loss(tiny_run):
    loss = pd.read_csv(tiny_run / 'metrics.csv').set_index('step')['val_loss']
    best = read_checkpoint(tiny_run / 'best.ckpt')['global_step']
    assert best - 1 == loss.idxmin()


def test_last_checkpoint_is_that_of_the_last_step(tiny_run):
    assert read_checkpoint(tiny_run / 'last.ckpt')['global_step'] == 3


def test_checkpoint_tells_how_it_was_made(tiny_run):
    config = load_checkpoint(str(tiny_run / 'last.ckpt')).config
    assert config.model == 'fnri' and config.recipe == 'quick'
    assert config.num_observed == 49 and config.seed == 0
    assert config.names == ['spring', 'charge']
    assert config.options == {
        'hidden_channels': 8,
        'batch_size': 16,
        'max_steps': 3
    }
    assert config.data == {
        'name': 'springs_charges',
        'num_particles': 5,
        'num_systems': [64, 32, 32],
        'seed': 0,
        'split_by': 'system'
    }


def test_same_seed_gives_the_same_weights(script, tiny_arguments, tiny_run,
                                          tmp_path):
    torch.manual_seed(7)  # Nothing depends on this one.
    script.main([*tiny_arguments, '--out', str(tmp_path / 'again')])
    for name in ('best.ckpt', 'last.ckpt'):
        assert_same_weights(tiny_run / name, tmp_path / 'again' / name)


def test_short_run_is_validated_at_its_end(script, tiny_arguments, tmp_path):
    out = tmp_path / 'new' / 'run'
    script.main([
        *tiny_arguments, '--out',
        str(out), '--val-every', '1000', '--recipe', 'paper', '--model', 'nri',
        '--max-steps', '-1', '--max-epochs', '1', '--batch-size', '32'
    ])
    assert {path.name for path in out.iterdir()} == FILES
    history = pd.read_csv(out / 'metrics.csv')
    assert history['step'].tolist() == [1, 1]  # The second of two.
    assert read_checkpoint(out / 'best.ckpt')['global_step'] == 2


def test_resumed_run_goes_on_at_its_last_step(script, tiny_arguments, tmp_path):
    arguments = [*tiny_arguments, '--out', str(tmp_path / 'run')]
    script.main([*arguments, '--max-steps', '2'])
    command = (tmp_path / 'run' / 'command.txt').read_bytes()
    before = pd.read_csv(tmp_path / 'run' / 'metrics.csv')
    script.main([*arguments, '--max-steps', '5', '--resume'])
    assert (tmp_path / 'run' / 'command.txt').read_bytes() == command

    last = read_checkpoint(tmp_path / 'run' / 'last.ckpt')
    assert last['global_step'] == 5
    adam = last['optimizer_states'][0]['state'].values()
    assert {int(parameter['step']) for parameter in adam} == {5}
    history = pd.read_csv(tmp_path / 'run' / 'metrics.csv')
    for name in ('train_loss', 'val_loss'):
        curve = history[['step', name]].dropna()
        assert curve['step'].tolist() == [0, 1, 2, 3, 4], name
        assert curve[name].tolist()[:2] == before[name].dropna().tolist()
    best = read_checkpoint(tmp_path / 'run' / 'best.ckpt')['global_step']
    assert best - 1 == history.set_index('step')['val_loss'].idxmin()


def test_run_is_not_made_shorter(script, tiny_arguments, copied_run):
    before = contents(copied_run)
    with pytest.raises(SystemExit, match='has 3 steps .* asks for 1; .*--max'):
        script.main([
            *tiny_arguments, '--out',
            str(copied_run), '--resume', '--max-steps', '1'
        ])
    assert contents(copied_run) == before


@pytest.mark.filterwarnings('ignore:The dirpath has changed')
def test_log_of_lost_steps_is_dropped(script, tiny_arguments, copied_run):
    # A run that was stopped two steps after its last checkpoint.
    history = pd.read_csv(copied_run / 'metrics.csv')
    late = history.tail(1).assign(step=4)
    pd.concat([history, late]).to_csv(copied_run / 'metrics.csv', index=False)
    script.main([*tiny_arguments, '--out', str(copied_run), '--resume'])
    resumed = pd.read_csv(copied_run / 'metrics.csv')
    assert resumed['step'].tolist() == history['step'].tolist()


@pytest.mark.parametrize('arguments, message', [
    (['--hidden-channels', '9'], "'hidden_channels': 8.* this command has"),
    (['--model', 'nri'], 'model = fnri, but this command has nri'),
    (['--recipe', 'paper'], 'recipe = quick, but this command has paper'),
    (['--num-observed', '40'], 'num_observed = 49, but this command has 40'),
    (['--seed', '4'], 'seed = 0, but this command has 4'),
])
def test_run_of_other_settings_is_not_resumed(script, tiny_arguments,
                                              copied_run, arguments, message):
    before = contents(copied_run)
    with pytest.raises(SystemExit, match=message):
        script.main(
            [*tiny_arguments, '--out',
             str(copied_run), '--resume', *arguments])
    assert contents(copied_run) == before


def test_broken_checkpoint_is_not_resumed(script, tiny_arguments, copied_run):
    (copied_run / 'last.ckpt').write_bytes(b'certainly no checkpoint')
    before = contents(copied_run)
    with pytest.raises(SystemExit, match='is not a checkpoint'):
        script.main([*tiny_arguments, '--out', str(copied_run), '--resume'])
    assert contents(copied_run) == before


def test_there_must_be_a_run_to_resume(script, tiny_arguments, tmp_path):
    with pytest.raises(SystemExit, match='no run to resume .* Leave out'):
        script.main(
            [*tiny_arguments, '--out',
             str(tmp_path / 'none'), '--resume'])
    assert not (tmp_path / 'none').exists()


def test_run_is_not_overwritten(script, tiny_arguments, tiny_run):
    before = contents(tiny_run)
    with pytest.raises(SystemExit, match='--resume, .* --overwrite'):
        script.main([*tiny_arguments, '--out', str(tiny_run)])
    assert contents(tiny_run) == before


def test_run_is_replaced_on_demand(script, tiny_arguments, copied_run):
    (copied_run / 'last.ckpt').write_bytes(b'old')
    (copied_run / 'graph.png').write_bytes(b'of the old run')
    script.main([
        *tiny_arguments, '--out',
        str(copied_run), '--overwrite', '--max-steps', '1'
    ])
    assert {path.name for path in copied_run.iterdir()} == FILES
    assert read_checkpoint(copied_run / 'last.ckpt')['global_step'] == 1


def test_what_is_no_run_is_never_replaced(script, tiny_arguments, tmp_path):
    (tmp_path / 'thesis.tex').write_text('three years of work')
    with pytest.raises(SystemExit, match='no run that --overwrite could'):
        script.main([*tiny_arguments, '--out', str(tmp_path), '--overwrite'])
    assert contents(tmp_path) == {'thesis.tex': b'three years of work'}


def test_out_that_cannot_be_written_is_told(script, tiny_arguments, tmp_path):
    (tmp_path / 'file').touch()
    for out in (tmp_path / 'file', tmp_path / 'file' / 'run'):
        with pytest.raises(SystemExit, match='Cannot write to .* --out'):
            script.main([*tiny_arguments, '--out', str(out)])


@pytest.mark.parametrize('arguments, message', [
    (['--num-particles', '1'], 'num_particles must be at least 2'),
    (['--name', 'springs'], "name is 'springs', but must be one of"),
    (['--num-observed', '50'], 'at least 100 steps, but these have 99'),
    (['--batch-size', '65'], 'A batch takes 65 systems.* has 64.*--batch-size'),
    (['--batch-size', '0'], 'batch_size must be a number above 0'),
    (['--learning-rate', 'nan'], 'learning_rate must be a number above 0'),
    (['--max-steps', '0'], 'max_steps must be at least 1'),
    (['--accelerator', 'abacus'], "invalid accelerator name.*'abacus'"),
])
def test_wrong_arguments_end_in_one_sentence(script, tiny_arguments, copied_run,
                                             arguments, message):
    before = contents(copied_run)
    with pytest.raises(SystemExit, match=message) as error:
        script.main([
            *tiny_arguments, '--out',
            str(copied_run), '--overwrite', *arguments
        ])
    assert '\n' not in str(error.value)
    assert contents(copied_run) == before


@pytest.mark.parametrize('arguments, message', [
    (['--model', 'gcn'], "invalid choice: 'gcn'"),
    (['--val-every', '0'], "--val-every: must be a whole number of at least 1"),
    (['--num-val', '-5'], "--num-val: must be a whole number of at least 1"),
])
def test_wrong_choices_are_told_at_once(script, capsys, arguments, message):
    with pytest.raises(SystemExit, match='2'):
        script.main(arguments)
    assert message in capsys.readouterr().err


def test_configs_are_understood(script, configs):
    assert 'demo.args' in [path.name for path in configs]
    for path in configs:
        assert script.parse_args([f'@{path}']).out.startswith('runs/')


def test_help_teaches(script, capsys):
    with pytest.raises(SystemExit, match='0'):
        script.main(['--help'])
    text = capsys.readouterr().out
    assert 'python scripts/train.py @scripts/configs/demo.args' in text


def test_own_data_need_no_truth(own_run, own_table):
    assert {path.name for path in own_run.iterdir()} == FILES
    history = pd.read_csv(own_run / 'metrics.csv')
    assert history['val_loss'].dropna().map(math.isfinite).sum() == 3
    assert not any('accuracy' in name for name in history)
    config = load_checkpoint(str(own_run / 'last.ckpt')).config
    assert config.num_edge_types == [2, 2] and list(config.names) == []
    assert config.data['files'] == {'table': own_table}
    assert config.data['time_step'] == pytest.approx(0.1)


def test_own_truth_is_measured_against(script, own_arguments, own_table,
                                       tmp_path):
    truth = pd.DataFrame({
        'sender': ['p0', 'p1'],
        'receiver': ['p1', 'p0'],
        'type': [1, 1],
        'layer': ['push', 'pull']
    })
    truth.to_csv(tmp_path / 'truth.csv', index=False)
    out = tmp_path / 'run'
    script.main([
        *own_arguments, '--interactions',
        str(tmp_path / 'truth.csv'), '--directed', '--neighbours', '2', '--out',
        str(out)
    ])
    history = pd.read_csv(out / 'metrics.csv')
    assert history['val_accuracy_push'].dropna().between(0, 1).all()
    module = load_checkpoint(str(out / 'best.ckpt'))
    assert not module.model.latent.undirected
    assert module.config.data['directed']
    assert module.config.data['neighbours'] == 2


def test_own_file_that_changed_is_another_run(script, own_arguments, own_table,
                                              own_run, tmp_path):
    run = shutil.copytree(own_run, tmp_path / 'run')
    other = tmp_path / 'other.csv'
    shutil.copy(own_table, other)
    with pytest.raises(SystemExit, match='has data = .*other.csv'):
        script.main([
            *own_arguments, '--data',
            str(other), '--out',
            str(run), '--resume'
        ])


@pytest.mark.parametrize('arguments, message', [
    (['--num-edge-types', '2', '1'], 'edge types'),
    (['--num-observed', '11'], 'at least 22 steps, but these have 20'),
    (['--window', '21'], 'is too short'),
    (['--radius', '-1'], 'radius must be above 0'),
    (['--data', 'none.csv'], 'no file .*none.csv'),
    (['--edges', 'none.csv'], 'no file .*none.csv'),
])
def test_wrong_own_data_end_in_one_sentence(script, own_arguments, tmp_path,
                                            arguments, message):
    with pytest.raises(SystemExit, match=message) as error:
        script.main(
            [*own_arguments, '--out',
             str(tmp_path / 'run'), *arguments])
    assert '\n' not in str(error.value)


def test_number_of_types_must_be_known(script, own_arguments, tiny_arguments,
                                       tmp_path):
    out = ['--out', str(tmp_path / 'run')]
    at = own_arguments.index('--num-edge-types')
    unknown = own_arguments[:at] + own_arguments[at + 3:]
    with pytest.raises(SystemExit, match='say it with --num-edge-types'):
        script.main([*unknown, *out])
    with pytest.raises(SystemExit, match=r'is \[3\], but the truth has \[2, 2'):
        script.main([*tiny_arguments, *out, '--num-edge-types', '3'])


@pytest.mark.parametrize('arguments, message', [
    (['--window', '20'], '--window is for data of your own'),
    (['--data', 'mine.csv', '--num-systems', '9', '9', '9'
      ], '--num-systems is for simulated data'),
    (['--data', 'mine.csv', '--radius', '1', '--neighbours', '2'
      ], 'not allowed with'),
    (['--data', 'mine.csv', '--neighbours', '0'], 'at least 1'),
])
def test_options_of_other_data_are_told_at_once(script, capsys, arguments,
                                                message):
    with pytest.raises(SystemExit, match='2'):
        script.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize('regime, moved', [('supervised', 'encoder'),
                                           ('true_graph', 'decoder')])
def test_other_regimes_leave_a_run_of_their_own(script, tiny_arguments,
                                                tmp_path, regime, moved):
    out = tmp_path / regime
    arguments = [*tiny_arguments, '--out', str(out), '--regime', regime]
    script.main(arguments)
    assert {path.name for path in out.iterdir()} == FILES
    module = load_checkpoint(str(out / 'best.ckpt'))
    assert module.config.regime == regime
    fresh = build_module(module.config)
    for part in ('encoder', 'decoder'):
        weights = (getattr(m.model, part).parameters() for m in (module, fresh))
        same = all(p.equal(q) for p, q in zip(*weights))
        assert same == (part != moved)


def test_best_supervised_checkpoint_is_that_of_the_highest_accuracy(
        script, tiny_arguments, tmp_path):
    out = tmp_path / 'run'
    script.main([
        *tiny_arguments, '--regime', 'supervised', '--max-steps', '6', '--out',
        str(out)
    ])
    history = pd.read_csv(out / 'metrics.csv')
    best = history.loc[history['val_accuracy'].idxmax(), 'step']
    checkpoint = read_checkpoint(out / 'best.ckpt')
    assert checkpoint['global_step'] == best + 1


def test_options_of_the_recipe_reach_it(script, tiny_arguments, tmp_path):
    out = tmp_path / 'run'
    script.main([
        *tiny_arguments, '--max-steps', '1', '--out',
        str(out), '--null-prior', '0.7', '0.6', '--hard', 'yes', '--encoder',
        'cnn', '--option', 'num_frames=2', '--option', 'delta=inf', '--unsplit'
    ])
    module = load_checkpoint(str(out / 'last.ckpt'))
    assert module.recipe.hard and module.recipe.num_frames == 2
    assert module.recipe.delta == math.inf
    assert module.model.latent.prior[1] == [0.6, pytest.approx(0.4)]
    assert isinstance(module.model.encoder.encoder, CNNEncoder)
    assert module.config.unsplit
    with pytest.raises(SystemExit, match='unsplit = True, but this command'):
        script.main([
            *tiny_arguments, '--max-steps', '1', '--out',
            str(out), '--resume', '--null-prior', '0.7', '0.6', '--hard', 'yes',
            '--encoder', 'cnn', '--option', 'num_frames=2', '--option',
            'delta=inf'
        ])


@pytest.mark.parametrize('arguments, message', [
    (['--null-prior', '0.5'], 'each of the 2 layer-graphs'),
    (['--null-prior', '1.5', '0.5'], 'positive probabilities that sum to 1'),
    (['--option', 'colour=3'], "option of the recipe 'quick' 'colour'"),
    (['--encoder', 'rnn'], "encoder must be one of mlp, cnn, but is 'rnn'"),
    (['--dropout', '1'], 'dropout must be a probability below 1'),
])
def test_wrong_options_of_the_recipe_are_told(script, tiny_arguments, tmp_path,
                                              arguments, message):
    with pytest.raises(SystemExit, match=message):
        script.main(
            [*tiny_arguments, '--out',
             str(tmp_path / 'run'), *arguments])
    assert not (tmp_path / 'run' / 'best.ckpt').exists()
