import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import (EquivariantEncoder, LinearStep, MLPEncoder,
                         MultiplexConv, OverLinearStep, RecurrentConv,
                         ResidualEncoder, Walls)

INF = float('inf')
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
    trajectories = noisy_linear_system()
    step = LinearStep(4).fit(trajectories)
    # 9,800 transitions of states of a standard deviation over 0.3 settle A to
    # 0.05 / (0.3 sqrt(9,800)) = 0.0017, of which these are three.
    torch.testing.assert_close(step.weight, A, atol=0.005, rtol=0)
    torch.testing.assert_close(step.bias, B, atol=0.005, rtol=0)
    # A median absolute deviation of 19,600 has a standard error of 0.8 %.
    torch.testing.assert_close(step.scale, SCALE, atol=0, rtol=0.03)
    x = torch.randn(3, 7, 4)
    torch.testing.assert_close(step(x), x + x @ A.t() + B, atol=0.03, rtol=0)
    residual = step.residual(trajectories)
    torch.testing.assert_close(residual.std((0, 1)), torch.ones(4), atol=0.05,
                               rtol=0)
    # An odd number of features has a scale each, and no walls.
    x = trajectories[..., :3]
    odd = LinearStep(3).fit(x)
    assert len(set(odd.scale.tolist())) == 3 and odd.walls(x) is x
    # Outliers count little.
    trajectories[::100, -1] += torch.randn(2, 4)
    step.fit(trajectories)
    torch.testing.assert_close(step.scale, SCALE, atol=0, rtol=0.05)


def test_fits_an_exact_linear_system_to_rounding():
    x = noisy_linear_system(scale=torch.tensor([0., 0., 1e-3, 1e-3]))
    step = LinearStep(4).fit(x)
    torch.testing.assert_close(step.weight[:2], A[:2], atol=1e-6, rtol=0)
    # The positions leave over their rounding, not 0 to divide by.
    assert 0 < step.scale[0] == step.scale[1] < 1e-6
    assert step.residual(x).isfinite().all()


def test_axes_that_stay_as_they_are_leave_the_scale_to_others():
    x = noisy_linear_system()
    x[..., [1, 3]] = 0.5
    scale = LinearStep(4).fit(x).scale
    torch.testing.assert_close(scale[[0, 2]], SCALE[[0, 2]], atol=0, rtol=0.05)
    assert scale[[1, 3]].equal(scale[[0, 2]])


@pytest.mark.parametrize('height', [0.0, 3.7])
def test_planar_data_in_space_have_one_fit(height):
    # Its columns are not independent; fits of the same data must not differ.
    plane = noisy_linear_system(num_nodes=50).unflatten(-1, (2, 2))
    space = torch.tensor([[height], [0.0]]).expand(50, 50, 2, 1)
    x = torch.cat([plane, space], dim=-1).flatten(2)
    steps = [LinearStep(6).fit(x) for _ in range(20)]
    for step in steps:
        assert torch.equal(step.weight, steps[0].weight)
    expected = LinearStep(4).fit(plane.flatten(2))(plane.flatten(2))
    out = steps[0](x).unflatten(-1, (2, 3))[..., :2].flatten(2)
    torch.testing.assert_close(out, expected, atol=1e-4, rtol=0)


def test_free_particles_leave_no_interactions_to_learn():
    velocity = torch.randn(20, 1, 2).expand(-1, 30, -1)
    position = torch.randn(20, 1, 2) + velocity.cumsum(1)
    x = torch.cat([position, velocity], -1)
    with pytest.raises(ValueError, match='no interactions'):
        LinearStep(4).fit(x)


def test_layer_over_the_linear_step():
    step = LinearStep(4).fit(noisy_linear_system())
    conv = MultiplexConv(4, 4, edge_dim=2, hidden_channels=8)
    layer = OverLinearStep(conv, step)
    args = fully_connected(5), torch.rand(20, 2)
    for size in [(5, 4), (5, 3, 4)]:
        x = torch.randn(size)
        expected = step(x) - x + step.scale * conv(x, *args)
        torch.testing.assert_close(layer(x, *args), expected)
    # A layer with a memory keeps it.
    recurrent = RecurrentConv(4, 4, edge_dim=2, hidden_channels=8)
    out, h = OverLinearStep(recurrent, step)(x[:, 0], None, *args)
    change, expected = recurrent(x[:, 0], None, *args)
    torch.testing.assert_close(h, expected)
    torch.testing.assert_close(x[:, 0] + out, step(x[:, 0], change))


