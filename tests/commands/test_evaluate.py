import functools
import json
import shutil

import pytest

from pyg_fnri.evaluation import evaluate
from pyg_fnri.evaluation.evaluate import HORIZONS
from pyg_fnri.training import load_checkpoint

RESULTS = {'metrics.json', 'trajectories.png', 'graph.png'}
WITH_TRUTH = RESULTS | {'reliability.png'}


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('evaluate')


@pytest.fixture(scope='module')
def arguments(tiny_root, tiny_run):
    return ['--root', tiny_root, '--checkpoint', str(tiny_run / 'best.ckpt')]


def names(directory):
    return {path.name for path in directory.iterdir()}


def read_metrics(directory):
    return json.loads((directory / 'metrics.json').read_text())


def test_results_are_those_of_the_test_split(script, arguments, tiny_root,
                                             tiny_run, tiny_systems, tmp_path,
                                             capsys):
    out = tmp_path / 'new' / 'results'
    script.main([*arguments, '--out', str(out), '--num-drawn', '2'])
    assert names(out) == WITH_TRUTH
    module = load_checkpoint(str(tiny_run / 'best.ckpt'))
    report = evaluate(module.model, tiny_systems('test'), module.units, [2, 2],
                      HORIZONS, linear_step=module.linear_step)
    metrics = read_metrics(out)
    assert metrics['num_systems'] == 32
    assert metrics['edge_accuracy'] == report['edge_accuracy']
    for kind in ('rollout_mse', 'static_mse', 'linear_mse'):
        assert list(metrics[kind].values()) == pytest.approx(
            list(report[kind].values()), rel=1e-4)
    assert metrics['config']['data']['num_systems'] == [64, 32, 32]

    text = capsys.readouterr().out
    for value in ('94.0', '98.0', '95.8', '783', '9.93'):  # The paper's.
        assert value in text
    assert f"{100 * report['edge_accuracy']['combined']:.1f}" in text
    for error in report['rollout_mse'].values():
        assert f'{1e5 * error:.3g}' in text
    assert str(report['relabelling']) in ' '.join(text.split())
    assert '100.0% of 1 batches of 128 systems agree' in text


@pytest.fixture(scope='module')
def half_run(load_script, tiny_arguments, tmp_path_factory):
    """Gives the checkpoint of a run of an encoder or a decoder alone, of NRI.
    """
    def run(regime):
        out = tmp_path_factory.mktemp('runs') / regime
        load_script('train').main([
            *tiny_arguments, '--out',
            str(out), '--regime', regime, '--model', 'nri'
        ])
        return str(out / 'best.ckpt')

    return functools.cache(run)


def test_an_encoder_alone_predicts_nothing(script, half_run, tiny_root,
                                           tmp_path):
    arguments = ['--root', tiny_root, '--out', str(tmp_path)]
    arguments += ['--checkpoint', half_run('supervised')]
    with pytest.raises(SystemExit, match='needs a trained decoder'):
        script.main([*arguments, '--refine'])
    assert not list(tmp_path.iterdir())
    script.main(arguments)
    assert names(tmp_path) == WITH_TRUTH - {'trajectories.png'}
    metrics = read_metrics(tmp_path)
    assert metrics['config']['regime'] == 'supervised'
    assert not any(key.endswith('_mse') for key in metrics)
    assert len(metrics['auroc']) == 2  # Of layers, not of joint types.


def test_a_decoder_alone_is_given_the_graph(script, half_run, tiny_root,
                                            tiny_systems, tmp_path):
    checkpoint = half_run('true_graph')
    script.main([
        '--root', tiny_root, '--checkpoint', checkpoint, '--out',
        str(tmp_path), '--num-drawn', '2'
    ])
    assert names(tmp_path) == {'metrics.json', 'trajectories.png'}
    metrics = read_metrics(tmp_path)
    assert not any('accuracy' in key for key in metrics)
    module = load_checkpoint(checkpoint)
    report = evaluate(module.model, tiny_systems('test'), module.units, [2, 2],
                      HORIZONS, lambda data: (module.given_types(data), None))
    assert metrics['rollout_mse']['10'] == pytest.approx(
        report['rollout_mse'][10], rel=1e-4)


def test_refined_and_sampled_graphs_are_reported_beside(script, arguments,
                                                        tmp_path, capsys):
    script.main([
        *arguments, '--out',
        str(tmp_path), '--num-systems', '2', '--num-drawn', '1', '--refine',
        '--samples', '2'
    ])
    metrics = read_metrics(tmp_path)
    refined = metrics['refined']
    assert refined['num_systems'] == 2
    assert metrics['sampled']['entropy'] != refined['entropy']
    assert refined['entropy'] != metrics['entropy']
    assert refined['static_mse'] == metrics['static_mse']
    assert names(tmp_path) == WITH_TRUTH
    text = capsys.readouterr().out
    assert 'sampled, strict' in text and 'refined, strict' in text
    for error in metrics['sampled']['calibration_error']['layers']:
        assert f'{100 * error:.3g}' in text


@pytest.mark.parametrize(
    'wrong', [['--num-systems', '33'], ['--split', 'all'], ['--num-drawn', '0'],
              ['--samples', '8'], ['--refine', '--samples', '0']])
def test_wrong_choices_are_told(script, arguments, tmp_path, capsys, wrong):
    with pytest.raises(SystemExit) as error:
        script.main([*arguments, '--out', str(tmp_path), *wrong])
    assert wrong[-2] in str(error.value) + capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_own_data_without_truth_have_errors_only(script, own_run, own_root,
                                                 own_table, tmp_path, capsys):
    out = tmp_path / 'results'
    script.main([
        '--root', own_root, '--checkpoint',
        str(own_run / 'best.ckpt'), '--out',
        str(out), '--num-drawn', '2', '--data',
        str(shutil.copy(own_table, tmp_path / 'moved.csv'))
    ])
    assert names(out) == RESULTS
    metrics = read_metrics(out)
    assert metrics['num_systems'] == 2 and metrics['layers'] == []
    assert [*metrics['rollout_mse']] == [*metrics['static_mse']] == ['1']
    assert 'edge_accuracy' not in metrics and 'auroc' not in metrics
    assert len(metrics['entropy']) == len(metrics['asymmetric_share']) == 2
    assert 'paper' not in capsys.readouterr().out
