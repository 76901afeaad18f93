import copy
import math
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.inference import AnnealingStep, relaxation
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import StudentErrors
from pyg_fnri.inference.refine import ANNEALING
from pyg_fnri.inference.relaxation import Gaussian, relax, relax_and_sweep
from pyg_fnri.inference.search import GraphSearch

FAMILIES = ['nri', 'fnri', 'sfnri']


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


def true_options(search, truth):
    """Options of the right graphs, :obj:`[V]`."""
    types = truth[search.choices.edge].unsqueeze(1)
    return (search.types == types).all(-1).int().argmax(-1)


def random_start(search):
    """Random probabilities, :obj:`[V, M]`."""
    return torch.randn(search.log_prior.size()).softmax(-1)


def dense_design(evidence, num_choices, num_channels):
    """What is to be explained, and what a unit of each channel of each choice
    explains of it, by trying one after the other: :obj:`[R]` and
    :obj:`[R, V * C]`."""
    evidence.effect = evidence.effect.double()
    evidence.change = evidence.change.double()
    units = torch.eye(num_choices * num_channels, dtype=torch.double)
    change = evidence.errors(torch.zeros(num_choices, num_channels).double())
    effect = torch.stack(
        [(change - evidence.errors(unit.view(num_choices, -1))).flatten()
         for unit in units], dim=-1)
    return change.flatten(), effect


def dense_relax(search, evidence, annealing, start):
    """The same by the book: each particle's equations are of all channels of
    the batch, and messages are found one after the other."""
    options, q = search.options.double(), start.double()
    num_choices, num_channels = len(q), options.size(1)
    num_nodes, *size = evidence.change.size()
    change, effect = dense_design(evidence, num_choices, num_channels)
    change, effect = change.view(num_nodes,
                                 -1), effect.view(num_nodes, -1,
                                                  num_choices * num_channels)
    blocks = [
        slice(v * num_channels, (v + 1) * num_channels)
        for v in range(num_choices)
    ]
    choices, acting = search.choices, []
    for v in range(num_choices):
        acting.append((v, int(choices.receiver[v])))
        if bool(choices.mutual[v]):
            acting.append((v, int(choices.sender[v])))
    nothing = (torch.zeros(num_channels, num_channels).double(),
               torch.zeros(num_channels).double())
    said = {key: nothing for key in acting}
    channels = (q @ options).flatten()
    for stage in annealing:
        errors = (change - effect @ channels).view(num_nodes, *size)
        weight = 2 * stage.weight(errors).flatten(1)
        normal = effect.mT @ (weight.unsqueeze(2) * effect)
        right = (effect.mT @ (weight * change).unsqueeze(2)).squeeze(2)
        for _ in range(relaxation.NUM_ROUNDS):
            mean = q @ options
            variance = q @ options.square() - mean.square()
            precision = 1 / variance.clamp(min=1e-2)
            new = {}
            for v, node in acting:
                matrix, side = normal[node].clone(), right[node].clone()
                for u in range(num_choices):
                    if u == v:
                        continue  # What others say of the pair is not told.
                    matrix[blocks[u], blocks[u]] += precision[u].diag()
                    side[blocks[u]] += precision[u] * mean[u]
                    for other in [n for w, n in acting if w == u and n != node]:
                        matrix[blocks[u], blocks[u]] += said[u, other][0]
                        side[blocks[u]] += said[u, other][1]
                own = torch.zeros(len(side), dtype=torch.bool)
                own[blocks[v]] = True
                # The Schur complement: all other channels follow.
                gain = torch.linalg.solve(matrix[~own][:, ~own],
                                          matrix[~own][:, own])
                bend = matrix[own][:, own] - matrix[own][:, ~own] @ gain
                pull = side[own] - gain.t() @ side[~own]
                new[v, node] = tuple(a + relaxation.DAMPING * (b - a)
                                     for a, b in zip((bend, pull), said[v,
                                                                        node]))
            said = new
            heard = [[
                sum(said[key][part] for key in acting if key[0] == v)
                for v in range(num_choices)
            ] for part in range(2)]
            score = stage.prior_weight * search.log_prior.double()
            for v in range(num_choices):
                for m, z in enumerate(options):
                    score[v, m] += heard[1][v] @ z - z @ heard[0][v] @ z / 2
            q = score.softmax(-1)
        channels = torch.cat([
            torch.linalg.solve(heard[0][v] + precision[v].diag(),
                               heard[1][v] + precision[v] * mean[v])
            for v in range(num_choices)
        ])
    return q.argmax(-1)


