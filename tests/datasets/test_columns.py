import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets.columns import Columns

COLUMNS = Columns('trial', 't', 'bird', ['x', 'y'], 'weight')


def table(**changes):
    columns = dict.fromkeys(['t', 'bird', 'trial', 'x', 'y', 'weight'], 1.0)
    return pd.DataFrame({**columns, **changes}, index=range(3))


def test_what_tells_rows_apart_and_what_holds_numbers():
    assert COLUMNS.keys == ['t', 'bird', 'trial']
    assert COLUMNS.numbers == ['x', 'y', 'weight']  # The mass is the last.
    alone = Columns(None, 't', 'bird', ['x'])
    assert (alone.keys, alone.numbers) == (['t', 'bird'], ['x'])
    COLUMNS.check(table(comment=np.nan))
    alone.check(table()[['x', 'bird', 't']])


@pytest.mark.parametrize('name, argument', [
    ('t', 'time=NAME'),
    ('bird', 'particle=NAME'),
    ('trial', 'system=NAME'),
    ('y', 'position=NAMES and velocity=NAMES'),
    ('weight', 'mass=NAME'),
])
def test_columns_that_are_not_there_once(name, argument):
    without, twice = table().drop(columns=name), table()
    twice.insert(0, name, 2.0, allow_duplicates=True)
    for frame in (without, twice):
        with pytest.raises(ValueError, match=f"one column '{name}'.*"
                           f"by {argument}"):
            COLUMNS.check(frame)


def test_rows_that_cannot_be_told_apart():
    for name in COLUMNS.keys:
        with pytest.raises(ValueError, match=f"Row 1 has no '{name}'"):
            COLUMNS.check(table(**{name: [1.0, np.nan, 2.0]}))
    # What is missing of a particle at an instant is not looked at here.
    COLUMNS.check(table(x=np.nan, weight=np.nan))
    with pytest.raises(ValueError, match='no rows'):
        COLUMNS.check(table()[:0])
