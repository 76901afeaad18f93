import copy
import pickle

import dense
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import MLPEncoder, ScatterSum


@pytest.fixture
def encoder(shake):
    return shake(MLPEncoder(4, 6, 3, hidden_channels=8))


def test_equals_the_authors(reference):
    encoder = reference.model().encoder
    logits = encoder(reference.x, reference.edge_index)
    torch.testing.assert_close(logits, reference.flat('logits'), atol=1e-5,
                               rtol=0)
    encoder.train()
    logits = encoder(reference.x, reference.edge_index)
    torch.testing.assert_close(logits, reference.flat('logits_train_mode'),
                               atol=1e-5, rtol=0)


@pytest.mark.parametrize('num_particles', [2, 3, 5])
def test_equals_the_papers_equations(encoder, num_particles):
    encoder = encoder.double()
    edge_index = fully_connected(num_particles)
    x = torch.randn(num_particles, 6, 4, dtype=torch.double)
    expected = dense.of_edges(dense.encoder(encoder, x), edge_index)
    torch.testing.assert_close(encoder(x, edge_index), expected)


def test_renumbering_the_particles_renumbers_the_logits(encoder):
    x, edge_index = torch.randn(5, 6, 4), fully_connected(5)
    logits = dense.to_dense(encoder(x, edge_index), edge_index, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    renumbered = dense.to_dense(encoder(x[order], edge_index), edge_index, 5)
    torch.testing.assert_close(renumbered, logits[order][:, order])


def test_batch_of_mixed_sizes_equals_systems_one_by_one(encoder, make_system):
    systems = [make_system(n) for n in (2, 5, 3)]
    batch = Batch.from_data_list(systems)
    logits = encoder(batch.x, batch.edge_index)
    expected = [encoder(data.x, data.edge_index) for data in systems]
    torch.testing.assert_close(logits, torch.cat(expected))


@pytest.mark.parametrize('num_edges', [20, 11])
def test_order_of_edges_is_that_of_the_logits(encoder, num_edges):
    x, edge_index = torch.randn(5, 6, 4), fully_connected(5)[:, :num_edges]
    order = torch.randperm(num_edges)
    torch.testing.assert_close(encoder(x, edge_index[:, order]),
                               encoder(x, edge_index)[order])


def test_separate_candidate_graphs_are_separate_systems(encoder):
    # Particles 0 to 2 and 3 to 4 are joined among themselves only: N is 3
    # and 2, with no batch vector to say so.
    x = torch.randn(5, 6, 4)
    edge_index = torch.cat([fully_connected(3), fully_connected(2) + 3], 1)
    expected = [
        encoder(x[:3], fully_connected(3)),
        encoder(x[3:], fully_connected(2))
    ]
    torch.testing.assert_close(encoder(x, edge_index), torch.cat(expected))


def test_particle_without_senders(encoder):
    edge_index = torch.tensor([[0, 1, 2], [1, 0, 1]])  # Nobody acts on 2.
    x = torch.randn(3, 6, 4)
    logits = encoder(x, edge_index)
    assert logits.shape == (3, 3) and logits.isfinite().all()
    # It acts on 1 all the same.
    x[2] += 1
    assert not torch.allclose(encoder(x, edge_index)[2], logits[2])


@pytest.mark.parametrize('num_particles', [1, 4])
def test_no_edges_no_logits(encoder, num_particles):
    edge_index = torch.empty(2, 0, dtype=torch.long)
    x = torch.randn(num_particles, 6, 4)
    assert encoder(x, edge_index).shape == (0, 3)
    encoder.train()
    with pytest.raises(ValueError, match='at least two'):
        encoder(x, edge_index)


def test_direction_of_messages_can_be_turned_round(encoder):
    turned = MLPEncoder(4, 6, 3, hidden_channels=8, flow='target_to_source')
    turned.load_state_dict(encoder.state_dict())
    x, edge_index = torch.randn(5, 6, 4), fully_connected(5)[:, 3:]
    torch.testing.assert_close(turned.eval()(x, edge_index.flip(0)),
                               encoder(x, edge_index))


@pytest.mark.parametrize('sum', ['sum', ScatterSum()])
def test_any_sum_can_be_given(encoder, sum):
    other = MLPEncoder(4, 6, 3, hidden_channels=8, aggr=sum).eval()
    other.load_state_dict(encoder.state_dict())
    x, edge_index = torch.randn(5, 6, 4), fully_connected(5)
    torch.testing.assert_close(other(x, edge_index), encoder(x, edge_index))


def test_dropout_reaches_every_network():
    encoder = MLPEncoder(4, 6, 3, hidden_channels=8, dropout=0.5)
    for mlp in (encoder.node_mlp1, encoder.edge_mlp1, encoder.node_mlp2,
                encoder.edge_mlp2):
        assert mlp.dropout == 0.5


def test_gradients_reach_every_weight(encoder):
    encoder.train()
    logits = encoder(torch.randn(5, 6, 4), fully_connected(5))
    logits.square().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_compiles_to_one_graph(encoder, assert_one_graph):
    assert_one_graph(encoder, torch.randn(5, 6, 4), fully_connected(5))


def test_copies_are_equal_and_independent(encoder):
    args = torch.randn(5, 6, 4), fully_connected(5)
    expected = encoder(*args)
    copies = [copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))]
    encoder.reset_parameters()
    for other in copies:
        assert torch.equal(other(*args), expected)


def test_reset_parameters_draws_every_weight_again(encoder):
    torch.manual_seed(1)
    encoder.reset_parameters()
    first = {key: value.clone() for key, value in encoder.state_dict().items()}
    encoder.train()(torch.randn(5, 6, 4), fully_connected(5))
    encoder.reset_parameters()
    for key, value in encoder.state_dict().items():
        if key.endswith('weight') and 'norm' not in key:
            assert not (value == first[key]).any(), key
        else:  # Biases and statistics start the same every time.
            assert torch.equal(value, first[key]), key
    assert torch.equal(encoder.lin.bias, torch.full((3, ), 0.1))
    torch.manual_seed(1)
    encoder.reset_parameters()
    for key, value in encoder.state_dict().items():
        assert torch.equal(value, first[key]), key


@pytest.mark.parametrize('size', [(5, 7, 4), (5, 6, 3), (5, 24), (1, 5, 6, 4)])
def test_wrong_shapes(encoder, size):
    with pytest.raises(ValueError, match=r'\[num_nodes, 6, 4\]'):
        encoder(torch.randn(size), fully_connected(5))


def test_edges_of_particles_that_are_not_there(encoder):
    with pytest.raises(IndexError, match='indices'):
        encoder(torch.randn(4, 6, 4), fully_connected(5))


def test_repr(encoder):
    assert str(encoder) == ('MLPEncoder(4, num_steps=6, out_channels=3, '
                            'hidden_channels=8, dropout=0.0)')
