import networkx as nx
import pytest

from pyg_fnri.convert.graphml import write_graphml


def make_graphs(kind):
    """Two graphs with names of several types, some of them awkward."""
    first, second = kind(), kind()
    for node, particle in enumerate(['a & b', '<c>', 3]):
        first.add_node(node, system='"s"', particle=particle)
    first.add_edge(0, 1, key='x', layer='x', type=1, id='0-1-x', agree=True,
                   probability=0.1 + 0.2)
    first.add_edge(0, 1, key='y', layer='y', type=2, id='0-1-y', agree=False,
                   probability=1.0)
    first.add_edge(2, 1, key='y', layer='y', type=2, id='2-1-y', agree=True)
    second.add_node(0, system=1.5, particle='Ä')
    second.add_node(1, system=1.5, particle='')
    second.add_edge(1, 0, key='x', layer='x', type=1, id='1-0-x', agree=True)
    return [first, second]


def everything(graph):
    edges = ((ends if graph.is_directed() else sorted(ends), data)
             for *ends, data in graph.edges(data=True))
    return dict(graph.nodes(data=True)), sorted(edges, key=repr)


@pytest.mark.parametrize('kind', [nx.MultiGraph, nx.MultiDiGraph])
def test_files_are_read_as_those_of_networkx(kind, tmp_path):
    graphs = make_graphs(kind)
    write_graphml(graphs, str(tmp_path / 'ours'))
    whole = nx.disjoint_union_all(graphs)
    for *_, data in whole.edges(data=True):
        del data['id']
    nx.write_graphml(whole, tmp_path / 'theirs')
    # A plain Graph would be read where no two edges join the same nodes.
    ours, theirs = (nx.read_graphml(tmp_path / name, force_multigraph=True)
                    for name in ('ours', 'theirs'))
    assert type(ours) is type(theirs) is kind
    assert everything(ours) == everything(theirs)
    assert sorted(key for *_, key in ours.edges(keys=True)) == [0, 1, 2, 3]


def test_graphs_of_one_direction_are_needed(tmp_path):
    path = str(tmp_path / 'graph')
    for graphs in ([], [nx.MultiGraph(), nx.MultiDiGraph()]):
        with pytest.raises(ValueError, match='at least one, all directed'):
            write_graphml(graphs, path)
    assert not (tmp_path / 'graph').exists()
