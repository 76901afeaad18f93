import pytest
import torch
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl
from torch_geometric.data import Batch, Data

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import CategoricalLatent, SigmoidLatent
from pyg_fnri.nn.latent import most_probable, reverse_edges

CATEGORICALS = [
    CategoricalLatent([2, 2]),
    CategoricalLatent([4]),
    CategoricalLatent([2, 3, 4], drop_null=True)
]
categoricals = pytest.mark.parametrize('latent', CATEGORICALS, ids=repr)
latents = pytest.mark.parametrize(
    'latent', [*CATEGORICALS, SigmoidLatent([3, 2, 4])], ids=repr)


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


@pytest.mark.parametrize('latent, num_logits, num_channels',
                         [(CategoricalLatent([2, 3, 4]), 9, 9),
                          (CategoricalLatent([2, 3, 4], drop_null=True), 9, 6),
                          (CategoricalLatent([8], drop_null=True), 8, 7),
                          (SigmoidLatent([2, 3, 4]), 6, 6)], ids=repr)
def test_sizes(latent, num_logits, num_channels, num_edges=7):
    assert latent.num_logits == num_logits
    assert latent.num_channels == num_channels
    logits = torch.randn(num_edges, num_logits)
    edge_type, posterior = latent.predict(logits), latent.posterior(logits)
    for q, k in zip(posterior, latent.num_edge_types, strict=True):
        assert q.shape == (num_edges, k)
    for values in (edge_type, latent.kl(logits)):
        assert values.shape == (num_edges, latent.num_layers)
    for graph in (latent.sample(logits), latent.sample(logits, hard=True),
                  latent.channels(posterior), latent.encode_types(edge_type)):
        assert graph.shape == (num_edges, num_channels)


@latents
def test_encode_types_and_predict_are_inverse(latent):
    edge_type = random_types(latent)
    logits = confident_logits(latent, edge_type)
    assert torch.equal(latent.predict(logits), edge_type)
    assert latent.cross_entropy(logits, edge_type).abs().max() < 1e-6
    # What the decoder sees of a truth is what it sees of certainty.
    channels = latent.encode_types(edge_type)
    for certain in (latent.channels(latent.posterior(logits)),
                    latent.sample(logits, hard=True)):
        torch.testing.assert_close(channels, certain, atol=1e-4, rtol=0)
    with pytest.raises(ValueError):
        latent.encode_types(edge_type.repeat(1, 2))


# Undirected interactions ####################################################


def test_reverse_of_each_edge():
    # In any order, with some missing.
    edge_index = torch.tensor([[5, 0, 2, 1, 3], [2, 1, 5, 0, 4]])
    assert reverse_edges(edge_index).tolist() == [2, 3, 0, 1, 4]
    # The last key is looked up beyond the end.
    assert reverse_edges(torch.tensor([[0, 2], [3, 1]])).tolist() == [0, 1]
    empty = torch.empty(2, 0, dtype=torch.long)
    assert reverse_edges(empty).shape == (0, )


@pytest.mark.parametrize('latent', [
    CategoricalLatent([2, 3], undirected=True),
    SigmoidLatent([2, 3], undirected=True)
], ids=repr)
def test_tie_averages_both_directions(latent):
    edge_index = fully_connected(4)[:, torch.randperm(12)[:9]]
    logits = torch.randn(9, latent.num_logits)
    tied = latent.tie(logits, edge_index)
    edges = edge_index.t().tolist()
    for e, (j, i) in enumerate(edges):
        other = edges.index([i, j]) if [i, j] in edges else e
        torch.testing.assert_close(tied[e], (logits[e] + logits[other]) / 2)
        assert torch.equal(tied[e], tied[other])
    latent = type(latent)([2, 3])
    assert latent.tie(logits, edge_index) is logits


def test_a_shared_graph_has_the_mean_logits_of_all_systems():
    latent = CategoricalLatent([2, 2], undirected=True, shared=True)
    single = fully_connected(3)[:, [0, 1, 2, 4]]
    edge_index = torch.cat([single, single + 3], 1)
    batch, logits = torch.tensor([0, 0, 0, 1, 1, 1]), torch.randn(8, 4)
    tied = latent.tie(logits, edge_index, batch)
    latent.shared = False
    each = latent.tie(logits, edge_index, batch)
    assert tied.equal(((each[:4] + each[4:]) / 2).repeat(2, 1))
    latent.shared = True
    with latent.apart():
        assert latent.tie(logits, edge_index, batch).equal(each)
    assert latent.shared
    # Other edges, and a particle more of none.
    other, larger = edge_index.clone(), torch.tensor([0, 0, 0, 1, 1, 1, 1])
    other[:, 4:] = other[:, 4:].flip(0)
    for wrong in ((other, batch), (edge_index, larger)):
        with pytest.raises(ValueError, match='same particles and candidate'):
            latent.tie(logits, *wrong)


