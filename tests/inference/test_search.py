import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference.evidence import DecoderEvidence, Evidence
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import AnnealingStep
from pyg_fnri.inference.refine import ANNEALING
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.nn import FNRI


class Indifferent(Evidence):
    """Errors that do not depend on the graph."""
    def __init__(self, num_nodes, value=0.5):
        self.value = torch.full((num_nodes, 3, 4), value)

    def errors(self, channels):
        return self.value.clone()

    def changed_errors(self, errors, channels, members, options):
        size = (members.numel(), options.size(0), 3, 4)
        return (self.value.new_full(size, float(self.value[0, 0, 0])), ) * 2


class Problem:
    """A search with a random prior, and its evidence."""
    def __init__(self, make_model, batch, undirected=True, laws=True):
        model = make_model(
            torch.zeros(batch.num_edges, 2).long(), undirected=undirected,
            laws=laws)
        self.search, layer = GraphSearch(model, batch), model.decoder.layer
        choices = self.search.choices
        if laws:
            transitions = Transitions([batch.x], choices, layer.interval, 5.0)
            self.evidence = ImpulseEvidence(transitions, layer)
        else:
            for p in model.decoder.parameters():
                p.data.mul_(3)  # Untrained, it hardly depends on the graph.
            self.evidence = DecoderEvidence(model, batch.x, batch.edge_index,
                                            choices)
        self.owner = batch.batch[choices.receiver]
        self.search.log_prior = torch.randn(len(self.owner), 4).log_softmax(-1)
        self.randomise()

    def randomise(self):
        self.search.choice = torch.randint(4, self.owner.size())

    def cost(self, choice, stage):
        self.search.choice, before = choice, self.search.choice
        out = self.search.cost(self.evidence, stage)
        self.search.choice = before
        return out

    def sweep(self, stage, generator=None):
        self.search.sweep(self.evidence, stage, generator)
        return self.search.choice

    def brute_force(self, stage):
        """The cost of each graph, [4 ** pairs, num_systems], and these graphs,
        [4 ** pairs, pairs]."""
        copies = self.search.num_systems
        graphs = torch.cartesian_prod(*[torch.arange(4)] *
                                      (len(self.owner) // copies)).view(
                                          -1,
                                          len(self.owner) // copies)
        return torch.stack([
            self.cost(graph.repeat(copies), stage) for graph in graphs
        ]), graphs


def cut(systems, num_particles, num_frames=49):
    """The first particles of systems, with all forces that act between them
    and others left unexplained."""
    return Batch.from_data_list([
        from_trajectory(data.x[:num_particles, :num_frames]) for data in systems
    ])


@pytest.mark.parametrize('family', ['nri', 'fnri', 'sfnri'])
@pytest.mark.parametrize('undirected', [True, False])
def test_starts_at_the_encoders_graph(systems, make_model, to_types, family,
                                      undirected):
    batch = Batch.from_data_list(systems[:5])
    label = batch.edge_label
    if not undirected:
        label = torch.randint(2, label.size())
    model = make_model(label, family, undirected=undirected)
    search = GraphSearch(model, batch)
    found = search.result()
    assert torch.equal(found.edge_type, to_types(label, family))
    for q, expected in zip(found.posterior, model.posterior(batch)):
        torch.testing.assert_close(q, expected)
    edge_attr = model.latent.encode_types(found.edge_type)
    assert torch.equal(search.channels, edge_attr[search.choices.edge])
    # Without evidence, sweeps come back to it.
    search.choice = torch.randint(4, search.choice.size())
    stage = AnnealingStep(0.1, 1.0)
    assert search.sweep(Indifferent(25), stage) > 0
    assert search.sweep(Indifferent(25), stage) == 0
    after = search.result()
    assert torch.equal(after.edge_type, found.edge_type)
    for q, expected in zip(after.posterior, found.posterior):
        torch.testing.assert_close(q, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize('undirected', [True, False])
@pytest.mark.parametrize('laws', [True, None])
def test_sweeps_never_make_it_worse(systems, make_model, undirected, laws):
    problem = Problem(make_model, Batch.from_data_list(systems[:5]), undirected,
                      laws)
    for stage in (AnnealingStep(0.3, 1.0), AnnealingStep(1e-3, 5.0)):
        problem.randomise()
        start = choice = problem.search.choice
        before = problem.cost(choice, stage)
        for _ in range(3):
            choice = problem.sweep(stage)
            after = problem.cost(choice, stage)
            assert (after <= before + 1e-3).all()
            before = after
        assert (choice != start).sum() > 10 and choice.unique().numel() > 1
    # Those of the last round have been looked at given what all are now.
    for c in problem.search.choices.rounds[-1].tolist():
        cost = []
        for option in range(4):
            changed = choice.clone()
            changed[c] = option
            cost.append(problem.cost(changed, stage)[problem.owner[c]])
        expected = (-torch.stack(cost)).log_softmax(-1)
        torch.testing.assert_close(problem.search.conditional[c], expected,
                                   atol=1e-2, rtol=1e-3)
        assert choice[c] == expected.argmax()


def test_the_best_option_of_a_pair_is_found_at_once(systems, make_model):
    problem = Problem(make_model, cut(systems, 2))
    for stage in ANNEALING:
        cost, _ = problem.brute_force(stage)
        problem.randomise()
        assert torch.equal(problem.sweep(stage), cost.argmin(0))
        torch.testing.assert_close(problem.search.conditional,
                                   (-cost.t()).log_softmax(-1), atol=1e-3,
                                   rtol=1e-4)
    # The prior alone decides where it weighs enough.
    assert torch.equal(problem.sweep(AnnealingStep(0.01, 1e6)),
                       problem.search.log_prior.argmax(-1))


def test_only_active_choices_change(systems, make_model):
    problem = Problem(make_model, Batch.from_data_list(systems[:4]))
    start, search = problem.search.choice, problem.search
    everything = problem.sweep(AnnealingStep(0.01, 0.1))
    search.choice, search.active = start, problem.owner == 2
    found = problem.sweep(AnnealingStep(0.01, 0.1))
    assert torch.equal(found, torch.where(search.active, everything, start))
    assert not torch.equal(found, start)


def test_gibbs_samples_have_the_joint_posterior(systems, make_model):
    # A thousand copies of three particles, seen too shortly to be sure.
    problem = Problem(make_model, cut(systems[4:5] * 1_000, 3, num_frames=8))
    problem.search.log_prior[:], stage = 0, AnnealingStep(0.03, 1.0)
    cost, graphs = problem.brute_force(stage)
    posterior = (-cost[:, 0]).softmax(-1)
    # The pairs depend on each other.
    joint = posterior.view(4, 4, 4)
    alone = torch.einsum('i,j,k->ijk', joint.sum((1, 2)), joint.sum((0, 2)),
                         joint.sum((0, 1)))
    assert (joint - alone).abs().sum() > 0.5
    place = torch.tensor([16, 4, 1])
    assert torch.equal(graphs @ place, torch.arange(64))
    start = problem.search.choice
    samples = []
    for seed in (0, 0, 1):
        problem.search.choice = start
        generator = torch.Generator().manual_seed(seed)
        for _ in range(20):
            choice = problem.sweep(stage, generator)
        samples.append(choice)
        count = (choice.view(-1, 3) @ place).bincount(minlength=64)
        error = (posterior * (1 - posterior) / 1_000).sqrt()
        assert ((count / 1_000 - posterior).abs() < 4.5 * error + 1e-3).all()
    assert torch.equal(*samples[:2]) and not torch.equal(*samples[1:])


def test_errors_that_are_not_finite_are_no_graph(systems, make_model):
    search = GraphSearch(make_model(systems[0].edge_label), systems[0])
    before = search.choice
    with pytest.raises(ValueError, match='not finite'):
        search.sweep(Indifferent(5, float('nan')), AnnealingStep(0.1, 1.0))
    assert torch.equal(search.choice, before)


def test_bad_edges_and_a_particle_alone(make_system):
    data, model = make_system(4), FNRI(4, 6, [2, 2], 8)
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :1]], 1)
    with pytest.raises(ValueError, match='twice'):
        GraphSearch(model, data)
    data = Data(x=torch.randn(1, 6, 4), edge_index=torch.empty(2, 0).long())
    with pytest.raises(ValueError, match='two particles'):
        GraphSearch(model, data)
