import copy
import pickle

import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import (
    LinearStep,
    MLPEncoder,
    MultiplexConv,
    OverLinearStep,
    ResidualEncoder,
    RolloutDecoder,
)

A = torch.tensor([[-0.05, 0.00, 0.10, 0.00], [0.00, -0.05, 0.00, 0.10],
                  [-0.10, 0.02, -0.05, 0.00], [-0.02, -0.10, 0.00, -0.05]])
B = torch.tensor([0.01, -0.02, 0.03, 0.00])
SCALE = torch.tensor([0.01, 0.01, 0.05, 0.05])


def noisy_linear_system(scale=SCALE, num_nodes=200, num_steps=50):
    x = [torch.randn(num_nodes, 4)]
    for _ in range(num_steps - 1):
        x.append(x[-1] + x[-1] @ A.t() + B + scale * torch.randn_like(x[-1]))
    return torch.stack(x, dim=1)


def test_recovers_a_linear_system_and_its_noise():
    step = LinearStep(4).fit(noisy_linear_system())
    # 9,800 transitions of states of a standard deviation over 0.3 settle A to
    # 0.05 / (0.3 sqrt(9,800)) = 0.0017, of which these are three.
    torch.testing.assert_close(step.weight, A, atol=0.005, rtol=0)
    torch.testing.assert_close(step.bias, B, atol=0.005, rtol=0)
    # A median absolute deviation of 19,600 has a standard error of 0.8 %.
    torch.testing.assert_close(step.scale, SCALE, atol=0, rtol=0.03)
    x = torch.randn(3, 7, 4)
    torch.testing.assert_close(step(x), x + x @ A.t() + B, atol=0.03, rtol=0)


def test_fits_an_exact_linear_system_to_rounding():
    x = noisy_linear_system(scale=torch.tensor([0., 0., 1e-3, 1e-3]))
    step = LinearStep(4).fit(x)
    torch.testing.assert_close(step.weight[:2], A[:2], atol=1e-6, rtol=0)
    # The positions leave over their rounding, not the 0 that nothing could be
    # divided by.
    assert 0 < step.scale[0] == step.scale[1] < 1e-6
    assert step.residual(x).isfinite().all()


def test_residual_is_in_units_of_its_scale():
    x = noisy_linear_system()
    step = LinearStep(4).fit(x)
    residual = step.residual(x)
    expected = (x[:, 1:] - step(x[:, :-1])) / step.scale
    torch.testing.assert_close(residual, expected)
    assert residual.shape == (200, 49, 4)
    torch.testing.assert_close(residual.std((0, 1)), torch.ones(4), atol=0.05,
                               rtol=0)


def test_a_few_close_encounters_do_not_move_the_scale():
    x = noisy_linear_system()
    # A particle in a hundred is thrown off, in its last frame.
    x[::100, -1] += torch.randn(2, 4)
    step = LinearStep(4).fit(x)
    torch.testing.assert_close(step.scale, SCALE, atol=0, rtol=0.05)


def test_an_odd_number_of_features_has_a_scale_each():
    x = noisy_linear_system(scale=torch.tensor([0.01, 0.02, 0.05, 0.05]))
    scale = LinearStep(3).fit(x[..., :3]).scale
    assert len(set(scale.tolist())) == 3


@pytest.mark.parametrize('dtype', [torch.float, torch.double])
@pytest.mark.parametrize('speed', [0.0, 0.3])
def test_free_particles_leave_nothing_to_learn(speed, dtype):
    velocity = speed * torch.randn(20, 1, 2, dtype=dtype)
    time = torch.arange(30)[None, :, None]
    x = torch.cat([
        torch.randn(20, 1, 2, dtype=dtype) + time * velocity,
        velocity.expand(-1, 30, -1)
    ], -1)
    with pytest.raises(ValueError, match='no interactions to learn'):
        LinearStep(4).fit(x)