@pytest.fixture(scope='module')
def dozens(simulate_systems):
    """Systems of twelve particles."""
    return Batch.from_data_list(simulate_systems(4, 12))


@pytest.fixture(params=['complete', 'masses', 'subset', 'walls', 'one way'])
def in_doubt(request, simulate_systems, make_model):
    """Small systems, seen too shortly to be sure, in all sorts of worlds."""
    undirected, mass, half_width = request.param != 'one way', None, 5.0
    data = Batch.from_data_list(
        [data for n in (4, 2, 3) for data in simulate_systems(1, n)])
    data.x = data.x[:, :5]
    if request.param == 'masses':
        mass = 0.5 + 3 * torch.rand(data.num_nodes)
    if request.param == 'subset':  # Some of them without a reverse.
        kept = torch.randperm(data.num_edges)[:14]
        data.edge_index = data.edge_index[:, kept]
    if request.param == 'walls':
        half_width = 0.8
    model = make_model(torch.randint(2, (data.num_edges, 2)),
                       undirected=undirected, half_width=half_width)
    search, evidence = problem(model, data, mass)
    assert bool(evidence.transitions.valid.all()) == (request.param != 'walls')
    return search, evidence


@pytest.mark.parametrize('family', FAMILIES)
@pytest.mark.parametrize('undirected', [True, False])
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
    assert share(search, truth) > (0.99 if undirected else 0.95)
    assert swept < share(search, truth) - 0.2


def test_sweeps_mend_the_rest(dozens, make_model):
    model = make_model(0 * dozens.edge_label, confidence=0.0, undirected=False)
    search, evidence = problem(model, dozens)
    search.choice = relax(search, evidence, ANNEALING)
    cost = search.cost(evidence, ANNEALING[-1])
    search, evidence = problem(model, dozens)
    relax_and_sweep(search, evidence, ANNEALING)
    assert search.cost(evidence, ANNEALING[-1]).sum() < cost.sum()
    # With the conditional posterior of what was found.
    sure = search.conditional.exp().gather(1, search.choice.unsqueeze(1))
    assert sure.median() > 0.99


@pytest.mark.parametrize('annealing', [
    [AnnealingStep(0.3, 1.0)],
    [AnnealingStep(3.0, 0.5),
     AnnealingStep(1.0, 0.3),
     AnnealingStep(0.3, 0.0)],
    [
        StudentErrors((2.0, 2.0, 9.0, 9.0), (0.5, 0.5, 1.0, 1.0),
                      (0.2, ) * 4, 0.3)
    ] * 2,
])
def test_equals_a_dense_oracle(in_doubt, annealing):
    search, evidence = in_doubt
    start = random_start(search)
    expected = dense_relax(search, copy.copy(evidence), annealing, start)
    assert torch.equal(relax(search, evidence, annealing, start), expected)
    assert (expected != start.argmax(-1)).any()
    assert expected.unique().numel() > 1


