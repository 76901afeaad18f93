import numpy as np
import pytest

from pyg_fnri.datasets.whole_numbers import whole


def test_whole_numbers_pass():
    for value in (2, 3, np.int64(2)):
        assert whole('window', value, 2) == value
        assert type(whole('window', value, 2)) is int


@pytest.mark.parametrize('value, error, message', [
    (1, ValueError, 'window must be at least 2, not 1'),
    (2.0, TypeError, 'window must be a whole number, not 2.0'),
    ('3', TypeError, "not '3'"),
    (None, TypeError, 'not None'),
    (True, TypeError, 'not True'),
    (np.True_, TypeError, 'a whole number'),
])
def test_others_do_not(value, error, message):
    with pytest.raises(error, match=message):
        whole('window', value, 2)
