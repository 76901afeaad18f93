from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets import TrajectoryTable

DATASETS = Path(__file__).parents[3] / 'datasets'
TABLE = DATASETS / 'example.csv'
TRUTH = DATASETS / 'example_interactions.csv'


@pytest.fixture(scope='module')
def script(load_script):
    return load_script('examples/make_example')


def test_command_makes_the_files_that_are_there(script, tmp_path, capsys):
    script.main(['--out', str(tmp_path)])
    assert 'example.csv: 25,000 rows' in capsys.readouterr().out
    truth = (tmp_path / TRUTH.name).read_text()
    assert truth == TRUTH.read_text()
    # Processors may differ in the last bit, and so in what it is rounded to.
    made, there = (pd.read_csv(path) for path in (tmp_path / TABLE.name, TABLE))
    assert list(made.columns) == list(there.columns)
    assert np.isclose(made[['x', 'y']], there[['x', 'y']], atol=2e-3).all()
    names = ['system', 'time', 'particle']
    pd.testing.assert_frame_equal(made[names], there[names])


def test_table_is_small_and_does_not_tell_the_truth():
    assert TABLE.stat().st_size < 600_000
    header = TABLE.read_text().splitlines()[0]
    assert header == 'system,time,particle,x,y'


def test_table_and_truth_fit(tmp_path):
    dataset = TrajectoryTable(str(tmp_path), str(TABLE),
                              interactions=str(TRUTH))
    assert len(dataset) == 100
    assert dataset[0].x.shape == (5, 50, 4)
    assert dataset.time_step == pytest.approx(0.2)
    assert dataset.names == ['finite_spring', 'spring']
    assert dataset.num_edge_types == [2, 2]
    # No type is so common that guessing it would look like an inference.
    share = dataset.edge_label.double().mean(0)
    assert share.sub(0.5).abs().max() < 0.1


@pytest.mark.slow
def test_graphs_are_found_from_the_table_alone(load_script, tmp_path, capsys):
    """The commands of `make example`."""
    root = ['--root', str(tmp_path / 'datasets')]
    laws = str(tmp_path / 'laws')
    arguments = DATASETS.parent / 'scripts' / 'configs' / 'example.args'
    load_script('train').main([
        f'@{arguments}', *root, '--data',
        str(TABLE), '--out',
        str(tmp_path / 'run'), '--accelerator', 'cpu'
    ])
    load_script('em').main([
        *root, '--checkpoint',
        str(tmp_path / 'run' / 'best.ckpt'), '--out', laws, '--num-distilled',
        '0'
    ])
    load_script('infer').main([
        *root, '--checkpoint', f'{laws}/best.ckpt', '--data',
        str(TABLE), '--refine', '--out',
        str(tmp_path / 'graphs')
    ])
    edges = tmp_path / 'graphs' / 'edges.csv'
    capsys.readouterr()
    load_script('examples/compare_graphs').main([str(edges), str(TRUTH)])
    first = capsys.readouterr().out.splitlines()[0]
    assert float(first.rpartition(' ')[2].rstrip('%')) >= 90
