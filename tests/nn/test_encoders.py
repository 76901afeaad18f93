import math

import dense
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import MLP, CNNEncoder, MLPEncoder, ScatterSum

NUM_STEPS = 16
ORACLES = {MLPEncoder: dense.encoder, CNNEncoder: dense.cnn_encoder}


def make(encoder_class, **kwargs):
    if encoder_class is MLPEncoder:
        return MLPEncoder(4, NUM_STEPS, 3, hidden_channels=8, **kwargs)
    return CNNEncoder(4, 3, hidden_channels=8, **kwargs)


@pytest.fixture(params=[MLPEncoder, CNNEncoder])
def encoder(request, shake):
    return shake(make(request.param))


@pytest.fixture
def system():
    return torch.randn(5, NUM_STEPS, 4), fully_connected(5)


def test_equals_the_authors(reference):
    encoder = reference.model().encoder
    for expected in ('logits', 'logits_train_mode'):
        encoder.train(expected == 'logits_train_mode')
        logits = encoder(reference.x, reference.edge_index)
        torch.testing.assert_close(logits, reference.flat(expected), atol=1e-5,
                                   rtol=0)


@pytest.mark.parametrize('num_particles', [2, 3, 5])
def test_equals_the_papers_equations(encoder, num_particles):
    encoder = encoder.double()
    edge_index = fully_connected(num_particles)
    x = torch.randn(num_particles, NUM_STEPS, 4, dtype=torch.double)
    expected = dense.of_edges(ORACLES[type(encoder)](encoder, x), edge_index)
    torch.testing.assert_close(encoder(x, edge_index), expected)


