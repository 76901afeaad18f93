import json
import os
import shutil
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

RESULTS = {'selection.json', 'selection.csv', 'selection.png'}


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('select_layers')


@pytest.fixture(scope='module')
def arguments(own_root, own_table):
    """Arguments of comparing two candidates, 3 steps each."""
    return [
        '--root', own_root, '--data', own_table, '--candidates', '2,2', '2',
        '--seeds', '0', '--num-observed', '8', '--hidden-channels', '8',
        '--batch-size', '8', '--max-steps', '3', '--accelerator', 'cpu'
    ]


@pytest.fixture(scope='module')
def compared(script, arguments, tmp_path_factory):
    """What a comparison leaves, not to be changed."""
    out = tmp_path_factory.mktemp('compared') / 'layers'
    script.main([*arguments, '--out', str(out)])
    return out


@pytest.fixture
def copied(compared, tmp_path):
    return shutil.copytree(compared, tmp_path / 'layers')


@pytest.fixture
def trained(script, monkeypatch):
    """The arguments of runs that are trained, without training them."""
    calls = []
    train = script.load_train()

    def main(arguments):
        calls.append(arguments)
        raise SystemExit('stopped')

    monkeypatch.setattr(
        script, 'load_train',
        lambda: SimpleNamespace(main=main, parse_args=train.parse_args,
                                describe_data=train.describe_data))
    return calls


def test_comparison_leaves_results_and_models(compared, own_table):
    names = {path.name for path in compared.iterdir()}
    assert names == RESULTS | {'runs'}
    assert (compared / 'selection.png').read_bytes().startswith(b'\x89PNG')
    for run in ('2-seed-0', '2-2-seed-0'):
        assert (compared / 'runs' / run / 'best.ckpt').exists()
    found = json.loads((compared / 'selection.json').read_text())
    assert found['recommended'] in ([2], [2, 2])
    assert found['paragraph'].startswith('Recommended: --num-edge-types 2')
    assert any('--seeds' in warning for warning in found['warnings'])
    assert found['num_systems'] == 2 and found['split'] == 'test'
    assert [run['candidate'] for run in found['runs']] == ['2', '2,2']
    for run in found['runs']:
        assert list(run['mse']) == ['1']  # Eight frames, too few for ten.
        assert run['mse']['1'] > 0 and run['edge_accuracy'] is None
    table = pd.read_csv(compared / 'selection.csv', dtype={'candidate': str})
    assert table['candidate'].tolist() == ['2', '2,2']  # The smallest first.
    assert table['recommended'].sum() == 1
    chosen = table[table['recommended']].candidate.item()
    assert chosen == ','.join(map(str, found['recommended']))
    assert table['types'].tolist() == [2, 4]
    config = torch.load(compared / 'runs' / '2-2-seed-0' / 'best.ckpt',
                        weights_only=True)['config']
    assert config['num_edge_types'] == [2, 2] and config['seed'] == 0
    assert config['options']['max_steps'] == 3


def test_what_is_trained_is_not_trained_again(script, arguments, copied,
                                              trained, capsys):
    before = (copied / 'selection.csv').read_bytes()
    for name in RESULTS:
        (copied / name).unlink()
    script.main([*arguments, '--out', str(copied)])
    assert trained == []
    assert capsys.readouterr().out.count('trained already') == 2
    assert (copied / 'selection.csv').read_bytes() == before


def test_stopped_comparison_goes_on(script, arguments, copied, trained):
    # Stopped in the second run, after a checkpoint; then before any.
    run = copied / 'runs' / '2-2-seed-0'
    (run / 'finished.json').unlink()
    with pytest.raises(SystemExit, match='stopped'):
        script.main([*arguments, '--out', str(copied)])
    (run / 'last.ckpt').unlink()
    with pytest.raises(SystemExit, match='stopped'):
        script.main([*arguments, '--out', str(copied)])
    # Another seed, of what is there already.
    with pytest.raises(SystemExit, match='stopped'):
        script.main([
            *arguments, '--candidates', '2', '--seeds', '0', '1', '--out',
            str(copied)
        ])
    assert [call[-1] for call in trained
            ] == ['--resume', '--overwrite',
                  str(copied / 'runs' / '2-seed-1')]
    assert trained[0][trained[0].index('--num-edge-types'):][:3] == [
        '--num-edge-types', '2', '2'
    ]
    assert not (copied / 'runs' / '2-seed-1').exists()
    assert RESULTS < {path.name for path in copied.iterdir()}


