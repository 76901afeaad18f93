import json
import os
from types import SimpleNamespace

import pytest

from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.candidate_runs import CandidateRuns, check_settings

ONE, TWO = (Candidate.from_name(name) for name in ('2', '2,2'))


@pytest.fixture
def make_runs(tmp_path):
    """Makes runs whose training is a note of its arguments."""
    def make(main, **changes):
        def train(arguments):
            out = arguments[arguments.index('--out') + 1]
            os.makedirs(out, exist_ok=True)
            main(arguments)

        train = SimpleNamespace(main=train, parse_args=list,
                                describe_data=lambda args: {'of': args[1]})
        return CandidateRuns(
            **{
                'candidates': [ONE, TWO],
                'seeds': [0, 1],
                'out': str(tmp_path),
                'train': train,
                'arguments': ['--data', 'a.csv'],
                **changes
            })

    return make


def test_each_run_is_trained_once_seed_after_seed(make_runs, capsys):
    calls = []
    runs = make_runs(calls.append)
    assert runs.train_all() == []
    assert [call[3:-2] for call in calls] == [['2', '--seed', '0'],
                                              ['2', '2', '--seed', '0'],
                                              ['2', '--seed', '1'],
                                              ['2', '2', '--seed', '1']]
    assert calls[1][-1] == runs.directory(TWO, 0)
    assert runs.train_all() == [] and len(calls) == 4
    assert capsys.readouterr().out.count('trained already') == 4
    # Another seed later on.
    make_runs(calls.append, seeds=[1, 2]).train_all()
    assert [call[-3] for call in calls[4:]] == ['2', '2']


def test_what_fails_is_told_and_does_not_stop_the_others(make_runs, capsys):
    def main(arguments):
        if arguments[3:5] == ['2', '2']:
            raise ValueError('The weights are not finite.')

    runs = make_runs(main, seeds=[0])
    assert runs.train_all() == [(TWO, 0)]
    assert 'not finite' in capsys.readouterr().err
    assert runs.train_one(ONE, 0) is False


def test_runs_of_other_settings_are_told(make_runs, tmp_path):
    runs = make_runs(lambda arguments: None, seeds=[0])
    runs.train_all()
    other = make_runs(None, arguments=['--data', 'a.csv', '--tau', '1'])
    with pytest.raises(ValueError, match='with --data a.csv, but .* --tau 1'):
        other.train_all()
    other = make_runs(None, arguments=['--data', 'b.csv'])
    with pytest.raises(ValueError, match='on other data than these'):
        other.train_all()
    path = tmp_path / 'finished.json'
    path.write_text(json.dumps({'data': 1}))
    with pytest.raises(ValueError, match='does not tell how'):
        check_settings(str(path), {'data': 1, 'arguments': []})
