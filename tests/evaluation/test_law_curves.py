import numpy as np
import pandas as pd
import pytest
import torch

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.evaluation import law_curves
from pyg_fnri.metrics import Relabelling
from pyg_fnri.nn import ForceLaw, ForceLawDecoder, StandardScaling
from pyg_fnri.simulation import Charge, Spring
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