def test_messages_solve_a_ridge_regression(in_doubt):
    search, evidence = in_doubt
    num_choices, num_channels = search.channels.size()
    particles = relaxation._Particles.of(search, evidence,
                                         torch.arange(num_choices))
    change, effect = dense_design(evidence, num_choices, num_channels)
    # Far above all errors, the cost is as good as a parabola.
    stage = AnnealingStep(1e6 * change.square().max().item(), 0.0)
    unit = 2 * stage.weight(torch.zeros(())).double()
    mean = torch.randn(num_choices, num_channels).double()
    precision = unit * (0.1 + torch.rand(mean.size())).double()
    own = Gaussian(torch.diag_embed(precision), precision * mean)
    normal, right = particles.parabolas(torch.rand(mean.size()).double(), stage)
    said = Gaussian.of_nothing(particles.pair.numel(), num_channels, mean)
    for _ in range(300):
        heard = particles.sum_at_pairs(said).plus(own).take(particles.pair)
        new = particles.messages(normal, right, heard.minus(said))
        said = new.towards(said, 0.5)
    found = particles.sum_at_pairs(said).plus(own)
    tie = precision.flatten().sqrt()
    rows = torch.cat([unit.sqrt() * effect, tie.diag()])
    aims = torch.cat([unit.sqrt() * change, tie * mean.flatten()])
    expected = torch.linalg.lstsq(rows, aims.unsqueeze(-1)).solution
    torch.testing.assert_close(found.mean, expected.view(mean.size()),
                               atol=1e-4, rtol=1e-4)
    if not bool(search.choices.mutual.any()):
        # No pair hears of another one: variances, too, are exact.
        everything = torch.arange(num_choices)
        inverse = (rows.t() @ rows).inverse().view(num_choices, num_channels,
                                                   num_choices, num_channels)
        torch.testing.assert_close(found.precision.inverse(),
                                   inverse[everything, :,
                                           everything], atol=0, rtol=1e-4)


@pytest.mark.parametrize('family', FAMILIES)
@pytest.mark.parametrize('undirected', [True, False])
def test_systems_side_by_side_equal_one_by_one(simulate_systems, make_model,
                                               family, undirected):
    systems = [
        data for sizes in zip(*(simulate_systems(2, n) for n in (3, 6, 2, 5)))
        for data in sizes
    ]
    batch = Batch.from_data_list(systems)
    guess = torch.randint(2, batch.edge_label.size())
    options = dict(family=family, confidence=1.0, undirected=undirected)
    search, evidence = problem(make_model(guess, **options), batch)
    start = random_start(search)
    together = relax(search, evidence, ANNEALING[:3], start)
    owner, first = batch.batch[search.choices.receiver], 0
    for number, data in enumerate(systems):
        rows = slice(first, first + data.num_edges)
        first += data.num_edges
        search, evidence = problem(make_model(guess[rows], **options), data)
        alone = relax(search, evidence, ANNEALING[:3], start[owner == number])
        assert torch.equal(together[owner == number], alone)
    assert together.unique().numel() == 4


def test_parts_of_a_batch_equal_the_whole(simulate_systems, make_model,
                                          monkeypatch):
    systems = [*simulate_systems(3, 6), *simulate_systems(3, 4)]
    batch = Batch.from_data_list([systems[i] for i in (0, 3, 4, 1, 2, 5)])
    search, evidence = problem(make_model(0 * batch.edge_label), batch)
    everything = torch.arange(search.choice.numel())
    start = random_start(search)
    expected = relax(search, evidence, ANNEALING[:2], start)
    assert len(list(relaxation._parts(search, evidence))) == 1
    owner = batch.batch[search.choices.receiver]
    # Matrices, and rows of 48 transitions by 4 features, of each particle.
    small, large = (n * (2 * (n - 1)) * (2 * (n - 1) + 192) for n in (4, 6))
    for limit, sizes in [(1, [1] * 6), (2 * small, [2, 1, 1, 1, 1]),
                         (3 * large, [4, 2])]:
        monkeypatch.setattr(relaxation, 'NUM_ENTRIES', limit)
        parts = list(relaxation._parts(search, evidence))
        assert [owner[part].unique().numel() for part in parts] == sizes
        assert torch.equal(torch.cat(parts).sort().values, everything)
        found = relax(search, evidence, ANNEALING[:2], start)
        assert torch.equal(found, expected)


