import io

import pytest
from rich.console import Console

from pyg_fnri.evaluation import accuracy_table, beyond_table, error_table

ACCURACIES = {
    'edge_accuracy': {
        'combined': 0.876,
        'layers': [0.912, 0.954]
    },
    'joint_edge_accuracy': {
        'combined': 0.881,
        'layers': [0.9, 0.95]
    },
}


def rows_of(table):
    """A table's cells, row by row."""
    return list(zip(*(column.cells for column in table.columns)))


@pytest.fixture
def text_of():
    def text(table):
        out = io.StringIO()
        Console(file=out, width=120).print(table)
        return out.getvalue()

    return text


def test_accuracies_stand_beside_the_papers_and_guesses(text_of):
    floors = {
        'random_accuracy': {
            'combined': 0.2513,
            'layers': [0.501, 0.499]
        },
        'majority_accuracy': {
            'combined': 0.3,
            'layers': [0.5, 0.6]
        }
    }
    table = accuracy_table('Edge accuracy (%)', {
        'fnri (learned), ours': {
            **ACCURACIES,
            **floors
        },
        'refined': ACCURACIES
    }, ['spring', 'charge'], 'fnri', 'springs_charges')
    assert rows_of(table) == [
        ('random, paper', '25.0', '50.0', '50.0'),
        ('fnri (learned), paper', '94.0', '98.0', '95.8'),
        ('fnri (supervised), paper', '98.3', '98.8', '99.4'),
        ('random, ours', '25.1', '50.1', '49.9'),
        ('majority class', '30.0', '50.0', '60.0'),
        ('fnri (learned), ours, strict', '87.6', '91.2', '95.4'),
        ("fnri (learned), ours, authors' joint metric", '88.1', '90.0', '95.0'),
        ('refined, strict', '87.6', '91.2', '95.4'),
        ("refined, authors' joint metric", '88.1', '90.0', '95.0'),
    ]
    for word in ('Edge accuracy (%)', 'combined', 'spring', 'charge'):
        assert word in text_of(table)


def test_errors_stand_beside_the_papers_and_floors():
    report = {
        'rollout_mse': {
            1: 1.234e-5,
            10: 2e-4
        },
        'static_mse': {
            1: 2e-4,
            10: 3e-3
        },
        'linear_mse': {
            1: 1e-4,
            10: 2e-3
        }
    }
    table = error_table('', {'ours': report}, 'nri', 'springs_charges')
    rows = rows_of(table)
    assert rows[0] == ('static, paper', '19.4', '283')
    assert [row[0] for row in rows] == [
        'static, paper', 'nri (learned), paper', 'nri (true graph), paper',
        'static, ours', 'linear step', 'ours'
    ]
    assert rows[3:] == [
        ('static, ours', '20', '300'),
        ('linear step', '10', '200'),
        ('ours', '1.23', '20'),
    ]


def test_other_systems_have_no_rows_of_the_paper():
    table = accuracy_table('', {'ours': ACCURACIES}, ['a', 'b'], 'fnri', '')
    assert [row[0] for row in rows_of(table)
            ] == ['ours, strict', "ours, authors' joint metric"]
    table = error_table(
        '', {'ours': {
            'rollout_mse': {
                1: 1.
            },
            'static_mse': {
                1: 1.
            }
        }}, 'fnri', '')
    assert [row[0] for row in rows_of(table)] == ['static, ours', 'ours']


def test_what_is_not_defined_is_a_dash():
    table = beyond_table(
        '', {
            'auroc': [0.98765, None],
            'calibration_error': {
                'combined': 0.02,
                'layers': [0.01, 0.03]
            },
            'entropy': [0.5, 0.25],
        }, ['spring', 'charge'])
    assert rows_of(table) == [
        ('AUROC of any interaction (%)', '-', '98.8', '-'),
        ('expected calibration error (%)', '2', '1', '3'),
        ('posterior entropy (nats)', '-', '0.5', '0.25'),
    ]
