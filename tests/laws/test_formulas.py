"""Laws in words."""
import math

import pytest
import torch

from pyg_fnri.laws import best_formula, formulas
from pyg_fnri.laws.formulas import SHAPES, Formula, with_error

DISTANCE = torch.logspace(-0.7, 0.8, 22, dtype=torch.double)
#: Parameters in the order of SHAPES.
TRUE = [(-0.4, ), (-1., ), (0.7, ), (-1., 0.9), (1.2, 2.4), (0.8, 1.1),
        (0.8, 1.3), (1., 0.6), (0.9, 0.8), (-2., 1.2), (1.5, 1.1), (-1., 2.),
        (0.9, 0.25), (-3., 1.2, 0.8), (1.3, 1.7)]


def noisy(law, error, seed=0):
    noise = torch.randn(len(law), generator=torch.Generator().manual_seed(seed),
                        dtype=torch.double)
    return law + error * noise, torch.diag(error**2)


@pytest.mark.parametrize('shape, true', list(zip(SHAPES, TRUE)),
                         ids=[shape.text for shape in SHAPES])
def test_each_formula_is_found_with_its_numbers(shape, true):
    law = shape.value(DISTANCE, *torch.tensor(true, dtype=torch.double))
    error = 0.003 * law.abs() + 0.001 * law.abs().median()
    found = best_formula(DISTANCE, *noisy(law, error))
    assert found.text == shape.text
    for value, (name, guess) in zip(true, found.parameters.items()):
        assert abs(guess - value) < 4 * found.errors[name]
        assert abs(guess - value) < 0.12 * abs(value)


def test_intervals_of_parameters_cover_the_truth(monkeypatch):
    (shape, ) = [shape for shape in SHAPES if shape.text == 'a / r^p']
    monkeypatch.setattr(formulas, 'SHAPES', (shape, ))
    law, inside = 1.5 * DISTANCE**-2, []
    for seed in range(40):
        found = best_formula(DISTANCE, *noisy(law, 0.02 * law, seed))
        inside.append(
            abs(found.parameters['p'] - 2) < 1.645 * found.errors['p'])
    assert 0.82 <= sum(inside) / len(inside) <= 0.97


def test_distances_without_data_do_not_count():
    law = 2 / DISTANCE**2
    value, covariance = noisy(law, 0.005 * law)
    value[:4], value[-3:] = 17., -9.
    covariance.diagonal()[:4] = covariance.diagonal()[-3:] = 1e6
    found = best_formula(DISTANCE, value, covariance)
    assert found.text == 'a / r^p' and abs(found.parameters['p'] - 2) < 0.05
    assert best_formula(DISTANCE, value, 1e6 * covariance) is None


def test_correlated_errors_count_as_such():
    shared = 0.1 * torch.ones(len(DISTANCE), len(DISTANCE), dtype=torch.double)
    own = 1e-5 * torch.eye(len(DISTANCE), dtype=torch.double)
    found = best_formula(DISTANCE, 0.3 - DISTANCE, shared + own)
    assert found.text == 'k r' and abs(found.parameters['k'] + 1) < 1e-3


def test_what_no_formula_is_is_not_named():
    law = (3 * DISTANCE).sin() + 1 / DISTANCE + (DISTANCE > 2)
    assert best_formula(DISTANCE, *noisy(law,
                                         0.003 * law.abs() + 0.003)) is None


def test_a_formula_is_said_with_errors():
    law = -DISTANCE
    found = best_formula(DISTANCE, *noisy(law, 0.01 * law.abs()))
    assert str(found).startswith('f(r) = -') and str(found).endswith(') r')
    power = Formula('a / r^p', dict(a=1., p=-2.), dict(a=0.1, p=0.01), 0., 1.)
    assert str(power) == 'f(r) = 1.00(10) r^2.000(10)'
    said = [
        with_error(*pair) for pair in ((0.9981, 0.0021), (-2.0, 0.013),
                                       (1234., 30.), (2., math.inf))
    ]
    assert said == ['0.998(2)', '-2.000(13)', '1230(30)', '2']


@pytest.mark.parametrize('shape, true', list(zip(SHAPES, TRUE)),
                         ids=[shape.text for shape in SHAPES])
def test_a_formula_is_the_same_in_any_unit(shape, true, unit=1e-9):
    law = shape.value(DISTANCE, *torch.tensor(true, dtype=torch.double))
    error = 0.003 * law.abs() + 0.001 * law.abs().median()
    value, covariance = noisy(law, error)
    found, other = (best_formula(s * DISTANCE, s * value, s**2 * covariance)
                    for s in (1., unit))
    assert other.text == found.text and other.chi2 == pytest.approx(
        found.chi2, rel=1e-3)
    for (name, guess), place in zip(found.parameters.items(),
                                    (None, *shape.is_distance)):
        if place:
            assert other.parameters[name] == pytest.approx(unit * guess)
            assert other.errors[name] == pytest.approx(unit *
                                                       found.errors[name])