@pytest.mark.parametrize('size', [(5, 1, 4), (5, 4), (5, 6, 3), (5, 0, 4)])
def test_fit_wrong_shapes(size):
    with pytest.raises(ValueError, match=r'\[num_nodes, T, 4\]'):
        LinearStep(4).fit(torch.randn(size))


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_fit_needs_finite_numbers_and_changes_nothing_otherwise(value):
    step = LinearStep(4).fit(noisy_linear_system())
    state = copy.deepcopy(step.state_dict())
    x = torch.randn(5, 6, 4)
    x[1, 2, 3] = value
    with pytest.raises(ValueError, match='NaN or infinite'):
        step.fit(x)
    for key, tensor in step.state_dict().items():
        assert torch.equal(tensor, state[key])


def test_layer_over_the_linear_step():
    step = LinearStep(4).fit(noisy_linear_system())
    conv = MultiplexConv(4, 4, edge_dim=2, hidden_channels=8)
    layer = OverLinearStep(conv, step)
    args = fully_connected(5), torch.rand(20, 2)
    for size in [(5, 4), (5, 3, 4)]:
        x = torch.randn(size)
        expected = step(x) - x + step.scale * conv(x, *args)
        torch.testing.assert_close(layer(x, *args), expected)


def test_layer_that_says_nothing_leaves_the_linear_step():
    x = noisy_linear_system(num_steps=10)[:5]
    step = LinearStep(4).fit(x)
    conv = MultiplexConv(4, 4, edge_dim=2, hidden_channels=8)
    torch.nn.init.zeros_(conv.node_mlp[-1].weight)
    torch.nn.init.zeros_(conv.node_mlp[-1].bias)
    decoder = RolloutDecoder(OverLinearStep(conv, step))
    out = decoder(x, fully_connected(5), torch.rand(20, 2))
    residual = (x[:, 1:] - out) / step.scale
    torch.testing.assert_close(residual, step.residual(x), atol=1e-4, rtol=0)


@pytest.fixture
def encoder(shake):
    inner = shake(MLPEncoder(8, 5, 3, hidden_channels=8))
    return ResidualEncoder(inner, LinearStep(4).fit(noisy_linear_system()))


def test_encoder_sees_states_and_what_the_linear_step_leaves_over(encoder):
    x, edge_index = torch.randn(5, 6, 4), fully_connected(5)
    residual = encoder.linear_step.residual(x)
    residual = residual.sign() * (1 + residual.abs()).log()
    features = torch.cat([x[:, :5], residual], dim=-1)
    torch.testing.assert_close(encoder(x, edge_index),
                               encoder.encoder(features, edge_index))


@pytest.mark.parametrize('size', [(5, 5, 4), (5, 7, 4), (5, 6, 3), (5, 24)])
def test_encoder_wrong_shapes(encoder, size):
    # The frames that the user has to give, not those the inner one sees.
    with pytest.raises(ValueError, match=r'\[num_nodes, 6, 4\]'):
        encoder(torch.randn(size), fully_connected(5))


def test_reset_parameters_keeps_the_linear_step(encoder):
    conv = MultiplexConv(4, 4, edge_dim=2, hidden_channels=8)
    for module, weight in [
        (encoder, encoder.encoder.lin.weight),
        (OverLinearStep(conv, encoder.linear_step), conv.weight1),
    ]:
        first = weight.clone()
        step = copy.deepcopy(module.linear_step.state_dict())
        module.reset_parameters()
        assert not (weight == first).any()
        for key, tensor in module.linear_step.state_dict().items():
            assert torch.equal(tensor, step[key])


def test_copies_of_a_model_share_one_linear_step(encoder):
    conv = MultiplexConv(4, 4, edge_dim=2, hidden_channels=8)
    model = torch.nn.ModuleList(
        [encoder, OverLinearStep(conv, encoder.linear_step)])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other[0].linear_step is other[1].linear_step
        assert other[0].linear_step is not encoder.linear_step
        assert torch.equal(other[0].linear_step.weight,
                           encoder.linear_step.weight)


def test_repr():
    assert str(LinearStep(4)) == 'LinearStep(4)'
