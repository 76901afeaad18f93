import copy
import math
from importlib import import_module

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference import AnnealingStep, noise, refine, sample_posterior
from pyg_fnri.inference.evidence import DecoderEvidence
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import StudentErrors
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.nn import FNRI, LinearStep, OverLinearStep

MODULE = import_module(refine.__module__)


def share(edge_type, truth):
    """Edges of which all layer-graphs are right."""
    return (edge_type == truth).all(-1).double().mean().item()


def noisy(systems, size):
    """The systems, observed with noise."""
    batch = Batch.from_data_list(systems)
    spread = batch.x.flatten(0, 1).std(0)
    batch.x = batch.x + size * spread * torch.randn(batch.x.size())
    return batch


@pytest.fixture
def guess(batch, flip):
    """Labels of which every seventh pair is wrong in each layer-graph."""
    return flip(batch.edge_label, batch.edge_index, 0.15)


@pytest.mark.parametrize('family', ['nri', 'fnri', 'sfnri'])
def test_laws_mend_the_encoders_graph(batch, guess, make_model, to_types,
                                      family):
    truth = to_types(batch.edge_label, family)
    model = make_model(guess, family)
    assert share(model.predict(batch), truth) < 0.75
    edge_type, posterior = refine(model, batch, num_restarts=0)
    assert share(edge_type, truth) > 0.97
    for layer, q in enumerate(posterior):
        torch.testing.assert_close(q.sum(-1), torch.ones(960))
        sure = q.gather(1, edge_type[:, layer:layer + 1])
        assert (sure > 0.5).double().mean() > 0.99
    unchanged = refine(model, batch, annealing=[]).edge_type
    assert torch.equal(unchanged, model.predict(batch))


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
    assert share(apart, truth) > 0.98 and share(together, truth) < 0.7


def test_restarts_find_what_the_guess_does_not_lead_to(simulate_systems,
                                                       make_model, monkeypatch):
    batch = Batch.from_data_list(simulate_systems(6, 8))
    guess = torch.randint(2, batch.edge_label.size())
    # Half the evidence a choice, and twice as many of them.
    model = make_model(guess, confidence=10.0, undirected=False)
    state = torch.get_rng_state()
    without = refine(model, batch, num_restarts=0).edge_type
    found = refine(model, batch, num_restarts=8).edge_type
    assert torch.equal(torch.get_rng_state(), state)
    assert share(without, batch.edge_label) < 0.99
    assert share(found, batch.edge_label) > 0.995
    # Systems whose graph has been found again are left alone.
    sweep, active = GraphSearch.sweep, []

    def counted(search, *args):
        active.append(int(search.active.sum()))
        return sweep(search, *args)

    monkeypatch.setattr(GraphSearch, 'sweep', counted)
    again = refine(model, batch, num_restarts=8).edge_type
    assert torch.equal(found, again)
    assert active[-1] == active[0] == 6 * 56 > active[-2]
    assert active[:-1] == sorted(active[:-1], reverse=True)


def test_labels_and_continuation_are_not_used(systems, make_model, flip):
    batch = noisy(systems[:6], 0.02)
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.2)).train()
    before = copy.deepcopy(model.state_dict())
    poisoned = batch.clone()
    poisoned.edge_label, poisoned.y = 9 - batch.edge_label, batch.y * math.nan
    for infer in (refine, lambda *args: sample_posterior(*args, 3, 2, 0)):
        found, expected = infer(model, poisoned), infer(model, batch)
        assert torch.equal(found.edge_type, expected.edge_type)
        assert all(map(torch.equal, found.posterior, expected.posterior))
    # The model is left as it is.
    assert model.training and model.decoder.layer.training
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


def test_any_decoder(systems):
    # One that has learned nothing changes little, but something.
    batch = Batch.from_data_list(systems[:3])
    model = FNRI(4, 49, [2, 2], 8, undirected=True)
    model.scaling.fit(batch.x)
    linear_step = LinearStep(4).fit(model.scaling(batch.x))
    model.decoder.layer = OverLinearStep(model.decoder.layer, linear_step)
    annealing = [AnnealingStep(0.3, 1.0), AnnealingStep(0.01, 0.1)]
    found = refine(model, batch, annealing)
    assert (found.edge_type != model.predict(batch)).any()
    # The likelihood is that of all systems, in any order.
    other = Batch.from_data_list([systems[i] for i in (2, 0, 1)])
    moved = refine(model, other, annealing).edge_type.split(20)
    assert torch.equal(torch.cat([*moved[1:], moved[0]]), found.edge_type)


def test_walls_are_no_forces_to_those_who_know_them(make_model, flip,
                                                    simulate_systems):
    # A few frames with some noise, which does not stand out as walls do.
    batch = noisy(simulate_systems(60, 5, box_half_width=1.0, position_std=0.3),
                  0.02)
    batch.x = batch.x[:, :12]
    guess = flip(batch.edge_label, batch.edge_index, 0.2)
    known, unknown, everywhere = (refine(make_model(guess, half_width=walls),
                                         batch, num_restarts=0).edge_type
                                  for walls in (1.0, None, 1e-3))
    right = share(known, batch.edge_label)
    assert right > 0.9 and share(unknown, batch.edge_label) < right - 0.015
    # Where all frames are close to a wall, the guess is all there is.
    assert torch.equal(everywhere, guess)
    with pytest.raises(ValueError, match='half_width'):
        sample_posterior(make_model(guess, half_width=1e-3), batch)


