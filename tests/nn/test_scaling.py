import math

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.nn import (
    FNRI,
    MinMaxScaling,
    Scaling,
    StandardScaling,
    known_masses,
    per_mass,
)

scalings = pytest.mark.parametrize('scaling', [MinMaxScaling, StandardScaling])


def trajectories(num_features=4):
    """Positions around 3 and velocities around -20, of other spread."""
    half = num_features // 2
    offset = torch.tensor([3.0] * half + [-20.0] * (num_features - half))
    scale = torch.tensor([2.0] * half + [0.1] * (num_features - half))
    return offset + scale * torch.randn(30, 20, num_features)


def test_what_becomes_one_of_each_quantity():
    x = trajectories()
    for quantity in MinMaxScaling(4).fit(x)(x).split(2, dim=-1):
        assert quantity.min().item() == pytest.approx(-1, abs=1e-4)
        assert quantity.max().item() == pytest.approx(1, abs=1e-4)
    for quantity in StandardScaling(4).fit(x)(x).split(2, dim=-1):
        assert quantity.mean().item() == pytest.approx(0, abs=1e-4)
        assert quantity.std().item() == pytest.approx(1, abs=1e-4)


@scalings
def test_directions_in_space_stay_alike(scaling):
    scaling = scaling(6).fit(trajectories(6))
    for buffer in (scaling.offset, scaling.scale):
        assert len(set(buffer[:3].tolist())) == 1
        assert len(set(buffer[3:].tolist())) == 1
        assert buffer[0] != buffer[3]


@scalings
@pytest.mark.parametrize('num_features', [1, 3])
def test_an_odd_number_of_features_is_scaled_one_by_one(scaling, num_features):
    x = trajectories(num_features)
    scaling_of_all = scaling(num_features).fit(x)
    for i in range(num_features):
        of_one = scaling(1).fit(x[..., i:i + 1])
        assert scaling_of_all.offset[i] == of_one.offset[0]
        assert scaling_of_all.scale[i] == of_one.scale[0]


@scalings
@pytest.mark.parametrize('size', [(7, 4), (7, 3, 4), (4, )])
def test_inverse_goes_back(scaling, size):
    x = torch.randn(size)
    assert torch.equal(scaling(4)(x), x)  # As new, it changes nothing.
    scaling = scaling(4).fit(trajectories())
    torch.testing.assert_close(scaling.inverse(scaling(x)), x, atol=1e-5,
                               rtol=0)
    other = type(scaling)(4)
    other.load_state_dict(scaling.state_dict())
    assert torch.equal(other(x), scaling(x))
    assert not list(scaling.parameters())


def test_a_new_scaling_is_one_method():
    class Halving(Scaling):
        def statistics(self, x):
            return torch.tensor(1.0), torch.tensor(2.0)

    scaling = Halving(4).fit(trajectories())
    assert torch.equal(scaling(torch.full((4, ), 5.0)), torch.full((4, ), 2.0))


@scalings
@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_fit_needs_finite_numbers_that_change(scaling, value):
    scaling, x = scaling(4), trajectories()
    x[1, 2, 3] = value
    with pytest.raises(ValueError, match='Features 2 to 3'):
        scaling.fit(x)
    # The positions were fine, but half a fit is none.
    assert torch.equal(scaling.scale, torch.ones(4))
    assert torch.equal(scaling.offset, torch.zeros(4))
    x[..., :2] = 0.1
    with pytest.raises(ValueError, match='Features 0 to 1'):
        scaling.fit(x)


@pytest.mark.parametrize('size', [(5, 6, 3), (5, 6, 1)])
def test_another_number_of_features(size):
    scaling, x = MinMaxScaling(4), torch.randn(size)
    for function in (scaling.fit, scaling):
        with pytest.raises(ValueError, match='4 features'):
            function(x)


# Masses #####################################################################


@pytest.fixture
def heavy(make_system):
    """Two systems, of 2 and of 3 particles."""
    systems = [make_system(n) for n in (2, 3)]
    for data in systems:
        data.mass = 1 + torch.arange(len(data.x))
    return Batch.from_data_list(systems)


def test_masses_follow_their_particles_into_a_batch(heavy):
    assert known_masses(heavy).tolist() == [1, 2, 1, 2, 3]
    assert known_masses(heavy).dtype == torch.float32


def test_weights_are_over_the_mass_of_the_receiver(heavy):
    edge_attr = torch.rand(heavy.num_edges, 2)
    out = per_mass(edge_attr, heavy)
    for edge, (_, receiver) in enumerate(heavy.edge_index.t().tolist()):
        expected = edge_attr[edge] / heavy.mass[receiver]
        torch.testing.assert_close(out[edge], expected)
    heavy.mass = None
    assert known_masses(heavy) is None
    assert per_mass(edge_attr, heavy) is edge_attr


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
    (torch.ones(4), 'each of the 5 particles'),
    (torch.ones(1), 'each of the 5 particles'),
    (torch.tensor(2.0), 'each of the 5 particles'),
    (torch.tensor([1, 2, 0, 1, 1]), 'above 0'),
    (torch.tensor([1., 1., 1., 1., math.nan]), 'above 0'),
    (torch.tensor([math.inf, 1., 1., 1., 1.]), 'above 0'),
    (1e-26 * torch.ones(5), 'typical'),
    (1e30 * torch.ones(5), 'typical'),
])
def test_impossible_masses(make_system, mass, message):
    data = make_system()
    data.mass = mass
    with pytest.raises(ValueError, match=message):
        known_masses(data)
