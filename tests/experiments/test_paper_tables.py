import pytest

from pyg_fnri.evaluation.published import (
    ACCURACY,
    PARAMETERS,
    ROLLOUT_MSE,
    published,
)
from pyg_fnri.experiments import (
    MODELS,
    NAMES,
    accuracy_report,
    error_report,
    parameter_report,
)
from pyg_fnri.experiments.paper_tables import LAYERS, count_parameters


def test_accuracies_are_means_beside_the_papers(make_result, read_row):
    results = dict([
        make_result('springs_charges-fnri-learned-0', (0.90, 0.95, 0.92),
                    minutes=2),
        make_result('springs_charges-fnri-learned-1', (0.94, 0.97, 0.96),
                    minutes=4),
        make_result('springs_charges-nri-supervised-2', (0.98, 0.99, 1.0)),
    ])
    text = accuracy_report(results, 'laptop', 'the command').markdown()
    # Two runs: the standard error is half their distance.
    assert read_row(text, 'I+C', 'fNRI (learned)') == {
        'combined, ours': '92.0 ± 2.0',
        'combined, paper': '94.0',
        'springs, ours': '96.0 ± 1.0',
        'springs, paper': '98.0',
        'charges, ours': '94.0 ± 2.0',
        'charges, paper': '95.8',
        'seeds': '0 1 (n = 2)',
        'minutes a run': '3.0',
    }
    row = read_row(text, 'I+C', 'NRI (supervised)')
    assert row['combined, ours'] == '98.0' and row['combined, paper'] == '98.3'
    assert row['seeds'] == '2 (n = 1)'
    for part in ('strict', 'per cent', '`the command`', 'laptop', '9.0 minutes',
                 '200 systems'):
        assert part in text


def test_what_has_not_run_is_a_dash(read_row):
    text = accuracy_report({}, 'paper', 'x').markdown()
    row = read_row(text, 'I+C+F', 'sfNRI (learned)')
    assert row['combined, ours'] == row['seeds'] == row['minutes a run'] == '–'
    assert row['finite springs, paper'] == '52.4'
    row = read_row(text, 'I+C+F', 'random')
    assert row['combined, ours'] == '–' and row['combined, paper'] == '12.5'
    assert 'Nothing has run yet.' in text
    row = read_row(error_report({}, 'paper', 'x').markdown(), 'I+C', 'static')
    assert row['1 step, ours'] == '–' and row['1 step, paper'] == '19.4'


def test_errors_are_in_the_papers_unit(make_result, read_row):
    results = dict([
        make_result('springs_charges-fnri-true_graph-0',
                    errors=(0.5e-5, 1e-5, 2e-5)),
        make_result('springs_charges-fnri-true_graph-1',
                    errors=(0.7e-5, 3e-5, 2e-5)),
        # Of no concern to this table.
        make_result('springs_charges-fnri-supervised-0', errors=(1, 1, 1)),
    ])
    text = error_report(results, 'laptop', 'the command').markdown()
    assert read_row(text, 'I+C', 'fNRI (true graph)') == {
        '1 step, ours': '0.60 ± 0.10',
        '1 step, paper': '0.70',
        '10 steps, ours': '2.00 ± 1.00',
        '10 steps, paper': '1.30',
        '20 steps, ours': '2.00 ± 0.00',
        '20 steps, paper': '2.52',
        'seeds': '0 1 (n = 2)',
        'minutes a run': '3.0',
    }
    assert 'supervised' not in text and '2 runs' in text
    row = read_row(text, 'I+C', 'static')
    assert row['10 steps, ours'] == '311' and row['10 steps, paper'] == '283'
    assert row['seeds'] == '–'
    assert read_row(text, 'I+C+F', 'static')['10 steps, ours'] == '–'


def test_floors_beyond_the_papers_come_from_the_figures(make_result, read_row):
    linear = {'1': 1e-5, '10': 1e-3, '20': 1e-2}
    cell, result = make_result(
        'springs_charges-fnri-learned-0', linear_mse=linear, majority_accuracy={
            'combined': 0.375,
            'layers': [0.5, 0.6]
        }, random_accuracy={
            'combined': 0.252,
            'layers': [0.501, 0.502]
        })
    text = error_report({cell: result}, 'laptop', 'x').markdown()
    row = read_row(text, 'I+C', 'linear')
    assert row['10 steps, ours'] == '100' and row['10 steps, paper'] == '–'
    text = accuracy_report({cell: result}, 'laptop', 'x').markdown()
    row = read_row(text, 'I+C', 'majority class')
    assert row['combined, ours'] == '37.5' and row['charges, ours'] == '60.0'
    row = read_row(text, 'I+C', 'random')
    assert row['combined, ours'] == '25.2' and row['combined, paper'] == '25.0'


def test_short_horizons_leave_the_others_out(make_result, read_row):
    cell, result = make_result('springs_charges-fnri-learned-0')
    del result['figures']['rollout_mse']['20']
    text = error_report({cell: result}, 'laptop', 'x').markdown()
    row = read_row(text, 'I+C', 'fNRI (learned)')
    assert row['10 steps, ours'] == '4.00' and row['20 steps, ours'] == '–'


@pytest.mark.parametrize('name', NAMES)
def test_every_figure_of_the_paper_is_there(name, read_row):
    title = {'springs_charges': 'I+C'}.get(name, 'I+C+F')
    for report, table, regimes in (
        (accuracy_report, ACCURACY, ('learned', 'supervised')),
        (error_report, ROLLOUT_MSE, ('learned', 'true graph')),
    ):
        text = report({}, 'paper', 'x').markdown()
        for regime in regimes:
            for model, label in MODELS.items():
                row = read_row(text, title, f'{label} ({regime})')
                shown = [float(v) for key, v in row.items() if 'paper' in key]
                assert tuple(shown) == published(table, name,
                                                 f'{model} ({regime})')


@pytest.mark.parametrize('name', NAMES)
@pytest.mark.parametrize('model', MODELS)
def test_parameters_are_the_papers(name, model):
    ours = count_parameters(model, len(LAYERS[name]))
    assert ours == PARAMETERS[name][model]


def test_table_of_parameters_shows_both(read_row):
    text = parameter_report('the command').markdown()
    assert read_row(text, 'I+C+F', 'fNRI') == {
        'K': '2+2+2',
        'encoder, ours': '711,174',
        'encoder, paper': '711,174',
        'decoder, ours': '542,212',
        'decoder, paper': '542,212',
    }
    assert read_row(text, 'I+C', 'sfNRI')['K'] == '2'
    assert '49 observed frames' in text and '`the command`' in text
