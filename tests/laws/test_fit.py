import copy
import warnings

import numpy as np
import pytest
import torch
from known_laws import LAWS, batches, generator, second_order, share_right
from outside_assumptions import CASES
from torch_geometric.data import Batch
from verdicts import TWO

from pyg_fnri.data import fully_connected
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.inference import AnnealingStep, refine
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.laws import fit_force_laws
from pyg_fnri.laws.fit import LawFit, fit_laws, fit_range, fit_scale
from pyg_fnri.metrics import relative_law_error
from pyg_fnri.nn import ForceLaw, ForceLawDecoder, StandardScaling


@pytest.fixture
def transitions(batch):
    choices = find_choices(batch.edge_index, undirected=True)
    return second_order([batch.x, batch.y], choices, 0.1, 5.0)


@pytest.fixture
def truth(batch, transitions):
    """The true channels."""
    return batch.edge_label[transitions.choices.edge].float()


def make_layer(num_channels=2, num_features=4):
    return ForceLawDecoder(ForceLaw(num_channels),
                           StandardScaling(num_features), half_width=5.0)


def fit(layer, transitions, channels, tolerances=(0.1, 0.002), seed=0,
        **kwargs):
    fit_scale(layer, transitions)
    random = generator(seed)
    for tolerance in tolerances:
        fit_laws(layer, transitions, channels, AnnealingStep(tolerance, 0.0),
                 random, **kwargs)


def law_error(law, transitions, true=LAWS['fnri']):
    """Relative errors of laws at the distances of pairs."""
    distance = torch.logspace(-1.5, 1.2, 400)
    table = np.stack([f(distance.numpy()) for f in true])
    seen = transitions.distance[::7, ::5, 1].flatten()
    return relative_law_error(distance, law(distance).detach(), table, seen)


# Least squares.


def test_scale_is_the_typical_change_of_what_moves(transitions):
    layer = make_layer()
    fit_scale(layer, transitions)
    change = transitions.change[transitions.valid].abs()
    smaller = (change < layer.scale / 1.4826)[change > 1e-2 * layer.scale]
    # As half of a Gaussian's would be.
    assert smaller.double().mean().item() == pytest.approx(0.5, abs=0.02)
    scale = layer.scale.clone()
    assert scale[0] == scale[1] < scale[2] == scale[3]
    # Free particles, but for rounding, change little.
    transitions.change = torch.cat([
        transitions.change,
        *[1e-4 * scale * torch.randn_like(transitions.change)] * 15
    ])
    transitions.valid = transitions.valid.repeat(16, 1)
    fit_scale(layer, transitions)
    torch.testing.assert_close(layer.scale, scale, rtol=0.3, atol=0)


@pytest.mark.parametrize('undirected', [True, False])
def test_true_graphs_give_the_true_laws(batch, undirected):
    choices = find_choices(batch.edge_index, undirected)
    transitions = second_order([batch.x, batch.y], choices, 0.1, 5.0)
    layer = make_layer()
    fit(layer, transitions, batch.edge_label[choices.edge].float())
    assert (law_error(layer.law, transitions) < 0.02).all()
    # They go on smoothly where there are no data.
    assert layer.law(torch.tensor(14.0))[0] < -0.8  # The spring's is -1.4.
    assert layer.law(torch.tensor(0.05))[1] > 10  # The charge's is 80.


def test_corrupted_transitions_do_little_harm(transitions, truth):
    bad = torch.rand(transitions.valid.size()) < 0.01
    transitions.change[bad] += torch.randn(int(bad.sum()), 4) * torch.tensor(
        [0.1, 0.1, 2.0, 2.0])
    layer = make_layer()
    fit(layer, transitions, truth)
    assert (law_error(layer.law, transitions) < 0.02).all()
    # Because of the robust weights.
    fit(layer, transitions, truth, tolerances=(1e6, ))
    assert (law_error(layer.law, transitions) > 0.1).any()


def test_transitions_are_drawn_from_those_away_from_walls(transitions, truth):
    def table(transitions, seed=0, **kwargs):
        layer = make_layer()
        fit(layer, transitions, truth, (0.1, ), seed, **kwargs)
        return layer.law.value.data

    assert torch.equal(table(transitions, seed=1), table(transitions, seed=1))
    assert not torch.equal(table(transitions), table(transitions, seed=1))
    transitions.valid[:, 20:] = False
    start = transitions.take(slice(0, 20))
    assert torch.equal(table(transitions), table(start))
    transitions.valid[:, 1:] = False
    table(transitions, num_transitions=2)


