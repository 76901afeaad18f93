import numpy as np
import pytest

from pyg_fnri.datasets.whole_numbers import check_whole


def test_whole_numbers_pass():
    for value in (None, 2, 3, np.int64(2)):
        check_whole('window', value, 2)


@pytest.mark.parametrize('value, error, message', [
    (1, ValueError, 'window must be at least 2, not 1'),
    (2.0, TypeError, 'window must be a whole number, not 2.0'),
    ('3', TypeError, "not '3'"),
])
def test_others_do_not(value, error, message):
    with pytest.raises(error, match=message):
        check_whole('window', value, 2)
