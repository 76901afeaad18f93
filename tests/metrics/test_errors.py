import pytest
import torch

from pyg_fnri.metrics.errors import (
    linear_rollout,
    majority_types,
    random_types,
    static_rollout,
)
from pyg_fnri.nn import LinearStep


@pytest.fixture
def linear_step():
    """A linear step with other numbers than none."""
    step = LinearStep(4)
    step.weight.normal_(std=0.2)
    step.bias.normal_(std=0.2)
    return step


@pytest.mark.parametrize('num_frames', [2, 3, 12, 21])
@pytest.mark.parametrize('pred_steps', [1, 2, 10, 20, 50])
def test_static_rollout_equals_a_loop(num_frames, pred_steps):
    y = torch.randn(3, num_frames, 4)
    out = static_rollout(y, pred_steps)
    assert out.size() == (3, num_frames - 1, 4)
    for t in range(num_frames - 1):
        if t % pred_steps == 0:
            state = y[:, t]
        assert out[:, t].equal(state)


@pytest.mark.parametrize('num_frames', [1, 2, 3, 12, 21])
@pytest.mark.parametrize('pred_steps', [1, 2, 5, 10, 20, 50])
def test_linear_rollout_equals_a_loop(linear_step, num_frames, pred_steps):
    y = torch.randn(3, num_frames, 4)
    out = linear_rollout(linear_step, y, pred_steps)
    assert out.size() == (3, num_frames - 1, 4)
    for t in range(num_frames - 1):
        if t % pred_steps == 0:
            state = y[:, t]
        state = linear_step(state)
        torch.testing.assert_close(out[:, t], state)


def test_linear_rollout_is_exact_where_nothing_interacts():
    start, speed = torch.randn(5, 1, 2), torch.randn(5, 1, 2)
    time = torch.arange(12.).view(1, -1, 1)
    y = torch.cat([start + speed * time, speed.expand(-1, 12, -1)], dim=-1)
    step = LinearStep(4)
    step.weight[:2, 2:] = torch.eye(2)
    torch.testing.assert_close(linear_rollout(step, y, 20), y[:, 1:])


@pytest.mark.parametrize('pred_steps', [0, -1])
def test_rollouts_need_a_step(linear_step, pred_steps):
    y = torch.zeros(3, 12, 4)
    with pytest.raises(ValueError, match=f'pred_steps={pred_steps}'):
        static_rollout(y, pred_steps)
    with pytest.raises(ValueError, match=f'pred_steps={pred_steps}'):
        linear_rollout(linear_step, y, pred_steps)


def test_random_types_are_uniform_and_repeatable():
    def draw(seed):
        return random_types(6000, [2, 3], torch.Generator().manual_seed(seed))

    types = draw(0)
    assert types.dtype == torch.long and types.size() == (6000, 2)
    for layer, size in zip(types.T, (2, 3)):
        share = torch.bincount(layer, minlength=size) / 6000
        assert share.numel() == size
        assert (share - 1 / size).abs().max() < 0.03
    assert draw(0).equal(types) and not draw(1).equal(types)


def test_the_most_common_combination_need_not_be_that_of_common_types():
    train = torch.tensor([[0, 1]] * 4 + [[1, 0]] * 3 + [[1, 2]] * 2 + [[1, 1]])
    majority = majority_types(train)
    assert majority.layers == (1, 1)
    assert majority.combination == (0, 1)
    test = torch.tensor([[0, 1], [1, 1], [1, 0], [0, 2]])
    assert majority.accuracy(test) == {'combined': 0.25, 'layers': [0.5, 0.5]}
    assert majority.accuracy(train) == {'combined': 0.4, 'layers': [0.6, 0.5]}


def test_what_has_no_majority_is_refused():
    with pytest.raises(ValueError, match='at least one edge'):
        majority_types(torch.empty(0, 2, dtype=torch.long))
    with pytest.raises(ValueError, match=r'got \[3\]'):
        majority_types(torch.tensor([0, 1, 1]))
    majority = majority_types(torch.tensor([[0, 1]]))
    with pytest.raises(ValueError, match=r'\[num_edges, 2\]'):
        majority.accuracy(torch.zeros(3, 1, dtype=torch.long))
    with pytest.raises(ValueError, match='no edges'):
        majority.accuracy(torch.empty(0, 2, dtype=torch.long))
