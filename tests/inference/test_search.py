import pytest
import torch
from known_laws import search_problem
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference.evidence import DecoderEvidence, Evidence
from pyg_fnri.inference.likelihood import AnnealingStep
from pyg_fnri.inference.search import GraphSearch


class Indifferent(Evidence):
    """Errors that do not depend on the graph."""
    def __init__(self, num_nodes, value=0.5):
        self.num_nodes, self.value = num_nodes, value

    def errors(self, channels):
        return torch.full((self.num_nodes, 3, 4), self.value)

    def changed_errors(self, errors, channels, members, options):
        size = len(members), len(options), 3, 4
        return (torch.full(size, self.value), ) * 2


def random_problem(make_model, batch, undirected=True, laws=True):
    """A search from random graphs, with a random prior, and its evidence."""
    model = make_model(
        torch.zeros(batch.num_edges, 2).long(), undirected=undirected,
        laws=laws)
    if laws:
        search, evidence = search_problem(model, batch)
    else:
        for p in model.decoder.parameters():
            p.data.mul_(3)  # Untrained, it hardly depends on the graph.
        search = GraphSearch(model, batch)
        evidence = DecoderEvidence(model, batch.x, batch.edge_index,
                                   search.choices)
    search.log_prior = torch.randn(search.log_prior.size()).log_softmax(-1)
    search.choice = torch.randint(4, search.choice.size())
    return search, evidence


@pytest.mark.parametrize('family, undirected', [('nri', True), ('fnri', False),
                                                ('sfnri', True)])
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
    batch = Batch.from_data_list(systems[:5])
    search, evidence = random_problem(make_model, batch, undirected, laws)
    start = search.choice
    for stage in (AnnealingStep(0.3, 1.0), AnnealingStep(1e-3, 5.0)):
        costs = [search.cost(evidence, stage)]
        for _ in range(3):
            search.sweep(evidence, stage)
            costs.append(search.cost(evidence, stage))
            assert (costs[-1] <= costs[-2] + 1e-3).all()
    choice = search.choice
    assert (choice != start).sum() > 10 and choice.unique().numel() > 1
    # Those of the last round have been looked at given what all are now.
    for c in search.choices.rounds[-1].tolist():
        cost = []
        for option in range(4):
            search.choice = choice.clone()
            search.choice[c] = option
            owner = search.unit[search.choices.receiver[c]]
            cost.append(search.cost(evidence, stage)[owner])
        expected = (-torch.stack(cost)).log_softmax(-1)
        torch.testing.assert_close(search.conditional[c], expected, atol=1e-2,
                                   rtol=1e-3)
        assert choice[c] == expected.argmax()


def test_gibbs_samples_have_the_joint_posterior(systems, make_model):
    # A thousand copies of three particles, seen too shortly to be sure, with
    # forces of others left unexplained.
    data = from_trajectory(systems[4].x[:3, :8])
    batch = Batch.from_data_list([data] * 1_000)
    search, evidence = random_problem(make_model, batch)
    search.log_prior[:], stage = 0, AnnealingStep(0.03, 1.0)
    start, cost = search.choice, []
    for graph in torch.cartesian_prod(*[torch.arange(4)] * 3):
        search.choice = graph.repeat(1_000)
        cost.append(search.cost(evidence, stage)[0])
    posterior = (-torch.stack(cost)).softmax(-1)
    # The pairs depend on each other.
    joint = posterior.view(4, 4, 4)
    alone = torch.einsum('i,j,k->ijk', joint.sum((1, 2)), joint.sum((0, 2)),
                         joint.sum((0, 1)))
    assert (joint - alone).abs().sum() > 0.5
    samples = []
    for seed in (0, 0, 1):
        search.choice = start
        generator = torch.Generator().manual_seed(seed)
        for _ in range(20):
            search.sweep(evidence, stage, generator)
        samples.append(search.choice)
        number = search.choice.view(-1, 3) @ torch.tensor([16, 4, 1])
        share = number.bincount(minlength=64) / 1_000
        error = (posterior * (1 - posterior) / 1_000).sqrt()
        assert ((share - posterior).abs() < 4.5 * error + 1e-3).all()
    assert torch.equal(*samples[:2]) and not torch.equal(*samples[1:])


def test_what_is_no_graph(systems, make_model):
    data = systems[0].clone()
    search = GraphSearch(make_model(data.edge_label), data)
    before = search.choice
    with pytest.raises(ValueError, match='not finite'):
        search.sweep(Indifferent(5, float('nan')), AnnealingStep(0.1, 1.0))
    assert torch.equal(search.choice, before)
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :1]], 1)
    with pytest.raises(ValueError, match='none twice'):
        GraphSearch(make_model(data.edge_label[[*range(20), 0]]), data)