def test_motion_in_a_plane_has_the_same_laws_each_time(batch, transitions,
                                                       truth):
    """Of less than full rank, as it is recorded in three dimensions."""
    x = torch.zeros(*batch.x.shape[:2], 6)
    x[..., [0, 1, 3, 4]] = batch.x
    transitions, tables = second_order([x], transitions.choices, 0.1, 5.0), []
    for size in (1, 77_777):
        _ = torch.ones(size)  # Memory at another place.
        layer = make_layer(num_features=6)
        fit(layer, transitions, truth)
        tables.append(layer.law.value.data)
    assert (law_error(layer.law, transitions) < 0.03).all()
    assert torch.equal(*tables)


def test_nothing_to_fit_laws_to(batch, transitions, truth):
    with pytest.raises(ValueError, match='no interactions'):
        fit(make_layer(), transitions, 0 * truth)
    for x, half_width in ((0 * batch.x, None), (batch.x, 0.01)):
        with pytest.raises(ValueError, match='No particle moves'):
            fit_scale(make_layer(),
                      second_order([x], transitions.choices, 0.1, half_width))


# Ranges of tables.


def make_transitions(distance, half_width=None):
    """Pairs of particles at rest; three frames."""
    x = torch.zeros(len(distance), 2, 3, 4)
    x[:, 1, :, 0] = distance.view(-1, 1)
    edges = torch.cat(
        [fully_connected(2) + 2 * n for n in range(len(distance))], 1)
    return second_order([x.flatten(0, 1)], find_choices(edges, undirected=True),
                        0.1, half_width)


def spread(median):
    return median * torch.logspace(-0.3, 0.3, 101)


@pytest.mark.parametrize('median, least', [(0.7, 0.03), (6.0, 0.03),
                                           (0.6, 0.003), (2e15, 3e13)])
