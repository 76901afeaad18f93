import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.inference.evidence import Evidence
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import AnnealingStep
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.nn import FNRI

FAMILIES = ['nri', 'fnri', 'sfnri']


class Indifferent(Evidence):
    """Errors that do not depend on the graph."""
    def __init__(self, num_nodes, value=0.5):
        self.value = torch.full((num_nodes, 3, 4), value)

    def errors(self, channels):
        return self.value.clone()

    def changed_errors(self, errors, channels, members, options):
        size = (members.numel(), options.size(0), 3, 4)
        return (self.value.new_full(size, float(self.value[0, 0, 0])), ) * 2


class Uniform(torch.nn.Module):
    """An encoder that knows nothing, of whatever edges."""
    def __init__(self, num_logits):
        super().__init__()
        self.num_logits = num_logits

    def forward(self, x, edge_index):
        return x.new_zeros(edge_index.size(1), self.num_logits)


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


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
    assert torch.equal(found.edge_type, model.predict(batch))
    assert search.channels.size() == (50 if undirected else 100,
                                      model.latent.num_channels)
    edge_attr = model.latent.encode_types(found.edge_type)
    assert torch.equal(search.channels, edge_attr[search.choices.edge])


def test_posterior_is_the_encoders_before_any_sweep(make_system):
    data = make_system(4)
    model = FNRI(4, 6, [2, 3], 8, undirected=True)
    found = GraphSearch(model, data).result()
    assert [q.size(1) for q in found.posterior] == [2, 3]
    for q, expected in zip(found.posterior, model.posterior(data)):
        torch.testing.assert_close(q, expected)


@pytest.mark.parametrize('undirected', [True, False])
def test_prior_adds_up_layers(make_system, undirected):
    data = make_system(4)
    model = FNRI(4, 6, [2, 3], 8, undirected=undirected)
    search = GraphSearch(model, data)
    posterior = [q.log() for q in model.posterior(data)]
    assert search.log_prior.size() == (6 if undirected else 12, 6)
    for c, edge in enumerate(search.choices.edge.tolist()):
        for m, types in enumerate(search.types.tolist()):
            expected = sum(q[edge, t] for q, t in zip(posterior, types))
            assert search.log_prior[c, m].item() == pytest.approx(
                expected.item(), abs=1e-4)


def test_certainty_of_the_encoder_is_no_proof(systems, make_model):
    # A probability of 0 could not be overruled by anything.
    model = make_model(systems[0].edge_label, confidence=1e4)
    search = GraphSearch(model, systems[0])
    assert search.log_prior.isfinite().all()


def test_without_evidence_the_posterior_is_the_prior(systems, make_model,
                                                     family):
    data = systems[1]
    model = make_model(data.edge_label, family)
    search = GraphSearch(model, data)
    before = search.result()
    search.choice = torch.randint(4, (10, ))
    changed = search.sweep(Indifferent(5), AnnealingStep(0.1, 1.0))
    assert 0 < changed <= 10
    assert search.sweep(Indifferent(5), AnnealingStep(0.1, 1.0)) == 0
    after = search.result()
    assert torch.equal(before.edge_type, after.edge_type)
    for q, expected in zip(after.posterior, before.posterior):
        torch.testing.assert_close(q, expected, atol=1e-5, rtol=0)
    # A weaker prior is a flatter one.
    search.sweep(Indifferent(5), AnnealingStep(0.1, 0.5))
    for q, expected in zip(search.result().posterior, before.posterior):
        assert (q.max(-1).values < expected.max(-1).values).all()


def test_both_edges_of_a_pair_get_its_types(systems, make_model, family):
    data = systems[1]
    search = GraphSearch(make_model(data.edge_label, family), data)
    search.choice = torch.randint(4, (10, ))
    edge_type, posterior = search.result()
    sender, receiver = data.edge_index
    for c, m in enumerate(search.choice.tolist()):
        i, j = search.choices.receiver[c], search.choices.sender[c]
        pair = ((receiver == i) & (sender == j)) | ((receiver == j) &
                                                    (sender == i))
        assert pair.sum() == 2
        assert (edge_type[pair] == search.types[m]).all()
        for q in posterior:
            assert torch.equal(q[pair][0], q[pair][1])
    for q in posterior:
        torch.testing.assert_close(q.sum(-1), torch.ones(20))


def test_gibbs_sampling_takes_a_generator(systems, make_model):
    data = systems[0]
    model = make_model(data.edge_label, confidence=0.5)
    results = []
    for seed in (1, 1, 2):
        search = GraphSearch(model, data)
        search.sweep(Indifferent(5), AnnealingStep(0.1, 1.0),
                     torch.Generator().manual_seed(seed))
        results.append(search.choice)
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_errors_that_are_not_finite_are_no_graph(systems, make_model):
    search = GraphSearch(make_model(systems[0].edge_label), systems[0])
    before = search.choice
    with pytest.raises(ValueError, match='not finite; .* weights or force law'):
        search.sweep(Indifferent(5, float('nan')), AnnealingStep(0.1, 1.0))
    assert torch.equal(search.choice, before)


@pytest.mark.parametrize('more, message', [
    ([[0], [1]], 'edge_index holds an edge twice; remove'),
    ([[2], [2]], 'joins particle 2 to itself; remove the self loops'),
    ([[-1], [0]], 'particles 0 to 3, but it reaches from -1 to 3'),
    ([[0], [4]], 'particles 0 to 3, but it reaches from 0 to 4'),
])
def test_edges_that_are_none(make_system, more, message):
    data, model = make_system(4), FNRI(4, 6, [2, 2], 8)
    model.encoder = Uniform(model.latent.num_logits)
    GraphSearch(model, data)
    data.edge_index = torch.cat([data.edge_index, torch.tensor(more)], 1)
    with pytest.raises(ValueError, match=message):
        GraphSearch(model, data)


def test_double_precision(systems, make_model, family):
    data = systems[1].clone()
    data.x = data.x.double()
    search = GraphSearch(make_model(data.edge_label, family).double(), data)
    transitions = Transitions([data.x], search.choices, 0.1)
    layer = make_model(data.edge_label, family).double().decoder.layer
    search.sweep(ImpulseEvidence(transitions, layer), AnnealingStep(0.1, 1.0))
    assert search.channels.dtype == search.conditional.dtype == torch.double


def test_no_candidate_edges(make_system):
    data = make_system(4, edge_index=torch.empty(2, 0, dtype=torch.long))
    search = GraphSearch(FNRI(4, 6, [2, 3], 8, undirected=True), data)
    assert search.sweep(Indifferent(4), AnnealingStep(0.1, 1.0)) == 0
    edge_type, posterior = search.result()
    assert edge_type.size() == (0, 2)
    assert [q.size() for q in posterior] == [(0, 2), (0, 3)]


def test_a_particle_alone():
    data = Data(x=torch.randn(1, 6, 4),
                edge_index=torch.empty(2, 0, dtype=torch.long))
    with pytest.raises(ValueError, match='at least two particles, .* got 1'):
        GraphSearch(FNRI(4, 6, [2, 2], 8), data)
