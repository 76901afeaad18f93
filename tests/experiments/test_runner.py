import json
import os

import pytest
from filelock import FileLock, Timeout

from pyg_fnri.experiments import SCALES, Cell, Runner, load_results

CELL = Cell('springs_charges', 'fnri', 'supervised', 1)
METRICS = {
    'num_systems': 32,
    'split': 'test',
    'edge_accuracy': {
        'combined': 0.5,
        'layers': [0.6, 0.7]
    },
    'rollout_mse': {
        '1': 1e-5
    },
    'calibration_error': {
        'combined': 0.02
    },
    'checkpoint': 'best.ckpt',
    'config': {
        'data': {
            'num_systems': [64, 32, 32]
        }
    },
}


class FakeScripts:
    """Stand in for the scripts: leave what they leave, at once.

    Args:
        stops (list): What each training ends with, None for its end.
        checkpoints (bool): Whether one that stops has a checkpoint.
    """
    def __init__(self, stops=(), checkpoints=True):
        self.calls = []
        self.stops = list(stops)
        self.checkpoints = checkpoints

    def __call__(self, name, arguments):
        self.calls.append((name, arguments))
        out = arguments[arguments.index('--out') + 1]
        os.makedirs(out, exist_ok=True)
        if name == 'evaluate':
            with open(os.path.join(out, 'metrics.json'), 'w') as file:
                json.dump(METRICS, file)
            return
        stop = self.stops.pop(0) if self.stops else None
        files = ['command.txt', 'last.ckpt', 'best.ckpt']
        if 'em' in arguments:
            os.makedirs(os.path.join(out, 'quick'), exist_ok=True)
            files[1] = 'quick/last.ckpt'
        for file in files[:1] if stop and not self.checkpoints else files:
            open(os.path.join(out, file), 'a').close()
        if stop:
            raise stop

    @property
    def how_started(self):
        """What trainings were told of earlier ones."""
        known = ('--resume', '--overwrite')
        return [[a for a in arguments if a in known]
                for name, arguments in self.calls if name == 'train']


@pytest.fixture
def make_runner(tmp_path):
    def make(scripts):
        return Runner(SCALES['smoke'], scripts, 'data', str(tmp_path / 'runs'),
                      str(tmp_path / 'results'))

    return make


def test_cell_is_trained_measured_and_kept(make_runner, tmp_path):
    scripts = FakeScripts()
    runner = make_runner(scripts)
    assert runner.run(CELL)
    (train, training), (evaluate, evaluation) = scripts.calls
    assert (train, evaluate) == ('train', 'evaluate')
    run = str(tmp_path / 'runs' / 'smoke' / CELL.name)
    assert training == [
        *SCALES['smoke'].training(CELL), '--root', 'data', '--out', run
    ]
    assert evaluation[:2] == ['--checkpoint', f'{run}/best.ckpt']

    result = load_results(str(tmp_path / 'results' / 'smoke'))[CELL]
    assert result['commands'] == [
        f"python scripts/train.py {' '.join(training)}",
        f"python scripts/evaluate.py {' '.join(evaluation)}"
    ]
    assert result['num_systems'] == [64, 32, 32]
    assert result['figures'] == {
        key: value
        for key, value in METRICS.items() if key not in ('config', 'checkpoint')
    }
    assert 0 <= result['minutes'] < 1
    assert runner.has_current_settings(CELL)


def test_em_is_measured_before_and_after(make_runner, tmp_path):
    scripts = FakeScripts()
    runner = make_runner(scripts)
    cell = Cell('nri_springs', 'fnri', 'em', 1)
    assert runner.run(cell)
    (train, training), (_, after), (_, before) = scripts.calls
    assert train == 'train' and 'em' in training
    run = str(tmp_path / 'runs' / 'smoke' / cell.name)
    assert after[:2] == ['--checkpoint', f'{run}/best.ckpt']
    assert before[:2] == ['--checkpoint', f'{run}/quick/best.ckpt']
    assert after[-1] == f'{run}/test' and before[-1] == f'{run}/quick/test'
    # Only laws refine graphs; otherwise, they are measured alike.
    assert '--refine' in after and '--refine' not in before
    with open(runner.result(cell)) as file:
        result = json.load(file)
    assert len(result['commands']) == 3
    assert result['figures']['before'] == {
        key: METRICS[key]
        for key in ('edge_accuracy', 'rollout_mse', 'calibration_error')
    }
    assert runner.has_current_settings(cell)


