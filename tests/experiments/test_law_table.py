import pytest

from pyg_fnri.experiments import law_report

EM = 'springs_charges-fnri-em-{}'


@pytest.fixture
def figures():
    """Those of one way to infer graphs."""
    def make(accuracy, errors=(1e-5, 4e-5, 1e-4), calibration=0.01):
        combined, *layers = accuracy
        return {
            'edge_accuracy': {
                'combined': combined,
                'layers': layers
            },
            'rollout_mse': dict(zip(('1', '10', '20'), errors)),
            'calibration_error': {
                'combined': calibration
            },
        }

    return make


@pytest.fixture
def make_em(make_result, figures):
    """Makes the result of a run with laws of any data set."""
    def make(name, accuracy=(0.97, 0.98, 0.99), refined=(0.99, 0.99, 1.),
             law_error=(0.005, 0.01), **more):
        return make_result(name, accuracy, refined=figures(refined),
                           calibration_error={'combined': 0.03},
                           law_error=dict(enumerate(law_error)), **more)

    return make


def markdown(*results):
    return law_report(dict(results), 'laptop', 'the command').markdown()


def test_each_way_to_infer_graphs_has_its_row(make_em, figures, read_row):
    before = figures((0.8, 0.9, 0.85), calibration=0.1)
    text = markdown(
        make_em(EM.format(0), before=before, minutes=20),
        make_em(EM.format(1), refined=(0.995, 1., 1.), law_error=(0.015, 0.01),
                before=before, minutes=40))
    assert read_row(text, 'I+C', 'em: refined') == {
        # Two runs: the standard error is half their distance.
        'combined': '99.2 ± 0.2',
        'springs': '99.5 ± 0.5',
        'charges': '100.0 ± 0.0',
        'MSE 1': '1.00 ± 0.00',
        'MSE 10': '4.00 ± 0.00',
        'MSE 20': '10.0 ± 0.0',
        'law error': '1.0 ± 0.5 / 1.0 ± 0.0',
        'ECE': '1.0 ± 0.0',
        'seeds': '0 1 (n = 2)',
        'minutes a run': '30.0',
    }
    row = read_row(text, 'I+C', 'em: encoder taught, one pass')
    assert row['combined'] == '97.0 ± 0.0' and row['ECE'] == '3.0 ± 0.0'
    row = read_row(text, 'I+C', 'em: encoder at the start, one pass')
    assert row['combined'] == '80.0 ± 0.0' and row['ECE'] == '10.0 ± 0.0'
    assert row['minutes a run'] == '–'
    for part in ('strict', 'per cent', '`the command`', '60.0 minutes',
                 '2 runs'):
        assert part in text


def test_law_error_is_shown_where_laws_are_at_work(make_em, figures, read_row):
    text = markdown(
        make_em(EM.format(0), before=figures((0.8, 0.9, 0.85))),
        make_em('springs_charges-fnri-nothing-0', law_error=(0.02, 0.03)))
    shown = {
        row: read_row(text, 'I+C', row)['law error']
        for row in ('em: refined', 'em: encoder taught, one pass',
                    'em: encoder at the start, one pass',
                    'laws from nothing, refined')
    }
    assert list(shown.values()) == ['0.5 / 1.0', '–', '–', '2.0 / 3.0']


def test_law_errors_of_fewer_runs_say_so(make_em, read_row):
    cell, entangled = make_em(EM.format(1))
    del entangled['figures']['law_error']  # Its layers stand for no one force.
    row = read_row(markdown(make_em(EM.format(0)), (cell, entangled)), 'I+C',
                   'em: refined')
    assert row['law error'] == '0.5 / 1.0 (n = 1)'
    assert row['seeds'] == '0 1 (n = 2)'
    row = read_row(markdown((cell, entangled)), 'I+C', 'em: refined')
    assert row['law error'] == '–'


def test_the_papers_rows_come_first(make_em, read_row):
    text = markdown(make_em(EM.format(0)))
    assert read_row(text, 'I+C', 'paper, learned') == {
        'combined': '94.0',
        'springs': '98.0',
        'charges': '95.8',
        'MSE 1': '0.80',
        'MSE 10': '3.54',
        'MSE 20': '9.93',
        'law error': '–',
        'ECE': '–',
        'seeds': '5 runs',
        'minutes a run': '–',
    }
    row = read_row(text, 'I+C', 'paper, supervised')
    assert row['combined'] == '98.3' and row['MSE 1'] == '–'
    row = read_row(text, 'I+C', 'paper, true graph')
    assert row['combined'] == '–' and row['MSE 20'] == '2.52'
    body = text.split('## I+C\n')[1]
    assert body.index('paper, true graph') < body.index('em: encoder taught')


def test_other_data_sets_have_no_rows_of_the_paper(make_em, read_row):
    text = markdown(
        make_em('nri_charged-fnri-nothing-0', accuracy=(0.4, 0.4),
                refined=(0.96, 0.96)))
    section = text.split('## nri_charged\n\n')[1].split('\n\n')[0]
    assert section.count('\n') == 2 and 'paper' not in section
    row = read_row(text, 'nri_charged', 'laws from nothing, refined')
    assert row['combined'] == '96.0'  # The only layer is all layers.
    assert 'springs' not in row and 'charges' not in row


def test_data_sets_without_laws_have_no_table(make_result, make_em):
    learned = make_result('springs_charges-fnri-learned-0',
                          calibration_error={'combined': 0.02})
    text = markdown(
        learned, make_result('springs_charges-fnri-supervised-0'),
        make_em('nri_springs-fnri-em-0', (0.9, 0.9), (1., 1.), (0.01, )))
    assert [line for line in text.splitlines()
            if line.startswith('## ')] == ['## nri_springs']
    assert '1 runs' in text and 'learned-' not in text
    text = markdown(learned)
    assert '## ' not in text and 'Nothing has run yet.' in text


def test_the_start_is_beside_where_it_has_run(make_result, make_em, read_row):
    text = markdown(
        make_result('springs_charges-fnri-learned-0', (0.9, 0.95, 0.92),
                    calibration_error={'combined': 0.02}, minutes=5.),
        make_em(EM.format(3)),
        # Of other models, there is no such table.
        make_em('springs_charges-nri-em-0', (0.1, 0.1, 0.1)))
    row = read_row(text, 'I+C', 'quick recipe, one pass')
    assert row['combined'] == '90.0' and row['minutes a run'] == '5.0'
    assert row['law error'] == '–'
    row = read_row(text, 'I+C', 'em: encoder taught, one pass')
    assert row['combined'] == '97.0' and row['seeds'] == '3 (n = 1)'
    assert '2 runs' in text


def test_short_trajectories_leave_horizons_out(make_em, read_row):
    cell, result = make_em(EM.format(0))
    del result['figures']['refined']['rollout_mse']['20']
    row = read_row(markdown((cell, result)), 'I+C', 'em: refined')
    assert row['MSE 10'] == '4.00' and row['MSE 20'] == '–'


def test_a_rollout_that_diverges_counts(make_em, read_row):
    broken = make_em(EM.format(1))
    broken[1]['figures']['rollout_mse']['20'] = float('inf')
    row = read_row(markdown(make_em(EM.format(0)), broken), 'I+C',
                   'em: encoder taught, one pass')
    assert row['MSE 20'] == 'inf ± nan'
