import json
import math

import pandas as pd
import pytest
from filelock import FileLock
from tables import make_parser, markdown, mean_text, means, run_study


@pytest.mark.parametrize('values, decimals, text',
                         [([94.], 1, '94.0'),
                          ([93., 94., 95.], 1, '94.0 ± 0.6'),
                          ([math.nan], 1, '–'), ([843.2], None, '843'),
                          ([0.0812], None, '0.081'), ([3.541], None, '3.54'),
                          ([math.inf], None, 'inf')])
def test_means_with_their_standard_error(values, decimals, text):
    assert mean_text(pd.Series(values), decimals) == text


def test_a_line_for_each_label():
    frame = pd.DataFrame(
        dict(label=['b', 'a', 'b'], seed=[0, 0, 1], combined=[50., 20., 70.]))
    table = means(frame, 'label', ['combined', 'charges'])
    assert markdown(table).splitlines() == [
        '| label | combined | seeds |', '| --- | ---: | ---: |',
        '| b | 60.0 ± 10.0 | 0 1 |', '| a | 20.0 | 0 |'
    ]


@pytest.fixture
def study(tmp_path):
    """Runs cells of which some fail; returns those measured and reports."""
    def run(*arguments, wrong=()):
        measured, reports = [], []

        def measure(name):
            measured.append(name)
            return {'figure': 1 / (name not in wrong)}

        args = make_parser('', 'study', ['laptop']).parse_args(arguments)
        run_study(['a-0', 'a-1', 'b-0'], measure, lambda: reports.append(1),
                  tmp_path, args)
        return measured, len(reports)

    return run


def test_cells_are_measured_once(study, tmp_path):
    with pytest.raises(SystemExit, match='Failed: a-1;'):
        study(wrong=['a-1'])
    first = json.loads((tmp_path / 'b-0.json').read_text())
    assert first['figure'] == 1 and 'torch' in first['provenance']
    # Minutes of the attempt that failed count.
    (tmp_path / 'a-1.minutes').write_text('60')
    assert study('--report-only') == ([], 1)
    assert study() == (['a-1'], 1)
    assert 60 < json.loads((tmp_path / 'a-1.json').read_text())['minutes'] < 61
    assert {path.suffix for path in tmp_path.iterdir()} == {'.json'}


def test_cells_are_chosen_by_patterns(study, capsys):
    assert study('--list', '--cell', '*-0') == ([], 0)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[3] for line in lines] == ["'a-0'", "'b-0'"]
    assert all(line.endswith('--scale laptop') for line in lines)
    assert study('--cell', '*-0') == (['a-0', 'b-0'], 1)
    with pytest.raises(SystemExit, match='no cell c'):
        study('--cell', 'c')


def test_another_process_is_left_alone(study, tmp_path, capsys):
    with FileLock(tmp_path / 'a-0.lock'):
        assert study('--cell', 'a-0') == ([], 1)
    assert 'another process is at it' in capsys.readouterr().out
