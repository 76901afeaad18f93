import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.convert.labels import read_labels


def labels(data, edge_type, names=None, probability=None, systems=None,
           particles=None):
    return read_labels(data, edge_type, names, probability, systems, particles)


@pytest.fixture
def batch(make_system):
    return Batch.from_data_list([make_system(3), make_system(2)])


def types(num_edges=8, num_layers=2):
    return torch.randint(2, (num_edges, num_layers))


def test_numbers_are_names_by_default(batch):
    found = labels(batch, types())
    assert list(found.system) == [0, 0, 0, 1, 1]
    assert list(found.particle) == [0, 1, 2, 0, 1]
    assert list(found.layers) == [0, 1]
    assert np.isnan(found.probability).all()
    assert found.sender == batch.edge_index[0].tolist()


def test_names_are_kept(batch):
    found = labels(batch, types(), ['spring', 'charge'],
                   systems=['A', np.int64(7)], particles=[['a', 'b', 'c'],
                                                          np.array([8, 9])])
    assert found.system == ['A', 'A', 'A', 7, 7]
    assert found.particle == ['a', 'b', 'c', 8, 9]
    assert type(found.system[-1]) is int and type(found.particle[-1]) is int
    assert found.layers == ['spring', 'charge']


def test_no_names_at_all_are_numbers(batch):
    assert list(labels(batch, types(), names=[]).layers) == [0, 1]


def test_the_probability_of_the_type_is_picked(batch):
    edge_type = types()
    posterior = [torch.rand(8, 2).softmax(-1), torch.rand(8, 3).softmax(-1)]
    found = labels(batch, edge_type, probability=posterior).probability
    for edge in range(8):
        for layer in range(2):
            expected = posterior[layer][edge, edge_type[edge, layer]]
            assert found[edge, layer] == expected
    given = torch.rand(8, 2)
    found = labels(batch, edge_type, probability=given).probability
    assert np.array_equal(found, given)


@pytest.mark.parametrize('kwargs, message', [
    ({
        'edge_type': torch.zeros(7, 2, dtype=torch.long)
    }, '8 edges'),
    ({
        'edge_type': torch.full((8, 2), -1)
    }, 'smallest one is -1'),
    ({
        'names': ['spring']
    }, 'names must have one name'),
    ({
        'names': ['spring', 'spring']
    }, 'names must differ'),
    ({
        'systems': ['A']
    }, 'systems must have one name'),
    ({
        'particles': [[1, 2, 3]]
    }, 'particles must have the names'),
    ({
        'particles': [[1, 2], [3, 4, 5]]
    }, r'\[3, 2\] particles'),
    ({
        'probability': torch.rand(8, 3)
    }, r'probability must be \[8, 2\]'),
    ({
        'probability': [torch.rand(8, 2)]
    }, 'has 1'),
    ({
        'probability': [torch.rand(8, 2), torch.rand(8, 1)]
    }, 'layer 1'),
])
def test_what_does_not_fit_is_refused(batch, kwargs, message):
    edge_type = torch.ones(8, 2, dtype=torch.long)
    with pytest.raises(ValueError, match=message):
        labels(batch, **{'edge_type': edge_type, **kwargs})


def test_probabilities_are_no_types(batch):
    with pytest.raises(TypeError, match='torch.float32'):
        labels(batch, torch.rand(8, 2))
