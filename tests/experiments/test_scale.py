from dataclasses import replace

import pytest

from pyg_fnri.experiments import MODELS, NAMES, SCALES, Cell, grid
from pyg_fnri.experiments.cell import TABLES
from pyg_fnri.training import QuickRecipe


def value_of(arguments, option):
    return arguments[arguments.index(option) + 1]


@pytest.mark.parametrize('name', SCALES)
def test_every_cell_of_tables_and_figures_has_arguments(name):
    scale = SCALES[name]
    assert scale.name == name
    # The paper has no force laws.
    tables = TABLES.keys() - ({'laws'} if name == 'paper' else set())
    regimes = {r for table in tables for r in TABLES[table]}
    for cell in grid(NAMES, MODELS, regimes | set(scale.compression),
                     scale.seeds):
        arguments = scale.training(cell)
        assert value_of(arguments, '--name') == cell.dataset
        assert value_of(arguments, '--model') == cell.model
        assert value_of(arguments, '--seed') == str(cell.seed)
        known = value_of(arguments, '--regime')
        # Laws and section 3.1 are about learning without labels, too.
        others = ('split', 'unsplit', 'em', 'nothing')
        assert known == cell.regime or known == 'learned' and (cell.regime
                                                               in others)
        assert ('--unsplit' in arguments) == (cell.regime == 'unsplit')


@pytest.mark.parametrize('name', SCALES)
def test_both_models_of_the_compression_differ_in_the_split_alone(name):
    scale = SCALES[name]
    with_split, without = (scale.training(
        Cell('springs_charges', 'fnri', regime, 0))
                           for regime in scale.compression)
    assert without == [*with_split, '--unsplit']


def test_the_paper_has_five_runs_of_its_own_recipe():
    paper = SCALES['paper']
    assert len(paper.seeds) == 5
    for regime in ('learned', 'supervised', 'true_graph'):
        arguments = paper.training(Cell('springs_charges', 'nri', regime, 0))
        assert value_of(arguments, '--recipe') == 'paper'
        for limit in ('--max-epochs', '--max-steps', '--num-systems',
                      '--hidden-channels', '--batch-size'):
            assert limit not in arguments  # The recipe's and the data's own.
    # Its learned run has the split already, and is not trained twice.
    assert paper.compression == ('learned', 'unsplit')


def test_smoke_is_small():
    arguments = SCALES['smoke'].training(
        Cell('springs_charges', 'fnri', 'learned', 0))
    assert int(value_of(arguments, '--max-steps')) < 10
    assert int(value_of(arguments, '--max-steps')) < QuickRecipe().max_steps
    assert int(value_of(arguments, '--num-systems')) < 100


@pytest.mark.parametrize('name', ['smoke', 'laptop'])
def test_from_nothing_is_the_recipe_em_without_learning(name):
    scale = SCALES[name]
    em, nothing = (scale.training(Cell('nri_charged', 'fnri', regime, 0))
                   for regime in TABLES['laws'])
    for arguments in (em, nothing):
        assert value_of(arguments, '--recipe') == 'em'
        assert value_of(arguments, '--regime') == 'learned'
    assert value_of(nothing, '--max-steps') == '1'
    assert 'num_distilled=0' in nothing and 'num_distilled=0' not in em
    assert scale.refined[0] == '--refine'


def test_laws_have_seeds_of_their_own():
    scale = replace(SCALES['laptop'], seeds=(0, ), law_seeds=(1, 2))
    assert scale.seeds_of('laws') == (1, 2)
    assert scale.seeds_of('1') == scale.seeds_of('2') == (0, )
    assert len(SCALES['laptop'].seeds_of('laws')) == 5


def test_run_that_a_scale_has_not_is_told():
    with pytest.raises(ValueError, match="no runs 'split' at the scale paper"):
        SCALES['paper'].training(Cell('springs_charges', 'fnri', 'split', 0))
    with pytest.raises(ValueError, match="no runs 'em' .* but only learned, "):
        SCALES['paper'].training(Cell('springs_charges', 'fnri', 'em', 0))
