import pytest

from pyg_fnri.experiments import MODELS, NAMES, SCALES, Cell, grid
from pyg_fnri.experiments.cell import TABLES
from pyg_fnri.recipes import QuickRecipe


def value_of(arguments, option):
    return arguments[arguments.index(option) + 1]


@pytest.mark.parametrize('name', SCALES)
def test_every_cell_of_tables_and_figures_has_arguments(name):
    scale = SCALES[name]
    assert scale.name == name
    regimes = {r for table in TABLES.values() for r in table}
    for cell in grid(NAMES, MODELS, regimes | set(scale.compression),
                     scale.seeds):
        arguments = scale.training(cell)
        assert value_of(arguments, '--name') == cell.dataset
        assert value_of(arguments, '--model') == cell.model
        assert value_of(arguments, '--seed') == str(cell.seed)
        known = value_of(arguments, '--regime')
        assert known == cell.regime or known == 'learned' and cell.regime in (
            'split', 'unsplit')
        assert ('--unsplit' in arguments) == (cell.regime == 'unsplit')


@pytest.mark.parametrize('name', SCALES)
def test_both_models_of_the_compression_differ_in_the_split_alone(name):
    scale = SCALES[name]
    with_split, without = (scale.training(
        Cell('springs_charges', 'fnri', regime, 0))
                           for regime in scale.compression)
    assert without == [*with_split, '--unsplit']
    assert value_of(without, '--recipe') == 'paper'


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


def test_run_that_a_scale_has_not_is_told():
    with pytest.raises(ValueError, match="no runs 'split' at the scale paper"):
        SCALES['paper'].training(Cell('springs_charges', 'fnri', 'split', 0))
