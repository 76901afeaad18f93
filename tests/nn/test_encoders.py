import math

import dense
import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import MLP, CNNEncoder, MLPEncoder

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


@pytest.mark.parametrize('num_particles', [2, 5])
def test_equals_the_papers_equations(encoder, num_particles):
    encoder = encoder.double()
    edge_index = fully_connected(num_particles)
    x = torch.randn(num_particles, NUM_STEPS, 4, dtype=torch.double)
    expected = dense.of_edges(ORACLES[type(encoder)](encoder, x), edge_index)
    torch.testing.assert_close(encoder(x, edge_index), expected)


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


@pytest.mark.parametrize('flow', ['source_to_target', 'target_to_source'])
def test_sums_and_directions_can_be_chosen(encoder, system, flow):
    other = make(type(encoder), aggr='sum', flow=flow).eval()
    other.load_state_dict(encoder.state_dict())
    x, edge_index = system[0], system[1][:, 3:]
    turned = edge_index.flip(0) if flow == 'target_to_source' else edge_index
    torch.testing.assert_close(other(x, turned), encoder(x, edge_index))


def test_dropout_reaches_every_network():
    for encoder in (make(MLPEncoder, dropout=0.5), make(CNNEncoder,
                                                        dropout=0.5)):
        dropout = [getattr(p, 'dropout', 0.5) for p in encoder.children()]
        assert set(dropout) == {0.5}
    for part, size in ((MLP(6, 64, 5, dropout=0.5), (9, 6)),
                       (encoder.cnn, (9, 8, NUM_STEPS))):
        x = torch.randn(size)
        assert not torch.equal(part(x), part(x))
        assert torch.equal(part.eval()(x), part(x))


def test_compiles_to_one_graph(shake, system, assert_one_graph):
    assert_one_graph(shake(make(MLPEncoder)), *system)


def test_batch_norm_is_over_all_rows_of_a_batch():
    mlp = MLP(6, 8, 5)
    for num_rows in (0, 1):
        with pytest.raises(ValueError, match='at least two'):
            mlp(torch.randn(num_rows, 6))
    assert mlp.norm.running_mean.isfinite().all()
    out = mlp(torch.randn(40, 6))
    torch.testing.assert_close(out.mean(0), torch.zeros(5), atol=1e-5, rtol=0)
    variance = out.var(0, unbiased=False)
    torch.testing.assert_close(variance, torch.ones(5), atol=1e-2, rtol=0)


def test_starts_xavier_normal_with_biases_of_a_tenth():
    mlp = MLP(400, 600, 200)
    for lin in (mlp.lin1, mlp.lin2):
        assert torch.equal(lin.bias, torch.full_like(lin.bias, 0.1))
        # Of over 10^5 draws, the standard deviation is known to 0.2 % (one
        # standard error); a uniform law of it would end at 1.7 of them.
        std = math.sqrt(2 / (lin.in_features + lin.out_features))
        assert lin.weight.std().item() == pytest.approx(std, rel=0.01)
        assert lin.weight.abs().max() > 3 * std


def test_every_frame_counts_in_convolutions(shake):
    encoder = shake(make(CNNEncoder))
    x = torch.randn(3, 15, 4, requires_grad=True)
    encoder(x, fully_connected(3)).sum().backward()
    counts = x.grad.abs().amax((0, 2)) > 0
    # But for the last of an odd number, which pooling leaves out.
    assert counts.tolist() == [True] * 14 + [False]
    # Standing still for longer says no more.
    still = x[:, :1]
    torch.testing.assert_close(
        encoder(still.expand(-1, 14, -1), fully_connected(3)),
        encoder(still.expand(-1, 31, -1), fully_connected(3)))
