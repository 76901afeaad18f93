from dataclasses import replace

import pytest

from pyg_fnri.experiments import NAMES, SCALES, Cell, Part
from pyg_fnri.experiments.cell import MORE_NAMES, TABLES

SMOKE = SCALES['smoke']


@pytest.mark.parametrize('table', TABLES)
def test_a_table_has_its_regimes_and_the_scales_seeds(table):
    cells = Part().of_table(table, SMOKE)
    assert len(cells) == len(set(cells))
    assert {cell.regime for cell in cells} == set(TABLES[table])
    if cells:
        assert {cell.seed for cell in cells} == set(SMOKE.seeds_of(table))


def test_laws_are_of_fnri_on_nris_data_sets_too():
    scale = replace(SMOKE, law_seeds=(5, 6, 7))
    cells = Part().of_table('laws', scale)
    assert {cell.model for cell in cells} == {'fnri'}
    assert {cell.dataset for cell in cells} == set(NAMES + MORE_NAMES)
    assert {cell.seed for cell in cells} == {5, 6, 7}
    assert {cell.dataset for cell in Part().of_table('1', scale)} == set(NAMES)


def test_what_is_asked_for_is_all_there_is():
    part = Part(['nri_springs'], ['sfnri'], ['nothing', 'learned'], [4])
    assert part.of_table('laws',
                         SMOKE) == [Cell('nri_springs', 'sfnri', 'nothing', 4)]
    assert part.of_table('2',
                         SMOKE) == [Cell('nri_springs', 'sfnri', 'learned', 4)]
    assert part.of_figure('compression', SMOKE) == []


@pytest.mark.parametrize('seeds, first', [(None, 0), ((8, 3), 8)])
def test_trajectories_are_of_a_single_run(seeds, first):
    cells = Part(seeds=seeds).of_figure('trajectories', SMOKE)
    assert cells == [Cell('springs_charges', 'fnri', 'learned', first)]


def test_compression_is_of_two_regimes():
    for scale in SCALES.values():
        cells = Part(seeds=[1]).of_figure('compression', scale)
        assert [cell.regime for cell in cells] == list(scale.compression)
