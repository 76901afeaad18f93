import math

import pytest
import torch
from known_laws import of_first_order, share_right
from torch_geometric.data import Batch, Data

from pyg_fnri.inference import AnnealingStep, refine, sample_posterior
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.smoothing import follow
from pyg_fnri.simulation import LinearNetwork


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


@pytest.mark.parametrize('family', ['nri', 'sfnri'])
def test_laws_mend_the_encoders_graph(batch, guess, make_model, to_types,
                                      family):
    truth = to_types(batch.edge_label, family)
    model = make_model(guess, family)
    assert share_right(model.predict(batch), truth) < 0.75
    edge_type, posterior, _ = refine(model, batch, num_restarts=0)
    assert share_right(edge_type, truth) > 0.97
    for layer, q in enumerate(posterior):
        torch.testing.assert_close(q.sum(-1), torch.ones(640))
        sure = q.gather(1, edge_type[:, layer:layer + 1])
        assert (sure > 0.5).double().mean() > 0.99
    unchanged = refine(model, batch, annealing=[]).edge_type
    assert torch.equal(unchanged, model.predict(batch))


def test_directed_graphs_are_found_from_a_sure_and_wrong_guess(
        simulate_systems, make_model):
    batch = Batch.from_data_list(simulate_systems(6, 8))
    guess = torch.randint(2, batch.edge_label.size())
    # Half the evidence a choice, and twice as many of them.
    model = make_model(guess, confidence=10.0, undirected=False)
    found = refine(model, batch, num_restarts=8).edge_type
    assert share_right(found, batch.edge_label) > 0.995
    again = refine(model, batch, num_restarts=8).edge_type
    assert torch.equal(found, again)


def test_labels_and_continuation_are_not_used(systems, make_model, flip):
    batch = noisy(systems[:6], 0.02)
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.2))
    poisoned = batch.clone()
    poisoned.edge_label, poisoned.y = 9 - batch.edge_label, batch.y * math.nan
    for infer in (refine, lambda *args: sample_posterior(*args, 3, 2, 0)):
        found, expected = infer(model, poisoned), infer(model, batch)
        assert torch.equal(found.edge_type, expected.edge_type)
        assert all(map(torch.equal, found.posterior, expected.posterior))


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
    right = share_right(known, batch.edge_label)
    assert right > 0.9 and right > share_right(unknown,
                                               batch.edge_label) + 0.015
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


def test_samples_tell_noise_from_forces(systems, make_model, flip):
    batch = noisy(systems[:32], 0.05)
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.1))
    edge_type, posterior, _ = sample_posterior(model, batch, 12, 8, 2)
    sure = torch.stack([q.max(-1).values for q in posterior]).prod(0).mean()
    right = share_right(edge_type, batch.edge_label)
    assert right > 0.98 and sure == pytest.approx(right, abs=0.02)
    runs = [
        sample_posterior(model, batch, 1, 1, 0, generator)
        for generator in (None, None, torch.Generator().manual_seed(2))
    ]
    assert all(map(torch.equal, runs[0].posterior, runs[1].posterior))
    assert not all(map(torch.equal, runs[1].posterior, runs[2].posterior))
    with pytest.raises(ValueError, match='burn_in'):
        sample_posterior(model, batch, burn_in=0)


@pytest.fixture
def windows(simulate_systems):
    """One system of springs and charges in twelve noisy windows."""
    *_, whole = simulate_systems(6, 5)
    x = whole.x + 0.01 * whole.x.std((0, 1)) * torch.randn_like(whole.x)
    return Batch.from_data_list([
        Data(x=x[:, k:k + 4], edge_index=whole.edge_index,
             edge_label=whole.edge_label) for k in range(0, 48, 4)
    ])


@pytest.mark.parametrize('laws', [True, None], ids=['laws', 'network'])
def test_windows_that_share_a_graph_are_one_system(windows, make_model, laws):
    model = make_model(torch.zeros_like(windows.edge_label), confidence=0.0,
                       laws=laws)
    model.latent.shared = True
    found = refine(model, windows)
    for part in (found.edge_type, *found.posterior):
        first, *others = part.chunk(12)
        assert all(other.equal(first) for other in others)
    if laws:
        model.latent.shared = False
        alone = refine(model, windows).edge_type
        assert share_right(alone, windows.edge_label) < 0.8
        assert share_right(found.edge_type, windows.edge_label) == 1


def test_no_force_acts_between_windows(windows, make_model):
    model = make_model(windows.edge_label)
    layer, (one, *_) = model.decoder.layer, windows.to_data_list()
    choices = find_choices(one.edge_index, True)
    frames = [windows.x[:, :3], windows.x[:, 2:]]
    out = follow(frames, choices, layer, num_windows=12)
    assert out.change.size(1) == 12 * 3
    assert out.observed.sum() == 12 * 2 and out.observed[:24].all()
    # Of each window by itself, in order.
    apart = follow(frames, find_choices(windows.edge_index, True), layer)
    assert out.by_window(out.change).equal(apart.change)
    assert out.by_window(out.path.position).equal(apart.path.position)
    assert (out.frame.diff() > 3).sum() == 12 + 11
    assert apart.by_window(apart.change) is apart.change


def test_directed_networks_are_told_from_decaying_states():
    model, data = of_first_order(LinearNetwork(num_frames=49), 6, 1, 15,
                                 terms=['input', 'field'])
    layer = model.decoder.layer
    table = layer.laws['input']
    table.value.data.copy_(0.4 * table.knots.unsqueeze(0))
    layer.coefficients['field'].data.copy_(torch.tensor([0.0, -1.0, 0.0]))
    layer.scale.fill_(0.004)
    found = refine(model, data, num_restarts=0).edge_type
    # States decay into a few directions: one at a time gets stuck.
    assert share_right(found, data.edge_label) > 0.995
