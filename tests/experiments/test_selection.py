import math

import pytest
from made_up_runs import ONE, THREE, TWO, make_runs

from pyg_fnri.experiments.selection import select


def test_smallest_of_the_equally_good_is_taken():
    # In any order; THREE a little better than TWO by chance.
    selection = select(make_runs({THREE: 0.999, ONE: 2., TWO: 1.}))
    assert [row.candidate for row in selection.rows] == [ONE, TWO, THREE]
    assert selection.choice.candidate == TWO
    assert selection.best.candidate == THREE
    assert selection.horizon == 10 and selection.num_systems == 40
    assert selection.warnings == []
    assert math.exp(selection.rows[0].behind.mean) == pytest.approx(2, rel=0.01)


def test_clearly_better_is_taken_though_larger():
    # A tenth is little beside what systems differ by, a factor of 100.
    selection = select(make_runs({ONE: 1.1, TWO: 1.}))
    assert selection.choice.candidate == TWO
    error = selection.choice.errors[10]
    assert error.error > 0.1 * error.mean


def test_nothing_to_compare_is_told():
    for runs in ({}, {ONE: []}):
        with pytest.raises(ValueError, match='nothing to compare'):
            select(runs)
    runs = make_runs({ONE: math.inf, TWO: 1.})
    assert select(runs).choice.candidate == TWO
    with pytest.raises(ValueError, match='every candidate diverged'):
        select({ONE: runs[ONE]})
