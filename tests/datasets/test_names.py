import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets.names import as_name, check_none_missing, number_names


def test_names_are_numbered_in_their_order():
    number, names = number_names(pd.Series(['b', 'a', 'c', 'a']))
    assert names == ['a', 'b', 'c'] and number.tolist() == [1, 0, 2, 0]
    # Numbers by value, before words.
    number, names = number_names(pd.Series([10, 9, 'x', 9], dtype=object))
    assert names == [9, 10, 'x'] and number.tolist() == [1, 0, 2, 0]


def test_each_row_has_a_name():
    names = pd.Series(['a', 0, 'NA'], name='bird')
    check_none_missing(names)
    names[1] = None
    with pytest.raises(ValueError, match=r"^Row 1 has no 'bird'; .* NA"):
        check_none_missing(names)
    with pytest.raises(ValueError, match=r"^Row 1 of the edges has no 'bird'"):
        check_none_missing(names, ' of the edges')


def test_names_are_plain():
    names = [
        as_name(value)
        for value in (np.int64(3), 3.0, np.float32(3), 0.5, '3', 'a')
    ]
    assert names == [3, 3, 3, '0.5', '3', 'a']
    assert [type(name) for name in names] == [int, int, int, str, str, str]


@pytest.mark.parametrize('column', [[1, '1'], ['1.0', 1.5, '1.5']])
def test_names_that_read_alike_are_refused(column):
    with pytest.raises(ValueError, match="'particle' read alike"):
        number_names(pd.Series(column, dtype=object, name='particle'))
