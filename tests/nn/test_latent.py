import math

import pytest
import torch
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl

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
CATEGORICAL = [latent for latent in LATENTS if hasattr(latent, 'prior')]
latents = pytest.mark.parametrize('latent', LATENTS, ids=repr)
categoricals = pytest.mark.parametrize('latent', CATEGORICAL, ids=repr)


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


def test_layers_come_one_after_the_other_null_first():
    latent = CategoricalLatent([2, 3])
    q = latent.posterior(torch.tensor([[0.0, 1.0, 0.0, 2.0, 4.0]]))
    torch.testing.assert_close(q[0], torch.tensor([[0.0, 1.0]]).softmax(-1))
    torch.testing.assert_close(q[1],
                               torch.tensor([[0.0, 2.0, 4.0]]).softmax(-1))
    torch.testing.assert_close(latent.channels(q), torch.cat(q, -1))
    dropped = CategoricalLatent([2, 3], drop_null=True)
    torch.testing.assert_close(dropped.channels(q),
                               torch.cat([q[0][:, 1:], q[1][:, 1:]], -1))


def test_sigmoids_of_two_types():
    latent = SigmoidLatent([2, 2])
    logits = torch.randn(50, 2)
    torch.testing.assert_close(latent.sample(logits), logits.sigmoid())
    q = latent.posterior(logits)
    torch.testing.assert_close(latent.channels(q), logits.sigmoid())
    assert torch.equal(latent.predict(logits), (logits > 0).long())
    # In doubt, both rounding and reading say null.
    zero = torch.zeros(1, 2)
    assert not latent.predict(zero).any()
    assert not latent.sample(zero, hard=True).any()


def test_sigmoids_of_three_types():
    latent = SigmoidLatent([3])
    logits = torch.tensor([[-1.0, -2.0], [3.0, -1.0], [1.0, 2.0], [-4.0, 0.5]])
    # The highest sigmoid above 1/2, or null.
    assert latent.predict(logits).flatten().tolist() == [0, 1, 2, 2]
    # The sigmoids are the odds of each type against null.
    q, = latent.posterior(logits)
    odds = logits.sigmoid() / (1 - logits.sigmoid())
    torch.testing.assert_close(q[:, 1:] / q[:, :1], odds)


# The authors' numbers ########################################################


def test_decoder_sees_what_the_authors_does(reference):
    latent = reference.model().latent
    logits = reference.flat('logits')
    torch.testing.assert_close(latent.channels(latent.posterior(logits)),
                               reference.flat('edge_attr'), atol=1e-6, rtol=0)


def test_divergence_equals_the_authors(categorical_reference):
    reference = categorical_reference
    latent = reference.model().latent
    num_systems, num_particles = reference['x'].shape[:2]
    kl = latent.kl(reference.flat('logits')).sum(0)
    # Theirs, minus the entropy, lacks the log K of each of the N - 1 edges to
    # a particle. (Their other number, `kl_with_constant`, adds log K to every
    # type instead of every edge, so it has it K times and is no divergence.)
    log_k = torch.tensor(latent.num_edge_types).log()
    expected = reference['kl_without_constant'] + (num_particles - 1) * log_k
    torch.testing.assert_close(kl / (num_systems * num_particles), expected,
                               atol=1e-5, rtol=0)
    wrong = reference['kl_with_constant'] - reference['kl_without_constant']
    surplus = (num_particles - 1) * torch.tensor(latent.num_edge_types) * log_k
    torch.testing.assert_close(wrong, surplus, atol=1e-5, rtol=0)


# Divergence ##################################################################

PRIORS = [None, [[0.5, 0.5], [0.7, 0.2, 0.1]], [[0.91, 0.09], [0.1, 0.1, 0.8]]]


