import pytest

from pyg_fnri.evaluation import make_table
from pyg_fnri.evaluation.report import accuracy_rows, beyond_rows, error_rows


def accuracy(combined, *layers):
    return {'combined': combined, 'layers': list(layers)}


OURS = {
    'edge_accuracy': accuracy(0.876, 0.912, 0.954),
    'joint_edge_accuracy': accuracy(0.881, 0.9, 0.95)
}


def test_accuracies_stand_beside_the_papers_and_guesses():
    guesses = {
        'random_accuracy': accuracy(0.2513, 0.501, 0.499),
        'majority_accuracy': accuracy(0.3, 0.5, 0.6)
    }
    reports = {'ours': {**OURS, **guesses}, 'refined': OURS}
    rows = accuracy_rows(reports, 'fnri', 'springs_charges')
    expected = {
        'random, paper': [25, 50, 50],
        'fnri (learned), paper': [94, 98, 95.8],
        'fnri (supervised), paper': [98.3, 98.8, 99.4],
        'random, ours': [25.13, 50.1, 49.9],
        'majority class': [30, 50, 60],
        'ours, strict': [87.6, 91.2, 95.4],
        "ours, authors' joint metric": [88.1, 90, 95],
        'refined, strict': [87.6, 91.2, 95.4],
        "refined, authors' joint metric": [88.1, 90, 95]
    }
    assert list(rows) == list(expected)
    for row, values in expected.items():
        assert rows[row] == pytest.approx(values), row
    others = accuracy_rows({'ours': OURS}, 'fnri', '')
    assert list(others) == ['ours, strict', "ours, authors' joint metric"]


def test_errors_stand_beside_the_papers_and_baselines():
    report = {
        'rollout_mse': {
            1: 1.234e-5,
            10: 20e-5
        },
        'static_mse': {
            1: 20e-5,
            10: 300e-5
        },
        'linear_mse': {
            1: 1e-5,
            10: 20e-5
        }
    }
    rows = error_rows({'ours': report}, 'nri', 'springs_charges')
    assert {'nri (learned), paper', 'nri (true graph), paper'} <= rows.keys()
    assert rows['static, paper'] == [19.4, 283]
    assert rows['linear step'] == pytest.approx([1, 20])
    assert rows['ours'] == pytest.approx([1.234, 20])


def test_what_is_not_defined_is_a_dash():
    rows = beyond_rows({'auroc': [0.98765, None], 'entropy': [0.5, 0.25]})
    assert [*rows.values()] == [[None, 98.765, None], [None, 0.5, 0.25]]
    columns = make_table('title', ['', 'a', 'b', 'c'], rows).columns
    assert list(columns[2].cells) == ['98.8', '0.5']
    assert list(columns[3].cells)[0] == '-'
