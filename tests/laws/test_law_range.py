import math
import warnings

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.inference import AnnealingStep, refine
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import Transitions
from pyg_fnri.laws import fit_force_laws
from pyg_fnri.laws.law_range import fit_range, seen_distances
from pyg_fnri.nn import ForceLaw

#: Enough for few systems whose graphs are nearly right.
STAGES = (AnnealingStep(0.1, 0.5), AnnealingStep(0.02, 0.2))


def make_flights(distance, half_width=None):
    """Pairs of particles at rest; three frames."""
    x = torch.zeros(len(distance), 2, 3, 4)
    x[:, 1, :, 0] = distance.view(-1, 1)
    edges = torch.cat(
        [fully_connected(2) + 2 * n for n in range(len(distance))], 1)
    return Transitions([x.flatten(0, 1)], find_choices(edges, undirected=True),
                       0.1, half_width)


def spread(median):
    return median * torch.logspace(-0.3, 0.3, 101)


@pytest.mark.parametrize('median, least', [
    (2.0, 0.03),
    (0.7, 0.03),
    (6.0, 0.03),
    (0.6, 0.003),
    (7.0, 0.3),
    (2e4, 300.0),
    (2e-9, 3e-11),
    (2e15, 3e13),
])
def test_table_moves_to_the_data(median, least):
    law = ForceLaw(2)
    fit_range(law, make_flights(spread(median)))
    assert law.min_distance == pytest.approx(least, rel=1e-12)
    assert law.max_distance == pytest.approx(500 * least, rel=1e-12)
    # In a factor sqrt(10) of 2 m or so.
    assert 0.6 < 0.03 * median / law.min_distance < 6.6


def assert_default(x):
    """All published figures were measured with this table, exactly."""
    law, num_systems = ForceLaw(1), len(x) // 5
    edges = [fully_connected(5) + 5 * n for n in range(num_systems)]
    choices = find_choices(torch.cat(edges, dim=1), undirected=True)
    fit_range(law, Transitions([x], choices, 0.1, 5.0))
    assert (law.min_distance, law.max_distance) == (0.03, 15.0)


def test_default_table_is_for_springs_and_charges(batch):
    assert_default(batch.x)


@pytest.mark.slow
@pytest.mark.parametrize(
    'name', ['springs_charges_fsprings', 'nri_springs', 'nri_charged'])
def test_default_table_is_for_all_simulated_systems(name, tmp_path):
    systems = ParticleSystems(tmp_path, name, num_systems=(64, 1, 1))
    assert_default(systems._data.x)


def test_known_laws_stay_with_other_systems_of_the_same_unit():
    law = ForceLaw(1)
    torch.nn.init.ones_(law.value)
    for median in (0.3, 5.0):
        fit_range(law, make_flights(spread(median)))
        assert law.min_distance == 0.03 and law.value.all()
    # In another unit, they are no laws of these systems.
    fit_range(law, make_flights(spread(2e3)))
    assert law.min_distance == pytest.approx(30.0) and not law.value.any()


def test_distances_seen_are_those_away_from_walls(monkeypatch):
    distance = torch.linspace(1.0, 4.0, 31)
    seen = seen_distances(make_flights(distance, half_width=3.05))
    assert seen.unique().tolist() == pytest.approx(distance[:21].tolist())
    monkeypatch.setattr('pyg_fnri.laws.law_range.NUM_DISTANCES', 20)
    some = seen_distances(make_flights(distance))
    assert len(some) == 20
    assert some.mean().item() == pytest.approx(2.5, abs=1e-6)


def test_nothing_seen():
    law = ForceLaw(1)
    fit_range(law, make_flights(torch.ones(3), half_width=0.5))
    fit_range(law, make_flights(torch.zeros(3)))
    assert law.min_distance == 0.03


def test_tells_of_distances_beyond_the_table():
    law = ForceLaw(1)
    near, far = torch.full((94, ), 2.0), torch.full((6, ), 400.0)
    with pytest.warns(
            UserWarning, match=r'6% of .* from 2 to 400, lie outside '
            r'.* from 0.03 to 15: laws are constant .*Leave out pairs .* '
            r'model\.decoder\.layer\.law'):
        fit_range(law, make_flights(torch.cat([near, far])))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        fit_range(law, make_flights(torch.cat([near, near, far])))


def test_units_do_not_matter(systems, make_model, flip):
    """Of lengths and of times: graphs and laws are the same."""
    batch = Batch.from_data_list(systems[:8])
    batch.x, batch.y = batch.x[:, :17], None
    torch.manual_seed(0)
    guess = flip(batch.edge_label, batch.edge_index, 0.15)
    distance = torch.linspace(0.3, 3.0, 20)
    graphs, laws = [], []
    for length, time in [(1, 1), (1e-4, 1), (1e3, 60)]:
        data = batch.clone()
        data.x = batch.x * length
        data.x[..., 2:] /= time
        model = make_model(guess, laws=False, half_width=5.0 * length)
        layer = model.decoder.layer
        layer.interval *= time
        fit_force_laws(model, data, torch.Generator().manual_seed(0), STAGES)
        assert layer.law.min_distance == pytest.approx(0.03 * length)
        graphs.append(refine(model, data, STAGES, num_restarts=0).edge_type)
        law = layer.law(distance * length).detach()
        laws.append(law * time**2 / length)
    assert (graphs[0] == batch.edge_label).double().mean() > 0.97
    assert laws[0].abs().max() > 0.5
    for graph, law in zip(graphs[1:], laws[1:]):
        assert graph.equal(graphs[0])
        torch.testing.assert_close(law, laws[0], atol=2e-3, rtol=1e-2)


def test_place_in_the_table_is_relative_to_its_length():
    law = ForceLaw(1, min_distance=1.0, max_distance=1e4)
    fit_range(law, make_flights(spread(10**2.72)))
    assert law.min_distance == 1.0
    fit_range(law, make_flights(spread(2.0)))
    assert math.log10(law.min_distance) == pytest.approx(-2)


@pytest.mark.parametrize('ends, moves', [((0.5, 5.0), False),
                                         ((50.0, 500.0), True)])
def test_a_short_table_moves_only_where_that_helps(systems, make_model, ends,
                                                   moves):
    data = systems[0]
    transitions = Transitions([data.x], find_choices(data.edge_index, True),
                              0.1)
    distance = transitions.distance
    transitions.distance = distance * 0.7 / distance.median()
    law = ForceLaw(1, *ends)
    with pytest.warns(UserWarning, match='lie outside those that force laws'):
        fit_range(law, transitions)
    assert ((law.min_distance, law.max_distance) != ends) == moves
    assert law.max_distance < 10
