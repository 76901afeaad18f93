import warnings

import pytest
import torch

from pyg_fnri.application import check_sizes
from pyg_fnri.nn import MinMaxScaling


@pytest.fixture
def units():
    return MinMaxScaling(4).fit(torch.randn(50, 10, 4))


def test_systems_like_those_of_training_are_fine(units):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        check_sizes(units, torch.randn(3, 10, 4))
        check_sizes(units, 3 * torch.randn(30, 10, 4))
        x = torch.randn(30, 10, 4)
        x[0, 0] = 1e3  # A single runaway.
        check_sizes(units, x)


@pytest.mark.parametrize('unit, said', [
    ([1e3, 1e3, 1e3, 1e3], ['Positions', 'Velocities']),
    ([1e-6, 1e-6, 1., 1.], ['Positions']),
    ([1., 1., 60., 60.], ['Velocities']),
])
def test_another_unit_is_told(units, unit, said):
    x = torch.randn(50, 10, 4) * torch.tensor(unit)
    with pytest.warns(UserWarning, match='if they are in another') as caught:
        check_sizes(units, x)
    assert [str(w.message).split()[0] for w in caught] == said


def test_features_without_halves_are_told_by_number():
    units = MinMaxScaling(3).fit(torch.randn(50, 10, 3))
    with pytest.warns(UserWarning, match='Feature 1 spread'):
        check_sizes(units, torch.randn(50, 10, 3) * torch.tensor([1, 1e3, 1]))