# Samples ####################################################################


@categoricals
def test_frequencies_of_samples_are_the_posterior(latent):
    logits, num_samples = torch.randn(latent.num_logits), 20_000
    sample = latent.sample(logits.expand(num_samples, -1), hard=True)
    # Beyond four standard errors would be one seed in 15,000.
    p = latent.channels(latent.posterior(logits[None]))[0]
    error = (p * (1 - p) / num_samples).sqrt()
    assert ((sample.mean(0) - p).abs() < 4 * error).all()


def test_samples_approach_one_hot_as_tau_falls():
    latent = CategoricalLatent([2, 3])
    logits = torch.randn(500, 5)

    def sample(tau, hard=False):
        generator = torch.Generator().manual_seed(0)
        return latent.sample(logits, tau, hard, generator)

    hard = sample(0.5, hard=True)
    assert torch.equal(hard, sample(0.5, hard=True))
    distance = [(sample(tau) - hard).abs().mean().item()
                for tau in (1.0, 0.3, 0.1, 0.03, 1e-6)]
    assert distance == sorted(distance, reverse=True)
    assert distance[0] > 0.1
    assert distance[-1] < 1e-3
    with pytest.raises(ValueError, match='tau'):
        sample(0)


@latents
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


# Divergence and supervision #################################################


@pytest.mark.parametrize(
    'reference', ['nri', 'nri_three_layers', 'fnri', 'fnri_three_layers'],
    indirect=True)
def test_divergence_equals_the_authors(reference):
    latent = reference.model().latent
    num_systems, num_particles = reference['x'].shape[:2]
    kl = latent.kl(reference.flat('logits')).sum(0)
    # Theirs, minus the entropy, lacks the log K of each of the N - 1 edges to
    # a particle.
    log_k = torch.tensor(latent.num_edge_types).log()
    expected = reference['kl_without_constant'] + (num_particles - 1) * log_k
    torch.testing.assert_close(kl / (num_systems * num_particles), expected,
                               atol=1e-5, rtol=0)


def test_divergence_is_that_of_categoricals():
    prior = [[0.91, 0.09], [0.1, 0.1, 0.8]]
    latent = CategoricalLatent([2, 3], prior=prior)
    logits = 3 * torch.randn(50, 5)
    expected = [
        torch_kl(Categorical(logits=part), Categorical(torch.tensor(p)))
        for part, p in zip(logits.split([2, 3], -1), latent.prior)
    ]
    torch.testing.assert_close(latent.kl(logits), torch.stack(expected, -1),
                               atol=1e-5, rtol=0)


# Sigmoids ###################################################################


def test_sigmoids_under_noise_are_samples_of_the_posterior():
    latent = SigmoidLatent([2], noise=True)
    logits = torch.tensor([[-2.0], [0.0], [1.0]]).repeat_interleave(20_000, 0)
    generator = torch.Generator().manual_seed(0)
    z = latent.sample(logits, tau=0.01, generator=generator)
    assert ((z < 0.01) | (z > 0.99)).float().mean() > 0.95
    shares = z.view(3, -1).mean(1)
    assert torch.allclose(shares,
                          latent.posterior(logits)[0].view(3, -1, 2)[:, 0, 1],
                          atol=0.01)


def test_sigmoids_of_three_types():
    latent = SigmoidLatent([3])
    logits = torch.tensor([[-1.0, -2.0], [3.0, -1.0], [1.0, 2.0], [-4.0, 0.5]])
    assert torch.equal(latent.sample(logits, tau=0.1), logits.sigmoid())
    assert not latent.kl(logits).any()
    # The highest sigmoid above 1/2, or null.
    assert latent.predict(logits).flatten().tolist() == [0, 1, 2, 2]
    # The sigmoids are the odds of each type against null.
    q, = latent.posterior(logits)
    odds = logits.sigmoid() / (1 - logits.sigmoid())
    torch.testing.assert_close(q[:, 1:] / q[:, :1], odds)

    # They are supervised one by one.
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