def test_renumbering_the_particles_renumbers_the_logits(encoder, system):
    x, edge_index = system
    logits = dense.to_dense(encoder(x, edge_index), edge_index, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    renumbered = dense.to_dense(encoder(x[order], edge_index), edge_index, 5)
    torch.testing.assert_close(renumbered, logits[order][:, order])
    # Receiver and sender are told apart.
    assert not torch.allclose(logits, logits.transpose(0, 1))


def test_batch_of_mixed_sizes_equals_systems_one_by_one(encoder, make_system):
    systems = [make_system(n, num_steps=NUM_STEPS) for n in (2, 5, 3)]
    batch = Batch.from_data_list(systems)
    logits = encoder(batch.x, batch.edge_index)
    expected = [encoder(data.x, data.edge_index) for data in systems]
    torch.testing.assert_close(logits, torch.cat(expected))


@pytest.mark.parametrize('num_edges', [20, 11])
def test_order_of_edges_is_that_of_the_logits(encoder, system, num_edges):
    x, edge_index = system[0], system[1][:, :num_edges]
    order = torch.randperm(num_edges)
    torch.testing.assert_close(encoder(x, edge_index[:, order]),
                               encoder(x, edge_index)[order])


def test_separate_candidate_graphs_are_separate_systems(encoder, system):
    # Particles 0 to 2 and 3 to 4 are joined among themselves only: N is 3
    # and 2, with no batch vector to say so.
    x, _ = system
    edge_index = torch.cat([fully_connected(3), fully_connected(2) + 3], 1)
    expected = [
        encoder(x[:3], fully_connected(3)),
        encoder(x[3:], fully_connected(2))
    ]
    torch.testing.assert_close(encoder(x, edge_index), torch.cat(expected))


def test_particle_without_senders(encoder, system):
    edge_index = torch.tensor([[0, 1, 2], [1, 0, 1]])  # Nobody acts on 2.
    x = system[0][:3]
    logits = encoder(x, edge_index)
    assert logits.shape == (3, 3) and logits.isfinite().all()
    # It acts on 1 all the same.
    x[2] = torch.randn_like(x[2])
    assert not torch.allclose(encoder(x, edge_index)[2], logits[2])


def test_no_edges_no_logits(encoder, system):
    x, edge_index = system[0], torch.empty(2, 0, dtype=torch.long)
    assert encoder(x, edge_index).shape == (0, 3)
    with pytest.raises(ValueError, match='at least two'):
        encoder.train()(x, edge_index)


@pytest.mark.parametrize('kwargs', [
    dict(aggr='sum'),
    dict(aggr=ScatterSum(), flow='target_to_source'),
])
def test_sums_and_directions_can_be_chosen(encoder, system, kwargs):
    other = make(type(encoder), **kwargs).eval()
    other.load_state_dict(encoder.state_dict())
    x, edge_index = system[0], system[1][:, 3:]
    expected = encoder(x, edge_index)
    if 'flow' in kwargs:
        edge_index = edge_index.flip(0)
    torch.testing.assert_close(other(x, edge_index), expected)


def test_gradients_and_dropout_reach_every_network(encoder, system):
    encoder.train()
    encoder(*system).square().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad.abs().sum() > 0, name
    parts = list(make(type(encoder), dropout=0.5).children())
    assert {p.dropout for p in parts if hasattr(p, 'dropout')} == {0.5}
    mlp = MLP(6, 64, 5, dropout=0.5)
    x = torch.randn(9, 6)
    assert not torch.equal(mlp(x), mlp(x))
    assert torch.equal(mlp.eval()(x), mlp(x))


def test_compiles_to_one_graph(shake, system, assert_one_graph):
    assert_one_graph(shake(make(MLPEncoder)), *system)


def test_reset_parameters_draws_every_weight_again(encoder, system):
    torch.manual_seed(1)
    encoder.reset_parameters()
    first = {key: value.clone() for key, value in encoder.state_dict().items()}
    encoder.train()(*system)  # Moves the running statistics.
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


@pytest.mark.parametrize('size', [(5, 15, 4), (5, 16, 3), (5, 64), (5, 4, 16)])
def test_wrong_shapes(size):
    with pytest.raises(ValueError, match=r'\[num_nodes, 16, 4\]'):
        make(MLPEncoder)(torch.randn(size), fully_connected(5))


# The perceptron #############################################################


def test_mlp_equals_the_plain_equation(shake):
    mlp = shake(MLP(6, 8, 5)).double()
    x = torch.randn(7, 6, dtype=torch.double)
    expected = torch.stack([dense.mlp(mlp, row) for row in x])
    torch.testing.assert_close(mlp(x), expected)


def test_batch_norm_is_over_all_rows_of_a_batch():
    out = MLP(6, 8, 5)(torch.randn(40, 6))
    torch.testing.assert_close(out.mean(0), torch.zeros(5), atol=1e-5, rtol=0)
    variance = out.var(0, unbiased=False)
    torch.testing.assert_close(variance, torch.ones(5), atol=1e-2, rtol=0)


def test_too_few_rows_do_not_spoil_the_statistics():
    mlp = MLP(6, 8, 5)
    for num_rows in (0, 1):
        with pytest.raises(ValueError, match='at least two'):
            mlp(torch.randn(num_rows, 6))
    assert mlp.norm.running_mean.isfinite().all()
    assert mlp.eval()(torch.randn(1, 6)).shape == (1, 5)


def test_starts_xavier_normal_with_biases_of_a_tenth():
    mlp = MLP(400, 600, 200)
    for lin in (mlp.lin1, mlp.lin2):
        assert torch.equal(lin.bias, torch.full_like(lin.bias, 0.1))
        # Of over 10^5 draws, the standard deviation is known to 0.2 % (one
        # standard error); a uniform law of it would end at 1.7 of them.
        std = math.sqrt(2 / (lin.in_features + lin.out_features))
        assert lin.weight.std().item() == pytest.approx(std, rel=0.01)
        assert lin.weight.abs().max() > 3 * std


# Convolutions ###############################################################


@pytest.fixture
def cnn_encoder(shake):
    return shake(make(CNNEncoder))


def test_standing_still_for_longer_says_nothing_more(cnn_encoder):
    x, edge_index = torch.randn(5, 1, 4), fully_connected(5)
    short = cnn_encoder(x.expand(-1, 14, -1), edge_index)
    torch.testing.assert_close(cnn_encoder(x.expand(-1, 31, -1), edge_index),
                               short)


def test_every_frame_counts(cnn_encoder):
    x = torch.randn(3, 15, 4, requires_grad=True)
    cnn_encoder(x, fully_connected(3)).sum().backward()
    counts = x.grad.abs().amax((0, 2)) > 0
    # But for the last of an odd number, which pooling leaves out.
    assert counts.tolist() == [True] * 14 + [False]
    with pytest.raises(RuntimeError, match='size'):
        cnn_encoder(x[:, :13], fully_connected(3))


def test_learns_who_copies_whom():
    # Particle 1 of each pair repeats particle 0, two frames later.
    encoder = make(CNNEncoder)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    edge_index = torch.cat([fully_connected(2) + 2 * n for n in range(64)], 1)
    label = (edge_index[1] % 2).float()

    def draw():
        path = torch.randn(64, 18, 4).cumsum(1)
        return torch.stack([path[:, 2:], path[:, :-2]], 1).flatten(0, 1)

    for _ in range(60):
        optimizer.zero_grad()
        logits = encoder(draw(), edge_index)[:, 0]
        torch.nn.functional.binary_cross_entropy_with_logits(logits,
                                                             label).backward()
        optimizer.step()
    correct = (encoder.eval()(draw(), edge_index)[:, 0] > 0) == (label > 0)
    assert correct.float().mean() > 0.85
