import math

import dense
import pytest
import torch

from pyg_fnri.nn import MLP


def test_equals_the_plain_equation(shake):
    mlp = shake(MLP(6, 8, 5)).double()
    x = torch.randn(7, 6, dtype=torch.double)
    expected = torch.stack([dense.mlp(mlp, row) for row in x])
    torch.testing.assert_close(mlp(x), expected)


def test_batch_norm_is_over_all_rows_of_a_batch():
    out = MLP(6, 8, 5)(torch.randn(40, 6))
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


def test_reset_parameters_draws_again():
    mlp = MLP(6, 8, 5)
    torch.manual_seed(1)
    mlp.reset_parameters()
    first = {key: value.clone() for key, value in mlp.state_dict().items()}
    mlp(torch.randn(9, 6))  # Moves the running statistics.
    mlp.reset_parameters()
    assert not torch.equal(mlp.lin1.weight, first['lin1.weight'])
    assert not torch.equal(mlp.lin2.weight, first['lin2.weight'])
    torch.manual_seed(1)
    mlp.reset_parameters()
    for key, value in mlp.state_dict().items():
        assert torch.equal(value, first[key]), key


def test_dropout_is_for_training_only():
    mlp = MLP(6, 64, 5, dropout=0.5)
    x = torch.randn(9, 6)
    assert not torch.equal(mlp(x), mlp(x))
    mlp.eval()
    assert torch.equal(mlp(x), mlp(x))


@pytest.mark.parametrize('num_rows', [0, 1])
def test_too_few_rows_to_train_on(num_rows):
    mlp = MLP(6, 8, 5)
    with pytest.raises(ValueError, match=f'at least two .* got {num_rows}'):
        mlp(torch.randn(num_rows, 6))
    # Nothing has spoilt the statistics, and evaluation needs no batch.
    assert mlp.norm.running_mean.isfinite().all()
    assert mlp.eval()(torch.randn(num_rows, 6)).shape == (num_rows, 5)


def test_repr():
    assert str(MLP(6, 8, 5)) == 'MLP(6, 8, 5, dropout=0.0)'
