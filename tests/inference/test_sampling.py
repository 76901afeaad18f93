import itertools
from importlib import import_module

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference import noise, refine, sample_posterior
from pyg_fnri.inference.evidence import DecoderEvidence, find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import StudentErrors
from pyg_fnri.metrics import expected_calibration_error
from pyg_fnri.nn import FNRI, LinearStep, OverLinearStep
from pyg_fnri.nn.latent import most_probable


def cut(data, num_particles, num_frames):
    """The first particles and frames; forces of all others stay as noise."""
    return from_trajectory(data.x[:num_particles, :num_frames])


def noisy(batch, size):
    """The same systems, observed with noise."""
    out = batch.clone()
    spread = batch.x.flatten(0, 1).std(0)
    out.x = batch.x + size * spread * torch.randn(batch.x.size())
    return out


def exact_posterior(model, data, likelihood):
    """The probability of each layer-graph's types, by going through all
    graphs of one system."""
    latent = model.latent
    choices = find_choices(data.edge_index, latent.undirected)
    if hasattr(model.decoder.layer, 'law'):
        transitions = Transitions([data.x], choices, 0.1, 5.0)
        evidence = ImpulseEvidence(transitions, model.decoder.layer)
    else:
        evidence = DecoderEvidence(model, [data.x], data.edge_index, choices)
    types = torch.cartesian_prod(*map(torch.arange, latent.num_edge_types))
    types = types.view(-1, latent.num_layers)
    log_q = [q.log() for q in model.posterior(data)]
    graphs, scores = [], []
    for graph in itertools.product(types, repeat=choices.edge.numel()):
        edge_type = torch.stack(graph)  # [V, L]
        errors = evidence.errors(latent.encode_types(edge_type))
        prior = sum((q[edges].gather(1, edge_type[:, layer:layer + 1]).sum() / 2
                     for layer, q in enumerate(log_q)
                     for edges in (choices.edge, choices.reverse)))
        graphs.append(edge_type)
        scores.append(likelihood.prior_weight * prior -
                      likelihood.cost(errors).sum())
    probability = torch.stack(scores).softmax(0)
    graphs = torch.stack(graphs)  # [num_graphs, V, L]
    out = []
    for layer, size in enumerate(latent.num_edge_types):
        is_type = torch.nn.functional.one_hot(graphs[..., layer], size)
        q = torch.einsum('g,gvk->vk', probability, is_type.float())
        on_edges = q.new_empty(data.num_edges, size)
        on_edges[choices.edge] = q
        on_edges[choices.reverse] = q
        out.append(on_edges)
    return out, probability


@pytest.fixture
def given_likelihood(monkeypatch):
    """Has a likelihood taken in place of the fitted one, of errors as they
    are."""
    def give(likelihood):
        monkeypatch.setattr(noise, 'NEGLIGIBLE', 1.0)
        monkeypatch.setattr(import_module(refine.__module__), 'fit_errors',
                            lambda errors, prior_weight: likelihood)
        return likelihood

    return give


@pytest.mark.parametrize('num_particles,family,undirected', [
    (2, 'nri', True),
    (3, 'fnri', True),
    (3, 'sfnri', True),
    (2, 'fnri', False),
])
def test_frequencies_are_those_of_all_graphs(systems, make_model,
                                             given_likelihood, num_particles,
                                             family, undirected):
    # Seen so shortly that several graphs are possible; many chains of it.
    data, copies = cut(systems[4], num_particles, 8), 300
    label = torch.zeros(data.num_edges, 2).long()
    likelihood = given_likelihood(
        StudentErrors((3.0, 3.0, 5.0, 5.0), (0.4, ) * 4, (0.1, ) * 4, 0.5))
    model = make_model(label, family, 0.5, undirected)
    exact, probability = exact_posterior(model, data, likelihood)
    assert probability.max() < 0.8
    batch = Batch.from_data_list([data] * copies)
    many = make_model(label.repeat(copies, 1), family, 0.5, undirected)
    _, posterior = sample_posterior(many, batch, num_samples=12, burn_in=8,
                                    num_restarts=0)
    for q, expected in zip(posterior, exact):
        mean = q.view(copies, data.num_edges, -1).mean(0)
        torch.testing.assert_close(mean, expected, atol=0.02, rtol=0)


