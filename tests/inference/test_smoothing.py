import numpy as np
import pytest
import torch
from known_laws import assert_changes_agree, share_right
from torch_geometric.data import Batch

from pyg_fnri.inference import refine
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.inference.smoothing import SmoothedTransitions, follow, is_derived


def derived(x, noise=0.0):
    """Positions that are off by noise, and their differences at 0.1 s."""
    position = x.chunk(2, dim=-1)[0]
    position = position + noise * torch.randn(position.size())
    velocity = np.gradient(position.numpy(), 0.1, axis=1, edge_order=2)
    return torch.cat([position, torch.from_numpy(velocity)], dim=-1)


@pytest.fixture
def make_smoothed(systems, make_model):
    """A model of true laws and graphs, its search, and transitions of positions
    with noise."""
    def make(num_systems, noise, half_width=5.0):
        batch = Batch.from_data_list(systems[:num_systems])
        batch.x = derived(batch.x, noise)
        model = make_model(batch.edge_label, half_width=half_width)
        search, layer = GraphSearch(model, batch), model.decoder.layer
        return model, search, follow([batch.x], search.choices, layer)

    return make


def test_derived_velocities_are_recognised(systems):
    x = systems[0].x
    assert not is_derived(x, 0.1)
    for moved in (x, 1e3 * x, x + 100):
        assert is_derived(derived(moved, 0.01), 0.1)
    assert not is_derived(derived(x), 0.2)
    assert not is_derived(derived(x) + 1e-3, 0.1)
    assert not is_derived(derived(x)[:, :4], 0.1)


def test_noise_is_estimated_and_smoothed_away(systems, make_smoothed):
    model, search, found = make_smoothed(16, 0.02)
    assert isinstance(found, SmoothedTransitions)
    torch.testing.assert_close(found.noise, torch.full_like(found.noise, 0.2),
                               rtol=0.1, atol=0)
    true = torch.cat([data.x[:, 1:-1, :2] for data in systems[:16]])

    def error(position):
        return (position - true).square().median().sqrt().item()

    first, best = (error(part.path.position[:, :, 1]) for part in (
        found, found.followed(model.decoder.layer, search.channels)))
    assert best < 0.7 * first < 0.7 * 0.8 * error(found.seen[:, :, 1])
    # Forces explain what noise does not, so that little is left.
    known = found.followed(model.decoder.layer, search.channels)
    assert (known.force_error < 0.2 * found.force_error).all()


@pytest.mark.parametrize('half_width', [5.0, 1.0])
def test_equals_a_dense_gaussian(make_smoothed, half_width):
    """Noise of positions and independent errors of second differences."""
    model, search, found = make_smoothed(2, 0.02, half_width)
    valid, num_steps = found.valid, found.valid.size(1)
    assert bool(valid.all()) == (half_width == 5)
    evidence = found.evidence(model.decoder.layer)
    errors = evidence.errors(torch.zeros_like(search.channels))
    seen = torch.cat(
        [found.seen[:, :1, 0], found.seen[:, :, 1], found.seen[:, -1:, 2]],
        dim=1)
    second = torch.eye(num_steps + 2).double().diff(n=2, dim=0) / 0.1
    for n, d in [(0, 0), (3, 1), (7, 0)]:
        change = second[valid[n]]
        noise, force = 0.1 * found.noise[d], found.force_error[d]
        covariance = noise**2 * change @ change.t()
        covariance.diagonal().add_(force**2)
        left = change @ seen[n, :, d]
        mean = seen[n, :, d] - noise**2 * change.t() @ torch.linalg.solve(
            covariance, left)
        position = found.path.position[n, :, :, d]
        expected = mean.unfold(0, 3, 1)[valid[n]].float()
        torch.testing.assert_close(position[valid[n]], expected, atol=1e-5,
                                   rtol=0)
        factor = torch.linalg.cholesky(covariance)
        expected = torch.linalg.solve_triangular(factor, left[:, None],
                                                 upper=False).squeeze(1)
        torch.testing.assert_close(errors[n, valid[n], d], expected.float(),
                                   atol=1e-3, rtol=1e-3)
    assert not errors[~valid].any()
    assert_changes_agree(evidence, search.choices, search.options)


def test_successive_transitions_are_taken(make_smoothed):
    _, _, found = make_smoothed(2, 0.02)
    some = found.drawn(5, torch.Generator().manual_seed(0))
    assert (some.frame.diff() == 1).all() and len(some.frame) >= 40
    assert some.seen.size(1) == some.path.position.size(1) == len(some.frame)


def test_graphs_by_positions_alone(systems, make_model):
    """Noise of 2 %: derived velocities alone give 60 %."""
    batch = Batch.from_data_list(systems[:24])
    model = make_model(torch.zeros_like(batch.edge_label), confidence=0.0)
    truth, batch.x = batch.edge_label, derived(batch.x, 0.025)
    found = refine(model, batch, num_restarts=4)
    assert share_right(found.edge_type, truth) > 0.97