def test_some_systems_are_a_search_of_their_own(systems, make_model):
    batch = Batch.from_data_list(systems[:5])
    search, evidence = problem(make_model(0 * batch.edge_label), batch)
    search.choice = torch.randint(4, (50, ))
    before, effect = search.choice.clone(), evidence.effect.clone()
    everything = relax(search, evidence, ANNEALING)
    kept = (batch.batch == 3) | (batch.batch == 1)
    part = search.choices.among(kept)
    some = search.part(part)
    assert torch.equal(some.choice, before[part.choice])
    found = relax(some, evidence.part(part), ANNEALING)
    assert torch.equal(found, everything[part.choice])
    assert not torch.equal(found, before[part.choice])
    # The caller decides what becomes of it.
    assert torch.equal(search.choice, before)
    assert torch.equal(evidence.effect, effect)


def test_begins_where_it_is_told_to(dozens, make_model):
    search, evidence = problem(make_model(0 * dozens.edge_label), dozens)
    truth = true_options(search, dozens.edge_label)
    sharp = [AnnealingStep(1e-3, 0.0)]
    uniform = torch.full_like(search.log_prior, 0.25)
    there = torch.nn.functional.one_hot(truth, 4).float()
    right = [(relax(search, evidence, sharp, start) == truth).double().mean()
             for start in (uniform, there)]
    assert right[0] < 0.9 and right[1] > 0.99


def test_begins_at_the_encoders_word(dozens, make_model):
    guess = torch.randint(2, dozens.edge_label.size())
    search, evidence = problem(make_model(guess), dozens)
    stages = [AnnealingStep(0.1, 0.3), AnnealingStep(0.05, 0.1)]
    default = relax(search, evidence, stages)
    for weight, same in (0.3, True), (2.0, False):
        start = (weight * search.log_prior).softmax(-1)
        found = relax(search, evidence, stages, start)
        assert torch.equal(found, default) == same


@pytest.mark.parametrize('undirected', [True, False])
def test_order_of_particles_and_edges_does_not_matter(systems, make_model,
                                                      undirected):
    # Few frames, for not everything to be clear.
    data = Batch.from_data_list(systems[:8])
    data.x = data.x[:, :6]
    guess = torch.randint(2, data.edge_label.size())
    expected, evidence = problem(make_model(guess, undirected=undirected), data)
    expected.choice = relax(expected, evidence, ANNEALING[:3])
    # Within each system, as systems do.
    place = torch.cat([5 * i + torch.randperm(5) for i in range(8)])
    order = torch.randperm(data.num_edges)
    other = data.clone()
    other.x = torch.empty_like(data.x)
    other.x[place] = data.x
    other.edge_index = place[data.edge_index][:, order]
    model = make_model(guess[order], undirected=undirected)
    search, evidence = problem(model, other)
    search.choice = relax(search, evidence, ANNEALING[:3])
    assert torch.equal(search.result().edge_type,
                       expected.result().edge_type[order])
    assert (expected.result().edge_type != guess).any()


def test_masses_divide_forces(simulate_systems, make_model):
    batch = Batch.from_data_list(simulate_systems(4, 8))
    mass = 0.5 * 8**torch.rand(batch.num_nodes)
    model, right = make_model(0 * batch.edge_label, confidence=0.0), []
    search, evidence = problem(model, batch, mass)
    truth = true_options(search, batch.edge_label)
    # As such particles would have moved along the same paths.
    evidence.change = (evidence.change - evidence.errors(search.options[truth]))
    for known in (True, False):
        evidence.transitions = copy.copy(evidence.transitions)
        evidence.transitions.mass = mass if known else None
        found = relax(search, evidence, ANNEALING)
        right.append((found == truth).double().mean())
    assert right[0] > 0.99 and right[1] < 0.95