@pytest.mark.parametrize('prior', PRIORS)
def test_divergence_is_that_of_categoricals(prior):
    latent = CategoricalLatent([2, 3], prior=prior)
    logits = 3 * torch.randn(50, 5)
    kl = latent.kl(logits)
    for layer, (part,
                p) in enumerate(zip(logits.split([2, 3], -1), latent.prior)):
        expected = torch_kl(Categorical(logits=part),
                            Categorical(torch.tensor(p)))
        torch.testing.assert_close(kl[:, layer], expected, atol=1e-5, rtol=0)
    assert (kl > 0).all()


@pytest.mark.parametrize('prior', PRIORS)
def test_divergence_is_zero_at_the_prior(prior):
    latent = CategoricalLatent([2, 3], prior=prior)
    at_prior = torch.cat([torch.tensor(p).log() for p in latent.prior])
    # Logits are free up to a constant per layer-graph.
    logits = at_prior + torch.tensor([5.0, 5.0, -3.0, -3.0, -3.0])
    logits = logits.expand(4, 5).clone().requires_grad_()
    kl = latent.kl(logits)
    torch.testing.assert_close(kl, torch.zeros(4, 2), atol=1e-6, rtol=0)
    gradient, = torch.autograd.grad(kl.sum(), logits)
    torch.testing.assert_close(gradient, torch.zeros(4, 5), atol=1e-6, rtol=0)


def test_divergence_of_certainty_is_the_prior_s_surprise():
    latent = CategoricalLatent([2, 2], prior=[[0.9, 0.1], [0.5, 0.5]])
    logits = confident_logits(latent, torch.tensor([[1, 0]]), scale=1e4)
    expected = torch.tensor([[-math.log(0.1), math.log(2)]])
    torch.testing.assert_close(latent.kl(logits), expected)


def test_sigmoids_have_no_divergence():
    assert not SigmoidLatent([2, 3]).kl(torch.randn(7, 3)).any()


# Samples #####################################################################


@pytest.mark.parametrize('tau', [0.1, 0.5, 2.0])
def test_hard_samples_follow_the_posterior(tau):
    latent = CategoricalLatent([2, 3])
    logits = torch.tensor([1.0, -0.5, 0.3, -1.0, 1.2])
    num_samples = 20_000
    sample = latent.sample(logits.expand(num_samples, 5), tau, hard=True,
                           generator=torch.Generator().manual_seed(0))
    assert set(sample.unique().tolist()) == {0.0, 1.0}
    for part in sample.split([2, 3], dim=-1):
        assert (part.sum(-1) == 1).all()
    # A frequency p has a standard error of sqrt(p (1 - p) / n) <= 0.0036; at
    # four of them, one in 15,000 seeds would fail.
    p = torch.cat(latent.posterior(logits[None]), dim=-1)[0]
    error = (p * (1 - p) / num_samples).sqrt()
    assert ((sample.mean(0) - p).abs() < 4 * error).all()
    # Layer-graphs are drawn independently: so does the product.
    both, p_both = sample[:, 1] * sample[:, 4], p[1] * p[4]
    error = (p_both * (1 - p_both) / num_samples).sqrt()
    assert (both.mean() - p_both).abs() < 4 * error


@categoricals
@pytest.mark.parametrize('hard', [False, True])
def test_one_seed_one_sample(latent, hard):
    logits = torch.randn(20, latent.num_logits)

    def sample(seed):
        generator = torch.Generator().manual_seed(seed)
        return latent.sample(logits, hard=hard, generator=generator)

    state = torch.get_rng_state()
    assert torch.equal(sample(1), sample(1))
    assert not torch.equal(sample(1), sample(2))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert torch.equal(latent.sample(logits, hard=hard), sample(1))


def test_samples_approach_one_hot_as_tau_falls():
    latent = CategoricalLatent([2, 3])
    logits = torch.randn(500, 5)

    def sample(tau, hard=False):
        generator = torch.Generator().manual_seed(0)
        return latent.sample(logits, tau, hard, generator)

    hard = sample(0.5, hard=True)
    distance = [(sample(tau) - hard).abs().mean().item()
                for tau in (1.0, 0.3, 0.1, 0.03, 1e-6)]
    assert distance == sorted(distance, reverse=True)
    assert distance[0] > 0.1
    assert distance[-1] < 1e-3
    for part in sample(0.5).split([2, 3], dim=-1):
        torch.testing.assert_close(part.sum(-1), torch.ones(500))


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


