import warnings

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.inference import pool_posteriors, refine, shared_graph
from pyg_fnri.nn import FNRI


@pytest.fixture
def repeated(make_system):
    """Ten systems of the same four particles."""
    return [make_system(4) for _ in range(10)]


def test_pooling_is_bayes_rule():
    likelihood = torch.rand(3, 5, 4) + 0.1  # Systems, edges, types.
    prior = torch.tensor([0.7, 0.1, 0.15, 0.05])
    each = (likelihood * prior).log().log_softmax(-1)
    expected = likelihood.prod(0) * prior
    expected = expected / expected.sum(-1, keepdim=True)
    pooled, = pool_posteriors([each.flatten(0, 1)], 3, [prior.tolist()])
    torch.testing.assert_close(pooled.exp(), expected.double())
    # Which prior it is matters, but not its scale.
    scaled, = pool_posteriors([each.flatten(0, 1)], 3, [(8 * prior).tolist()])
    torch.testing.assert_close(scaled, pooled)
    uniform, = pool_posteriors([each.flatten(0, 1)], 3)
    assert (uniform - pooled).abs().max() > 0.1


def test_candidates_are_those_of_each_system(shake, make_system, repeated):
    model = shake(FNRI(4, 6, [2, 2], hidden_channels=8))
    some = repeated[0].edge_index[:, 2:7]
    for data in repeated:
        data.edge_index = some
    batch = Batch.from_data_list(repeated)
    assert shared_graph(model, [batch]).edge_type.size() == (5, 2)
    larger, flipped = make_system(5), repeated[0].clone()
    larger.edge_index = some  # A particle more, of no edge.
    flipped.edge_index = some.flip(1)
    for other in (larger, flipped):
        batch = Batch.from_data_list([*repeated[:2], other])
        with pytest.raises(ValueError, match="'c' differs"):
            shared_graph(model, [batch], systems=['a', 'b', 'c'])


def test_models_pool_what_they_see_in_each_system(shake, make_system, repeated):
    prior = [[0.8, 0.2], [0.5, 0.25, 0.25]]
    model = shake(FNRI(4, 6, [2, 3], hidden_channels=8, prior=prior))
    batch = Batch.from_data_list(repeated)
    edge_type, posterior, _ = shared_graph(model, [batch])
    logs = [q.log() for q in model.posterior(batch)]
    for layer, log_q in enumerate(pool_posteriors(logs, 10, prior)):
        torch.testing.assert_close(posterior[layer], log_q.exp().float())
        assert posterior[layer].argmax(-1).equal(edge_type[:, layer])
    # However they are batched, a single one as it is.
    parts = [repeated[0], Batch.from_data_list(repeated[1:])]
    for q, expected in zip(shared_graph(model, parts).posterior, posterior):
        torch.testing.assert_close(q, expected, atol=1e-5, rtol=1e-4)
    # Refined posteriors hold a tenth of the prior: the last weight.
    logs = [q.clamp(min=1e-6).log() for q in refine(model, batch).posterior]
    held = [[p**0.1 for p in layer] for layer in prior]
    found = shared_graph(model, [batch], refined=True)
    for q, log_q in zip(found.posterior, pool_posteriors(logs, 10, held)):
        torch.testing.assert_close(q, log_q.exp().float())
    with pytest.raises(ValueError, match='System 10 differs'):
        shared_graph(model, [batch, make_system(3)])
    with pytest.raises(ValueError, match='no systems'):
        shared_graph(model, [])


def test_systems_that_share_no_graph_are_told(make_system, repeated):
    class Sure(torch.nn.Module):
        def forward(self, x, edge_index):
            return 9.0 * torch.tensor([[-1.0, 1.0]]) * x[edge_index[1], :1, 0]

    model = FNRI(4, 6, [2], hidden_channels=8)
    model.encoder = Sure()
    for number, data in enumerate(repeated):
        data.x[:] = -1.0 if number < 3 else 1.0
    with pytest.warns(UserWarning, match='layer 0.* 30% differ'):
        found = shared_graph(model, [Batch.from_data_list(repeated)])
    assert found.edge_type.all()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        shared_graph(model, [Batch.from_data_list(repeated[3:])])


def test_together_systems_tell_what_each_one_only_hints_at(
        make_model, make_system):
    systems = [make_system(5) for _ in range(60)]
    truth = torch.randint(2, (20, 2))
    batch = Batch.from_data_list(systems)
    model = make_model(truth.repeat(60, 1), confidence=1.0, undirected=False)
    model.encoder.logits += torch.randn_like(model.encoder.logits)
    alone = model.predict(batch) == truth.repeat(60, 1)
    assert alone.double().mean() < 0.85
    # No system outvotes all others: one is sure, and wrong.
    model.encoder.logits[:20] *= -20
    edge_type, posterior, _ = shared_graph(model, [batch])
    assert edge_type.equal(truth)
    assert min(q.max(-1).values.min() for q in posterior) > 0.9
