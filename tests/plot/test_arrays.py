import math

import numpy as np
import pytest
import torch

from pyg_fnri.plot.arrays import check_count, finite_array


def test_tensors_arrays_and_lists_become_arrays():
    values = [[1., 2.], [3., 4.]]
    for given in (values, np.array(values),
                  torch.tensor(values, requires_grad=True)):
        array = finite_array('x', given, (2, None), '[2, n]')
        assert isinstance(array, np.ndarray) and array.tolist() == values


@pytest.mark.parametrize('values, message', [
    ([1., 2.], r'x has shape \[2\], expected \[2, n\]'),
    ([[1.], [2.], [3.]], r'x has shape \[3, 1\], expected \[2, n\]'),
    ([[1.], [math.nan]], 'x holds NaN'),
    ([[1.], [-math.inf]], 'x holds NaN or infinite'),
])
def test_other_arrays_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        finite_array('x', values, (2, None), '[2, n]')


def test_counts_must_agree():
    check_count('titles', 2, 2, 'systems')
    with pytest.raises(ValueError, match='titles is for 3 systems, expected 2'):
        check_count('titles', 3, 2, 'systems')
