import itertools

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import EVIDENCE_WEIGHT
from pyg_fnri.inference.refine import ANNEALING, refine_by_restarts
from pyg_fnri.inference.search import GraphSearch


class Search:
    """A search that starts from a guess, and its evidence."""
    def __init__(self, systems, model):
        self.batch = Batch.from_data_list(systems)
        self.search = GraphSearch(model, self.batch)
        layer = model.decoder.layer
        transitions = Transitions([self.batch.x], self.search.choices,
                                  layer.interval, layer.half_width)
        self.evidence = ImpulseEvidence(transitions, layer)
        self.owner = self.batch.batch[self.search.choices.receiver]

    def anneal(self):
        for stage in ANNEALING:
            self.search.sweep(self.evidence, stage)

    def refine_by_restarts(self, num_restarts, seed=0):
        return refine_by_restarts(self.search, self.evidence, ANNEALING,
                                  torch.Generator().manual_seed(seed),
                                  num_restarts)

    def cost(self, choice):
        """What the last stage minimises, by system."""
        stage = ANNEALING[-1]
        errors = self.evidence.errors(self.search.options[choice])
        errors = (errors.square() / stage.tolerance).log1p().flatten(1).sum(-1)
        log_q = self.search.log_prior.gather(1, choice.unsqueeze(1)).squeeze(1)
        out = torch.zeros(self.batch.num_graphs)
        out.index_add_(0, self.batch.batch, EVIDENCE_WEIGHT * errors)
        return out.index_add_(0, self.owner, -stage.prior_weight * log_q)


@pytest.fixture
def poor(systems, make_model):
    """From a guess that is no better than chance, and sure of itself."""
    systems = systems[:24]
    label = torch.cat([data.edge_label for data in systems])
    model = make_model(torch.randint(2, label.size()), confidence=4.0)
    out = Search(systems, model)
    out.anneal()
    return out


def test_no_system_gets_worse(poor):
    before = poor.cost(poor.search.choice)
    for _ in range(3):
        poor.refine_by_restarts(1)
        after = poor.cost(poor.search.choice)
        assert (after <= before + 1e-3).all()
        before = after


def test_most_systems_settle_and_are_right(poor):
    truth = poor.batch.edge_label[poor.search.choices.edge]

    def right():
        types = poor.search.types[poor.search.choice]
        return (types == truth).all(-1).double().mean()

    assert right() < 0.95
    few = poor.refine_by_restarts(1)
    left = poor.refine_by_restarts(24, seed=1)
    assert left < few <= 24 and left <= 2
    assert right() > 0.98


def test_finds_the_best_graph_of_three_particles(simulate_systems, make_model):
    systems = simulate_systems(30, 3)
    model = make_model(torch.randint(2, (180, 2)), confidence=0.5)
    problem = Search(systems, model)
    cost = torch.stack([
        problem.cost(torch.tensor(graph).repeat(30))
        for graph in itertools.product(range(4), repeat=3)
    ])
    problem.anneal()
    problem.refine_by_restarts(24)
    found = problem.cost(problem.search.choice)
    assert (found <= cost.amin(0) + 1e-2).double().mean() > 0.95


def test_settled_systems_are_left_alone(poor):
    poor.refine_by_restarts(24)
    first = poor.search.choice.clone()
    poor.refine_by_restarts(24, seed=1)
    same = torch.ones(24, dtype=torch.bool)
    same[poor.owner[first != poor.search.choice]] = False
    assert same.double().mean() > 0.9


def test_only_those_in_doubt_are_searched_again(poor, monkeypatch):
    sweep, sizes = GraphSearch.sweep, []

    def counted(search, evidence, stage):
        assert evidence.errors(search.channels).size(0) == search.system.numel()
        sizes.append(search.num_systems)
        return sweep(search, evidence, stage)

    monkeypatch.setattr(GraphSearch, 'sweep', counted)
    guess = poor.search.choice
    before = guess.clone()
    poor.refine_by_restarts(24)
    # All, then those that are not settled, and all for the posterior.
    assert sizes[0] == sizes[-1] == 24
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    assert 0 < min(sizes) < 24
    # A graph that someone has kept does not change.
    assert torch.equal(guess, before)


def test_a_number_without_a_system(systems, make_model):
    """Numbers of systems may have gaps, such as after filtering."""
    systems = systems[:4]
    label = torch.cat([data.edge_label for data in systems])
    problem, gap = (Search(systems, make_model(label)) for _ in range(2))
    gap.search.system = gap.search.system + (gap.search.system > 1)
    for each in (problem, gap):
        each.search.choice = 0 * each.search.choice
    assert problem.refine_by_restarts(5) == gap.refine_by_restarts(5) == 0
    assert torch.equal(problem.search.choice, gap.search.choice)


def test_posterior_is_that_of_the_best_graphs(poor):
    poor.refine_by_restarts(2)
    search = poor.search
    assert search.conditional.isfinite().all()
    torch.testing.assert_close(search.conditional.exp().sum(-1),
                               torch.ones(240))
    best = search.conditional.argmax(-1)
    assert (best == search.choice).all()


def test_same_generator_same_graphs(systems, make_model):
    graphs = []
    for _ in range(2):
        model = make_model(torch.cat([data.edge_label for data in systems[:6]]))
        problem = Search(systems[:6], model)
        problem.anneal()
        problem.refine_by_restarts(3)
        graphs.append(problem.search.choice)
    assert torch.equal(*graphs)


def test_a_system_that_nothing_explains_is_doubted(systems, make_model):
    systems = [data.clone() for data in systems[:6]]
    # Blown away by a wind that is no force between two particles.
    time = 0.1 * torch.arange(49)
    systems[2].x[..., 2] += 3 * time.square()
    systems[2].x[..., 0] += time**3
    others = [*systems[:2], *systems[3:]]

    def left(systems, num_restarts):
        """How many are not settled after so many restarts."""
        label = torch.cat([data.edge_label for data in systems])
        problem = Search(systems, make_model(label))
        problem.anneal()
        return problem.refine_by_restarts(num_restarts)

    # The others are settled at once.
    assert left(others, 1) == 0
    assert left(systems, 1) == 1
    # In the end it has been found often enough.
    assert left(systems, 24) == 0
    # Alone it has nothing to be compared with.
    assert left([systems[2]], 24) == 0


def test_systems_of_another_size_do_not_stand_out(simulate_systems, make_model):
    systems = simulate_systems(5, 2) + simulate_systems(2, 8)
    for data in systems:
        data.x += 1e-3 * torch.randn_like(data.x)
    label = torch.cat([data.edge_label for data in systems])
    problem = Search(systems, make_model(label))
    problem.anneal()
    # By the sum, those of 8 particles would, and nothing is wrong with them.
    cost = problem.cost(problem.search.choice)
    assert cost[5:].min() > 3 * cost.median()
    assert problem.refine_by_restarts(1) == 0
