import pickle

import pytest
import torch

from pyg_fnri.nn import LinearStep
from pyg_fnri.nn.linear_step import MIN_CROSSINGS, Walls

INF = float('inf')


def trajectories(half_width=1.0, num_nodes=400, num_steps=60, step=0.1):
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
    torch.testing.assert_close(walls(x), expected, atol=0, rtol=0)
    # Also with a dimension of time, and gradients that stay finite.
    x = x[:, None].expand(-1, 5, -1).clone().requires_grad_()
    out = walls(x)
    torch.testing.assert_close(out[:, 2], expected, atol=0, rtol=0)
    out.sum().backward()
    assert x.grad.abs().eq(1).all()


def test_no_walls_change_nothing():
    x = 100 * torch.randn(7, 4)
    assert Walls(4)(x) is x
    assert Walls(3)(x[:, :3]).equal(x[:, :3])


def test_walls_are_found_where_there_are_some_only():
    x = trajectories()
    step = LinearStep(4).fit(x)
    upper, lower = step.walls.upper, step.walls.lower
    assert 0.99 < upper[0] <= 1 and -1 <= lower[0] < -0.99
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


def test_free_space_has_no_walls():
    step = LinearStep(4).fit(trajectories(half_width=1e6))
    assert step.walls.upper.isinf().all() and step.walls.lower.isinf().all()


def test_a_few_crossings_decide_nothing():
    free = torch.tensor([[2.0, 1.0]])
    target = torch.tensor([[0.0, -1.0]])
    x = torch.tensor([[[-1.0, 1.0], [1.0, 1.0]]])
    for number, wall in ((MIN_CROSSINGS - 1, INF), (MIN_CROSSINGS, 1.0)):
        walls = Walls(2).fit(x, free.expand(number, -1),
                             target.expand(number, -1))
        assert walls.upper == wall and walls.lower == -INF


@pytest.mark.parametrize('copy', [
    lambda walls: pickle.loads(pickle.dumps(walls)),
    lambda walls: Walls(4).requires_grad_(False),
])
def test_walls_are_saved(copy):
    walls = LinearStep(4).fit(trajectories()).walls
    other = copy(walls)
    other.load_state_dict(walls.state_dict())
    x = 3 * torch.randn(20, 4)
    assert not walls(x).equal(x)
    assert other(x).equal(walls(x))
    assert str(walls) == 'Walls(4)'
