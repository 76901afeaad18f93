import math

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.nn import FNRI, known_masses, per_mass


@pytest.fixture
def heavy(make_system):
    """Two systems, of 2 and of 3 particles."""
    systems = [make_system(n) for n in (2, 3)]
    for data in systems:
        data.mass = 1.0 + torch.arange(len(data.x))
    return Batch.from_data_list(systems)


def test_masses_follow_their_particles_into_a_batch(heavy):
    assert known_masses(heavy).tolist() == [1, 2, 1, 2, 3]


def test_without_masses_nothing_changes(make_system):
    data = make_system()
    assert known_masses(data) is None
    edge_attr = torch.rand(20, 2)
    assert per_mass(edge_attr, data) is edge_attr


def test_weights_are_over_the_mass_of_the_receiver(heavy):
    edge_attr = torch.rand(heavy.num_edges, 2)
    out = per_mass(edge_attr, heavy)
    for edge, (_, receiver) in enumerate(heavy.edge_index.t().tolist()):
        expected = edge_attr[edge] / heavy.mass[receiver]
        torch.testing.assert_close(out[edge], expected)


def test_masses_in_any_dtype_become_that_of_trajectories(heavy):
    for dtype in (torch.int64, torch.float64, torch.float16):
        heavy.mass = heavy.mass.to(dtype)
        assert known_masses(heavy).dtype == torch.float32


def test_predictions_know_of_masses(heavy):
    model = FNRI(4, 6, [2, 2], hidden_channels=8)
    paths = [model.predict_trajectory(heavy, 2)]
    heavy.mass = torch.ones(5)
    paths.append(model.predict_trajectory(heavy, 2))
    heavy.mass = None
    paths.append(model.predict_trajectory(heavy, 2))
    assert torch.equal(paths[1], paths[2])
    # Those of mass 1 move as before, until others that do not come to them.
    light = torch.tensor([True, False, True, False, False])
    assert torch.equal(paths[0][light, 0], paths[1][light, 0])
    assert (paths[0] != paths[1])[~light].any(-1).all()


@pytest.mark.parametrize('mass, message', [
    (torch.ones(4), r'each of the 5 particles, of shape \[5\], .* \[4\]'),
    (torch.ones(1), r'but got the shape \[1\]'),
    (torch.ones(5, 1), r'but got the shape \[5, 1\]'),
    (torch.tensor(2.0), r'but got the shape \[\]'),
    (torch.tensor([1, 2, 0, 1, 1]), 'that of particle 2 is 0; leave'),
    (torch.tensor([1., -2., 0., 1., 1.]), 'that of particle 1 is -2.0'),
    (torch.tensor([1., 1., 1., 1., math.nan]), 'that of particle 4 is nan'),
    (torch.tensor([math.inf, 1., 1., 1., 1.]), 'that of particle 0 is inf'),
])
def test_masses_that_are_none(make_system, mass, message):
    data = make_system()
    data.mass = mass
    with pytest.raises(ValueError, match=message):
        known_masses(data)


@pytest.mark.parametrize('mass, message', [
    ([1.0] * 5, 'but got list'),
    (torch.ones(5).bool(), 'but got torch.bool'),
    (torch.ones(5).cfloat(), 'but got torch.complex64'),
])
def test_masses_of_another_kind(make_system, mass, message):
    data = make_system()
    data.mass = mass
    with pytest.raises(TypeError, match=message):
        per_mass(torch.ones(20, 2), data)


@pytest.mark.parametrize('unit', [1e-26, 1e-7, 1e30])
def test_masses_are_in_a_unit_of_their_size(heavy, unit):
    heavy.mass = heavy.mass * unit
    with pytest.raises(ValueError, match='divide all by that of a typical'):
        known_masses(heavy)
