import math

import pytest

from pyg_fnri.experiments import Report, Summary, Table
from pyg_fnri.experiments.report import (
    decimals_of,
    minutes_text,
    notes_of_runs,
    seeds_text,
)


def test_mean_and_standard_error():
    # Deviations -2, 0, 2: variance 8 / 2, over three runs.
    summary = Summary.of([1., 3., 5.])
    assert summary.mean == 3
    assert summary.error == pytest.approx(math.sqrt(4 / 3))
    assert summary.text(2) == '3.00 ± 1.15'


def test_single_run_has_no_error():
    assert Summary.of([94.04]) == Summary(94.04, None)
    assert Summary.of([94.04]).text(1) == '94.0'


def test_no_run_has_no_summary():
    assert Summary.of([]) is None


def test_run_that_diverged_shows():
    assert Summary.of([1., math.nan]).text(1) == 'nan ± nan'
    assert Summary.of([1., math.inf]).text(1) == 'inf ± nan'


@pytest.mark.parametrize('value, text', [
    (0.80, '0.80'),
    (3.54, '3.54'),
    (11.5, '11.5'),
    (283., '283'),
    (1234., '1234'),
    (0.0352, '0.035'),
    (0., '0.00'),
    (math.nan, 'nan'),
])
def test_errors_read_as_in_the_paper(value, text):
    assert f'{value:.{decimals_of(value)}f}' == text


def test_markdown_has_titles_tables_and_notes():
    table = Table('I+C', ['', 'ours'], [['NRI', '1.0'], ['fNRI', '–']])
    report = Report('Table 9', [table], ['So much for that.'])
    assert report.markdown() == ('# Table 9\n\n'
                                 '## I+C\n\n'
                                 '|  | ours |\n'
                                 '| --- | ---: |\n'
                                 '| NRI | 1.0 |\n'
                                 '| fNRI | – |\n\n'
                                 'So much for that.\n')


def test_notes_tell_how_figures_were_made(make_result):
    results = dict(
        make_result(f'springs_charges-fnri-learned-{seed}', minutes=minutes)
        for seed, minutes in ((1, 2.), (12, 4.5)))
    text = '\n\n'.join(notes_of_runs(results, 'laptop', 'make the table'))
    for part in ('Scale: laptop', '`make the table`', '200 systems',
                 'test split', 'trained on 500', '2 runs', '6.5 minutes',
                 'torch 2.9', '1 thread of Abacus 3'):
        assert part in text
    # Seeds differ, and nothing else: one line stands for both runs.
    train, evaluate = text.split('```')[1].splitlines()[1:]
    assert train == ('python scripts/train.py --seed $SEED --out '
                     'runs/springs_charges-fnri-learned-$SEED')
    assert evaluate.endswith('learned-$SEED/best.ckpt')


def test_runs_with_other_settings_have_a_line_of_their_own(make_result):
    results = dict(
        make_result(f'springs_charges-fnri-learned-{seed}') for seed in (0, 1))
    cell, result = make_result('springs_charges-fnri-learned-2')
    result['commands'][0] += ' --max-steps 9'
    text = '\n'.join(notes_of_runs({**results, cell: result}, 'laptop', 'x'))
    assert text.count('scripts/train.py') == 2
    assert text.count('scripts/evaluate.py') == 1


def test_nothing_run_is_told():
    assert 'Nothing has run yet.' in notes_of_runs({}, 'smoke', 'x')
    assert seeds_text({}) == minutes_text({}) == '–'


def test_seeds_and_minutes_of_a_row():
    runs = {2: {'minutes': 3.}, 0: {'minutes': 4.}}
    assert seeds_text(runs) == '0 2 (n = 2)'
    assert minutes_text(runs) == '3.5'