@pytest.mark.parametrize(
    'prior',
    [[[0.5, 0.5]], [[0.5, 0.5], [0.5] * 3], [[1.0, 0.0], [0.2, 0.3, 0.5]]])
def test_impossible_types_and_priors(prior):
    with pytest.raises(ValueError, match='sum to 1'):
        CategoricalLatent([2, 3], prior=prior)
    with pytest.raises(ValueError, match='at least two'):
        SigmoidLatent([2, 1])


@pytest.mark.parametrize('latent', [
    CategoricalLatent([2, 3], drop_null=True, undirected=True),
    CategoricalLatent([6], drop_null=True, undirected=True),
    CategoricalLatent([2, 2]),
    SigmoidLatent([2, 2], undirected=True),
    CategoricalLatent([2, 2], undirected=True, shared=True)
])
def test_mean_field_finds_the_graphs_of_which_changes_are_made(latent):
    systems = Batch.from_data_list(
        [Data(edge_index=fully_connected(4), num_nodes=4) for _ in range(50)])
    edge_index, num_edges = systems.edge_index, 600
    effects = torch.randn(num_edges, latent.num_channels, 10, 4)
    logits = torch.randn(num_edges, latent.num_logits)
    truth = latent.predict(latent.tie(logits, edge_index, systems.batch))
    sent = torch.einsum('ec,ectf->etf', latent.encode_types(truth), effects)
    change = torch.zeros(200, 10, 4).index_add(0, edge_index[1], sent)
    change += 0.1 * torch.randn(change.size())
    change[:, 0] += 100.  # A frame that nothing explains.
    start = latent.posterior(torch.zeros(logits.size()))
    found = most_probable(latent.mean_field(start, effects, change, systems))
    assert (found == truth).all(-1).double().mean() > 0.99
    if latent.undirected:
        by_pair = found.view(50, 4, 3, -1)
        assert by_pair[:, 0, 0].equal(by_pair[:, 1, 0])


def test_mean_field_knows_how_frequent_types_are():
    latent = SigmoidLatent([2, 3])
    data = Data(edge_index=fully_connected(4), num_nodes=4)
    posterior = [torch.tensor([[0.9, 0.1]]), torch.tensor([[0.2, 0.8, 0.]])]
    posterior = [q.expand(12, -1) for q in posterior]
    nothing = torch.zeros(12, 3, 4, 2), torch.randn(4, 4, 2), data
    out = latent.mean_field(posterior, *nothing, latent.frequency)
    assert_close_types(out, latent.prior)
    latent.count(torch.tensor([45., 5., 2., 8., 0.]))
    out = latent.mean_field(posterior, *nothing, latent.frequency)
    assert_close_types(out, [q[0].tolist() for q in posterior])
    assert all((q > 0).all() for q in out)  # No type is impossible.
    latent.count(torch.zeros(5))  # Of systems without candidate edges.
    out = latent.mean_field(posterior, *nothing, latent.frequency)
    assert_close_types(out, latent.prior)


def assert_close_types(posterior, expected):
    for q, p in zip(posterior, expected, strict=True):
        p = torch.tensor(p).expand_as(q)
        torch.testing.assert_close(q, p, atol=2e-3, rtol=0)


def test_mean_field_of_effects_that_say_nothing_is_the_prior():
    latent = CategoricalLatent([2, 3], prior=[[0.9, 0.1], [0.5, 0.3, 0.2]])
    data = Data(edge_index=fully_connected(3), num_nodes=3)
    start = latent.posterior(torch.randn(6, 5))
    for effect, change in ((0., 1.), (1., 0.)):
        effects = torch.full((6, 5, 4, 2), effect * 1e-6)
        out = latent.mean_field(start, effects, torch.full((3, 4, 2), change),
                                data)
        assert_close_types(out, latent.prior)


def test_mean_field_counts_what_an_edge_without_reverse_says_once():
    posterior = {}
    for undirected in (False, True):
        latent = CategoricalLatent([2], undirected=undirected)
        data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
        effects = 0.02 * torch.ones(1, latent.num_channels, 3, 2)
        effects[:, 0] = 0
        posterior[undirected], = latent.mean_field([torch.full(
            (1, 2), 0.5)], effects, 0.015 * torch.ones(2, 3, 2), data)
    assert posterior[True].equal(posterior[False])
    assert not posterior[True].allclose(torch.tensor(0.5), atol=1e-5)