def test_dropping_the_null_channel_changes_nothing_else():
    whole = CategoricalLatent([2, 3])
    dropped = CategoricalLatent([2, 3], drop_null=True)
    logits = torch.randn(20, 5)
    samples = [
        latent.sample(logits, generator=torch.Generator().manual_seed(0))
        for latent in (whole, dropped)
    ]
    assert torch.equal(samples[1], samples[0][:, [1, 3, 4]])
    assert torch.equal(dropped.kl(logits), whole.kl(logits))
    assert torch.equal(dropped.predict(logits), whole.predict(logits))


def test_sigmoids_are_not_drawn():
    latent = SigmoidLatent([2, 3])
    logits = torch.randn(20, 3)
    assert torch.equal(latent.sample(logits, 0.1), latent.sample(logits, 2.0))
    hard = latent.sample(logits, hard=True)
    assert torch.equal(hard, logits.sigmoid().round())


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


@pytest.mark.parametrize('prior', [
    [[0.5, 0.5]],
    [[0.5, 0.5], [0.5, 0.5]],
    [[0.5, 0.5], [0.5, 0.5, 0.5]],
    [[1.0, 0.0], [0.2, 0.3, 0.5]],
    [[1.5, -0.5], [0.2, 0.3, 0.5]],
    [[float('nan'), 1.0], [0.2, 0.3, 0.5]],
    [[0.5, float('nan')], [0.2, 0.3, 0.5]],
    [0.5, 0.5],
])
def test_impossible_priors(prior):
    with pytest.raises(ValueError, match=r'sum to 1 .* lengths \[2, 3\]'):
        CategoricalLatent([2, 3], prior=prior)


@pytest.mark.parametrize('tau', [0, -0.5, float('nan')])
def test_impossible_temperatures(tau):
    with pytest.raises(ValueError, match='tau > 0'):
        CategoricalLatent([2]).sample(torch.randn(3, 2), tau)


def test_repr():
    assert str(CategoricalLatent([
        2, 2
    ], drop_null=True)) == ('CategoricalLatent([2, 2], drop_null=True, '
                            'prior=[[0.5, 0.5], [0.5, 0.5]], undirected=False)')
    assert str(SigmoidLatent(
        (2, 3), undirected=True)) == ('SigmoidLatent([2, 3], undirected=True)')


def test_sigmoids_are_taught_one_by_one():
    latent = SigmoidLatent([2, 3])
    logits = torch.tensor([[1.0, 2.0, -3.0], [0.5, -0.5, 0.0]])
    edge_type = torch.tensor([[1, 2], [0, 0]])
    yes = logits.sigmoid().log()
    no = (-logits).sigmoid().log()
    expected = -torch.stack([
        torch.stack([yes[0, 0], no[0, 1] + yes[0, 2]]),
        torch.stack([no[1, 0], no[1, 1] + no[1, 2]])
    ])
    loss = latent.cross_entropy(logits, edge_type)
    torch.testing.assert_close(loss, expected)
    # Of two types, one of which is null, it is the log-posterior's.
    binary = SigmoidLatent([2])
    torch.testing.assert_close(
        binary.cross_entropy(logits[:, :1], edge_type[:, :1]),
        super(SigmoidLatent, binary).cross_entropy(logits[:, :1],
                                                   edge_type[:, :1]))


def test_most_probable_types_of_layers_of_different_size():
    posterior = [
        torch.tensor([[0.9, 0.1], [0.3, 0.7]]),
        torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    ]
    assert most_probable(posterior).tolist() == [[0, 2], [1, 0]]
