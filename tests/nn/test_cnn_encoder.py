import dense
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import CNNEncoder


@pytest.fixture
def encoder(shake):
    return shake(CNNEncoder(4, 3, hidden_channels=8))


@pytest.mark.parametrize('num_particles, num_steps', [
    (2, 14),
    (3, 15),
    (5, 21),
])
def test_equals_the_equations(encoder, num_particles, num_steps):
    encoder = encoder.double()
    edge_index = fully_connected(num_particles)
    x = torch.randn(num_particles, num_steps, 4, dtype=torch.double)
    expected = dense.of_edges(dense.cnn_encoder(encoder, x), edge_index)
    torch.testing.assert_close(encoder(x, edge_index), expected)


def test_renumbering_the_particles_renumbers_the_logits(encoder):
    x, edge_index = torch.randn(5, 16, 4), fully_connected(5)
    logits = dense.to_dense(encoder(x, edge_index), edge_index, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    renumbered = dense.to_dense(encoder(x[order], edge_index), edge_index, 5)
    torch.testing.assert_close(renumbered, logits[order][:, order])
    # Receiver and sender are told apart.
    assert not torch.allclose(logits, logits.transpose(0, 1))


def test_batch_of_mixed_sizes_equals_systems_one_by_one(encoder, make_system):
    systems = [make_system(n, num_steps=16) for n in (2, 5, 3)]
    batch = Batch.from_data_list(systems)
    logits = encoder(batch.x, batch.edge_index)
    expected = [encoder(data.x, data.edge_index) for data in systems]
    torch.testing.assert_close(logits, torch.cat(expected))


@pytest.mark.parametrize('num_edges', [20, 11])
def test_order_of_edges_is_that_of_the_logits(encoder, num_edges):
    x, edge_index = torch.randn(5, 16, 4), fully_connected(5)[:, :num_edges]
    order = torch.randperm(num_edges)
    torch.testing.assert_close(encoder(x, edge_index[:, order]),
                               encoder(x, edge_index)[order])


def test_direction_of_messages_can_be_turned_round(encoder):
    turned = CNNEncoder(4, 3, hidden_channels=8, flow='target_to_source')
    turned.load_state_dict(encoder.state_dict())
    x, edge_index = torch.randn(5, 16, 4), fully_connected(5)[:, 3:]
    torch.testing.assert_close(turned.eval()(x, edge_index.flip(0)),
                               encoder(x, edge_index))


def test_attention_is_a_weighted_mean_over_time(encoder):
    cnn = encoder.cnn
    h = cnn.features(torch.randn(20, 8, 30))
    assert h.shape == (20, 8, (30 - 4) // 2 - 4)
    weight = cnn.attention(h)
    assert weight.shape == (20, 1, 9) and (weight > 0).all()
    torch.testing.assert_close(weight.sum(-1), torch.ones(20, 1))
    assert weight.std(-1).min() > 0
    # The order of the times is nothing to it.
    order = torch.randperm(9)
    torch.testing.assert_close(cnn.attention(h[..., order]), weight[..., order])
    # A score that all times share changes nothing.
    equal = cnn.attention(torch.zeros(1, 8, 9))
    torch.testing.assert_close(equal, torch.full((1, 1, 9), 1 / 9))


def test_standing_still_for_longer_says_nothing_more(encoder):
    x, edge_index = torch.randn(5, 1, 4), fully_connected(5)
    short = encoder(x.expand(-1, 14, -1), edge_index)
    torch.testing.assert_close(encoder(x.expand(-1, 31, -1), edge_index), short)


def test_every_frame_counts(encoder):
    edge_index = fully_connected(3)
    x = torch.randn(3, 15, 4, requires_grad=True)
    encoder(x, edge_index).sum().backward()
    counts = x.grad.abs().amax((0, 2)) > 0
    # But for the last of an odd number, which pooling leaves out.
    assert counts.tolist() == [True] * 14 + [False]


@pytest.mark.parametrize('num_particles', [1, 4])
def test_no_edges_no_logits(encoder, num_particles):
    edge_index = torch.empty(2, 0, dtype=torch.long)
    x = torch.randn(num_particles, 14, 4)
    assert encoder(x, edge_index).shape == (0, 3)
    encoder.train()
    with pytest.raises(ValueError, match='at least two edges .* got 0'):
        encoder(x, edge_index)
    assert encoder.cnn.norm1.running_mean.isfinite().all()


def test_shortest_trajectory(encoder):
    assert 14 == 14
    edge_index = fully_connected(5)
    out = encoder(torch.randn(5, 14, 4), edge_index)
    assert out.shape == (20, 3) and out.isfinite().all()
    with pytest.raises(ValueError, match=r'at least 14 .* got \[5, 13, 4\]'):
        encoder(torch.randn(5, 13, 4), edge_index)


@pytest.mark.parametrize('size', [(5, 14, 3), (5, 56), (1, 5, 14, 4)])
def test_wrong_shapes(encoder, size):
    with pytest.raises(ValueError, match=r'\[num_nodes, num_steps, 4\]'):
        encoder(torch.randn(size), fully_connected(5))


def test_dropout_reaches_convolutions_and_networks():
    encoder = CNNEncoder(4, 3, hidden_channels=8, dropout=0.5)
    for part in (encoder.cnn, encoder.edge_mlp1, encoder.node_mlp2,
                 encoder.edge_mlp2):
        assert part.dropout == 0.5
    x = torch.randn(6, 8, 16)
    assert not torch.equal(encoder.cnn(x), encoder.cnn(x))
    encoder.eval()
    assert torch.equal(encoder.cnn(x), encoder.cnn(x))


def test_gradients_reach_every_weight(encoder):
    encoder.train()
    logits = encoder(torch.randn(5, 16, 4), fully_connected(5))
    logits.square().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_learns_who_copies_whom(encoder):
    # Particle 1 of each pair repeats particle 0, two frames later.
    encoder.reset_parameters()
    encoder.train()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    edge_index = torch.cat([fully_connected(2) + 2 * n for n in range(64)], 1)
    label = (edge_index[1] % 2).float()

    def draw():
        path = torch.randn(64, 18, 4).cumsum(1)
        return torch.stack([path[:, 2:], path[:, :-2]], 1).flatten(0, 1)

    for _ in range(60):
        optimizer.zero_grad()
        logits = encoder(draw(), edge_index)[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, label)
        loss.backward()
        optimizer.step()
    correct = (encoder.eval()(draw(), edge_index)[:, 0] > 0) == (label > 0)
    assert correct.float().mean() > 0.85


@pytest.mark.slow
def test_compiles_to_one_graph(encoder, assert_one_graph):
    assert_one_graph(encoder, torch.randn(5, 16, 4), fully_connected(5))


def test_reset_parameters_draws_every_weight_again(encoder):
    torch.manual_seed(1)
    encoder.reset_parameters()
    first = {key: value.clone() for key, value in encoder.state_dict().items()}
    encoder.train()(torch.randn(5, 16, 4), fully_connected(5))
    encoder.reset_parameters()
    for key, value in encoder.state_dict().items():
        if key.endswith('weight') and 'norm' not in key:
            assert not (value == first[key]).any(), key
        else:  # Biases and statistics start the same every time.
            assert torch.equal(value, first[key]), key
    torch.manual_seed(1)
    encoder.reset_parameters()
    for key, value in encoder.state_dict().items():
        assert torch.equal(value, first[key]), key


def test_repr(encoder):
    assert str(encoder) == 'CNNEncoder(4, 3, hidden_channels=8, dropout=0.0)'
    assert str(encoder.cnn) == 'TrajectoryCNN(8, 8, dropout=0.0)'
