import math

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.inference import AnnealingStep, relaxation
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import StudentErrors
from pyg_fnri.inference.refine import ANNEALING
from pyg_fnri.inference.relaxation import relax, relax_and_sweep
from pyg_fnri.inference.search import GraphSearch


def problem(model, data, mass=None):
    """A search that starts from the encoder's graphs, and its evidence."""
    search, layer = GraphSearch(model, data), model.decoder.layer
    transitions = Transitions([data.x], search.choices, layer.interval,
                              layer.half_width, mass)
    return search, ImpulseEvidence(transitions, layer)


def share(search, truth):
    """Edges of which all layer-graphs are right."""
    edge_type = search.result().edge_type
    return (edge_type == truth).all(-1).double().mean().item()


def random_start(search):
    """Random probabilities, :obj:`[V, M]`."""
    return torch.randn(search.log_prior.size()).softmax(-1)


def dense_relax(search, evidence, annealing, start):
    """The same by the book: each particle's equations are of all channels of
    the batch, and messages are found one after the other."""
    evidence.effect = evidence.effect.double()
    evidence.change = evidence.change.double()
    options, q, choices = search.options.double(), start.double(
    ), search.choices
    size = num_choices, num_channels = len(q), options.size(1)
    change = evidence.errors(q.new_zeros(size)).flatten(1)
    effect = torch.stack([
        change - evidence.errors(unit.view(size)).flatten(1)
        for unit in torch.eye(num_choices * num_channels).double()
    ], -1)  # [num_nodes, T * F, V * C]
    acting = [*enumerate(choices.receiver.tolist())]
    acting += [(v, node) for v, node in enumerate(choices.sender.tolist())
               if choices.mutual[v]]
    sent = {
        key: (q.new_zeros(num_channels,
                          num_channels), q.new_zeros(num_channels))
        for key in acting
    }
    channels = q @ options
    for stage in annealing:
        errors = (change - effect @ channels.flatten()).view_as(evidence.change)
        weight = 2 * stage.weight(errors).flatten(1)
        normal = effect.mT @ (weight.unsqueeze(2) * effect)
        right = (effect.mT @ (weight * change).unsqueeze(2)).squeeze(2)
        for _ in range(relaxation.NUM_ROUNDS):
            mean = q @ options
            variance = (q @ options.square() - mean.square()).clamp(min=1e-2)
            own = [*zip((1 / variance).diag_embed(), mean / variance)]
            known = received(sent, own)
            new = {}
            for v, node in acting:
                matrix, side = normal[node].clone(), right[node].clone()
                for u in {*range(num_choices)} - {v}:
                    block = slice(u * num_channels, (u + 1) * num_channels)
                    less = sent.get((u, node), (0, 0))
                    matrix[block, block] += known[u][0] - less[0]
                    side[block] += known[u][1] - less[1]
                to = torch.zeros(len(side), dtype=torch.bool)
                to[v * num_channels:(v + 1) * num_channels] = True
                # The Schur complement: all other channels follow.
                gain = torch.linalg.solve(matrix[~to][:, ~to], matrix[~to][:,
                                                                           to])
                bend = matrix[to][:, to] - matrix[to][:, ~to] @ gain
                pull = side[to] - gain.t() @ side[~to]
                new[v, node] = tuple(a + relaxation.DAMPING * (b - a)
                                     for a, b in zip((bend, pull), sent[v,
                                                                        node]))
            sent = new
            score = stage.prior_weight * search.log_prior.double()
            for v, (bend,
                    pull) in enumerate(received(sent, [(0, 0)] * num_choices)):
                for m, z in enumerate(options):
                    score[v, m] += pull @ z - z @ bend @ z / 2
            q = score.softmax(-1)
        channels = torch.stack([
            torch.linalg.solve(bend, pull)
            for bend, pull in received(sent, own)
        ])
    return q.argmax(-1)


def received(sent, own):
    """What each pair is sent, added to its own."""
    return [
        tuple(
            sum((message[part]
                 for (u, _), message in sent.items() if u == v), own[v][part])
            for part in range(2)) for v in range(len(own))
    ]


@pytest.fixture(scope='module')
def dozens(simulate_systems):
    """Systems of twelve particles."""
    return Batch.from_data_list(simulate_systems(4, 12))


@pytest.mark.parametrize('world', ['masses', 'subset', 'walls', 'one way'])
@pytest.mark.parametrize('annealing', [
    [AnnealingStep(3.0, 0.5), AnnealingStep(0.3, 0.0)],
    [
        StudentErrors((2.0, 2.0, 9.0, 9.0), (0.5, 0.5, 1.0, 1.0),
                      (0.2, ) * 4, 0.3)
    ] * 2,
])
def test_equals_a_dense_oracle(simulate_systems, make_model, annealing, world):
    # Small systems, seen too shortly to be sure.
    mass, half_width = None, 5.0
    data = Batch.from_data_list(
        [data for n in (4, 2, 3) for data in simulate_systems(1, n)])
    data.x = data.x[:, :5]
    if world == 'masses':
        mass = 0.5 + 3 * torch.rand(data.num_nodes)
    if world == 'subset':  # Some of them without a reverse.
        kept = torch.randperm(data.num_edges)[:14]
        data.edge_index = data.edge_index[:, kept]
    if world == 'walls':
        half_width = 0.8
    model = make_model(torch.randint(2, (data.num_edges, 2)), undirected=world
                       != 'one way', half_width=half_width)
    search, evidence = problem(model, data, mass)
    assert bool(evidence.transitions.valid.all()) == (world != 'walls')
    start = random_start(search)
    found = relax(search, evidence, annealing, start)
    expected = dense_relax(search, evidence, annealing, start)
    assert torch.equal(found, expected)
    assert (expected != start.argmax(-1)).any()
    assert expected.unique().numel() > 1


