import json
from pathlib import Path

import pytest
import torch

from pyg_fnri.evaluation import evaluate
from pyg_fnri.published import HORIZONS
from pyg_fnri.training import load_checkpoint

RESULTS = {'metrics.json', 'trajectories.png', 'graph.png'}


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('evaluate')


@pytest.fixture(scope='module')
def arguments(tiny_root, tiny_run):
    return ['--root', tiny_root, '--checkpoint', str(tiny_run / 'best.ckpt')]


def read_metrics(directory):
    return json.loads((directory / 'metrics.json').read_text())


def test_results_are_those_of_the_test_split(script, arguments, tiny_root,
                                             tiny_run, tiny_systems, tmp_path,
                                             capsys):
    before = (tiny_run / 'best.ckpt').read_bytes()
    folders = {
        tiny_systems(split).processed_dir
        for split in ('train', 'val', 'test')
    }
    out = tmp_path / 'new' / 'results'
    script.main([*arguments, '--out', str(out), '--num-drawn', '2'])
    assert {path.name for path in out.iterdir()} == RESULTS
    for name in ('trajectories.png', 'graph.png'):
        assert (out / name).read_bytes().startswith(b'\x89PNG')
    assert (tiny_run / 'best.ckpt').read_bytes() == before
    # The data set of the training run is used, not simulated again.
    assert {str(path) for path in Path(tiny_root).glob('*/*-*')} == folders

    module = load_checkpoint(str(tiny_run / 'best.ckpt'))
    report = evaluate(module.model, tiny_systems('test'), module.units, [2, 2],
                      HORIZONS)
    metrics = read_metrics(out)
    assert metrics['num_systems'] == 32
    assert metrics['edge_accuracy'] == report['edge_accuracy']
    for kind in ('rollout_mse', 'static_mse'):
        assert metrics[kind] == pytest.approx(
            {
                str(h): error
                for h, error in report[kind].items()
            }, rel=1e-4)
    assert metrics['layers'] == ['spring', 'charge']
    assert metrics['config']['data']['num_systems'] == [64, 32, 32]

    text = capsys.readouterr().out
    for value in ('94.0', '98.0', '95.8', '783', '9.93'):  # The paper's.
        assert value in text
    combined = report['edge_accuracy']['combined']
    assert f'{100 * combined:.1f}' in text
    for kind in ('rollout_mse', 'static_mse'):
        for error in report[kind].values():
            assert f'{1e5 * error:.3g}' in text
    assert str(report['relabelling']) in ' '.join(text.split())


def test_some_systems_of_another_split(script, arguments, tiny_run,
                                       tiny_systems, tmp_path):
    script.main([
        *arguments, '--out',
        str(tmp_path), '--split', 'val', '--num-systems', '3', '--num-drawn',
        '1'
    ])
    metrics = read_metrics(tmp_path)
    assert metrics['num_systems'] == 3 and metrics['split'] == 'val'
    module = load_checkpoint(str(tiny_run / 'best.ckpt'))
    report = evaluate(module.model,
                      tiny_systems('val')[:3], module.units, [2, 2], HORIZONS)
    assert metrics['rollout_mse']['10'] == pytest.approx(
        report['rollout_mse'][10], rel=1e-4)


def test_refined_graphs_are_reported_beside(script, arguments, tmp_path,
                                            capsys):
    script.main([
        *arguments, '--out',
        str(tmp_path), '--num-systems', '4', '--num-drawn', '1', '--refine'
    ])
    metrics = read_metrics(tmp_path)
    refined = metrics['refined']
    assert refined['num_systems'] == 4
    # An untrained decoder finds other graphs, as likely as not worse ones.
    assert refined['rollout_mse'] != metrics['rollout_mse']
    assert refined['static_mse'] == metrics['static_mse']
    combined = 100 * refined['edge_accuracy']['combined']
    rows = [
        row for row in capsys.readouterr().out.splitlines()
        if 'refined, strict' in row
    ]
    assert len(rows) == 1 and f'{combined:.1f}' in rows[0]


def test_missing_checkpoint_is_told(script, tmp_path):
    path = tmp_path / 'none' / 'best.ckpt'
    with pytest.raises(SystemExit, match='no checkpoint .*scripts/train.py'):
        script.main(['--checkpoint', str(path)])
    assert not path.parent.exists()


def test_other_files_are_refused(script, tmp_path):
    path = tmp_path / 'other.ckpt'
    path.write_bytes(b'certainly no checkpoint')
    with pytest.raises(SystemExit, match='is not a checkpoint'):
        script.main(['--checkpoint', str(path)])
    assert [path.name for path in tmp_path.iterdir()] == ['other.ckpt']


def change_checkpoint(tiny_run, path, **config):
    checkpoint = torch.load(tiny_run / 'best.ckpt', weights_only=True)
    checkpoint['config'].update(config)
    torch.save(checkpoint, path)


def test_checkpoint_of_other_sizes_is_refused(script, tiny_run, tmp_path):
    path = tmp_path / 'other.ckpt'
    change_checkpoint(tiny_run, path, options={'hidden_channels': 9})
    with pytest.raises(SystemExit, match='is not a checkpoint.*size mismatch'):
        script.main(['--checkpoint', str(path)])


def test_checkpoint_must_tell_its_data(script, tiny_run, tmp_path):
    path = tmp_path / 'other.ckpt'
    change_checkpoint(tiny_run, path, data={})
    with pytest.raises(SystemExit, match='does not tell which data set'):
        script.main(['--checkpoint', str(path)])


def test_out_that_cannot_be_written_is_told(script, arguments, tmp_path):
    (tmp_path / 'file').touch()
    for out in (tmp_path / 'file', tmp_path / 'file' / 'results'):
        with pytest.raises(SystemExit, match='Cannot write to .* --out'):
            script.main([*arguments, '--out', str(out)])


@pytest.mark.parametrize('number', ['0', '33', '-1'])
def test_there_must_be_as_many_systems(script, arguments, tmp_path, number):
    with pytest.raises(SystemExit, match='test split has 1 to 32'):
        script.main(
            [*arguments, '--out',
             str(tmp_path), '--num-systems', number])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    'wrong',
    [['--split', 'all'], ['--num-drawn', '0'], ['--num-drawn', 'many']])
def test_wrong_choices_are_told_at_once(script, arguments, capsys, wrong):
    with pytest.raises(SystemExit, match='2'):
        script.main([*arguments, *wrong])
    assert f'argument {wrong[0]}: invalid' in capsys.readouterr().err


def test_help_teaches(script, capsys):
    with pytest.raises(SystemExit, match='0'):
        script.main(['--help'])
    text = capsys.readouterr().out
    assert 'python scripts/evaluate.py --checkpoint runs/demo/best.ckpt' in text


def test_own_data_without_truth_have_errors_only(script, own_run, own_root,
                                                 tmp_path, capsys):
    out = tmp_path / 'results'
    script.main([
        '--root', own_root, '--checkpoint',
        str(own_run / 'best.ckpt'), '--out',
        str(out), '--num-drawn', '2'
    ])
    assert {path.name for path in out.iterdir()} == RESULTS
    metrics = read_metrics(out)
    assert metrics['num_systems'] == 2 and metrics['layers'] == []
    assert metrics['rollout_mse'].keys() == metrics['static_mse'].keys() == {
        '1'
    }
    assert 'edge_accuracy' not in metrics
    text = capsys.readouterr().out
    assert 'static, ours' in text and 'accuracy' not in text
    assert 'paper' not in text
