"""A small star system whose law and strengths are known."""
import pytest
import torch

from pyg_fnri.laws import best_formula, fit_strengths

#: Of the star, and of planets, one of which repels.
TRUE = torch.tensor([1., 2e-3, 5e-4, -3e-3, 1e-2], dtype=torch.double)
POWER, NUM_FRAMES, INTERVAL = -1.5, 240, 0.15


def rate(state):
    position, velocity = state.chunk(2, -1)
    offset = position[:, None] - position
    distance = offset.norm(dim=-1) + torch.eye(len(offset))
    force = -TRUE * distance**(POWER - 1)
    return torch.cat([velocity, (force.unsqueeze(-1) * offset).sum(1)], -1)


@pytest.fixture(scope='module')
def system():
    """By Runge and Kutta, :obj:`[5, NUM_FRAMES, 4]`."""
    radius = torch.tensor([[0.], [1.], [1.6], [2.7], [4.5]]).double()
    angle = torch.arange(5.).double()
    position = radius * torch.stack([angle.cos(), angle.sin()], -1)
    speed = 0.9 * (radius + 1e-9)**((POWER + 1) / 2) * (radius > 0)
    velocity = speed * torch.stack([-angle.sin(), angle.cos()], -1)
    frames, step = [torch.cat([position, velocity], -1)], INTERVAL / 2
    for _ in range(NUM_FRAMES - 1):
        state = frames[-1]
        for _ in range(2):
            a = rate(state)
            b = rate(state + step / 2 * a)
            c = rate(state + step / 2 * b)
            d = rate(state + step * c)
            state = state + step / 6 * (a + 2 * b + 2 * c + d)
        frames.append(state)
    return torch.stack(frames, dim=1)


@pytest.fixture(scope='module')
def found(system):
    return fit_strengths(system, INTERVAL)


def test_the_star_its_law_and_all_strengths_are_found(found):
    assert found.hub == 0 and found.strength[0] == 1 and found.error[0] < 1e-9
    assert found.unexplained[0] < 0.1 * found.unexplained[1:].min()
    assert torch.allclose(found.strength, TRUE, rtol=1e-4, atol=0)
    distance = torch.linspace(0.9, 5, 20).double()
    assert torch.allclose(found.law(distance)[0], -distance**POWER, rtol=1e-4)
    formula = best_formula(found.law.knots,
                           found.law(found.law.knots)[0], found.covariance)
    assert formula.text == 'a / r^p'
    assert abs(formula.parameters['p'] + POWER) < 1e-4


def test_errors_cover_the_truth(system):
    inside = []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(system.size(), generator=generator).double()
        noisy = system + 1e-5 * noise
        found = fit_strengths(noisy, INTERVAL, num_knots=20)
        off = (found.strength - TRUE)[1:].abs() / found.error[1:]
        inside.append(off < 2)  # 90 % of Student's of 5 degrees of freedom.
    assert torch.stack(inside).double().mean() > 0.7


def test_strengths_do_not_depend_on_units_or_places(system, found):
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]]).double()
    position, velocity = system.chunk(2, -1)
    moved = 1e3 * torch.cat([position @ turn + 5, velocity @ turn / 60], -1)
    order = torch.tensor([2, 4, 0, 1, 3])
    again = fit_strengths(moved[order], 60 * INTERVAL)
    assert again.hub == 2
    assert torch.allclose(again.strength, found.strength[order], rtol=1e-5)
    assert torch.allclose(again.error[[0, 1, 3, 4]],
                          found.error[order][[0, 1, 3, 4]], rtol=0.05)


def test_what_is_no_system_is_refused(system):
    for wrong in (system[0], system[:2], system[:, :20]):
        with pytest.raises(ValueError):
            fit_strengths(wrong, INTERVAL)
