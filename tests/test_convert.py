import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.convert import to_adjacency, to_changes, to_networkx, to_pandas
from pyg_fnri.data import adjacency_to_edge_label, fully_connected

# Directed: particle 1 acts on 0 but not 0 on 1, and only 2 on 1 in layer 1.
EDGES = torch.tensor([[1, 2, 0], [0, 1, 2]])
TYPES = torch.tensor([[2, 0], [0, 3], [0, 0]])
NAMES = ['spring', 'charge']
COLUMNS = ['system', 'sender', 'receiver', 'layer', 'type', 'probability']


@pytest.fixture
def batch(make_system):
    return Batch.from_data_list([make_system(3), make_system(2)])


def test_row_is_receiver_and_column_is_sender():
    adjacency = to_adjacency(EDGES, TYPES)
    assert adjacency.shape == (2, 3, 3) and adjacency.dtype == torch.int64
    assert adjacency[0, 0, 1] == 2 and adjacency[1, 1, 2] == 3
    assert adjacency.sum() == 5
    assert torch.equal(adjacency_to_edge_label(adjacency, EDGES), TYPES)
    weight = torch.rand(3, 2)
    assert to_adjacency(EDGES, weight)[1, 1, 2] == weight[1, 1]
    # Particles without edges need their number.
    assert to_adjacency(EDGES, TYPES, 5).shape == (2, 5, 5)
    assert not to_adjacency(EDGES[:, :0], TYPES[:0], 3).any()


@pytest.mark.parametrize('convert', [torch.clone, torch.Tensor.numpy])
def test_matrices_come_back_from_all_pairs(convert):
    adjacency = torch.randint(3, (2, 5, 5))
    adjacency.diagonal(dim1=1, dim2=2).zero_()
    edge_index = fully_connected(5)
    edge_type = adjacency_to_edge_label(convert(adjacency), edge_index)
    assert torch.equal(to_adjacency(edge_index, edge_type), adjacency)


def test_one_row_per_edge_and_layer(batch):
    edge_type = torch.arange(16).view(8, 2)
    probability = torch.rand(8, 2)
    table = to_pandas(batch, edge_type, NAMES, probability,
                      ['A', np.int64(7)],
                      [['a', 'b', 'c'], np.array([8, 9])])
    assert list(table.columns) == COLUMNS and len(table) == 16
    # Edge 5 of system A leads from b to c.
    row = table.iloc[11]
    assert row.tolist()[:-1] == ['A', 'b', 'c', 'charge', 11]
    assert row.probability == probability[5, 1].item()
    assert table.iloc[-2].tolist()[:-1] == [7, 8, 9, 'spring', 14]
    assert table.type.tolist() == list(range(16))
    assert table.type.dtype == 'int64'


@pytest.mark.parametrize('kwargs', [
    dict(edge_type=torch.zeros(7, 2, dtype=torch.long)),
    dict(edge_type=torch.full((8, 2), -1)),
    dict(names=['spring', 'spring']),
    dict(systems=['A']),
    dict(particles=[[1, 2], [3, 4, 5]]),
    dict(probability=torch.rand(2, 8))
])
def test_what_would_give_wrong_rows_is_refused(batch, kwargs):
    kwargs = {'edge_type': torch.ones(8, 2, dtype=torch.long), **kwargs}
    with pytest.raises(ValueError):
        to_networkx(batch, **kwargs)


def test_edges_are_interactions_from_sender_to_receiver(batch):
    edge_type = torch.randint(3, (8, 2))
    graph = to_networkx(batch, edge_type, NAMES, systems=['A', 'B'])
    assert graph.nodes[4] == {'system': 'B', 'particle': 1}
    found = torch.zeros(2, 5, 5, dtype=torch.long)
    for j, i, name, kind in graph.edges(keys=True, data='type'):
        found[NAMES.index(name), i, j] = kind
    assert torch.equal(found, to_adjacency(batch.edge_index, edge_type))


# Directions of the pair (0, 1): types, probabilities, and what is left.
SETTLED = [((1, 1), None, (1, None, True)), ((2, 1), None, None),
           ((1, 0), None, None), ((0, 0), None, None),
           ((1, 1), (0.5, 1.0), (1, 0.75, True)),
           ((2, 1), (0.75, 0.5), (2, 0.75, False)),
           ((2, 1), (0.5, 0.75), (1, 0.75, False)), ((1, 0), (0.5, 0.75), None),
           ((1, 0), (0.5, 0.5), None)]