def test_no_candidate_edges(make_model):
    model = make_model(torch.empty(0, 2, dtype=torch.long))
    data = Data(x=torch.randn(3, 6, 4), edge_index=torch.empty(2, 0).long())
    assert refine(model, data).edge_type.size() == (0, 2)
    assert sample_posterior(model, data, 2, 1).posterior[1].size() == (0, 2)


def test_twice_the_mass_takes_twice_the_force(batch, guess, make_model):
    model, data = make_model(guess), batch.clone()
    data.mass = torch.full_like(batch.x[:, 0, 0], 2.0)
    expected = refine(model, batch, num_restarts=0)
    model.decoder.layer.law.value.data *= 2
    found = refine(model, data, num_restarts=0)
    assert torch.equal(found.edge_type, expected.edge_type)
    # Masses are not left out by other decoders either.
    model, stage = make_model(guess, laws=None), [AnnealingStep(0.3, 0.0)]
    light, heavy = (refine(model, x, stage).posterior[0] for x in (batch, data))
    assert not torch.equal(light, heavy)


def exact_posterior(model, data, likelihood):
    """The probability of each layer-graph's types, by going through all
    graphs of one system."""
    search, layer = GraphSearch(model, data), model.decoder.layer
    if hasattr(layer, 'law'):
        evidence = ImpulseEvidence(
            Transitions([data.x], search.choices, 0.1, 5.0), layer)
    else:
        evidence = DecoderEvidence(model, data.x, data.edge_index,
                                   search.choices)
    graphs = torch.cartesian_prod(*[torch.arange(len(search.options))] *
                                  len(search.choice))
    scores = []
    for search.choice in graphs.view(-1, len(search.choice)):
        scores.append(-search.cost(evidence, likelihood).sum())
    probability = torch.stack(scores).softmax(0)
    assert probability.max() < 0.8
    one_hot = torch.nn.functional.one_hot(graphs.view(len(scores), -1),
                                          len(search.options)).float()
    search.conditional = torch.einsum('g,gvm->vm', probability, one_hot).log()
    return search.result().posterior


@pytest.mark.parametrize('num_particles, family, undirected', [
    (2, 'nri', True),
    (3, 'fnri', True),
    (3, 'sfnri', True),
    (2, 'fnri', False),
    (3, None, True),
])
def test_frequencies_are_those_of_all_graphs(systems, make_model, monkeypatch,
                                             num_particles, family, undirected):
    # Seen so shortly that several graphs are possible; many chains of it.
    data, copies = from_trajectory(systems[4].x[:num_particles, :8]), 300
    scale = (0.4, ) * 4 if family else (0.2, ) * 4
    likelihood = StudentErrors((3.0, 3.0, 5.0, 5.0), scale, (0.1, ) * 4, 0.5)
    # In place of the fitted one, of errors as they are.
    monkeypatch.setattr(noise, 'NEGLIGIBLE', 1.0)
    monkeypatch.setattr(MODULE, 'fit_errors', lambda *args: likelihood)
    if family:
        label = torch.zeros(data.num_edges, 2).long()
        one, many = (make_model(label.repeat(k, 1), family, 0.5, undirected)
                     for k in (1, copies))
    else:
        one = many = FNRI(4, 8, [2, 2], 8, undirected=True)
        one.scaling.fit(data.x)
        linear_step = LinearStep(4).fit(one.scaling(systems[3].x))
        one.decoder.layer = OverLinearStep(one.decoder.layer, linear_step)
        for p in one.decoder.parameters():
            p.data.mul_(3)  # Untrained, it hardly depends on the graph.
    exact = exact_posterior(one, data, likelihood)
    batch = Batch.from_data_list([data] * copies)
    _, posterior = sample_posterior(many, batch, 12, 8, num_restarts=0)
    for q, expected in zip(posterior, exact):
        mean = q.view(copies, data.num_edges, -1).mean(0)
        torch.testing.assert_close(mean, expected, atol=0.02, rtol=0)


def test_samples_tell_noise_from_forces(systems, make_model, flip):
    batch = noisy(systems[:48], 0.02)
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.1))
    edge_type, posterior = sample_posterior(model, batch, 12, 8, 2)
    assert share(edge_type, batch.edge_label) > 0.98
    sure = torch.stack([q.max(-1).values for q in posterior]).prod(0).mean()
    assert sure == pytest.approx(share(edge_type, batch.edge_label), abs=0.02)
    runs = [
        sample_posterior(model, batch, 1, 1, 0, generator)
        for generator in (None, None, torch.Generator().manual_seed(2))
    ]
    assert all(map(torch.equal, runs[0].posterior, runs[1].posterior))
    assert not all(map(torch.equal, runs[1].posterior, runs[2].posterior))
    with pytest.raises(ValueError, match='burn_in'):
        sample_posterior(model, batch, burn_in=0)