def test_laws_from_nothing_have_nothing_before(make_runner):
    scripts = FakeScripts()
    runner = make_runner(scripts)
    cell = Cell('springs_charges', 'fnri', 'nothing', 0)
    runner.run(cell)
    assert [name for name, _ in scripts.calls] == ['train', 'evaluate']
    assert '--refine' in scripts.calls[1][1]
    with open(runner.result(cell)) as file:
        assert 'before' not in json.load(file)['figures']


def test_other_runs_are_not_refined(make_runner):
    assert '--refine' not in make_runner(FakeScripts()).evaluation(CELL)


def test_stopped_em_goes_on_with_its_first_stage(make_runner):
    scripts = FakeScripts(stops=[KeyboardInterrupt()])
    runner = make_runner(scripts)
    cell = Cell('springs_charges', 'fnri', 'em', 0)
    with pytest.raises(KeyboardInterrupt):
        runner.run(cell)
    assert runner.run(cell)
    assert scripts.how_started == [[], ['--resume']]


def test_cell_with_a_result_is_not_run_again(make_runner):
    scripts = FakeScripts()
    runner = make_runner(scripts)
    assert runner.run(CELL)
    assert not runner.run(CELL)
    assert len(scripts.calls) == 2


def test_cell_is_run_again_from_scratch_on_demand(make_runner):
    scripts = FakeScripts()
    runner = make_runner(scripts)
    runner.run(CELL)
    assert runner.run(CELL, again=True)
    assert scripts.how_started == [[], ['--overwrite']]


def test_stopped_cell_goes_on_where_it_was(make_runner, tmp_path):
    scripts = FakeScripts(stops=[KeyboardInterrupt(), SystemExit(1)])
    runner = make_runner(scripts)
    for stop in (KeyboardInterrupt, SystemExit):
        with pytest.raises(stop):
            runner.run(CELL)
    assert not os.path.exists(runner.result(CELL))
    minutes = tmp_path / 'runs' / 'smoke' / CELL.name / 'minutes.json'
    minutes.write_text('12.5')  # As if it had taken so long until then.
    assert runner.run(CELL)
    assert scripts.how_started == [[], ['--resume'], ['--resume']]
    with open(runner.result(CELL)) as file:
        result = json.load(file)
    assert 12.5 < result['minutes'] < 13
    # How it was started says nothing about what it is.
    assert '--resume' not in result['commands'][0]


def test_again_is_stopped_and_goes_on_too(make_runner):
    scripts = FakeScripts(stops=[None, KeyboardInterrupt()])
    runner = make_runner(scripts)
    runner.run(CELL)
    with pytest.raises(KeyboardInterrupt):
        runner.run(CELL, again=True)
    assert runner.run(CELL)  # The old result has not come between.
    assert scripts.how_started == [[], ['--overwrite'], ['--resume']]


def test_cell_without_a_checkpoint_starts_anew(make_runner):
    scripts = FakeScripts(stops=[SystemExit(1)], checkpoints=False)
    runner = make_runner(scripts)
    with pytest.raises(SystemExit):
        runner.run(CELL)
    assert runner.run(CELL)
    assert scripts.how_started == [[], ['--overwrite']]


def test_what_never_started_leaves_nothing(make_runner):
    def refuse(name, arguments):
        raise SystemExit('wrong arguments')

    runner = make_runner(refuse)
    with pytest.raises(SystemExit):
        runner.run(CELL)
    assert not os.path.exists(runner.directory(CELL))


def test_cell_that_another_process_runs_is_left_to_it(make_runner):
    scripts = FakeScripts()
    runner = make_runner(scripts)
    os.makedirs(os.path.dirname(runner.directory(CELL)))
    with FileLock(f'{runner.directory(CELL)}.lock'):
        with pytest.raises(Timeout):
            runner.run(CELL)
    assert scripts.calls == []
    assert runner.run(CELL)


def test_result_of_other_settings_is_known(make_runner):
    runner = make_runner(FakeScripts())
    runner.run(CELL)
    with open(runner.result(CELL)) as file:
        text = file.read()
    with open(runner.result(CELL), 'w') as file:
        file.write(text.replace('--max-steps 3', '--max-steps 2'))
    assert not runner.has_current_settings(CELL)
