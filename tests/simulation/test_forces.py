import numpy as np
import pytest

from pyg_fnri.simulation import Charge, FiniteSpring, SoftCharge, Spring


@pytest.mark.parametrize('force, distance, expected',
                         [(Spring(), 2.0, -0.2), (Charge(), 2.0, 0.05),
                          (FiniteSpring(stiffness=3.0, length=0.5), 2.0, -4.5)])
def test_magnitudes_are_the_papers_laws(force, distance, expected):
    assert force.magnitude(distance) == pytest.approx(expected)


def test_a_soft_charge_has_no_pole_and_is_a_charge_from_afar():
    soft = SoftCharge(strength=0.2, softening=0.1)
    distance = np.array([0.3, 1.0, 10.0])
    ratio = soft.magnitude(distance) / Charge(0.2).magnitude(distance)
    assert np.allclose(ratio, [0.8538, 0.9852, 0.99985], atol=1e-4)
    assert soft.magnitude(0.0) == 0.0
    # The force is the slope of the potential energy.
    energy = 0.2 / np.sqrt((0.25 + np.array([-1e-5, 1e-5]))**2 + 0.1**2)
    slope = -np.diff(energy).item() / 2e-5
    assert soft.magnitude(0.25) == pytest.approx(slope, rel=1e-6)


def sample(force, num_systems):
    return force.sample_interactions(np.random.default_rng(0), num_systems, 5)


def test_number_of_springs_is_uniform():
    graphs = sample(Spring(), 22_000)
    frequency = np.bincount(graphs.sum((1, 2)) // 2, minlength=11)
    # 2000 expected of each of 0 ... 10, with a standard deviation of 43.
    assert len(frequency) == 11
    assert (np.abs(frequency - 2000) < 200).all()
    share = graphs.mean(0)[np.tril_indices(5, -1)]
    assert (np.abs(share - 0.5) < 0.02).all()


def test_number_of_charges_is_uniform_and_their_pairs_all_interact():
    graphs = sample(Charge(), 20_000)
    degree = graphs.sum(2)
    charged = degree > 0
    complete = charged[:, :, None] & charged[:, None] & ~np.eye(5, dtype=bool)
    assert (graphs == complete).all()
    # One charge has no pair. 4000 expected of each size, deviation 57.
    frequency = np.bincount(degree.max(1) + 1, minlength=6)[1:]
    assert (np.abs(frequency - 4000) < 300).all()