def test_any_decoder_has_a_posterior(systems, given_likelihood):
    data, copies = cut(systems[2], 3, 12), 64
    model = FNRI(4, 12, [2, 2], 8, undirected=True)
    model.scaling.fit(data.x)
    linear_step = LinearStep(4).fit(model.scaling(systems[3].x))
    model.decoder.layer = OverLinearStep(model.decoder.layer, linear_step)
    for p in model.decoder.parameters():
        p.data.mul_(3)  # Untrained, it hardly looks at the graph.
    likelihood = given_likelihood(
        StudentErrors((3.0, ) * 4, (0.2, ) * 4, (0.1, ) * 4, 0.5))
    exact, _ = exact_posterior(model, data, likelihood)
    encoder = model.posterior(data)
    assert max((a - b).abs().max() for a, b in zip(exact, encoder)) > 0.1
    batch = Batch.from_data_list([data] * copies)
    _, posterior = sample_posterior(model, batch, num_samples=8, burn_in=4)
    for q, expected in zip(posterior, exact):
        mean = q.view(copies, data.num_edges, -1).mean(0)
        torch.testing.assert_close(mean, expected, atol=0.04, rtol=0)


def test_the_first_sweeps_do_not_count(systems, make_model, given_likelihood):
    # Refined with one tolerance and asked for another: at first, samples
    # still are where refinement left them.
    data = cut(systems[4], 3, 8)
    batch = Batch.from_data_list([data] * 300)
    model = make_model(torch.zeros(1_800, 2).long(), confidence=0.5)
    likelihood = given_likelihood(
        StudentErrors((3.0, 3.0, 5.0, 5.0), (0.4, ) * 4, (0.1, ) * 4, 0.5))
    exact, _ = exact_posterior(
        make_model(torch.zeros(6, 2).long(), confidence=0.5), data, likelihood)

    def distance(burn_in):
        _, posterior = sample_posterior(model, batch, 1, burn_in, 0)
        return sum((q.view(300, 6, 2).mean(0) - expected).abs().sum().item()
                   for q, expected in zip(posterior, exact))

    before = sum((q.view(300, 6, 2).mean(0) - expected).abs().sum().item()
                 for q, expected in zip(
                     refine(model, batch, num_restarts=0).posterior, exact))
    assert distance(8) < 0.25 * before


@pytest.mark.parametrize('family', [
    'fnri',
    *(pytest.param(name, marks=pytest.mark.slow) for name in ('nri', 'sfnri')),
])
def test_noise_is_told_from_forces(systems, make_model, to_types, flip,
                                   monkeypatch, family):
    batch = noisy(Batch.from_data_list(systems[:48]), 0.02)
    truth = to_types(batch.edge_label, family)
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.1), family)
    edge_type, posterior = sample_posterior(model, batch, 12, 8, 2)
    # Tolerances that suit clean frames do not suit these.
    monkeypatch.setattr(import_module(refine.__module__), 'NUM_FITS', 0)
    unfitted = refine(model, batch, num_restarts=2)

    wrong = (unfitted.edge_type != truth).any(-1).double().mean()
    still_wrong = (edge_type != truth).any(-1).double().mean()
    assert wrong > 0.02 and still_wrong < 0.5 * wrong

    def surprise(posterior):
        return -sum(
            q.clamp(min=1e-6).gather(1, types.unsqueeze(1)).log().mean()
            for q, types in zip(posterior, truth.t()))

    assert surprise(posterior) < 0.5 * surprise(unfitted.posterior)
    for layer, q in enumerate(posterior):
        confidence, types = q.max(-1)
        error = expected_calibration_error(confidence.clamp(max=1),
                                           types == truth[:, layer])
        assert error < 0.03
    for q in posterior:
        torch.testing.assert_close(q.sum(-1), torch.ones(960))
    assert torch.equal(edge_type, most_probable(posterior))