@pytest.mark.parametrize('family, undirected', [('nri', True), ('fnri', False),
                                                ('sfnri', True)])
def test_finds_what_sweeps_do_not(dozens, make_model, to_types, family,
                                  undirected):
    truth = to_types(dozens.edge_label, family)
    model = make_model(0 * dozens.edge_label, family, 0.0, undirected)
    search, evidence = problem(model, dozens)
    for stage in ANNEALING:
        search.sweep(evidence, stage)
    swept = share(search, truth)
    search, evidence = problem(model, dozens)
    search.choice = relax(search, evidence, ANNEALING)
    # Half the evidence an edge where directions are apart.
    relaxed = share(search, truth)
    assert relaxed > (0.99 if undirected else 0.95) and swept < relaxed - 0.2
    # Sweeps mend the rest.
    cost = search.cost(evidence, ANNEALING[-1]).sum()
    relax_and_sweep(search, evidence, ANNEALING)
    assert search.cost(evidence, ANNEALING[-1]).sum() <= cost
    sure = search.conditional.exp().gather(1, search.choice.unsqueeze(1))
    assert sure.median() > 0.99


@pytest.mark.parametrize('undirected', [True, False])
def test_systems_side_by_side_equal_one_by_one(simulate_systems, make_model,
                                               monkeypatch, undirected):
    systems = [
        data for sizes in zip(*(simulate_systems(2, n) for n in (3, 6, 2, 5)))
        for data in sizes
    ]
    batch = Batch.from_data_list(systems)
    guess = torch.randint(2, batch.edge_label.size())
    options = dict(confidence=1.0, undirected=undirected)
    search, evidence = problem(make_model(guess, **options), batch)
    start = random_start(search)
    together = relax(search, evidence, ANNEALING[:3], start)
    assert together.unique().numel() == 4
    # As many of them at once as fit, all or one.
    owner, first = batch.batch[search.choices.receiver], 0
    monkeypatch.setattr(relaxation, 'NUM_ENTRIES', 1)
    assert len(list(relaxation._parts(search, evidence))) == 8
    assert torch.equal(relax(search, evidence, ANNEALING[:3], start), together)
    # Or some of them only.
    search.active = owner % 3 == 1
    expected = torch.where(search.active, together, search.choice)
    assert torch.equal(relax(search, evidence, ANNEALING[:3], start), expected)
    for number, data in enumerate(systems):
        rows = slice(first, first + data.num_edges)
        first += data.num_edges
        search, evidence = problem(make_model(guess[rows], **options), data)
        alone = relax(search, evidence, ANNEALING[:3], start[owner == number])
        assert torch.equal(together[owner == number], alone)


def test_where_laws_say_nothing_the_encoder_decides(systems, make_model):
    batch = Batch.from_data_list(systems[:4])
    guess = torch.randint(2, batch.edge_label.size())
    search, evidence = problem(make_model(guess, laws=False), batch)
    encoder, search.choice = search.choice, torch.randint(4, (40, ))
    found = relax(search, evidence, ANNEALING, random_start(search))
    assert torch.equal(found, encoder)


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_laws_that_are_not_finite_are_no_graph(systems, make_model, value):
    batch = Batch.from_data_list(systems[:2])
    model = make_model(batch.edge_label)
    model.decoder.layer.law.value.data[1] = value
    search, evidence = problem(model, batch)
    before = search.choice.clone()
    with pytest.raises(ValueError, match='not finite'):
        relax_and_sweep(search, evidence, ANNEALING)
    assert torch.equal(search.choice, before)


def test_large_systems_are_swept(simulate_systems, make_model, monkeypatch):
    batch = Batch.from_data_list(simulate_systems(4, 8))
    model = make_model(torch.zeros(4 * 56, 2).long(), confidence=0.0)
    graphs, size = [], 8 * 14 * (14 + 48 * 4)
    for most in (size, size - 1):
        monkeypatch.setattr(relaxation, 'MAX_ENTRIES', most)
        search, evidence = problem(model, batch)
        relax_and_sweep(search, evidence, ANNEALING)
        graphs.append(search.choice)
    search, evidence = problem(model, batch)
    for stage in ANNEALING:
        search.sweep(evidence, stage)
    assert torch.equal(search.choice, graphs[1])
    assert not torch.equal(*graphs)
