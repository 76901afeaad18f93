from typing import NamedTuple

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.inference import noise, refine
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.noise import (
    DecorrelatedEvidence,
    autocorrelation,
    decorrelated,
)
from pyg_fnri.inference.search import GraphSearch


@pytest.fixture(params=['complete', 'masses', 'subset', 'walls', 'one way'])
def evidence(request, simulate_systems, make_model):
    """The evidence of small systems in all sorts of worlds."""
    batch = Batch.from_data_list(
        [data for n in (4, 2, 3) for data in simulate_systems(1, n)])
    batch.x = batch.x[:, :12]
    mass, half_width = None, 5.0
    if request.param == 'masses':
        mass = 0.5 + 3 * torch.rand(batch.num_nodes)
    if request.param == 'subset':  # Some of them without a reverse.
        kept = torch.randperm(batch.num_edges)[:14]
        batch.edge_index = batch.edge_index[:, kept]
    if request.param == 'walls':
        half_width = 0.8
    model = make_model(
        torch.zeros(batch.num_edges, 2).long(), undirected=request.param
        != 'one way')
    search, layer = GraphSearch(model, batch), model.decoder.layer
    transitions = Transitions([batch.x], search.choices, layer.interval,
                              half_width, mass)
    assert bool(transitions.valid.all()) == (request.param != 'walls')
    return search, ImpulseEvidence(transitions, layer)


def steps(num_series, num_steps, noise=0.0, forces=0.0):
    """Errors by noise in frames, and by what differs from step to step."""
    frames = torch.randn(num_series, num_steps + 1, 2)
    return (noise * (frames[:, 1:] - frames[:, :-1]) +
            forces * torch.randn(num_series, num_steps, 2))


class Steps(NamedTuple):
    """Which steps say something, and when they are: all that is looked at."""
    valid: torch.Tensor
    frame: torch.Tensor


def all_of(errors, frame=None):
    """Steps that all say something, one after the other."""
    num_steps = errors.size(1)
    return Steps(torch.ones(errors.size()[:2], dtype=torch.bool),
                 torch.arange(num_steps) if frame is None else frame)


def test_correlation_of_successive_errors():
    for noise_, forces, expected in [(1, 0, -1 / 2), (1, 1, -1 / 3), (0, 1, 0)]:
        errors = steps(400, 30, noise_, forces)
        found = autocorrelation(errors, all_of(errors))
        torch.testing.assert_close(found, of_lags([expected, 0, 0]), atol=0.03,
                                   rtol=0)
    # Rare errors, hundreds of times as large, hide nothing.
    errors = steps(400, 30, 1)
    errors[::7, ::11] *= 300
    assert (autocorrelation(errors, all_of(errors))[0] < -0.3).all()


def of_lags(values, num_features=2):
    return torch.tensor(values).float().unsqueeze(1).expand(-1, num_features)


def test_velocities_that_are_differences_of_positions():
    position = torch.randn(400, 34, 2)
    velocity = (position[:, 2:] - position[:, :-2]) / 2
    errors = velocity[:, 1:] - velocity[:, :-1]
    found = autocorrelation(errors, all_of(errors))
    torch.testing.assert_close(found, of_lags([-0.25, -0.5, 0.25]), atol=0.03,
                               rtol=0)


def test_correlation_where_little_is_seen():
    errors = steps(50, 30, 1)
    valid = torch.rand(50, 30) < 0.8
    errors[~valid] = 0  # Walls say nothing, and are no neighbours either.
    seen = Steps(valid, torch.arange(30))
    assert (autocorrelation(errors, seen)[0] < -0.4).all()
    assert not autocorrelation(0 * errors, seen).any()
    # A step of each trajectory; every other step.
    apart = all_of(errors, 1_000 * torch.arange(30))
    assert not autocorrelation(errors, apart).any()
    apart = all_of(errors, 2 * torch.arange(30))
    assert not autocorrelation(errors, apart)[0].any()


@pytest.mark.parametrize('correlation', [
    [[-0.4, -0.3, -0.1, 0.0], [0.0] * 4, [0.0] * 4],
    [[-0.25, -0.3, 0.1, -0.1], [-0.4, 0.1, 0.2, 0.3], [0.2, 0.0, 0.1, -0.1]],
])
def test_equals_the_inverse_of_a_dense_factor(evidence, correlation):
    search, evidence = evidence
    correlation = torch.tensor(correlation)
    channels = torch.randn(search.channels.size())
    plain = evidence.errors(channels).double()
    found = DecorrelatedEvidence(evidence, correlation).errors(channels)
    valid = evidence.transitions.valid
    for n, f in torch.cartesian_prod(*map(torch.arange, (len(valid), 4))):
        covariance = torch.eye(11).double()
        for s, t in torch.cartesian_prod(torch.arange(11), torch.arange(11)):
            if 0 < (s - t).abs() <= 3 and valid[n, s] and valid[n, t]:
                covariance[s, t] = correlation[(s - t).abs() - 1, f]
        factor = torch.linalg.cholesky(covariance)
        expected = torch.linalg.solve_triangular(factor, plain[n, :,
                                                               f].unsqueeze(1),
                                                 upper=False).squeeze(1)
        torch.testing.assert_close(found[n, :, f], expected.float(), atol=1e-3,
                                   rtol=1e-3)
    assert not found[~valid].any()


