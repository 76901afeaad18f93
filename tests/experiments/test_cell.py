import pytest

from pyg_fnri.experiments import MODELS, NAMES, Cell, grid
from pyg_fnri.experiments.cell import MORE_NAMES, REGIMES, TABLES


def test_names_round_trip():
    cells = grid(NAMES + MORE_NAMES, MODELS, REGIMES, (0, 12))
    assert len(cells) == 4 * 3 * 7 * 2 == len({cell.name for cell in cells})
    for cell in cells:
        assert Cell.from_name(cell.name) == cell
        assert cell.name == f'{cell.row}-{cell.seed}'


def test_name_is_as_documented():
    cell = Cell('springs_charges', 'fnri', 'learned', 0)
    assert cell.name == 'springs_charges-fnri-learned-0'


@pytest.mark.parametrize('name, message', [
    ('springs_charges-fnri-learned', "such as .*-learned-0, but got"),
    ('springs_charges-fnri-learned--1', "such as .*-learned-0, but got"),
    ('springs_charges-fnri-learned-x', "such as .*-learned-0, but got"),
    ('springs-fnri-learned-0', "dataset of a cell must be .* is 'springs'"),
    ('springs_charges-gcn-learned-0', "model of a cell must be .* is 'gcn'"),
    ('springs_charges-fnri-lucky-0', "regime of a cell must be .* is 'lucky'"),
])
def test_what_is_no_cell_is_told(name, message):
    with pytest.raises(ValueError, match=message):
        Cell.from_name(name)


def test_tables_are_of_regimes_that_there_are():
    for regimes in TABLES.values():
        assert set(regimes) <= set(REGIMES)


def test_seed_must_not_be_negative():
    with pytest.raises(ValueError, match='at least 0, but is -1'):
        Cell('springs_charges', 'fnri', 'learned', -1)


def test_grid_has_every_combination_once_and_seeds_outermost():
    cells = grid(NAMES, MODELS, TABLES['1'], (0, 1, 2))
    assert len(cells) == len(set(cells)) == 2 * 3 * 2 * 3
    assert [cell.seed for cell in cells] == [0] * 12 + [1] * 12 + [2] * 12
    assert grid(NAMES, MODELS, TABLES['3'], (0, 1)) == []
