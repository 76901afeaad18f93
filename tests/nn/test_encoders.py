import math

import dense
import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import MLP, CNNEncoder, EquivariantEncoder, MLPEncoder

NUM_STEPS = 16
ORACLES = {
    MLPEncoder: dense.encoder,
    CNNEncoder: dense.cnn_encoder,
    EquivariantEncoder: dense.equivariant_encoder
}


def make(encoder_class, **kwargs):
    if encoder_class is CNNEncoder:
        return CNNEncoder(4, 3, hidden_channels=8, **kwargs)
    return encoder_class(4, NUM_STEPS, 3, hidden_channels=8, **kwargs)


@pytest.fixture(params=ORACLES)
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


@pytest.mark.parametrize('flow', ['source_to_target', 'target_to_source'])
def test_sums_and_directions_can_be_chosen(encoder, system, flow):
    other = make(type(encoder), aggr='sum', flow=flow).eval()
    other.load_state_dict(encoder.state_dict())
    x, edge_index = system[0], system[1][:, 3:]
    turned = edge_index.flip(0) if flow == 'target_to_source' else edge_index
    torch.testing.assert_close(other(x, turned), encoder(x, edge_index))


def test_dropout_reaches_every_network():
    for encoder_class in ORACLES:
        encoder = make(encoder_class, dropout=0.5)
        dropout = [getattr(p, 'dropout', 0.5) for p in encoder.modules()]
        assert set(dropout) == {0.5}
    for part, size in ((MLP(6, 64, 5, dropout=0.5), (9, 6)),
                       (make(CNNEncoder, dropout=0.5).cnn, (9, 8, NUM_STEPS))):
        x = torch.randn(size)
        assert not torch.equal(part(x), part(x))
        assert torch.equal(part.eval()(x), part(x))


@pytest.mark.parametrize('num_axes', [1, 2, 3])
def test_no_direction_and_no_place_is_special(shake, num_axes):
    encoder = EquivariantEncoder(2 * num_axes, NUM_STEPS, 3, 8).double()
    encoder, edge_index = shake(encoder), fully_connected(5)
    place, vector = torch.randn(2, 5, NUM_STEPS, num_axes).double()
    turn = torch.linalg.qr(torch.randn(num_axes, num_axes).double()).Q
    for mirror in (1, -1):
        other = torch.cat([
            place @ turn * mirror + torch.randn(num_axes),
            vector @ turn * mirror
        ], -1)
        torch.testing.assert_close(
            encoder(other, edge_index),
            encoder(torch.cat([place, vector], -1), edge_index))


def test_particles_at_one_place_give_numbers(shake):
    encoder = shake(make(EquivariantEncoder))
    x = torch.zeros(5, NUM_STEPS, 4).requires_grad_()
    encoder(x, fully_connected(5)).sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.slow
def test_compiles_to_one_graph(shake, system, assert_one_graph):
    assert_one_graph(shake(make(MLPEncoder)), *system)


def test_batch_norm_takes_two_rows():
    mlp = MLP(6, 8, 5)
    for num_rows in (0, 1):
        with pytest.raises(ValueError, match='at least two'):
            mlp(torch.randn(num_rows, 6))
    assert mlp.norm.running_mean.isfinite().all()


def test_starts_xavier_normal_with_biases_of_a_tenth():
    mlp = MLP(400, 600, 200)
    for lin in (mlp.lin1, mlp.lin2):
        assert torch.equal(lin.bias, torch.full_like(lin.bias, 0.1))
        # Of over 10^5 draws, the standard deviation is known to 0.2 % (one
        # standard error); a uniform law of it would end at 1.7 of them.
        std = math.sqrt(2 / (lin.in_features + lin.out_features))
        assert lin.weight.std().item() == pytest.approx(std, rel=0.01)
        assert lin.weight.abs().max() > 3 * std
