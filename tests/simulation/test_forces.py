from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

from pyg_fnri.simulation import Charge, FiniteSpring, Force, SoftCharge, Spring


def test_magnitudes_are_the_papers_laws():
    distance = np.array([0.5, 1.0, 2.0])
    assert np.allclose(Spring().magnitude(distance), [-0.05, -0.1, -0.2])
    assert np.allclose(Charge().magnitude(distance), [0.8, 0.2, 0.05])
    assert np.allclose(FiniteSpring().magnitude(distance), [0.05, 0.0, -0.1])


def test_constants_scale_the_laws():
    assert Spring(stiffness=3.0).magnitude(2.0) == -6.0
    assert Charge(strength=3.0).magnitude(2.0) == 0.75
    assert FiniteSpring(stiffness=3.0, length=0.5).magnitude(2.0) == -4.5


def test_a_soft_charge_has_no_pole_and_is_a_charge_from_afar():
    soft = SoftCharge(strength=0.2, softening=0.1)
    distance = np.array([0.3, 1.0, 10.0])
    ratio = soft.magnitude(distance) / Charge(0.2).magnitude(distance)
    assert np.allclose(ratio, [0.8538, 0.9852, 0.99985], atol=1e-4)
    assert soft.magnitude(0.0) == 0.0
    close = soft.magnitude(np.linspace(0, 1, 1001))
    assert close.max() == pytest.approx(0.2 * 2 / 3**1.5 / 0.1**2, rel=1e-4)
    # The force is the slope of the potential energy.
    energy = 0.2 / np.sqrt((0.25 + np.array([-1e-5, 1e-5]))**2 + 0.1**2)
    slope = -np.diff(energy).item() / 2e-5
    assert soft.magnitude(0.25) == pytest.approx(slope, rel=1e-6)


def test_repr_holds_every_constant():
    assert str(Spring()) == 'Spring(stiffness=0.1)'
    assert str(Charge(0.3)) == 'Charge(strength=0.3)'
    assert str(FiniteSpring()) == 'FiniteSpring(stiffness=0.1, length=1.0)'


def test_forces_compare_by_value_and_do_not_change():
    assert Spring() == Spring(0.1) != Spring(0.2)
    with pytest.raises(FrozenInstanceError):
        Spring().stiffness = 1.0


@pytest.mark.parametrize('value', [np.nan, np.inf, np.float32('nan')])
def test_constants_must_be_finite(value):
    with pytest.raises(ValueError, match='length is (nan|inf), expected a fin'):
        FiniteSpring(length=value)


def test_a_force_needs_its_magnitude():
    with pytest.raises(TypeError, match='magnitude'):
        Force()


def test_a_new_force_interacts_as_springs_and_charges_in_a_group():
    @dataclass(frozen=True)
    class Constant(Force):
        def magnitude(self, distance):
            return 1.0

    def share(force):
        rng = np.random.default_rng(0)
        interacts = force.sample_interactions(rng, 4000, 5)
        assert interacts.shape == (4000, 5, 5)
        return interacts.mean() * 25 / 20

    # Standard errors over 4000 graphs are below 0.006.
    assert share(Constant()) == share(Spring()) == share(FiniteSpring())
    assert abs(share(Spring()) - 0.5) < 0.02
    assert abs(share(Charge()) - 0.4) < 0.02
