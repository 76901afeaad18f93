import pytest
import torch

from pyg_fnri.inference.relaxation import Gaussian, inverse


def some(num=3, num_channels=2):
    root = torch.randn(num, num_channels, num_channels).double()
    return Gaussian(root @ root.mT + 0.1 * torch.eye(num_channels),
                    torch.randn(num, num_channels).double())


def test_density_is_that_of_the_normal_distribution():
    gaussian, options = some(), torch.randn(4, 2).double()
    for row in range(3):
        normal = torch.distributions.MultivariateNormal(
            gaussian.mean[row], precision_matrix=gaussian.precision[row])
        found = gaussian.log_density(options)[row] - normal.log_prob(options)
        torch.testing.assert_close(found, found[:1].expand(4))


def test_types_have_their_mean_and_variance():
    options = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    q = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 1.0, 0.0]])
    found = Gaussian.of_types(q, options)
    torch.testing.assert_close(found.mean, q @ options)
    variance = found.precision.inverse().diagonal(dim1=1, dim2=2)
    # None is known for good.
    torch.testing.assert_close(
        variance, torch.tensor([[0.7 * 0.3, 0.6 * 0.4], [0.01, 0.01]]))


def test_a_product_and_what_is_left_of_it():
    one, other = some(), some()
    torch.testing.assert_close(one.plus(other).minus(other), one)
    options = torch.randn(5, 2).double()
    torch.testing.assert_close(
        one.plus(other).log_density(options),
        one.log_density(options) + other.log_density(options))


def test_part_of_the_way():
    one, other = some(), some()
    torch.testing.assert_close(one.towards(other, 1.0), other)
    nothing = Gaussian.of_nothing(3, 2, one.pull)
    half = nothing.towards(one, 0.5)
    torch.testing.assert_close(half.plus(half), one)


def test_takes_rows():
    taken = some().take(torch.tensor([2, 0]))
    assert taken.precision.size() == (2, 2, 2)
    assert taken.pull.size() == (2, 2)


def test_what_cannot_be_inverted():
    matrix = some().precision
    torch.testing.assert_close(
        inverse(matrix) @ matrix,
        torch.eye(2).double().expand(3, 2, 2))
    matrix[1] = 1.0
    with pytest.raises(ValueError, match='too large to compute with'):
        inverse(matrix)
