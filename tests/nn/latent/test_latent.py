import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import CategoricalLatent, SigmoidLatent
from pyg_fnri.nn.latent import most_probable, reverse_edges

LATENTS = [
    CategoricalLatent([2, 2]),
    CategoricalLatent([2, 3, 4]),
    CategoricalLatent([4]),
    CategoricalLatent([2, 3], drop_null=True),
    SigmoidLatent([2, 2]),
    SigmoidLatent([3, 2, 4]),
]
latents = pytest.mark.parametrize('latent', LATENTS, ids=repr)


def random_types(latent, num_edges=50):
    return torch.stack(
        [torch.randint(k, (num_edges, )) for k in latent.num_edge_types], -1)


def confident_logits(latent, edge_type, scale=20.0):
    """Logits that leave no doubt about the types."""
    first = 1 if isinstance(latent, SigmoidLatent) else 0
    one_hot = [
        torch.nn.functional.one_hot(types, k)[:, first:]
        for types, k in zip(edge_type.t(), latent.num_edge_types)
    ]
    return scale * (2 * torch.cat(one_hot, dim=-1).float() - 1)


# Shapes and meaning ##########################################################


@pytest.mark.parametrize('latent, num_logits, num_channels', [
    (CategoricalLatent([2, 3, 4]), 9, 9),
    (CategoricalLatent([2, 3, 4], drop_null=True), 9, 6),
    (CategoricalLatent([8], drop_null=True), 8, 7),
    (SigmoidLatent([2, 2, 2]), 3, 3),
    (SigmoidLatent([2, 3, 4]), 6, 6),
], ids=repr)
def test_sizes(latent, num_logits, num_channels):
    logits = torch.randn(7, num_logits)
    assert latent.num_logits == num_logits
    assert latent.num_channels == num_channels
    assert latent.sample(logits).shape == (7, num_channels)
    assert latent.kl(logits).shape == (7, latent.num_layers)
    assert latent.predict(logits).shape == (7, latent.num_layers)
    assert latent.predict(logits).dtype == torch.int64
    posterior = latent.posterior(logits)
    assert [q.shape for q in posterior] == [(7, k)
                                            for k in latent.num_edge_types]
    assert latent.channels(posterior).shape == (7, num_channels)


@latents
def test_posterior_is_a_distribution_and_predict_its_mode(latent):
    logits = 3 * torch.randn(50, latent.num_logits)
    posterior = latent.posterior(logits)
    for layer, q in enumerate(posterior):
        assert (q >= 0).all()
        torch.testing.assert_close(q.sum(-1), torch.ones(50))
        assert torch.equal(q.argmax(-1), latent.predict(logits)[:, layer])


@latents
def test_no_edges(latent):
    logits = torch.empty(0, latent.num_logits)
    assert latent.sample(logits, hard=True).shape == (0, latent.num_channels)
    assert latent.predict(logits).shape == (0, latent.num_layers)
    assert latent.kl(logits).shape == (0, latent.num_layers)
    edge_type = torch.empty(0, latent.num_layers, dtype=torch.long)
    assert latent.encode_types(edge_type).shape == (0, latent.num_channels)


def test_decoder_sees_what_the_authors_does(reference):
    latent = reference.model().latent
    logits = reference.flat('logits')
    torch.testing.assert_close(latent.channels(latent.posterior(logits)),
                               reference.flat('edge_attr'), atol=1e-6, rtol=0)


@pytest.mark.parametrize('latent', [
    CategoricalLatent([2, 3]),
    CategoricalLatent([2, 3], drop_null=True),
    SigmoidLatent([2, 3]),
], ids=repr)
def test_hard_samples_have_the_gradient_of_soft_ones(latent):
    logits = torch.randn(20, latent.num_logits, requires_grad=True)
    cotangent = torch.randn(20, latent.num_channels)
    gradients = []
    for hard in (False, True):
        generator = torch.Generator().manual_seed(0)
        sample = latent.sample(logits, 0.7, hard, generator)
        gradient, = torch.autograd.grad(sample, logits, cotangent)
        gradients.append(gradient)
    assert gradients[0].abs().min() > 0
    torch.testing.assert_close(gradients[1], gradients[0])


# Types and channels ##########################################################


@latents
def test_encode_types_and_predict_are_inverse(latent):
    edge_type = random_types(latent)
    logits = confident_logits(latent, edge_type)
    assert torch.equal(latent.predict(logits), edge_type)
    channels = latent.encode_types(edge_type)
    assert channels.dtype == torch.float32
    # What the decoder sees of a truth is what it sees of certainty.
    for certain in (latent.channels(latent.posterior(logits)),
                    latent.sample(logits,
                                  tau=0.1), latent.sample(logits, hard=True)):
        torch.testing.assert_close(channels, certain, atol=1e-4, rtol=0)


def test_no_interaction_has_no_channel_where_null_is_dropped():
    none = torch.zeros(3, 2, dtype=torch.long)
    for latent in (CategoricalLatent([2, 3],
                                     drop_null=True), SigmoidLatent([2, 3])):
        assert not latent.encode_types(none).any()
    assert CategoricalLatent([2, 3]).encode_types(none)[:, [0, 2]].all()


