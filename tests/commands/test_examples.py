"""The example of a user's own trajectories."""
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets import TrajectoryTable

DATASETS = Path(__file__).parents[2] / 'datasets'
TABLE = DATASETS / 'example.csv'
TRUTH = DATASETS / 'example_interactions.csv'
PAIRS = [('a', 'b'), ('b', 'a'), ('a', 'c'), ('c', 'a'), ('b', 'c'), ('c', 'b')]
SPRINGS = {('a', 'b'), ('b', 'a')}
CHARGES = {('a', 'c'), ('c', 'a'), ('a', 'b'), ('b', 'a')}


@pytest.fixture
def compare(load_script, tmp_path, capsys):
    """Compares what was inferred about two systems, layer 0 being charges,
    with the truth, which is the same in both, after changes of either."""
    rows = [(system, *pair, layer, int(pair in found), 0.9) for system in (7, 8)
            for pair in PAIRS for layer, found in enumerate([CHARGES, SPRINGS])]
    columns = ['system', 'sender', 'receiver', 'layer', 'type', 'probability']
    table = pd.DataFrame(rows, columns=columns)
    truth = table.query('type > 0').drop(columns='probability')
    truth = truth.replace({'layer': {0: 'charge', 1: 'a spring'}})

    def compare(inferred=lambda t: t, true=lambda t: t):
        paths = [str(tmp_path / name) for name in ('edges.csv', 'truth.csv')]
        inferred(table.copy()).to_csv(paths[0], index=False)
        true(truth.copy()).to_csv(paths[1], index=False)
        load_script('examples/compare_graphs').main(paths)
        return capsys.readouterr().out.splitlines()

    return compare


def of_one_system(table):
    return table[table.system == 7].drop(columns='system')


def test_graphs_are_compared_up_to_a_relabelling(compare):
    assert [line.split()[-1] for line in compare()[:3]] == 3 * ['100.0%']

    def set_wrong(table):
        # Springs of the first system, of which there are 2 in 6 edges.
        table.loc[(table.system == 7) & (table.layer == 1), 'type'] = 0
        return table

    first, spring, charge, _ = compare(set_wrong)
    assert first.startswith('12 edges') and first.endswith(f'{10 / 12:.1%}')
    assert spring.split() == ['a', 'spring:', f'{10 / 12:.1%}']
    assert charge.split() == ['charge:', '100.0%']
    one_layer = compare(
        lambda t: t[t.layer == 1],
        lambda t: t[t.layer == 'a spring'].drop(columns='layer'))
    assert one_layer[0].endswith('100.0%')


@pytest.mark.parametrize('inferred', [of_one_system, lambda t: t])
@pytest.mark.parametrize('true', [of_one_system, lambda t: t])
def test_one_graph_or_truth_is_that_of_all_systems(compare, inferred, true):
    assert compare(inferred, true)[0].endswith('100.0%')


@pytest.mark.slow
def test_the_example_is_made_again(load_script, tmp_path):
    load_script('examples/make_example').main(['--out', str(tmp_path)])
    assert (tmp_path / TRUTH.name).read_text() == TRUTH.read_text()
    # Processors may differ in the last bit, and so in what it is rounded to.
    made, there = (pd.read_csv(path) for path in (tmp_path / TABLE.name, TABLE))
    assert np.isclose(made[['x', 'y']], there[['x', 'y']], atol=2e-3).all()
    names = ['system', 'time', 'particle']
    pd.testing.assert_frame_equal(made[names], there[names])


def test_the_example_and_its_truth_fit(tmp_path):
    dataset = TrajectoryTable(str(tmp_path), str(TABLE),
                              interactions=str(TRUTH))
    assert len(dataset) == 100 and dataset[0].x.shape == (5, 50, 4)
    assert dataset.names == ['finite_spring', 'spring']
    # No type is so common that guessing it would look like an inference.
    share = dataset.edge_label.double().mean(0)
    assert share.sub(0.5).abs().max() < 0.1


@pytest.mark.slow
def test_graphs_are_found_from_the_table_alone(load_script, tmp_path, capsys):
    """The commands of `make example`."""
    graphs = str(tmp_path / 'graphs')
    load_script('infer').main([str(TABLE), '--out', graphs])
    capsys.readouterr()
    load_script('examples/compare_graphs').main(
        [f'{graphs}/edges.csv', str(TRUTH)])
    first = capsys.readouterr().out.splitlines()[0]
    assert float(first.rpartition(' ')[2].rstrip('%')) >= 99
