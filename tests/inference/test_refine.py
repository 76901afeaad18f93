import copy
import math
from importlib import import_module

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.inference import AnnealingStep, refine
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.refine import ANNEALING
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.nn import FNRI, LinearStep, OverLinearStep

FAMILIES = ['nri', 'fnri', 'sfnri']


def share(edge_type, truth):
    """Edges of which all layer-graphs are right."""
    return (edge_type == truth).all(-1).double().mean().item()


def assert_same(found, other):
    assert torch.equal(found.edge_type, other.edge_type)
    for q, expected in zip(found.posterior, other.posterior):
        torch.testing.assert_close(q, expected, atol=1e-3, rtol=0)


@pytest.fixture
def guess(batch, flip):
    """Labels of which every seventh pair is wrong in each layer-graph."""
    return flip(batch.edge_label, batch.edge_index, 0.15)


@pytest.mark.parametrize('family', FAMILIES)
def test_laws_mend_the_encoders_graph(batch, guess, make_model, to_types,
                                      family):
    truth = to_types(batch.edge_label, family)
    model = make_model(guess, family)
    assert share(model.predict(batch), truth) < 0.75
    edge_type, posterior = refine(model, batch, num_restarts=0)
    assert share(edge_type, truth) > 0.97
    # The posterior is that of the same graph.
    for layer, q in enumerate(posterior):
        assert q.size() == (960, model.latent.num_edge_types[layer])
        torch.testing.assert_close(q.sum(-1), torch.ones(960))
        sure = q.gather(1, edge_type[:, layer:layer + 1])
        assert (sure > 0.5).double().mean() > 0.99


def test_directions_apart(simulate_systems, make_model):
    # A world in which what acts on one need not act on the other.
    batch = Batch.from_data_list(simulate_systems(24, 5))
    truth = torch.randint(2, batch.edge_label.size())
    world = make_model(truth, undirected=False)
    with torch.no_grad():
        path = world.decode(batch.x, batch.edge_index,
                            world.latent.encode_types(truth), pred_steps=48)
    batch.x = torch.cat([batch.x[:, :1], path], dim=1)
    guess = truth ^ (torch.rand(truth.size()) < 0.15).long()
    apart, together = (refine(make_model(guess, undirected=undirected), batch,
                              num_restarts=0).edge_type
                       for undirected in (False, True))
    assert share(apart, truth) > 0.98
    # Where both directions of a pair are one, it cannot be both.
    assert share(together, truth) < 0.7
    pairs = find_choices(batch.edge_index, True)
    assert torch.equal(together[pairs.edge], together[pairs.reverse])
    assert not torch.equal(apart[pairs.edge], apart[pairs.reverse])


@pytest.mark.parametrize('num_particles', [10, 15])
def test_many_particles_from_any_guess(simulate_systems, make_model,
                                       num_particles):
    batch = Batch.from_data_list(simulate_systems(4, num_particles))
    # No better than chance, and sure of itself.
    guess = torch.randint(2, batch.edge_label.size())
    model = make_model(guess, confidence=4.0)
    found = refine(model, batch, num_restarts=0)
    assert share(found.edge_type, batch.edge_label) > 0.99
    # As sweeps alone do not.
    search = GraphSearch(model, batch)
    layer = model.decoder.layer
    transitions = Transitions([batch.x], search.choices, layer.interval,
                              layer.half_width)
    for stage in ANNEALING:
        search.sweep(ImpulseEvidence(transitions, layer), stage)
    assert share(search.result().edge_type, batch.edge_label) < 0.9


def test_a_likelihood_is_fitted_to_what_is_left_over(systems, make_model, flip,
                                                     monkeypatch):
    batch = Batch.from_data_list(systems[:32])
    spread = batch.x.flatten(0, 1).std(0)
    batch.x = batch.x + 0.03 * spread * torch.randn(batch.x.size())
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.15))
    right = []
    for num_fits in (2, 0):
        monkeypatch.setattr(import_module(refine.__module__), 'NUM_FITS',
                            num_fits)
        found = refine(model, batch, num_restarts=0)
        right.append(share(found.edge_type, batch.edge_label))
    assert right[0] > 0.95 and right[1] < right[0] - 0.05