@pytest.mark.slow
def test_restarts_choose_where_it_starts(simulate_systems, make_model):
    # Many choices, each with little evidence, and a guess that is no better
    # than chance: a chain does not leave where it gets stuck.
    batch = Batch.from_data_list(simulate_systems(6, 8))
    batch.x = batch.x[:, :25]
    model = make_model(torch.randint(2, batch.edge_label.size()),
                       confidence=10.0, undirected=False)
    wrong = [(sample_posterior(model, batch, 4, 4, num_restarts).edge_type
              != batch.edge_label).any(-1).double().mean()
             for num_restarts in (0, 8)]
    assert wrong[0] > 0.03 and wrong[1] < 0.4 * wrong[0]


def test_clean_frames_leave_no_doubt(systems, make_model, flip):
    batch = Batch.from_data_list(systems[:24])
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.15))
    edge_type, posterior = sample_posterior(model, batch, 4, 4)
    right = (edge_type == batch.edge_label).all(-1).double().mean()
    assert right > 0.985
    for q in posterior:
        assert (q.max(-1).values > 0.99).double().mean() > 0.97


def test_same_seed_same_posterior(systems, make_model):
    batch = noisy(Batch.from_data_list(systems[:4]), 0.3)
    model = make_model(batch.edge_label, confidence=0.5)
    state = torch.get_rng_state()
    runs = [
        sample_posterior(model, batch, 3, 2, 1, generator)
        for generator in (None, None, torch.Generator().manual_seed(1),
                          torch.Generator().manual_seed(1),
                          torch.Generator().manual_seed(2))
    ]
    assert torch.equal(torch.get_rng_state(), state)
    for a, b in (runs[:2], runs[2:4]):
        assert all(map(torch.equal, a.posterior, b.posterior))
    assert not all(map(torch.equal, runs[3].posterior, runs[4].posterior))


def test_both_directions_of_a_pair_agree_if_they_are_one(systems, make_model):
    batch = noisy(Batch.from_data_list(systems[:4]), 0.05)
    choices = find_choices(batch.edge_index, True)
    for undirected in (True, False):
        model = make_model(batch.edge_label, undirected=undirected)
        _, posterior = sample_posterior(model, batch, 3, 2, 0)
        same = all(
            torch.equal(q[choices.edge], q[choices.reverse]) for q in posterior)
        assert same == undirected


def test_systems_of_different_size(simulate_systems, make_model, flip):
    systems = [*simulate_systems(12, 3), *simulate_systems(12, 6)]
    batch = noisy(Batch.from_data_list(systems), 0.01)
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.2))
    edge_type, posterior = sample_posterior(model, batch, 8, 8, 2)
    right = (edge_type == batch.edge_label).all(-1).double().mean()
    assert right > 0.95
    assert [q.size() for q in posterior] == [(batch.num_edges, 2)] * 2


def test_labels_and_continuation_are_not_looked_at(systems, make_model):
    batch = noisy(Batch.from_data_list(systems[:3]), 0.05)
    model = make_model(batch.edge_label)
    expected = sample_posterior(model, batch, 3, 2, 0)
    del batch.edge_label, batch.y
    found = sample_posterior(model, batch, 3, 2, 0)
    assert all(map(torch.equal, found.posterior, expected.posterior))


def test_no_candidate_edges(make_model):
    data = from_trajectory(torch.randn(3, 6, 4),
                           edge_index=torch.empty(2, 0, dtype=torch.long))
    model = make_model(torch.empty(0, 2, dtype=torch.long))
    edge_type, posterior = sample_posterior(model, data, 2, 1)
    assert edge_type.size() == (0, 2)
    assert [q.size() for q in posterior] == [(0, 2), (0, 2)]


@pytest.mark.parametrize('wrong', [dict(num_samples=0), dict(burn_in=0)])
def test_there_must_be_sweeps(systems, make_model, wrong):
    model = make_model(systems[0].edge_label)
    with pytest.raises(ValueError, match='num_samples and burn_in of at leas'):
        sample_posterior(model, systems[0], **wrong)


def test_where_walls_are_everywhere_nothing_can_be_said(systems, make_model):
    model = make_model(systems[0].edge_label, half_width=1e-3)
    with pytest.raises(ValueError, match='check half_width'):
        sample_posterior(model, systems[0])