def test_other_settings_and_data_are_not_mixed(script, arguments, copied,
                                               trained, write_table, tmp_path):
    with pytest.raises(SystemExit, match='--max-steps 3.*--max-steps 5.*--out'):
        script.main([*arguments, '--max-steps', '5', '--out', str(copied)])
    other = write_table(tmp_path / 'mine.csv', [3] * 20, num_steps=18)
    with pytest.raises(SystemExit, match='on other data than these'):
        script.main([*arguments, '--data', other, '--out', str(copied)])
    (copied / 'runs' / '2-seed-0' / 'finished.json').write_text('{}')
    with pytest.raises(SystemExit, match='does not tell how the run'):
        script.main([*arguments, '--out', str(copied)])
    assert trained == []


def test_run_that_fails_does_not_stop_the_others(script, arguments, copied,
                                                 trained, monkeypatch, capsys):
    train = script.load_train()

    def diverge(arguments):
        raise ValueError('The logits of this model are not finite')

    train.main = diverge
    monkeypatch.setattr(script, 'load_train', lambda: train)
    with pytest.raises(SystemExit, match='left out: 2 with seed 1, 2,2 with'):
        script.main([*arguments, '--seeds', '1', '0', '--out', str(copied)])
    assert 'not finite' in capsys.readouterr().err
    found = json.loads((copied / 'selection.json').read_text())
    assert len(found['runs']) == 2


def test_simulated_systems_are_those_asked_for(script, monkeypatch):
    monkeypatch.setattr(script, 'write_simulated', lambda *args: args)
    args, rest = script.parse_args([
        '--name', 'nri_springs', '--num-systems', '7', '--data-seed', '3',
        '--root', 'data', '--out', 'layers', '--batch-size', '2'
    ])
    assert rest == ['--batch-size', '2']
    assert script.simulate(args) == (os.path.join('layers', 'simulated'),
                                     'data', 'nri_springs', 5, 7, 3)


@pytest.mark.parametrize('extra, message', [
    ([], 'either your own data by --data'),
    (['--data', 'a.csv', '--name', 'kuramoto'], 'either your own data'),
    (['--data', 'a.csv', '--num-systems', '5'], 'are for simulated data'),
    (['--name', 'kuramoto', '--interactions', 'a.csv'], 'truth of simulated'),
    (['--data', 'a.csv', '--num-edge-types', '2'], '--num-edge-types differs'),
    (['--data', 'a.csv', '--seed=3'], '--seed differs'),
    (['--data', 'a.csv', '--seeds', '-1'], 'at least 0, not -1'),
    (['--data', 'a.csv', '--candidates', '2x2'], 'such as 2,3'),
    (['--data', 'a.csv', '--candidates', '1'], "at least 2 types"),
])
def test_wrong_arguments_are_told_at_once(script, capsys, extra, message):
    with pytest.raises(SystemExit, match='2'):
        script.main(extra)
    assert message in ' '.join(capsys.readouterr().err.split())


def test_unknown_options_and_missing_files_are_told(script, arguments, tmp_path,
                                                    capsys):
    out = ['--out', str(tmp_path / 'out')]
    with pytest.raises(SystemExit, match='2'):
        script.main([*arguments, *out, '--batches', '3'])
    assert 'unrecognized arguments: --batches' in capsys.readouterr().err
    with pytest.raises(SystemExit, match='no file .*none.csv'):
        script.main([*arguments, *out, '--interactions', 'none.csv'])
    with pytest.raises(SystemExit, match='A batch takes 64 systems'):
        script.main([*arguments, *out, '--batch-size', '64'])


def test_help_teaches(script, capsys):
    with pytest.raises(SystemExit, match='0'):
        script.main(['--help'])
    text = capsys.readouterr().out
    for part in ('python scripts/select_layers.py --data my.csv',
                 'one-standard-error', '--candidates', '--interactions'):
        assert part in text
