import math

import pytest
import torch
from known_laws import search_problem, share_right
from torch_geometric.data import Batch

from pyg_fnri.inference import AnnealingStep, relaxation
from pyg_fnri.inference.likelihood import StudentErrors
from pyg_fnri.inference.refine import ANNEALING
from pyg_fnri.inference.relaxation import relax, relax_and_sweep


def random_start(search):
    """Random probabilities, :obj:`[V, M]`."""
    return torch.randn(search.log_prior.size()).softmax(-1)


def share(search, truth):
    return share_right(search.result().edge_type, truth)


def dense_relax(search, evidence, annealing, start):
    """The same by the book: each particle's equations are of all channels of
    the batch, and messages are found one after the other."""
    evidence.effect = evidence.effect.double()
    evidence.change = evidence.change.double()
    options, q = search.options.double(), start.double()
    choices = search.choices
    size = num_choices, num_channels = len(q), options.size(1)
    change = evidence.errors(q.new_zeros(size)).flatten(1)
    effect = torch.stack([
        change - evidence.errors(unit.view(size)).flatten(1)
        for unit in torch.eye(num_choices * num_channels).double()
    ], -1)  # [num_nodes, T * F, V * C]
    acting = [*enumerate(choices.receiver.tolist())]
    acting += [(v, node) for v, node in enumerate(choices.sender.tolist())
               if choices.mutual[v]]
    # A message is a precision and, in the last column, times its mean.
    none = q.new_zeros(num_channels, num_channels + 1)
    sent = dict.fromkeys(acting, none)
    channels = q @ options
    for stage in annealing:
        errors = (change - effect @ channels.flatten()).view_as(evidence.change)
        weight = 2 * stage.weight(errors).flatten(1)
        weighted = effect.mT * weight.unsqueeze(1)
        system = torch.cat([weighted @ effect, weighted @ change.unsqueeze(2)],
                           -1)
        for _ in range(relaxation.NUM_ROUNDS):
            mean = q @ options
            variance = (q @ options.square() - mean.square()).clamp(min=1e-2)
            own = torch.cat([(1 / variance).diag_embed(),
                             (mean / variance).unsqueeze(-1)], -1)
            known, new = received(sent, own), {}
            for v, node in acting:
                every = system[node].clone()
                for u in {*range(num_choices)} - {v}:
                    rows = torch.arange(num_channels) + u * num_channels
                    columns = torch.cat([rows, torch.tensor([-1])])
                    every[rows.unsqueeze(1), columns] += (known[u] - sent.get(
                        (u, node), none))
                to = torch.zeros(len(every), dtype=torch.bool)
                to[v * num_channels:(v + 1) * num_channels] = True
                # The Schur complement: all other channels follow.
                ours = torch.cat([to, torch.tensor([True])])
                follow = torch.linalg.solve(every[~to][:, ~ours],
                                            every[~to][:, ours])
                message = every[to][:, ours] - every[to][:, ~ours] @ follow
                new[v, node] = torch.lerp(sent[v, node], message,
                                          relaxation.DAMPING)
            sent = new
            score = stage.prior_weight * search.log_prior.double()
            for v, message in enumerate(received(sent, 0 * own)):
                for m, z in enumerate(options):
                    score[
                        v,
                        m] += message[:, -1] @ z - (z @ message[:, :-1] @ z) / 2
            q = score.softmax(-1)
        all_known = received(sent, own)
        channels = torch.linalg.solve(all_known[..., :-1], all_known[..., -1])
    return q.argmax(-1)


def received(sent, own):
    """What each pair is sent, added to its own."""
    out = own.clone()
    for (v, _), message in sent.items():
        out[v] += message
    return out


@pytest.mark.parametrize(
    'annealing',
    [[AnnealingStep(3.0, 0.5), AnnealingStep(0.3, 0.0)],
     2 * [StudentErrors((2.0, 9.0) * 2, (0.5, 1.0) * 2, (0.2, ) * 4, 0.3)]])
def test_equals_a_dense_oracle(small_problem, annealing):
    search, evidence = small_problem
    start = random_start(search)
    found = relax(search, evidence, annealing, start)
    expected = dense_relax(search, evidence, annealing, start)
    assert torch.equal(found, expected)
    assert (expected != start.argmax(-1)).any()
    assert expected.unique().numel() > 1


@pytest.mark.parametrize('family, undirected', [('nri', True), ('fnri', False)])
def test_finds_what_sweeps_do_not(simulate_systems, make_model, to_types,
                                  family, undirected):
    dozens = Batch.from_data_list(simulate_systems(4, 12))
    truth = to_types(dozens.edge_label, family)
    model = make_model(0 * dozens.edge_label, family, 0.0, undirected)
    search, evidence = search_problem(model, dozens)
    start = search.choice
    for stage in ANNEALING:
        search.sweep(evidence, stage)
    swept, search.choice = share(search, truth), start
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
    systems = sum(zip(*(simulate_systems(2, n) for n in (3, 6, 2, 5))), ())
    batch = Batch.from_data_list(systems)
    guess = torch.randint(2, batch.edge_label.size())
    options = dict(confidence=1.0, undirected=undirected)
    search, evidence = search_problem(make_model(guess, **options), batch)
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
        search, evidence = search_problem(make_model(guess[rows], **options),
                                          data)
        alone = relax(search, evidence, ANNEALING[:3], start[owner == number])
        assert torch.equal(together[owner == number], alone)


def test_laws_that_are_not_finite_are_no_graph(systems, make_model):
    batch = Batch.from_data_list(systems[:2])
    model = make_model(batch.edge_label)
    model.decoder.layer.law.value.data[1] = math.inf
    search, evidence = search_problem(model, batch)
    before = search.choice.clone()
    with pytest.raises(ValueError, match='not finite'):
        relax_and_sweep(search, evidence, ANNEALING)
    assert torch.equal(search.choice, before)


def test_large_systems_are_swept(simulate_systems, make_model, monkeypatch):
    batch = Batch.from_data_list(simulate_systems(4, 8))
    model = make_model(torch.zeros(4 * 56, 2).long(), confidence=0.0)
    search, evidence = search_problem(model, batch)
    start, graphs, size = search.choice, [], 8 * 14 * (14 + 48 * 4)
    for most in (size, size - 1):
        monkeypatch.setattr(relaxation, 'MAX_ENTRIES', most)
        search.choice = start
        relax_and_sweep(search, evidence, ANNEALING)
        graphs.append(search.choice)
    assert not torch.equal(*graphs)