def test_restarts_find_what_the_guess_does_not_lead_to(simulate_systems,
                                                       make_model):
    batch = Batch.from_data_list(simulate_systems(6, 8))
    guess = torch.randint(2, batch.edge_label.size())
    # Half the evidence a choice, and twice as many of them.
    model = make_model(guess, confidence=10.0, undirected=False)
    without = refine(model, batch, num_restarts=0).edge_type
    found = refine(model, batch, num_restarts=8).edge_type
    assert share(without, batch.edge_label) < 0.99
    assert share(found, batch.edge_label) > 0.995
    again = refine(model, batch, num_restarts=8).edge_type
    assert torch.equal(found, again)


def test_restarts_take_a_generator_of_their_own(systems, make_model):
    batch = Batch.from_data_list(systems[:4])
    model = make_model(batch.edge_label)
    state = torch.get_rng_state()
    refine(model, batch)
    assert torch.equal(torch.get_rng_state(), state)
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    refine(model, batch, num_restarts=1, generator=generator)
    assert not torch.equal(generator.get_state(), before)


def test_labels_and_continuation_are_not_looked_at(systems, make_model, flip):
    batch = Batch.from_data_list(systems[:6])
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.2))
    expected = refine(model, batch)
    poisoned = batch.clone()
    poisoned.edge_label = 9 - batch.edge_label
    poisoned.y = batch.y * math.nan
    assert_same(refine(model, poisoned), expected)
    del poisoned.edge_label, poisoned.y
    assert_same(refine(model, poisoned), expected)


@pytest.mark.parametrize('family', [
    pytest.param(family, marks=[pytest.mark.slow] * (family != 'fnri'))
    for family in FAMILIES
])
def test_systems_side_by_side_equal_one_by_one(systems, make_model, flip,
                                               family):
    batch = Batch.from_data_list(systems[:6])
    guess = flip(batch.edge_label, batch.edge_index, 0.2)
    together = refine(make_model(guess, family), batch, num_restarts=0)
    for i, part in enumerate(guess.split(20)):
        rows = slice(20 * i, 20 * i + 20)
        alone = refine(make_model(part, family), systems[i], num_restarts=0)
        assert torch.equal(together.edge_type[rows], alone.edge_type)
        for q, expected in zip(together.posterior, alone.posterior):
            torch.testing.assert_close(q[rows], expected, atol=1e-3, rtol=0)


def test_systems_of_different_size(simulate_systems, make_model, flip):
    systems = [
        data for pair in zip(simulate_systems(12, 3), simulate_systems(12, 6),
                             simulate_systems(12, 2)) for data in pair
    ]
    batch = Batch.from_data_list(systems)
    guess = flip(batch.edge_label, batch.edge_index, 0.2)
    found = refine(make_model(guess), batch, num_restarts=0)
    assert share(found.edge_type, batch.edge_label) > 0.95
    start = 0
    for data in systems[:6]:
        rows = slice(start, start + data.num_edges)
        start += data.num_edges
        alone = refine(make_model(guess[rows]), data, num_restarts=0)
        assert torch.equal(found.edge_type[rows], alone.edge_type)


def test_candidates_that_leave_out_what_does_not_interact(
        systems, make_model, flip):
    kept = []
    for data in systems[:20]:
        data = data.clone()
        edges = data.edge_label.any(-1)
        data.edge_index = data.edge_index[:, edges]
        data.edge_label = data.edge_label[edges]
        kept.append(data)
    batch = Batch.from_data_list(kept)
    assert batch.num_edges < 350
    guess = flip(batch.edge_label, batch.edge_index, 0.2)
    found = refine(make_model(guess), batch, num_restarts=0)
    assert share(found.edge_type, batch.edge_label) > 0.97