def test_trajectories_have_nothing_in_common(simulate_systems, make_model):
    data, = simulate_systems(1, 4)
    model = make_model(0 * data.edge_label)
    search, layer = GraphSearch(model, data), model.decoder.layer
    parts = [data.x[:, :10], data.x[:, 10:15], data.x[:, 15:]]
    correlation = of_lags([-0.3, -0.2, 0.1], 4)

    def errors(trajectories):
        transitions = Transitions(trajectories, search.choices, layer.interval)
        made = DecorrelatedEvidence(ImpulseEvidence(transitions, layer),
                                    correlation)
        return made.errors(search.channels)

    expected = torch.cat([errors([part]) for part in parts], dim=1)
    torch.testing.assert_close(errors(parts), expected)


def test_what_many_steps_add_up_to_is_never_exact():
    # There is no process of the first one.
    drawn = torch.cat([torch.full((3, 1), -0.5), 2 * torch.rand(3, 40) - 1], 1)
    found = noise._of_a_process(drawn)
    num_steps = 100
    for before, after in zip(drawn.t().double(), found.t().double()):
        covariance = torch.eye(num_steps).double()
        for lag, value in enumerate(after, 1):
            band = value.expand(num_steps - lag)
            covariance += band.diag(lag) + band.diag(-lag)
        least = torch.linalg.eigvalsh(covariance)[0]
        assert least > 0.99 * noise.LEAST_VARIANCE
        share = after[0] / before[0]
        torch.testing.assert_close(after, share * before)
        assert 0 < share <= 1 and (share == 1 or least < 0.1)
    assert (found == drawn).all(0).any() and (found != drawn).any()


def test_changes_agree(evidence, assert_changes_agree):
    search, evidence = evidence
    made = DecorrelatedEvidence(evidence, -0.2 * torch.rand(3, 4))
    # In units in which errors are about 1.
    size = made.errors(search.channels).abs().max()
    for name in ('change', 'on_receiver', 'on_sender'):
        setattr(made, name, getattr(made, name) / size)
    assert_changes_agree(made, search.choices, search.options)


@pytest.mark.parametrize('correlated', [False, True])
def test_evidence_of_some_systems_is_theirs(evidence, correlated):
    search, evidence = evidence
    if correlated:
        evidence = DecorrelatedEvidence(
            evidence, torch.tensor([[-0.4] * 4, [0.0] * 4, [0.1] * 4]))
    channels = torch.rand(search.choice.numel(), 2)
    errors = evidence.errors(channels)
    part = search.choices.among(search.system != 1)
    some = evidence.part(part)
    assert torch.equal(some.errors(channels[part.choice]),
                       errors[part.particle])
    members = torch.randperm(part.choice.numel())
    for one, all_ in zip(some.effects(members),
                         evidence.effects(part.choice[members])):
        assert torch.equal(one, all_)
    transitions, whole = some.transitions, evidence.transitions
    for name in ('distance', 'unit_effect'):
        assert torch.equal(getattr(transitions, name),
                           getattr(whole, name)[part.choice])
    assert torch.equal(evidence.errors(channels), errors)


def test_errors_by_noise_become_independent():
    errors = steps(500, 40, 1, 0.7)
    transitions = all_of(errors)
    factor = noise._factor(transitions, autocorrelation(errors, transitions))
    made = noise._solve(factor, torch.arange(500), errors)
    series = made[:, 5:]
    lagged = [
        (series[:, lag:] * series[:, :-lag]).mean() / series.square().mean()
        for lag in (1, 2, 3)
    ]
    assert max(map(abs, lagged)) < 0.03


def test_without_noise_nothing_changes(evidence):
    search, evidence = evidence
    errors = steps(len(evidence.change), 11, 0, 1).repeat(1, 1, 2).cumsum(1)
    assert decorrelated(evidence, errors) is evidence
    errors = steps(len(evidence.change), 11, 1).repeat(1, 1, 2)
    assert isinstance(decorrelated(evidence, errors), DecorrelatedEvidence)


def test_graphs_are_better_and_surer_in_noise(systems, make_model, monkeypatch):
    data = Batch.from_data_list(systems)
    data.x = data.x + 0.05 * data.x.std((0, 1)) * torch.randn(data.x.size())
    model = make_model(0 * data.edge_label, confidence=0.0)

    def figures():
        graph = refine(model, data, num_restarts=2)
        right = (graph.edge_type == data.edge_label).all(-1)
        sure = torch.stack([q.max(-1).values for q in graph.posterior]).prod(0)
        return right.double().mean().item(), sure.mean().item()

    right, sure = figures()
    monkeypatch.setattr(noise, 'NEGLIGIBLE', 1.0)
    before, less_sure = figures()
    assert right > 0.98 > before
    assert abs(sure - right) < 0.015 < before - less_sure
