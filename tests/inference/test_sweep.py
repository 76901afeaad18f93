import itertools
import math

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference.evidence import DecoderEvidence, find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import EVIDENCE_WEIGHT, AnnealingStep
from pyg_fnri.inference.refine import ANNEALING
from pyg_fnri.inference.search import sweep

OPTIONS = torch.tensor([[0., 0.], [0., 1.], [1., 0.], [1., 1.]])


def cut(systems, num_particles, num_frames=49):
    """Systems of fewer particles: the first of each, with all forces that act
    between them and others left unexplained."""
    return Batch.from_data_list([
        from_trajectory(data.x[:num_particles, :num_frames]) for data in systems
    ])


class Problem:
    """What is to be refined, and by what."""
    def __init__(self, batch, model, undirected=True, kind=ImpulseEvidence):
        self.num_systems = batch.num_graphs
        self.node_system = batch.batch
        self.choices = find_choices(batch.edge_index, undirected)
        self.choice_system = batch.batch[self.choices.receiver]
        if kind is ImpulseEvidence:
            layer = model.decoder.layer
            transitions = Transitions([batch.x], self.choices, layer.interval,
                                      5.0)
            self.evidence = ImpulseEvidence(transitions, layer)
        else:
            self.evidence = DecoderEvidence(model, [batch.x], batch.edge_index,
                                            self.choices)
        self.log_prior = torch.randn(self.choices.edge.numel(),
                                     4).log_softmax(-1)

    def objective(self, choice, stage):
        """What a sweep minimises, by system."""
        errors = self.evidence.errors(OPTIONS[choice])
        cost = (errors.square() / stage.tolerance).log1p().flatten(1).sum(-1)
        log_prior = self.log_prior.gather(1, choice.unsqueeze(-1)).squeeze(-1)
        out = torch.zeros(self.num_systems)
        out.index_add_(0, self.node_system, EVIDENCE_WEIGHT * cost)
        return out.index_add_(0, self.choice_system,
                              -stage.prior_weight * log_prior)

    def brute_force(self, stage):
        """The objective of each graph, [4 ** pairs, num_systems], and what
        all of them are, [4 ** pairs, pairs]."""
        per_system = self.choices.edge.numel() // self.num_systems
        graphs = torch.tensor(
            list(itertools.product(range(4), repeat=per_system)))
        return torch.stack([
            self.objective(graph.repeat(self.num_systems), stage)
            for graph in graphs
        ]), graphs

    def sweep(self, choice, stage, generator=None):
        return sweep(self.evidence, self.choices, self.log_prior, OPTIONS,
                     choice, stage, generator)

    def random(self):
        return torch.randint(4, (self.choices.edge.numel(), ))


@pytest.fixture
def pairs(systems, make_model):
    """Many systems of two particles."""
    batch = cut(systems, 2)
    return Problem(batch, make_model(torch.zeros(192, 2).long()))


@pytest.fixture
def triples(systems, make_model):
    """Some systems of three particles."""
    batch = cut(systems[:24], 3)
    return Problem(batch, make_model(torch.zeros(144, 2).long()))


@pytest.mark.parametrize('undirected', [True, False])
@pytest.mark.parametrize('kind', [ImpulseEvidence, DecoderEvidence])
def test_sweeps_never_make_it_worse(systems, make_model, undirected, kind):
    batch = Batch.from_data_list(systems[:5])
    model = make_model(batch.edge_label,
                       laws=True if kind is ImpulseEvidence else None)
    problem = Problem(batch, model, undirected, kind)
    if kind is DecoderEvidence:
        # A decoder that depends on the graph.
        for p in model.decoder.parameters():
            p.data.mul_(3)
    for stage in (AnnealingStep(0.3, 1.0), AnnealingStep(0.01, 0.1),
                  AnnealingStep(1e-3, 5.0)):
        choice = problem.random()
        before = problem.objective(choice, stage)
        moved = 0
        for _ in range(4):
            new, _ = problem.sweep(choice, stage)
            after = problem.objective(new, stage)
            assert (after <= before + 1e-3).all()
            moved += int((new != choice).sum())
            choice, before = new, after
        assert moved > 10
        assert choice.unique().numel() > 1