def test_any_decoder(systems, monkeypatch):
    # One that has learned nothing changes little, but something.
    batch = Batch.from_data_list(systems[:3])
    model = FNRI(4, 49, [2, 2], 8, undirected=True)
    model.scaling.fit(batch.x)
    linear_step = LinearStep(4).fit(model.scaling(batch.x))
    model.decoder.layer = OverLinearStep(model.decoder.layer, linear_step)
    annealing = [AnnealingStep(0.3, 1.0), AnnealingStep(0.01, 0.1)]
    found = refine(model, batch, annealing)
    assert (found.edge_type != model.predict(batch)).any()
    # The likelihood is that of all systems, in any order, and of copies that
    # of one.
    other = Batch.from_data_list([systems[i] for i in (2, 0, 1)])
    moved = refine(model, other, annealing).edge_type.split(20)
    assert torch.equal(torch.cat([*moved[1:], moved[0]]), found.edge_type)
    alone = refine(model, systems[1], annealing).edge_type
    copies = refine(model, Batch.from_data_list(systems[1:2] * 3), annealing)
    assert torch.equal(copies.edge_type, alone.repeat(3, 1))
    # And it is fitted here, too.
    monkeypatch.setattr(import_module(refine.__module__), 'NUM_FITS', 0)
    unfitted = refine(model, batch, annealing)
    assert not torch.equal(unfitted.edge_type, found.edge_type)


def test_without_stages_the_encoders_graph_stays(batch, guess, make_model):
    model = make_model(guess)
    found = refine(model, batch, annealing=[])
    assert torch.equal(found.edge_type, model.predict(batch))


def test_model_is_left_as_it_is(systems, make_model):
    model = make_model(systems[0].edge_label).train()
    before = copy.deepcopy(model.state_dict())
    found = refine(model, systems[0])
    assert all(part.training for part in model.modules())
    assert not any(q.requires_grad for q in found.posterior)
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_walls_are_no_forces_to_those_who_know_them(make_model, flip,
                                                    simulate_systems):
    systems = simulate_systems(60, 5, box_half_width=1.0, position_std=0.3)
    batch = Batch.from_data_list(systems)
    # A few frames with some noise, which does not stand out as walls do.
    spread = batch.x.flatten(0, 1).std(0)
    batch.x = batch.x + 0.02 * spread * torch.randn(batch.x.size())
    batch.x = batch.x[:, :12]
    guess = flip(batch.edge_label, batch.edge_index, 0.2)
    known, unknown, everywhere = (refine(make_model(guess, half_width=walls),
                                         batch, num_restarts=0).edge_type
                                  for walls in (1.0, None, 1e-3))
    right = share(known, batch.edge_label)
    assert right > 0.9 and share(unknown, batch.edge_label) < right - 0.015
    # Where all frames are close to a wall, there is nothing but the guess.
    assert torch.equal(everywhere, guess)


def test_frames_of_the_wrong_kind(systems, make_model):
    data, model = systems[0], make_model(systems[0].edge_label)
    for change, error, message in [
        (dict(x=data.x * math.nan), ValueError, 'finite trajectories'),
        (dict(x=data.x[:, :1]), ValueError, 'T = 2 frames or more'),
        (dict(x=data.x[..., :3]), ValueError, '4 features'),
        (dict(x=data.x[:, 0]), ValueError, r'but got \[5, 4\]'),
        (dict(x=data.x.double()), TypeError, 'torch.float32'),
        (dict(x=None), ValueError, 'it has no x'),
        (dict(edge_index=None), ValueError, 'it has no edge_index'),
    ]:
        system = Data(**{'x': data.x, 'edge_index': data.edge_index, **change})
        with pytest.raises(error, match=message):
            refine(model, system)


def test_no_candidate_edges(make_model):
    model = make_model(torch.empty(0, 2, dtype=torch.long))
    data = Data(x=torch.randn(3, 6, 4),
                edge_index=torch.empty(2, 0, dtype=torch.long))
    assert refine(model, data).edge_type.size() == (0, 2)


@pytest.mark.parametrize(
    'laws', [True, pytest.param(None, marks=pytest.mark.slow)])
def test_twice_the_mass_takes_twice_the_force(batch, guess, make_model, laws):
    model = make_model(guess, laws=laws)
    data = batch.clone()
    data.mass = torch.full_like(batch.x[:, 0, 0], 2.0)
    if laws:
        expected = refine(model, batch, num_restarts=0)
        model.decoder.layer.law.value.data *= 2
        assert_same(refine(model, data, num_restarts=0), expected)
        assert share(expected.edge_type, batch.edge_label) > 0.97
    # Masses are not left out by other decoders either.
    stage = [AnnealingStep(0.3, 0.0)]
    assert not torch.equal(
        refine(model, data, stage, num_restarts=0).posterior[0],
        refine(model, batch, stage, num_restarts=0).posterior[0])
