import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.convert import from_adjacency, to_adjacency
from pyg_fnri.data import fully_connected

# Directed: particle 1 acts on 0 but not 0 on 1, and only 2 on 1 in layer 1.
EDGES = torch.tensor([[1, 2, 0], [0, 1, 2]])
TYPES = torch.tensor([[2, 0], [0, 3], [0, 0]])


def test_row_is_receiver_and_column_is_sender():
    adjacency = to_adjacency(EDGES, TYPES)
    assert adjacency.shape == (2, 3, 3) and adjacency.dtype == torch.int64
    assert adjacency[0, 0, 1] == 2 and adjacency[1, 1, 2] == 3
    assert adjacency.sum() == 5


def test_types_come_back_on_the_same_edges():
    adjacency = to_adjacency(EDGES, TYPES)
    edge_index, edge_type = from_adjacency(adjacency, EDGES)
    assert torch.equal(edge_index, EDGES)
    assert torch.equal(edge_type, TYPES)


def test_matrices_come_back_from_all_pairs():
    adjacency = torch.randint(3, (2, 5, 5))
    adjacency.diagonal(dim1=1, dim2=2).zero_()
    assert not torch.equal(adjacency, adjacency.transpose(1, 2))
    edge_index, edge_type = from_adjacency(adjacency)
    assert torch.equal(edge_index, fully_connected(5))
    assert torch.equal(to_adjacency(edge_index, edge_type), adjacency)
    # Those that interact are enough.
    some = edge_type.any(-1)
    assert 0 < some.sum() < 20
    assert torch.equal(to_adjacency(edge_index[:, some], edge_type[some], 5),
                       adjacency)


def test_from_numpy():
    adjacency = np.zeros((1, 3, 3), dtype=bool)
    adjacency[0, 2, 0] = True
    edge_index, edge_type = from_adjacency(adjacency)
    assert edge_index[:, edge_type.any(-1)].tolist() == [[0], [2]]


def test_weights_keep_their_dtype():
    weight = torch.rand(3, 2)
    adjacency = to_adjacency(EDGES, weight)
    assert adjacency.dtype == torch.float32
    assert adjacency[1, 1, 2] == weight[1, 1]


def test_a_batch_has_one_matrix_of_many_parts(make_system):
    systems = [
        make_system(3, edge_label=torch.ones(6, 1, dtype=torch.long)),
        make_system(4, edge_label=torch.ones(12, 1, dtype=torch.long))
    ]
    batch = Batch.from_data_list(systems)
    adjacency = to_adjacency(batch.edge_index, batch.edge_label)
    assert adjacency.shape == (1, 7, 7)
    assert adjacency[0, :3, 3:].sum() == adjacency[0, 3:, :3].sum() == 0
    assert torch.equal(
        adjacency[0, 3:, 3:],
        to_adjacency(systems[1].edge_index, systems[1].edge_label)[0])


def test_particles_without_edges_need_their_number():
    assert to_adjacency(EDGES, TYPES, 5).shape == (2, 5, 5)
    none = torch.zeros(2, 0, dtype=torch.long)
    types = torch.zeros(0, 2, dtype=torch.long)
    assert to_adjacency(none, types, 3).tolist() == [[[0] * 3] * 3] * 2


@pytest.mark.parametrize('edge_index, edge_type, num_nodes, message', [
    (EDGES[0], TYPES, None, r'\[2, num_edges\]'),
    (EDGES, TYPES[:2], None, 'with 3 edges'),
    (EDGES, TYPES[:, 0], None, 'num_layers'),
    (EDGES, TYPES, 2, 'names particle 2'),
])
def test_what_does_not_fit_is_refused(edge_index, edge_type, num_nodes,
                                      message):
    with pytest.raises(ValueError, match=message):
        to_adjacency(edge_index, edge_type, num_nodes)


def test_interactions_are_not_lost():
    adjacency = to_adjacency(EDGES, TYPES)
    with pytest.raises(ValueError, match='1 interactions between particles'):
        from_adjacency(adjacency, EDGES[:, 1:])


@pytest.mark.parametrize('adjacency, error', [
    (torch.zeros(2, 3, 4, dtype=torch.long), ValueError),
    (torch.zeros(3, 3, dtype=torch.long), ValueError),
    (torch.tensor(1), ValueError),
    (torch.ones(1, 3, 3, dtype=torch.long), ValueError),
    (torch.zeros(1, 3, 3), TypeError),
    ([[0]], TypeError),
])
def test_what_is_no_adjacency_is_refused(adjacency, error):
    with pytest.raises(error):
        from_adjacency(adjacency)