def test_the_best_option_of_a_pair_is_found_at_once(pairs):
    for stage in ANNEALING:
        cost, _ = pairs.brute_force(stage)
        choice, conditional = pairs.sweep(pairs.random(), stage)
        assert torch.equal(choice, cost.argmin(0))
        # The first sweep leaves nothing to do.
        again, _ = pairs.sweep(choice, stage)
        assert torch.equal(choice, again)
        torch.testing.assert_close(conditional, (-cost.t()).log_softmax(-1),
                                   atol=1e-3, rtol=1e-4)


def test_the_best_graph_of_three_is_found_from_nearby(triples):
    stage = AnnealingStep(0.01, 0.2)
    cost, graphs = triples.brute_force(stage)
    best = graphs[cost.argmin(0)]  # [num_systems, 3]
    for pair in range(3):
        for option in range(4):
            near = best.clone()
            near[:, pair] = option
            choice = near.flatten()
            for _ in range(3):
                choice, _ = triples.sweep(choice, stage)
            reached = triples.objective(choice, stage)
            share = (choice.view(-1, 3) == best).all(-1).double().mean()
            # A sweep may leave the neighbourhood of a graph a step away.
            assert share >= 0.9
            assert (reached >= cost.amin(0) - 1e-3).all()


def test_the_best_graph_stays(triples):
    stage = AnnealingStep(0.01, 0.2)
    cost, graphs = triples.brute_force(stage)
    best = graphs[cost.argmin(0)].flatten()
    choice, _ = triples.sweep(best, stage)
    assert torch.equal(choice, best)


@pytest.mark.parametrize('undirected', [True, False])
@pytest.mark.parametrize('kind', [ImpulseEvidence, DecoderEvidence])
def test_each_choice_is_looked_at_given_all_others(systems, make_model,
                                                   undirected, kind):
    batch = Batch.from_data_list(systems[:3])
    model = make_model(batch.edge_label,
                       laws=True if kind is ImpulseEvidence else None)
    problem, stage = Problem(batch, model, undirected,
                             kind), AnnealingStep(0.1, 0.5)
    choice, conditional = problem.sweep(problem.random(), stage)
    # Those of the last round have seen what all others have become.
    members = problem.choices.rounds[-1]
    assert members.numel() > 0
    for c in members.tolist():
        system = problem.choice_system[c]
        cost = []
        for option in range(4):
            changed = choice.clone()
            changed[c] = option
            cost.append(problem.objective(changed, stage)[system])
        expected = (-torch.stack(cost)).log_softmax(-1)
        torch.testing.assert_close(conditional[c], expected, atol=1e-2,
                                   rtol=1e-3)
        assert choice[c] == expected.argmax()


@pytest.mark.parametrize('max_tried', [1, 5 * 4 * 48 * 4])
def test_few_choices_at_once_equal_many(systems, make_model, monkeypatch,
                                        max_tried):
    batch = Batch.from_data_list(systems[:6])
    problem = Problem(batch, make_model(batch.edge_label))
    choice = problem.random()
    expected = problem.sweep(choice, AnnealingStep(0.1, 0.5))
    tries, changed_errors = [], ImpulseEvidence.changed_errors

    def counted(evidence, errors, channels, members, options):
        tries.append(members.numel())
        return changed_errors(evidence, errors, channels, members, options)

    monkeypatch.setattr(ImpulseEvidence, 'changed_errors', counted)
    monkeypatch.setattr(ImpulseEvidence, 'max_tried', max_tried)
    found = problem.sweep(choice, AnnealingStep(0.1, 0.5))
    assert max(tries) == (1 if max_tried == 1 else 5) and sum(tries) == 60
    assert torch.equal(found[0], expected[0])
    torch.testing.assert_close(found[1], expected[1])


def test_a_decoder_runs_once_for_each_option_and_round(systems, make_model):
    batch = Batch.from_data_list(systems[:6])
    problem = Problem(batch, make_model(batch.edge_label, laws=None),
                      kind=DecoderEvidence)
    errors, runs = DecoderEvidence.errors, []
    problem.evidence.errors = lambda channels: (runs.append(
        1), errors(problem.evidence, channels))[1]
    problem.sweep(problem.random(), AnnealingStep(0.1, 0.5))
    assert len(runs) == 1 + 4 * len(problem.choices.rounds)


def test_input_is_left_as_it_is(pairs):
    choice = pairs.random()
    before = choice.clone()
    new, _ = pairs.sweep(choice, AnnealingStep(0.01, 0.1))
    assert torch.equal(choice, before) and not torch.equal(new, before)


