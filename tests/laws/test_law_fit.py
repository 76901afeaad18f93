from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from misspecified_batches import batches
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.experiments.misspecified import Lawful, UnequalMasses
from pyg_fnri.inference import AnnealingStep, refine
from pyg_fnri.inference.likelihood import EVIDENCE_WEIGHT, without_prior
from pyg_fnri.laws.em import EM_ANNEALING
from pyg_fnri.laws.law_fit import LawFit, State
from pyg_fnri.metrics import relative_law_error
from pyg_fnri.nn import (
    ForceLaw,
    ForceLawDecoder,
    RelationalAutoEncoder,
    RolloutDecoder,
    StandardScaling,
)
from pyg_fnri.simulation.sampling import in_streams
from pyg_fnri.transforms import NearestNeighbours

#: What annealing ends with.
LAST = AnnealingStep(0.002, 0.0)


class Ignorant(torch.nn.Module):
    """An encoder that gives all edges the same logits."""
    def __init__(self, num_logits):
        super().__init__()
        self.num_logits = num_logits

    def forward(self, x, edge_index):
        return x.new_zeros(edge_index.size(1), self.num_logits)


@pytest.fixture
def make_fit(make_model):
    def make(batch, **kwargs):
        return LawFit(make_model(batch.edge_label, **kwargs), batch)

    return make


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_cost_of_a_system_does_not_depend_on_the_others(systems, make_fit):
    whole = make_fit(Batch.from_data_list(systems[:4])).cost(LAST)
    alone = [
        make_fit(Batch.from_data_list([data])).cost(LAST)
        for data in systems[:4]
    ]
    torch.testing.assert_close(whole, torch.cat(alone))
    assert whole.size() == (4, )


def test_cost_is_a_mean_over_transitions_that_say_something(systems, make_fit):
    fit = make_fit(systems[0])
    fit.transitions.valid[:, ::3] = False
    errors = fit.evidence().errors(fit.search.channels)[fit.transitions.valid]
    expected = EVIDENCE_WEIGHT * (errors.square() / 0.1).log1p().sum(-1).mean()
    cost = fit.cost(AnnealingStep(0.1, 0.0))
    assert cost.item() == pytest.approx(expected.item(), rel=1e-5)


def test_tolerances_are_not_below_the_noise(batch, make_fit):
    clean, noisy = make_fit(batch), batch.clone()
    for key in ('x', 'y'):
        noisy[key] = batch[key] + 0.01 * torch.randn(batch[key].size())
    noisy = make_fit(noisy)

    def tolerances(fit, least):
        cost = fit.bounded(AnnealingStep(least, 0.0))
        return [d * s**2 for d, s in zip(cost.degrees, cost.scale)]

    assert tolerances(clean, 0.01) == pytest.approx([0.01] * 4)
    assert min(tolerances(noisy, 0.01)) > 0.1
    assert min(tolerances(noisy, 1e9)) == pytest.approx(1e9)
    assert clean.bounded(AnnealingStep(0.1, 0.3)).prior_weight == 0.3


def test_right_graphs_and_laws_cost_least(batch, make_fit):
    fit = make_fit(batch)
    right = fit.cost(LAST)
    fit.search.choice = (fit.search.choice + 1) % 4
    assert (fit.cost(LAST) > 5 * right).all()


def test_laws_and_graphs_can_be_put_aside(batch, make_fit):
    fit = make_fit(batch)
    kept, cost = fit.state, fit.cost(LAST)
    fit.randomise(generator())
    assert not fit.layer.law.value.any()
    assert fit.search.choice.unique().tolist() == [0, 1, 2, 3]
    assert (fit.cost(LAST) > cost).all()
    # What was put aside has not changed with it.
    fit.state = kept
    assert torch.equal(fit.cost(LAST), cost)
    fit.maximise(AnnealingStep(0.1, 0.0), generator())
    assert not torch.equal(fit.state.laws, kept.laws)
    assert isinstance(kept, State) and kept.laws.size() == (2, 26)


def test_random_graphs_are_those_of_the_generator(batch, make_fit):
    fit, drawn = make_fit(batch), []
    for seed in (3, 3, 4):
        fit.randomise(generator(seed))
        drawn.append(fit.search.choice)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_frames_observed_and_to_come(systems, make_fit):
    data = systems[0].clone()
    fit = make_fit(data)
    assert fit.num_observed == 48 and fit.transitions.change.size(1) == 96
    data.y = None
    assert make_fit(data).transitions.change.size(1) == 48


def test_blind_stages_do_not_ask_the_encoder():
    stages = without_prior(EM_ANNEALING)
    assert [s.tolerance for s in stages] == [s.tolerance for s in EM_ANNEALING]
    assert {s.prior_weight for s in stages} == {0.0}


def set_types(fit, model, edge_type):
    """Puts given graphs in place of the encoder's."""
    channels = model.latent.encode_types(edge_type)[fit.search.choices.edge]
    fit.search.choice = torch.cdist(channels, fit.search.options).argmin(-1)


def fit_to(fit, tolerances=(0.1, 0.02, 0.005)):
    fit.fit_scale()
    for tolerance in tolerances:
        fit.maximise(AnnealingStep(tolerance, 0.0), generator())


