import math

import numpy as np
import pytest

from pyg_fnri.experiments.standard_error import (
    difference,
    smallest_within_one_error,
)


def test_mean_and_standard_error_by_hand():
    # One seed: deviations -3, -1, 1, 3; variance 20 / 3, of four systems.
    found = difference(np.array([[1., 3., 5., 7.]]))
    assert found.mean == 4 and found.error == pytest.approx(math.sqrt(20 / 12))
    # Seeds add their own: means 3 and 5, variance 2, of two.
    found = difference(np.array([[0., 2., 4., 6.], [2., 4., 6., 8.]]))
    assert found.mean == 4
    assert found.error == pytest.approx(math.sqrt(20 / 12 + 2 / 2))


def test_differences_are_taken_by_system():
    systems = np.array([[0., 100., -50., 7.]])
    found = difference(systems + [[1., 2., 1., 2.]], systems)
    # Far less than systems differ: deviations of a half, variance 1 / 3.
    assert found.mean == 1.5
    assert found.error == pytest.approx(math.sqrt(1 / 12))
    same = difference(systems, systems)
    assert same == (0, 0)


def test_seeds_of_both_sides_count():
    values = np.array([[1., 1.], [3., 3.]])
    others = np.array([[0., 0.], [4., 4.], [2., 2.]])
    found = difference(values, others)
    assert found.mean == 0
    assert found.error == pytest.approx(math.sqrt(2 / 2 + 4 / 3))


def test_divergence_is_infinitely_bad():
    mean, error = difference(np.array([[1., math.inf]]))
    assert mean == math.inf and math.isnan(error)


@pytest.mark.parametrize('gap, chosen', [(0.9, 'small'), (1.1, 'best')])
def test_one_standard_error_rule_by_hand(gap, chosen):
    best = np.array([[5., 1., 3., 9.]])
    # Differences by system: variance 4, of four systems: an error of 1.
    spread = np.array([[1., 1., -1., -1.]]) * math.sqrt(3)
    values = {'large': best + 0.1, 'best': best, 'small': best + gap + spread}
    found = smallest_within_one_error(values, ['small', 'best', 'large'])
    assert found == (chosen, 'best')


def test_worse_candidates_are_not_taken_for_their_size():
    values = {
        'small': np.array([[9., 9.5]]),
        'middle': np.array([[1., 2.]]),
        'diverges': np.array([[0., math.inf]]),
    }
    order = ['diverges', 'small', 'middle']
    assert smallest_within_one_error(values, order) == ('middle', 'middle')


def test_no_choice_without_a_finite_error():
    values = {'a': np.array([[math.inf, 1.]])}
    with pytest.raises(ValueError, match='every candidate diverged'):
        smallest_within_one_error(values, ['a'])


def test_what_has_no_standard_error_is_told():
    with pytest.raises(ValueError, match='at least 2 held-out systems'):
        difference(np.ones((2, 1)))
    with pytest.raises(ValueError, match=r'got \[1, 2\] and \[1, 3\]'):
        difference(np.ones((1, 2)), np.ones((1, 3)))