def test_the_prior_alone_decides_where_it_weighs_enough(pairs):
    choice, _ = pairs.sweep(pairs.random(), AnnealingStep(0.01, 1e6))
    assert torch.equal(choice, pairs.log_prior.argmax(-1))
    # And not where it weighs nothing.
    choice, _ = pairs.sweep(pairs.random(), AnnealingStep(0.01, 0.0))
    pairs.log_prior = -pairs.log_prior
    other, _ = pairs.sweep(pairs.random(), AnnealingStep(0.01, 0.0))
    assert torch.equal(choice, other)


def test_gibbs_sampling_repeats_itself_with_the_same_generator(triples):
    start, stage = triples.random(), AnnealingStep(0.3, 0.5)
    samples = [
        triples.sweep(start, stage,
                      torch.Generator().manual_seed(seed))[0]
        for seed in (1, 1, 2)
    ]
    assert torch.equal(samples[0], samples[1])
    assert not torch.equal(samples[0], samples[2])


def test_gibbs_samples_of_a_pair_have_its_posterior(systems, make_model):
    # A thousand copies of a pair seen too shortly to be sure of anything.
    batch = cut(systems[1:2] * 1_000, 2, num_frames=3)
    problem = Problem(batch, make_model(torch.zeros(2_000, 2).long()))
    problem.log_prior[:] = problem.log_prior[0]
    stage = AnnealingStep(0.3, 1.0)
    cost, _ = problem.brute_force(stage)
    posterior = (-cost[:, 0]).softmax(-1)
    assert posterior.max() < 0.9
    generator = torch.Generator().manual_seed(0)
    count, num_sweeps = torch.zeros(4), 8
    choice = problem.random()
    for _ in range(num_sweeps):
        choice, conditional = problem.sweep(choice, stage, generator)
        count += choice.bincount(minlength=4)
    torch.testing.assert_close(conditional[0].exp(), posterior, atol=1e-4,
                               rtol=1e-3)
    # Four standard errors of 8,000 draws.
    error = 4 * (posterior * (1 - posterior) / count.sum()).sqrt()
    assert ((count / count.sum() - posterior).abs() < error).all()


def test_gibbs_samples_of_three_pairs_have_their_joint_posterior(
        systems, make_model):
    batch = cut(systems[4:5] * 1_000, 3, num_frames=8)
    problem = Problem(batch, make_model(torch.zeros(6_000, 2).long()))
    problem.log_prior[:] = 0
    stage = AnnealingStep(0.03, 1.0)
    cost, graphs = problem.brute_force(stage)
    posterior = (-cost[:, 0]).softmax(-1)
    # The pairs depend on each other.
    joint = posterior.view(4, 4, 4)
    alone = torch.einsum('i,j,k->ijk', joint.sum((1, 2)), joint.sum((0, 2)),
                         joint.sum((0, 1)))
    assert (joint - alone).abs().sum() > 0.5
    generator = torch.Generator().manual_seed(0)
    choice = problem.random()
    for _ in range(20):
        choice, _ = problem.sweep(choice, stage, generator)
    place = torch.tensor([16, 4, 1])
    assert torch.equal(graphs @ place, torch.arange(64))
    count = (choice.view(-1, 3) @ place).bincount(minlength=64)
    error = (posterior * (1 - posterior) / 1_000).sqrt()
    assert ((count / 1_000 - posterior).abs() < 4.5 * error + 1e-3).all()


@pytest.mark.parametrize('tolerance', [1e-3, 0.3, 20.0])
def test_weight_is_the_slope_of_the_cost_over_the_square(tolerance):
    stage = AnnealingStep(tolerance, 0.5)
    square = torch.randn(5, 3, 7, 2).square().double().requires_grad_()
    slope, = torch.autograd.grad(stage.cost(square.sqrt()).sum(), square)
    torch.testing.assert_close(stage.weight(-square.detach().sqrt()), slope)
    assert slope.unique().numel() > 1


@pytest.mark.parametrize('tolerance, weight', [(0.0, 1.0), (-0.1, 1.0),
                                               (math.nan, 1.0), (0.1, -1.0),
                                               (0.1, math.nan)])
def test_stages_out_of_range(tolerance, weight):
    with pytest.raises(ValueError, match=f'got {tolerance} and {weight}'):
        AnnealingStep(tolerance, weight)