@pytest.mark.parametrize('types, probability, expected', SETTLED)
@pytest.mark.parametrize('step', [1, -1])
def test_directions_that_disagree_are_settled(make_system, types, probability,
                                              expected, step):
    graph = to_networkx(
        make_system(2),
        torch.tensor(types[::step]).view(2, 1), NAMES[:1], probability
        and torch.tensor(probability[::step]).view(2, 1), undirected=True)
    assert type(graph) is nx.MultiGraph and len(graph) == 2
    found = [(attributes['type'], attributes.get('probability'),
              attributes['agree'])
             for _, _, attributes in graph.edges(data=True)]
    assert found == ([] if expected is None else [expected])


def test_graphml_holds_any_name(batch, tmp_path):
    names = ['a\0\x1bb', 'δ\ud800', '<&"\'>', '名\ufffe', -3]
    graph = to_networkx(batch, torch.ones(8, 2, dtype=torch.long),
                        ['$\x01', '\n'], particles=[names[:3], names[3:]])
    nx.write_graphml(graph, tmp_path / 'a', edge_id_from_attribute='id')
    back = nx.read_graphml(tmp_path / 'a', force_multigraph=True)
    assert [particle for _, particle in back.nodes(data='particle')
            ] == ['a\ufffd\ufffdb', 'δ\ufffd', '<&"\'>', '名\ufffd', -3]
    layers = {layer for _, _, layer in back.edges(data='layer')}
    assert layers == {'$\ufffd', '\n'}


def test_graphml_brings_everything_back(batch, tmp_path):
    graph = to_networkx(batch, torch.randint(3, (8, 2)), NAMES,
                        torch.rand(8, 2), ['A', 'B'], undirected=True)
    path = tmp_path / 'graph.graphml'
    nx.write_graphml(graph, path, edge_id_from_attribute='id')
    back = nx.read_graphml(path, node_type=int, force_multigraph=True)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    ours = {data['id']: data for _, _, data in graph.edges(data=True)}
    assert len(ours) == graph.number_of_edges() == back.number_of_edges() > 3
    for j, i, key, data in back.edges(keys=True, data=True):
        assert graph.has_edge(j, i, data['layer'])
        assert data.items() <= ours[key].items()
        assert {'layer', 'type', 'probability'} <= data.keys()


def windows(*probability):
    """A pair's probability to interact in windows of ten frames."""
    known = [(10 * k, p) for k, p in enumerate(probability) if p is not None]
    return pd.DataFrame({
        'system': [f'fish/{first}' for first, _ in known],
        'sender': 'a',
        'receiver': 'b',
        'layer': 0,
        'type': [int(p > 0.5) for _, p in known],
        'probability': [max(p, 1 - p) for _, p in known]
    })


def test_graphs_that_change():
    table = to_changes(windows(0.9, 0.2, None, 0.7))
    assert table.columns.tolist() == [
        'recording', 'sender', 'receiver', 'layer', 0, 10, 30
    ]
    assert table.iloc[0, 4:].tolist() == pytest.approx([0.9, 0.2, 0.7])
    # One pair alone does not tell that there was a window.
    both = pd.concat([
        windows(0.9, 0.2, None, 0.7),
        windows(0.5, 0.5, 0.5, 0.5).assign(sender='c')
    ])
    changes = to_changes(both, stay=0.8)
    known = np.array([0.9, 0.2, 0.5, 0.7])
    # All sixteen courses of a pair, one by one.
    joint = np.zeros((4, 2))
    for course in np.ndindex(2, 2, 2, 2):
        weight = np.where(course, known, 1 - known).prod()
        for before, after in zip(course[:-1], course[1:]):
            weight *= 0.8 if before == after else 0.2
        joint[range(4), course] += weight
    expected = joint[:, 1] / joint.sum(1)
    found = changes.set_index('sender').loc['a', [0, 10, 20, 30]].tolist()
    assert found[:2] == pytest.approx(expected[:2])
    assert np.isnan(found[2]) and found[3] == pytest.approx(expected[3])
    with pytest.raises(ValueError, match='window='):
        to_changes(windows(0.5).assign(system='fish'))
    with pytest.raises(ValueError, match='stay'):
        to_changes(windows(0.5), stay=1)


def test_each_recording_has_frames_of_its_own():
    table = windows(0.9, 0.5)
    other = windows(0.2, 0.7)
    other['system'] = [
        'B/5' if name.endswith('/0') else 'B/15' for name in other['system']
    ]
    alone, both = (to_changes(part, stay=0.9)
                   for part in (table, pd.concat([table, other])))
    rows = both[both['recording'].isin(alone['recording'])]
    pd.testing.assert_frame_equal(rows[alone.columns].reset_index(drop=True),
                                  alone, check_names=False)
