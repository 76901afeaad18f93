import math

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.nn import (FNRI, MinMaxScaling, StandardScaling, known_masses,
                         per_mass)

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
@pytest.mark.parametrize('num_features, size', [(6, 3), (3, 1)])
def test_features_of_a_quantity_stay_alike(scaling, num_features, size):
    x = trajectories(num_features)
    fitted = scaling(num_features).fit(x)
    scale = fitted.scale.split(size)
    for part, quantity in zip(scale, x.split(size, dim=-1)):
        alone = scaling(1).fit(quantity.flatten()[:, None, None])
        torch.testing.assert_close(part, alone.scale.expand(size))
    with pytest.raises(ValueError, match='features'):
        fitted(x[..., :1])


@scalings
def test_inverse_goes_back(scaling):
    x = torch.randn(7, 3, 4)
    assert torch.equal(scaling(4)(x), x)  # As new, it changes nothing.
    scaling = scaling(4).fit(trajectories())
    torch.testing.assert_close(scaling.inverse(scaling(x)), x, atol=1e-5,
                               rtol=0)


@scalings
def test_fit_needs_finite_numbers_that_change(scaling):
    scaling, x = scaling(4), trajectories()
    x[1, 2, 3] = math.nan
    with pytest.raises(ValueError, match='Features 2 to 3'):
        scaling.fit(x)
    x[..., :2] = 0.1
    with pytest.raises(ValueError, match='Features 0 to 1'):
        scaling.fit(x)


# Masses #####################################################################


@pytest.fixture
def heavy(make_system):
    """Two systems, of 2 and of 3 particles."""
    systems = [make_system(n) for n in (2, 3)]
    for data in systems:
        data.mass = 1 + torch.arange(len(data.x))
    return Batch.from_data_list(systems)


def test_weights_are_over_the_mass_of_the_receiver(heavy):
    assert known_masses(heavy).tolist() == [1, 2, 1, 2, 3]
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
    # Those of mass 1 move as before, until others that do not come to them.
    light = torch.tensor([True, False, True, False, False])
    assert torch.equal(paths[0][light, 0], paths[1][light, 0])
    assert (paths[0] != paths[1])[~light].any(-1).all()


@pytest.mark.parametrize('mass', [
    torch.ones(1),
    torch.tensor([1, -1, -1, 1, 1]),
    torch.tensor([math.inf, 1., 1., 1., math.nan]), 1e30 * torch.ones(5)
])
def test_impossible_masses(make_system, mass):
    data = make_system()
    data.mass = mass
    with pytest.raises(ValueError, match='mass'):
        known_masses(data)