def law_errors(fit, true):
    """Relative errors of laws at the distances seen in pairs."""
    distance = torch.logspace(-1.3, 1.1, 300)
    seen = fit.transitions.distance[:, ::5, 1].flatten()
    return relative_law_error(distance,
                              fit.layer.law(distance).detach(),
                              np.stack([f(distance.numpy()) for f in true]),
                              seen)


def test_unequal_masses(make_model):
    system = UnequalMasses()
    train, _ = batches(system)
    trait = in_streams(lambda rng, size: rng.random((size, 5)), 1, 100, 32)
    true = [force.magnitude for force in system.forces]
    errors = []
    for mass in (0.5 * 4**torch.from_numpy(trait).float().flatten(), None):
        data = train.clone()
        data.mass = mass
        model = make_model(data.edge_label, laws=False, half_width=None)
        fit = LawFit(model, data)
        set_types(fit, model, data.edge_label)
        fit_to(fit)
        errors.append(law_errors(fit, true))
    assert errors[0].max() < 0.03
    assert errors[1].min() > 0.03 and errors[1].max() > 0.1


def test_masses_in_other_units_are_other_laws(batch, make_fit):
    laws = []
    for unit in (1.0, 2.0):
        data = batch.clone()
        data.mass = torch.full_like(data.x[:, 0, 0], unit)
        fit = make_fit(data)
        fit_to(fit)
        laws.append(fit.state.laws)
    torch.testing.assert_close(laws[1], 2 * laws[0], atol=1e-3, rtol=1e-3)


def test_masses_that_do_not_fit(systems, make_fit):
    data = systems[0].clone()
    data.mass = torch.ones(4)
    with pytest.raises(ValueError, match='mass for each of the 5 particles'):
        make_fit(data)


@cache
def world(num_dims, num_particles, num_neighbours=None):
    """Batches of systems without walls, to fit laws to and to infer."""
    system = replace(Lawful(), num_dimensions=num_dims, step_size=1e-2,
                     sample_every=10, num_steps=500)
    graphs = system.draw_edge_types(3, 48, num_particles)
    out = []
    for x, graph in zip(system.simulate(graphs, 3), graphs):
        data = from_trajectory(x, graph)
        if num_neighbours is not None:
            whole = int(data.edge_label.sum())
            keep = NearestNeighbours(num_neighbours, force_undirected=True)
            data = keep(data)
            if int(data.edge_label.sum()) < whole:
                continue  # An interaction from further away.
        out.append(data)
    half = len(out) // 2
    return [Batch.from_data_list(part) for part in (out[:half], out[half:])]


WORLDS = {
    'three dimensions': (3, 5),
    'two particles': (2, 2),
    'nearest neighbours': (2, 5, 3),
    'nearest in three dimensions': (3, 5, 3),
}

# Worlds differ in what is fitted, families in what is chosen from.
DEFAULT = 'nearest in three dimensions'


@pytest.mark.parametrize('name, family', [
    pytest.param(
        name, family,
        marks=[] if family == 'fnri' or name == DEFAULT else pytest.mark.slow)
    for name in WORLDS for family in ('nri', 'fnri', 'sfnri')
])
def test_laws_and_graphs_in_every_world(name, family, make_latent, to_types):
    train, test = world(*WORLDS[name])
    if len(WORLDS[name]) == 3:
        num_pairs = int(train.batch.bincount().square().sum()) - len(train.x)
        assert 0.3 * num_pairs < train.num_edges < 0.95 * num_pairs
    latent, num_features = make_latent(family), train.x.size(-1)
    scaling = StandardScaling(num_features)
    layer = ForceLawDecoder(ForceLaw(latent.num_channels), scaling)
    model = RelationalAutoEncoder(Ignorant(latent.num_logits), latent,
                                  RolloutDecoder(layer), scaling)
    fit = LawFit(model, train)
    set_types(fit, model, to_types(train.edge_label, family))
    fit_to(fit)
    spring, charge = (force.magnitude for force in Lawful().forces)
    true = [spring, charge] if family != 'nri' else [
        charge, spring, lambda r: spring(r) + charge(r)
    ]
    for c, law in enumerate(true):
        # At the distances of the pairs that are under it.
        own = fit.search.channels[:, c] > 0
        seen = fit.transitions.distance[own, ::5, 1].flatten()
        distance = seen.quantile(torch.linspace(0.02, 0.98, 50))
        learned = layer.law(distance)[c].detach().numpy()
        distance = distance.numpy()
        # Where two add up, they nearly cancel: in units of the spring.
        error = np.abs(learned - law(distance)).mean()
        assert error < 0.03 * np.abs(spring(distance)).mean()
    found = refine(model, test, num_restarts=4).edge_type
    right = (found == to_types(test.edge_label, family)).all(-1)
    assert right.double().mean() > 0.97
    # And predictions that follow the test systems' true graphs.
    edge_attr = latent.encode_types(to_types(test.edge_label, family))
    out = model.decode(test.x, test.edge_index, edge_attr, pred_steps=5)
    none = model.decode(test.x, test.edge_index, 0 * edge_attr, pred_steps=5)
    error, change = ((path - test.x[:, 1:]).abs() for path in (out, none))
    assert error.median() < 0.05 * change.median()


def test_any_other_decoder_has_no_laws(batch, make_fit):
    with pytest.raises(TypeError, match='is a MultiplexConv; .*with_laws'):
        make_fit(batch, laws=None)
