import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.convert import to_adjacency, to_networkx

NAMES = ['spring', 'charge']


def test_edges_are_interactions_from_sender_to_receiver(make_system):
    data = make_system(3, edge_index=torch.tensor([[1, 2, 0], [0, 1, 2]]))
    edge_type = torch.tensor([[2, 0], [0, 0], [1, 1]])
    graph = to_networkx(data, edge_type, NAMES)
    assert type(graph) is nx.MultiDiGraph
    assert list(graph.nodes(data=True)) == [(node, {
        'system': 0,
        'particle': node
    }) for node in range(3)]
    assert sorted(graph.edges(keys=True)) == [(0, 2, 'charge'),
                                              (0, 2, 'spring'),
                                              (1, 0, 'spring')]
    assert graph.edges[1, 0, 'spring'] == {
        'layer': 'spring',
        'type': 2,
        'id': '1-0-spring'
    }


def test_each_layer_is_that_of_the_adjacency(make_system):
    data = make_system(5)
    edge_type = torch.randint(3, (20, 2))
    graph = to_networkx(data, edge_type)
    adjacency = to_adjacency(data.edge_index, edge_type)
    for layer in (0, 1):
        of_layer = nx.MultiDiGraph()
        of_layer.add_nodes_from(range(5))
        of_layer.add_edges_from(
            (j, i, key, attributes)
            for j, i, key, attributes in graph.edges(keys=True, data=True)
            if key == layer)
        # Theirs has row = sender.
        theirs = nx.to_numpy_array(of_layer, weight='type')
        assert np.array_equal(theirs.T, adjacency[layer])


def test_a_batch_is_one_graph_of_many_parts(make_system):
    batch = Batch.from_data_list([make_system(3), make_system(2)])
    graph = to_networkx(batch, torch.ones(8, 1, dtype=torch.long),
                        systems=['A', 'B'], particles=[['a', 'b', 'c'],
                                                       ['d', 'e']])
    parts = sorted(map(sorted, nx.weakly_connected_components(graph)))
    assert parts == [[0, 1, 2], [3, 4]]
    assert graph.nodes[4] == {'system': 'B', 'particle': 'e'}


# Directions of the pair (0, 1): types, probabilities, and what is left.
SETTLED = [
    ((1, 1), None, (1, None, True)),
    ((2, 1), None, None),
    ((1, 0), None, None),
    ((0, 0), None, None),
    ((1, 1), (0.5, 1.0), (1, 0.75, True)),
    ((2, 1), (0.75, 0.5), (2, 0.75, False)),
    ((2, 1), (0.5, 0.75), (1, 0.75, False)),
    ((1, 0), (0.75, 0.5), (1, 0.75, False)),
    ((1, 0), (0.5, 0.75), None),
    ((1, 0), (0.5, 0.5), None),
]


@pytest.mark.parametrize('types, probability, expected', SETTLED)
@pytest.mark.parametrize('flipped', [False, True])
def test_directions_that_disagree_are_settled(make_system, types, probability,
                                              expected, flipped):
    data = make_system(2)
    if flipped:
        types = types[::-1]
        probability = probability and probability[::-1]
    graph = to_networkx(
        data,
        torch.tensor(types).unsqueeze(1), NAMES[:1],
        None if probability is None else torch.tensor(probability).unsqueeze(1),
        undirected=True)
    assert type(graph) is nx.MultiGraph and len(graph) == 2
    if expected is None:
        assert graph.number_of_edges() == 0
        return
    (_, _, attributes), = graph.edges(data=True)
    kind, value, agree = expected
    assert attributes['type'] == kind and attributes['agree'] is agree
    assert attributes.get('probability') == value


def test_an_edge_without_its_reverse_stands_for_itself(make_system):
    data = make_system(3, edge_index=torch.tensor([[1, 0], [0, 2]]))
    graph = to_networkx(data, torch.tensor([[1], [2]]), undirected=True)
    assert sorted((*sorted((j, i)), data['type'], data['agree'])
                  for j, i, data in graph.edges(data=True)) == [(0, 1, 1, True),
                                                                (0, 2, 2, True)]


@pytest.mark.parametrize('undirected', [False, True])
def test_graphml_brings_everything_back(make_system, tmp_path, undirected):
    batch = Batch.from_data_list([make_system(4), make_system(3)])
    edge_type = torch.randint(3, (18, 2))
    graph = to_networkx(batch, edge_type, NAMES, torch.rand(18, 2), ['A', 'B'],
                        undirected=undirected)
    assert graph.number_of_edges() > 3
    path = tmp_path / 'graph.graphml'
    nx.write_graphml(graph, path, edge_id_from_attribute='id')
    back = nx.read_graphml(path, node_type=int, force_multigraph=True)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    ids = [key for _, _, key in back.edges(keys=True)]
    assert len(set(ids)) == graph.number_of_edges()  # As GraphML wants it.
    ours = {data['id']: data for _, _, data in graph.edges(data=True)}
    for j, i, key, data in back.edges(keys=True, data=True):
        assert graph.has_edge(j, i, data['layer'])
        assert data.items() <= ours[key].items()
        assert {'layer', 'type', 'probability'} <= data.keys()