@pytest.mark.parametrize('dtype', [torch.int32, torch.uint8, torch.bool])
def test_encode_types_of_other_integers(dtype):
    latent = CategoricalLatent([2, 2])
    edge_type = random_types(latent)
    assert torch.equal(latent.encode_types(edge_type.to(dtype)),
                       latent.encode_types(edge_type))


@latents
@pytest.mark.parametrize('change, message', [
    (lambda t, k: t[:, 0], 'Expected edge types of shape'),
    (lambda t, k: torch.cat([t, t], -1), 'Expected edge types of shape'),
    (lambda t, k: torch.full_like(t, k), 'Layer-graph 0 has types 0 to'),
    (lambda t, k: t - k, 'Layer-graph 0 has types 0 to'),
])
def test_encode_types_that_do_not_fit(latent, change, message):
    edge_type = change(random_types(latent), latent.num_edge_types[0])
    with pytest.raises(ValueError, match=message):
        latent.encode_types(edge_type)


def test_encode_types_takes_no_probabilities():
    with pytest.raises(TypeError, match='torch.float32.*`channels`'):
        CategoricalLatent([2, 2]).encode_types(torch.rand(5, 2))


# Undirected interactions #####################################################


def test_reverse_of_each_edge():
    edge_index = fully_connected(4)
    edge_index = torch.cat([edge_index, fully_connected(3) + 4], dim=1)
    reverse = reverse_edges(edge_index)
    assert torch.equal(edge_index[:, reverse], edge_index.flip(0))


def test_reverse_of_edges_in_any_order_with_some_missing():
    edge_index = torch.tensor([[5, 0, 2, 1, 3], [2, 1, 5, 0, 4]])
    assert reverse_edges(edge_index).tolist() == [2, 3, 0, 1, 4]
    # The last key is looked up beyond the end.
    assert reverse_edges(torch.tensor([[0, 2], [3, 1]])).tolist() == [0, 1]
    empty = torch.empty(2, 0, dtype=torch.long)
    assert reverse_edges(empty).shape == (0, )


@pytest.mark.parametrize('latent', [
    CategoricalLatent([2, 3], undirected=True),
    SigmoidLatent([2, 3], undirected=True),
], ids=repr)
def test_tie_averages_both_directions(latent):
    edge_index = fully_connected(4)[:, torch.randperm(12)]
    logits = torch.randn(12, latent.num_logits)
    tied = latent.tie(logits, edge_index)
    edges = edge_index.t().tolist()
    for e, (j, i) in enumerate(edges):
        other = edges.index([i, j])
        torch.testing.assert_close(tied[e], (logits[e] + logits[other]) / 2)
        assert torch.equal(tied[e], tied[other])
    torch.testing.assert_close(latent.tie(tied, edge_index), tied)


def test_tie_keeps_an_edge_without_its_reverse():
    latent = CategoricalLatent([2], undirected=True)
    edge_index = torch.tensor([[0, 1, 0, 2], [1, 0, 2, 1]])
    logits = torch.randn(4, 2)
    tied = latent.tie(logits, edge_index)
    torch.testing.assert_close(tied[2:], logits[2:])
    torch.testing.assert_close(tied[0], logits[:2].mean(0))


def test_tie_of_a_batch_equals_its_systems_one_by_one():
    latent = CategoricalLatent([2, 2], undirected=True)
    sizes = [2, 5, 3]
    parts = [fully_connected(n) for n in sizes]
    logits = [torch.randn(part.size(1), 4) for part in parts]
    batch = torch.cat([part + sum(sizes[:b]) for b, part in enumerate(parts)],
                      dim=1)
    expected = [latent.tie(*pair) for pair in zip(logits, parts)]
    torch.testing.assert_close(latent.tie(torch.cat(logits), batch),
                               torch.cat(expected))


def test_directed_interactions_are_not_tied():
    logits = torch.randn(6, 4)
    assert CategoricalLatent([2, 2]).tie(logits, fully_connected(3)) is logits


# Bad input ###################################################################


@pytest.mark.parametrize('latent', [CategoricalLatent, SigmoidLatent])
@pytest.mark.parametrize('num_edge_types, error', [
    ([], ValueError),
    ([2, 1], ValueError),
    ([2, -3], ValueError),
    ([True, True], ValueError),
    ([2.5, 2], TypeError),
    (2, TypeError),
    (['2'], TypeError),
])
def test_impossible_edge_types(latent, num_edge_types, error):
    with pytest.raises(error, match=r'Expected .* such as \[2, 2\], but got'):
        latent(num_edge_types)


def test_repr():
    assert str(CategoricalLatent([
        2, 2
    ], drop_null=True)) == ('CategoricalLatent([2, 2], drop_null=True, '
                            'prior=[[0.5, 0.5], [0.5, 0.5]], undirected=False)')
    assert str(SigmoidLatent(
        (2, 3), undirected=True)) == ('SigmoidLatent([2, 3], undirected=True)')


def test_most_probable_types_of_layers_of_different_size():
    posterior = [
        torch.tensor([[0.9, 0.1], [0.3, 0.7]]),
        torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    ]
    assert most_probable(posterior).tolist() == [[0, 2], [1, 0]]
