import networkx as nx
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pyg_fnri.application import check_results, present_results, write_results


@pytest.fixture
def results():
    """A table of one edge, its network and two pictures."""
    network = nx.MultiDiGraph()
    network.add_edge(0, 1, key=0, id='0-1-0', type=1)
    table = pd.DataFrame({'sender': ['a'], 'receiver': ['b'], 'type': [1]})
    return table, network, {'graph.png': Figure(), 'trajectories.png': Figure()}


def test_results_are_there_as_given(results, tmp_path):
    table, network, pictures = results
    write_results(str(tmp_path), *results)
    assert pd.read_csv(tmp_path / 'edges.csv').equals(table)
    read = nx.read_graphml(tmp_path / 'graphs.graphml', force_multigraph=True)
    assert nx.get_edge_attributes(read, 'type') == {('0', '1', '0-1-0'): 1}
    assert present_results(str(tmp_path)) == [
        'edges.csv', 'graphs.graphml', 'graph.png', 'trajectories.png'
    ]
    assert len(list(tmp_path.iterdir())) == 4


def test_no_result_of_others_is_left(results, tmp_path):
    table, network, pictures = results
    write_results(str(tmp_path), *results)
    (tmp_path / 'mine.txt').write_text('notes')
    write_results(str(tmp_path), table, network, {'heatmap.png': Figure()})
    assert present_results(
        str(tmp_path)) == ['edges.csv', 'graphs.graphml', 'heatmap.png']
    assert (tmp_path / 'mine.txt').exists()


def test_nothing_is_replaced_by_half(results, tmp_path):
    table, network, pictures = results
    write_results(str(tmp_path), *results)
    before = (tmp_path / 'edges.csv').read_bytes()
    with pytest.raises(AttributeError):
        write_results(str(tmp_path), table[:0], network, {'graph.png': None})
    assert (tmp_path / 'edges.csv').read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 4


def test_results_are_replaced_on_demand_only(results, tmp_path):
    check_results(str(tmp_path / 'new'))
    assert (tmp_path / 'new').is_dir()
    write_results(str(tmp_path), *results)
    with pytest.raises(ValueError, match='holds edges.csv.*--overwrite'):
        check_results(str(tmp_path))
    check_results(str(tmp_path), overwrite=True)
    with pytest.raises(OSError, match='Cannot write to'):
        check_results(str(tmp_path / 'edges.csv' / 'x'))
