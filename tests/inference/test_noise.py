import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.inference import noise, refine
from pyg_fnri.inference.impulses import Flights, ImpulseEvidence
from pyg_fnri.inference.noise import (
    DecorrelatedEvidence,
    alternation,
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
    flights = Flights([batch.x], search.choices, layer.interval, half_width,
                      mass)
    assert bool(flights.valid.all()) == (request.param != 'walls')
    return search, ImpulseEvidence(flights, layer)


def steps(num_series, num_steps, noise=0.0, forces=0.0):
    """Errors by noise in frames, and by what differs from step to step."""
    frames = torch.randn(num_series, num_steps + 1, 2)
    return (noise * (frames[:, 1:] - frames[:, :-1]) +
            forces * torch.randn(num_series, num_steps, 2))


def test_correlation_of_successive_errors():
    valid = torch.ones(400, 30, dtype=torch.bool)
    for noise_, forces, expected in [(1, 0, -0.495), (1, 1, -1 / 3), (0, 1, 0)]:
        found = alternation(steps(400, 30, noise_, forces), valid)
        torch.testing.assert_close(found, torch.full((2, ), float(expected)),
                                   atol=0.02, rtol=0)
    # Those that go on in the same direction are left alone.
    found = alternation(steps(400, 30, 0, 1).cumsum(1), valid)
    assert not found.any()
    # Rare errors, hundreds of times as large, hide nothing.
    errors = steps(400, 30, 1)
    errors[::7, ::11] *= 300
    assert (alternation(errors, valid) < -0.3).all()


def test_correlation_where_little_is_seen():
    errors = steps(50, 30, 1)
    valid = torch.rand(50, 30) < 0.8
    # Walls say nothing, and are no neighbours either.
    errors[~valid] = 0
    assert (alternation(errors, valid) < -0.4).all()
    nowhere = torch.zeros_like(valid)
    assert not alternation(0 * errors, nowhere).any()
    assert not alternation(0 * errors, valid).any()
    every_other = torch.arange(30).expand(50, 30) % 2 == 0
    assert not alternation(errors * every_other.unsqueeze(-1),
                           every_other).any()


def test_equals_the_inverse_of_a_dense_factor(evidence):
    search, evidence = evidence
    correlation = torch.tensor([-0.495, -0.4, -0.1, 0.0])
    channels = torch.randn(search.channels.size())
    plain = evidence.errors(channels).double()
    found = DecorrelatedEvidence(evidence, correlation).errors(channels)
    valid = evidence.flights.valid
    for n, f in torch.cartesian_prod(*map(torch.arange, (len(valid), 4))):
        together = (valid[n, 1:] & valid[n, :-1]).double() * correlation[f]
        covariance = torch.eye(11).double() + together.diag(1) + together.diag(
            -1)
        factor = torch.linalg.cholesky(covariance)
        expected = torch.linalg.solve_triangular(factor, plain[n, :,
                                                               f].unsqueeze(1),
                                                 upper=False).squeeze(1)
        torch.testing.assert_close(found[n, :, f], expected.float(), atol=1e-3,
                                   rtol=1e-3)
    assert not found[~valid].any()


def test_changes_agree(evidence, assert_changes_agree):
    search, evidence = evidence
    made = DecorrelatedEvidence(evidence, torch.tensor([-0.4, -0.3, -0.2,
                                                        -0.1]))
    # In units in which errors are about 1.
    size = made.errors(search.channels).abs().max()
    for name in ('change', 'on_receiver', 'on_sender'):
        setattr(made, name, getattr(made, name) / size)
    assert_changes_agree(made, search.choices, search.options)


def test_errors_by_noise_become_independent():
    errors = steps(500, 40, 1, 0.7)
    valid = torch.ones(500, 40, dtype=torch.bool)
    made = noise._independent(errors, valid, alternation(errors, valid))
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
