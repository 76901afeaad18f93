import json

import numpy as np
import pandas as pd
import pytest
import torch

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.evaluation import law_curves
from pyg_fnri.metrics import Relabelling
from pyg_fnri.nn import ForceLaw, ForceLawDecoder, StandardScaling
from pyg_fnri.nn.rate_law import rate_laws
from pyg_fnri.simulation import Charge, Kuramoto, Spring
from pyg_fnri.transforms import SplitTrajectory

SAME = Relabelling((2, 2), ((0, 0), (0, 1), (1, 0), (1, 1)))
#: Predicted layer 0 is the true layer 1.
SWAPPED = Relabelling((2, 2), ((0, 0), (1, 0), (0, 1), (1, 1)))
#: Predicted layer 0 tells springs and charges from both or none.
MIXED = Relabelling((2, 2), ((0, 0), (1, 1), (0, 1), (1, 0)))


def make_layer(*laws):
    """A decoder with these functions of distance for laws."""
    law = ForceLaw(len(laws), num_knots=200)
    knots = law.knots.double().numpy()
    for value, function in zip(law.value.data, laws):
        value.copy_(torch.from_numpy(np.array(function(knots))))
    return ForceLawDecoder(law, StandardScaling(4))


@pytest.fixture
def systems(tiny_systems):
    return tiny_systems('test')


@pytest.mark.parametrize('laws, relabelling',
                         [((Spring().magnitude, Charge().magnitude), SAME),
                          ((Charge().magnitude, Spring().magnitude), SWAPPED)])
def test_right_laws_are_in_the_order_of_the_forces(systems, laws, relabelling):
    curves = law_curves(make_layer(*laws), systems, relabelling)
    assert curves.names == ['spring', 'charge']
    known = curves.distance > 0.05  # Below its table, a law is constant.
    torch.testing.assert_close(curves.learned[:, known], curves.true[:, known],
                               rtol=1e-2, atol=1e-4)
    torch.testing.assert_close(curves.true[0], -0.1 * curves.distance)
    assert len(curves.error) == 2 and max(curves.error) < 2e-3


def test_true_forces_are_judged_where_they_act(systems):
    layer = make_layer(Spring().magnitude, Charge().magnitude)
    curves = law_curves(layer, systems, SAME)
    label = torch.cat([data.edge_label for data in systems])
    for seen, num_pairs in zip(curves.seen, label.sum(0).tolist()):
        assert len(seen) == num_pairs * 98
    charged = [(data.x[1, 0, :2] - data.x[0, 0, :2]).norm() for data in systems
               if data.edge_label[0, 1]]
    assert charged
    for distance in charged:
        assert (curves.seen[1] - distance).abs().min() < 1e-6


@pytest.mark.parametrize('relabelling, names',
                         [(None, ['law 0', 'law 1']),
                          (MIXED, ['law 0', 'law 1']),
                          (SWAPPED, ['spring', 'charge'])])
def test_laws_that_stand_for_no_force_have_numbers(systems, tmp_path,
                                                   relabelling, names):
    layer = make_layer(Charge().magnitude, Spring().magnitude)
    curves = law_curves(layer, systems, relabelling)
    assert curves.names == names
    curves.save(str(tmp_path / 'laws.csv'))
    table = pd.read_csv(tmp_path / 'laws.csv')
    np.testing.assert_allclose(table['distance_m'], curves.distance)
    np.testing.assert_allclose(table[names].T, curves.learned, rtol=1e-5)
    assert ('spring_true' in table) == (relabelling is SWAPPED)
    if relabelling is not SWAPPED:
        assert curves.true is None and curves.error is None
        torch.testing.assert_close(curves.learned, layer.law(curves.distance))


def test_types_of_a_layer_have_a_force_each(tmp_path):
    systems = ParticleSystems(str(tmp_path), 'nri_charged', 'test',
                              num_systems=(1, 1, 2),
                              transform=SplitTrajectory(49))
    repulsion, attraction = systems.forces
    layer = make_layer(lambda r: 0.9 * attraction.magnitude(r),
                       repulsion.magnitude)
    curves = law_curves(layer, systems, Relabelling((3, ),
                                                    ((0, ), (2, ), (1, ))))
    assert curves.names == ['charge 1', 'charge 2']
    first, second = curves.error
    assert first < 2e-3 and second == pytest.approx(0.1, rel=0.02)
    # A type of its own for what has no force.
    curves = law_curves(layer, systems, Relabelling((3, ),
                                                    ((1, ), (0, ), (2, ))))
    assert curves.names == ['law 0', 'law 1'] and curves.error is None


def test_particles_in_one_place_have_no_distance(systems):
    layer = make_layer(Spring().magnitude, Charge().magnitude)
    data = systems[0]
    data.x[1, 0] = data.x[0, 0]
    curves = law_curves(layer, [data])
    assert curves.seen[0].min() > 0 and curves.distance.isfinite().all()


def test_laws_and_terms_are_said_with_their_errors(systems, tmp_path):
    layer = make_layer(Spring().magnitude, Charge().magnitude)
    assert law_curves(layer, systems).standard_error is None
    layer.add_term('drag')
    layer.add_term('transverse')
    layer.coefficients['drag'].data[0] = -0.2
    layer.laws['transverse'].value.data[1] = 3 * layer.laws['transverse'].knots
    size = 2 * 2 * layer.law.num_knots
    # Any law is wrong by a thousandth everywhere, and so is drag.
    layer.spread = torch.full((1, size + 3), 1e-3)
    curves = law_curves(layer, systems, SAME)
    # A law that is zero everywhere is none.
    assert curves.names == ['spring', 'charge', 'charge transverse']
    assert curves.learned.size() == curves.standard_error.size()
    assert len(curves.true) == len(curves.error) == 2
    assert curves.standard_error[0].min() >= 1e-3 * (1 - 1e-5)
    numbers = curves.metrics()
    value, error = numbers['terms']['drag']['v'].values()
    assert value == pytest.approx(-0.2) and error == pytest.approx(1e-3)
    spring = numbers['laws']['spring']
    assert spring['formula'] == 'k r'
    assert spring['parameters']['k'] == pytest.approx(-0.1, rel=1e-2)
    transverse = numbers['laws']['charge transverse']
    assert transverse['parameters']['k'] == pytest.approx(3, rel=1e-2)
    json.dumps(numbers)
    layer.laws['transverse'].value.data[1] = 1e-3
    words = law_curves(layer, systems, SAME).words['charge transverse']
    assert words.startswith('f(r) = 0 within')  # Its error.
    curves.save(str(tmp_path / 'laws.csv'))
    table = pd.read_csv(tmp_path / 'laws.csv')
    assert 'charge transverse_true' not in table
    np.testing.assert_allclose(table['charge transverse_error'],
                               curves.standard_error[2], rtol=1e-5)


def test_phases_are_apart_by_angles(tmp_path, uncompiled_kuramoto):
    systems = ParticleSystems(str(tmp_path), 'kuramoto', 'test',
                              num_systems=(1, 1, 2), system=Kuramoto(),
                              transform=SplitTrajectory(49))
    size = systems[0].x.size(-1)
    layer = rate_laws(1, StandardScaling(size), circle=True, measured=size > 3,
                      num_constants=size - 3)
    with torch.no_grad():
        layer.law.stretch(np.pi)
        layer.law.value.copy_(0.5 * layer.law.knots.sin())
    layer.spread = torch.full((1, layer.law.num_knots), 1e-3)
    curves = law_curves(layer, systems)
    assert 3 < curves.distance.max() <= np.pi
    assert curves.formulas[0].text == 'a sin(w r)'