def test_table_moves_to_the_data(median, least):
    law = ForceLaw(2)
    fit_range(law, make_transitions(spread(median)))
    assert law.min_distance == pytest.approx(least, rel=1e-12)
    assert law.max_distance == pytest.approx(500 * least, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize('name', [
    'springs_charges', 'springs_charges_fsprings', 'nri_springs', 'nri_charged'
])
def test_default_table_is_for_all_simulated_systems(name, tmp_path):
    """All published figures were measured with this table, exactly."""
    x = ParticleSystems(tmp_path, name, num_systems=(64, 1, 1))._data.x
    law = ForceLaw(1)
    edges = [fully_connected(5) + 5 * n for n in range(len(x) // 5)]
    choices = find_choices(torch.cat(edges, dim=1), undirected=True)
    fit_range(law, second_order([x], choices, 0.1, 5.0))
    assert (law.min_distance, law.max_distance) == (0.03, 15.0)


def test_known_laws_stay_with_other_systems_of_the_same_unit():
    law = ForceLaw(1)
    torch.nn.init.ones_(law.value)
    for median in (0.3, 5.0):
        fit_range(law, make_transitions(spread(median)))
        assert law.min_distance == 0.03 and law.value.all()
    # In another unit, they are no laws of these systems.
    fit_range(law, make_transitions(spread(2e3)))
    assert law.min_distance == pytest.approx(30.0) and not law.value.any()


def test_warns_of_distances_beyond_the_table():
    law = ForceLaw(1)
    near, far = torch.full((94, ), 2.0), torch.full((6, ), 400.0)
    with pytest.warns(UserWarning, match=r'6% of .*2 to 400. lie out'):
        fit_range(law, make_transitions(torch.cat([near, far])))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        fit_range(law, make_transitions(torch.cat([near, near, far])))


# Laws and graphs of some systems.


def test_cost_of_a_system_does_not_depend_on_the_others(systems, make_model):
    def cost(*systems):
        batch = Batch.from_data_list(systems)
        fit = LawFit(make_model(batch.edge_label), batch)
        return fit.cost(AnnealingStep(0.002, 0.0))

    torch.testing.assert_close(cost(*systems[:4]),
                               torch.cat([cost(data) for data in systems[:4]]))


def test_tolerances_are_not_below_the_noise(batch, make_model):
    model, noisy = make_model(batch.edge_label), batch.clone()
    for key in ('x', 'y'):
        noisy[key] = batch[key] + 0.01 * torch.randn(batch[key].size())
    clean, noisy = LawFit(model, batch), LawFit(model, noisy)

    def tolerances(fit, least):
        cost = fit.bounded(AnnealingStep(least, 0.0))
        return [d * s**2 for d, s in zip(cost.degrees, cost.scale)]

    assert tolerances(clean, 0.01) == pytest.approx([0.01] * 4)
    assert min(tolerances(noisy, 0.01)) > 0.1
    assert min(tolerances(noisy, 1e9)) == pytest.approx(1e9)
    assert clean.bounded(AnnealingStep(0.1, 0.3)).prior_weight == 0.3


def fit_to(fit, tolerances=(0.1, 0.02, 0.005)):
    fit.fit_units()
    for tolerance in tolerances:
        fit.maximise(AnnealingStep(tolerance, 0.0), generator())


def test_unequal_masses(make_model):
    train, _ = batches(CASES['masses'].kind)
    trait = np.random.default_rng(1).random((32, 5))
    errors = []
    for mass in (0.5 * 4**torch.from_numpy(trait).float().flatten(), None):
        data = train.clone()
        data.mass = mass
        fit = LawFit(make_model(data.edge_label, laws=False, half_width=None),
                     data)
        fit_to(fit)
        errors.append(law_error(fit.layer.law, fit.transitions, TWO))
    assert errors[0].max() < 0.04
    assert errors[1].min() > 0.03 and errors[1].max() > 0.1


# Expectation-maximisation.


@pytest.mark.parametrize('family, num_systems',
                         [('fnri', 32),
                          pytest.param('nri', 24, marks=pytest.mark.slow),
                          pytest.param('sfnri', 32, marks=pytest.mark.slow)])
def test_laws_and_graphs_find_each_other(systems, flip, make_model, to_types,
                                         family, num_systems):
    batch = Batch.from_data_list(systems[:num_systems])
    truth = to_types(batch.edge_label, family)
    # 15 % of the pairs are wrong in each layer-graph.
    guess = flip(batch.edge_label, batch.edge_index, 0.15)
    model, history = make_model(guess, family, laws=False), []
    fit_force_laws(model, batch, generator(), on_iteration=history.append)
    assert share_right(history[-1].edge_type, truth) > 0.98
    assert [p.iteration for p in history] == list(range(1, 10))
    assert history[0].changed > 0.1 > 0.02 > history[-1].changed
    assert history[-1].cost < 0.2 * history[0].cost
    distance = torch.linspace(0.4, 4.0, 30)
    found = model.decoder.layer.law(distance)
    true = torch.stack([law(distance) for law in LAWS[family]])
    assert ((found - true).abs().sum(1) < 0.02 * true.abs().sum(1)).all()


def test_systems_of_different_size(simulate_systems, make_model, flip):
    batch = Batch.from_data_list(
        [*simulate_systems(8, 4), *simulate_systems(8, 6)])
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.1),
                       laws=False)
    history = []
    fit_force_laws(model, batch, generator(), on_iteration=history.append)
    assert share_right(history[-1].edge_type, batch.edge_label) > 0.97


def test_laws_depend_on_frames_and_the_generator_alone(systems, make_model):
    batch = Batch.from_data_list(systems[:10])
    batch.x, batch.y = batch.x[:, :25], batch.y[:, :25]

    def laws(seed=0, **change):
        data = batch.clone()
        for key, value in change.items():
            data[key] = value
        model = make_model(batch.edge_label, laws=False).train()
        before = copy.deepcopy(model.state_dict())
        fit_force_laws(model, data, generator(seed), [AnnealingStep(0.1, 0.5)])
        changed = {
            key
            for key, value in model.state_dict().items()
            if not torch.equal(value, before[key])
        }
        assert changed == {
            f'decoder.layer.{name}'
            for name in ('law.value', 'scale', 'spread')
        }
        assert model.training and model.decoder.layer.law.value.requires_grad
        return model.decoder.layer.law.value.data

    table = laws()
    assert torch.equal(table, laws(edge_label=9 - batch.edge_label))
    assert not torch.equal(table, laws(seed=1))
    alone = laws(y=None)
    assert not torch.equal(table, alone)
    # A frame alone is no transition.
    assert torch.equal(alone, laws(y=batch.y[:, :1]))


def test_units_do_not_matter(systems, make_model, flip):
    """Of lengths and of times: graphs and laws are the same."""
    steps = (AnnealingStep(0.1, 0.5), AnnealingStep(0.02, 0.2))
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
        fit_force_laws(model, data, generator(), steps)
        graphs.append(refine(model, data, steps, num_restarts=0).edge_type)
        law = layer.law(distance * length).detach()
        laws.append(law * time**2 / length)
    assert (graphs[0] == batch.edge_label).double().mean() > 0.97
    assert laws[0].abs().max() > 0.5
    for graph, law in zip(graphs[1:], laws[1:]):
        assert graph.equal(graphs[0])
        torch.testing.assert_close(law, laws[0], atol=2e-3, rtol=1e-2)