def test_walls_are_not_looked_at(simulate_systems, make_model):
    systems = simulate_systems(6, 5, box_half_width=1.0, position_std=0.3)
    batch = Batch.from_data_list(systems)
    model = make_model(0 * batch.edge_label, confidence=0.0, half_width=1.0)
    search, evidence = problem(model, batch)
    # Not yet sharp, for everything seen to make a difference.
    expected = relax(search, evidence, ANNEALING[:1])
    unseen = ~evidence.transitions.valid
    assert unseen.double().mean() > 0.05
    evidence.change[unseen] += 10 * torch.randn(evidence.change[unseen].size())
    assert torch.equal(relax(search, evidence, ANNEALING[:1]), expected)
    evidence.transitions.valid = torch.ones_like(unseen)
    assert not torch.equal(relax(search, evidence, ANNEALING[:1]), expected)


def test_candidates_that_leave_out_what_does_not_interact(dozens, make_model):
    kept = dozens.clone()
    edges = dozens.edge_label.any(-1)
    kept.edge_index = dozens.edge_index[:, edges]
    kept.edge_label = dozens.edge_label[edges]
    assert kept.num_edges < 450
    model = make_model(0 * kept.edge_label, confidence=0.0)
    search, evidence = problem(model, kept)
    search.choice = relax(search, evidence, ANNEALING)
    assert share(search, kept.edge_label) > 0.99


def test_no_candidate_edges(make_model, make_system):
    data = make_system(4, edge_index=torch.empty(2, 0, dtype=torch.long))
    model = make_model(torch.empty(0, 2, dtype=torch.long))
    search, evidence = problem(model, data)
    assert relax(search, evidence, ANNEALING).size() == (0, )
    relax_and_sweep(search, evidence, ANNEALING)
    assert search.result().edge_type.size() == (0, 2)


@pytest.mark.parametrize('family', FAMILIES)
def test_where_laws_say_nothing_the_encoder_decides(systems, make_model, flip,
                                                    family):
    batch = Batch.from_data_list(systems[:4])
    guess = flip(batch.edge_label, batch.edge_index, 0.5)
    search, evidence = problem(make_model(guess, family, laws=False), batch)
    encoder, search.choice = search.choice, torch.randint(4, (40, ))
    found = relax(search, evidence, ANNEALING, random_start(search))
    assert torch.equal(found, encoder)
    # Or where its word weighs more than anything.
    search, evidence = problem(make_model(guess, family), batch)
    loud = [replace(stage, prior_weight=1e8) for stage in ANNEALING]
    assert torch.equal(relax(search, evidence, loud), encoder)
    assert not torch.equal(relax(search, evidence, ANNEALING), encoder)


def test_without_stages_the_present_graph_stays(systems, make_model):
    search, evidence = problem(make_model(systems[0].edge_label), systems[0])
    search.choice = torch.randint(4, (10, ))
    found = relax(search, evidence, [], random_start(search))
    assert torch.equal(found, search.choice)


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_laws_that_are_not_finite_are_no_graph(systems, make_model, value):
    batch = Batch.from_data_list(systems[:2])
    model = make_model(batch.edge_label)
    model.decoder.layer.law.value.data[1] = value
    search, evidence = problem(model, batch)
    before = search.choice.clone()
    with pytest.raises(ValueError, match='predictions are not finite'):
        relax_and_sweep(search, evidence, ANNEALING)
    assert torch.equal(search.choice, before)


def test_large_systems_are_swept(simulate_systems, make_model, monkeypatch):
    batch = Batch.from_data_list(simulate_systems(4, 8))
    model = make_model(torch.zeros(4 * 56, 2).long(), confidence=0.0)
    graphs = []
    size = 8 * 14 * (14 + 48 * 4)
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