def test_encoder_sees_states_and_what_the_linear_step_leaves_over(shake):
    encoder = ResidualEncoder(shake(MLPEncoder(8, 5, 3, hidden_channels=8)),
                              LinearStep(4).fit(noisy_linear_system()))
    x, edge_index = torch.randn(5, 6, 4), fully_connected(5)
    residual = encoder.linear_step.residual(x)
    residual = residual.sign() * (1 + residual.abs()).log()
    features = torch.cat([x[:, :5], residual], dim=-1)
    torch.testing.assert_close(encoder(x, edge_index),
                               encoder.encoder(features, edge_index))
    encoder = ResidualEncoder(shake(EquivariantEncoder(4, 5, 3, 8)),
                              encoder.linear_step)
    residual = encoder.linear_step.residual(x)
    features = torch.cat([x[:, :5, :2], residual[..., 2:]], dim=-1)
    torch.testing.assert_close(encoder(x, edge_index),
                               encoder.encoder(features, edge_index))
    # The frames that the user has to give, not those the inner one sees.
    with pytest.raises(ValueError, match=r'\[num_nodes, 6, 4\]'):
        encoder(x[:, :5], edge_index)


# Walls ######################################################################


def bouncing(half_width=1.0, num_nodes=400, num_steps=60, step=0.1):
    """Free flight at some noise; reflected on the first axis alone."""
    position = torch.rand(num_nodes, 2) * 2 - 1
    velocity = torch.randn(num_nodes, 2)
    frames = []
    for _ in range(num_steps):
        frames.append(torch.cat([position, velocity], -1))
        velocity = velocity + 0.01 * torch.randn(num_nodes, 2)
        position = position + step * velocity
        x, v = position[:, 0], velocity[:, 0]
        out = x.abs() > half_width
        position = torch.stack([
            torch.where(out, 2 * half_width * x.sign() - x, x), position[:, 1]
        ], -1)
        velocity = torch.stack([torch.where(out, -v, v), velocity[:, 1]], -1)
    return torch.stack(frames, dim=1)


def test_folds_what_has_left_the_box():
    walls = Walls(4)
    walls.load_state_dict({
        'lower': torch.tensor([-1.0, -INF]),
        'upper': torch.tensor([2.0, 3.0])
    })
    x = torch.tensor([[0.5, 0.5, 1.0, 1.0], [-1.25, -9.0, -1.0, -2.0],
                      [2.5, 3.25, 1.0, -0.5]])
    expected = torch.tensor([[0.5, 0.5, 1.0, 1.0], [-0.75, -9.0, 1.0, -2.0],
                             [1.5, 2.75, -1.0, 0.5]])
    assert torch.equal(walls(x), expected)
    walls(x.requires_grad_()).sum().backward()
    assert x.grad.abs().eq(1).all()


def test_walls_are_found_where_there_are_some_only():
    x = bouncing()
    step = LinearStep(4).fit(x)
    upper, lower = step.walls.upper, step.walls.lower
    assert abs(upper[0] - 1) < 1e-3 and abs(lower[0] + 1) < 1e-3
    assert upper[1] == INF and lower[1] == -INF
    # The states that were turned back do not bend the line.
    expected = torch.zeros(4, 4)
    expected[0, 2] = expected[1, 3] = 0.1
    torch.testing.assert_close(step.weight, expected, atol=0.005, rtol=0)
    # All that is left over is noise, also at the walls.
    residual = step.residual(x)
    assert residual[..., 2].abs().flatten().quantile(0.99) < 4
    turned = (x[:, 1:, 2] * x[:, :-1, 2] < 0) & (x[:, :-1, 2].abs() > 0.5)
    assert turned.sum() > 100
    assert residual[..., 2][turned].abs().median() < 2
    # Free space has none.
    walls = LinearStep(4).fit(bouncing(half_width=1e6)).walls
    assert walls.upper.isinf().all() and walls.lower.isinf().all()


def test_walls_are_where_they_are_seen_with_noise():
    x = bouncing()
    walls = LinearStep(4).fit(x + 0.03 * torch.randn_like(x)).walls
    assert (x[..., 0].max() < 1) and abs(walls.upper[0] - 1) < 0.01
    assert abs(walls.lower[0] + 1) < 0.01
    assert walls.upper[1] == INF and walls.lower[1] == -INF


def test_walls_are_not_where_slow_particles_turn():
    # Springs to random places turn most particles; few are fast at a wall.
    frames, step = [], 0.1
    centre, position = 0.5 * torch.randn(2, 4000, 2)
    velocity = torch.randn(4000, 2)
    for _ in range(60):
        frames.append(torch.cat([position, velocity], -1))
        velocity = velocity - step * (position - centre)
        position = position + step * velocity
        out = position.abs() > 3
        position = torch.where(out, 6 * position.sign() - position, position)
        velocity = torch.where(out, -velocity, velocity)
    walls = LinearStep(4).fit(torch.stack(frames, dim=1)).walls
    for wall in (walls.upper, -walls.lower):
        torch.testing.assert_close(wall, torch.full((2, ), 3.0), atol=0.01,
                                   rtol=0)
