import itertools
import math

import pytest
import torch
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl

from pyg_fnri.data import fully_connected
from pyg_fnri.losses import kl_divergence
from pyg_fnri.nn import CategoricalLatent, NodeLatent
from pyg_fnri.nn.latent import most_probable, reverse_edges

CHARGED, SIGN = [0, 1], [0, 1, -1]
LATENTS = [
    NodeLatent([CHARGED]),
    NodeLatent([SIGN], drop_null=True, prior=[[0.2, 0.5, 0.3]]),
    NodeLatent([CHARGED, [0, 1, 2]], prior=[[0.7, 0.3], [0.1, 0.1, 0.8]]),
]
latents = pytest.mark.parametrize('latent', LATENTS, ids=repr)
# No edge from or to particle 2; the order is none in particular.
SPARSE = torch.tensor([[3, 0, 0, 4, 1, 5, 4], [0, 1, 3, 3, 4, 0, 1]])


def together(graphs):
    """Candidate edges of several systems as those of one batch."""
    sizes = [int(graph.max()) + 1 for graph in graphs]
    return torch.cat([g + sum(sizes[:b]) for b, g in enumerate(graphs)], dim=1)


def certain_logits(latent, node_types, edge_index):
    """Logits that leave no doubt about `node_types [num_nodes, L]`."""
    one_hot = torch.cat([
        torch.nn.functional.one_hot(types, k)
        for types, k in zip(node_types.t(), latent.num_node_types)
    ], -1)
    node = 40.0 * (one_hot - 0.5)
    return torch.cat([node[edge_index[1]], node[edge_index[0]]], -1)


def random_types(latent, num_nodes):
    return torch.stack(
        [torch.randint(k, (num_nodes, )) for k in latent.num_node_types], -1)


def products(latent, node_types, edge_index):
    """Edge types by hand: products of values, [num_edges, L]."""
    out = []
    for types, values in zip(node_types.t().tolist(), latent.values):
        order = sorted({a * b
                        for a in values
                        for b in values}, key=lambda z: (abs(z), z < 0))
        out.append([
            order.index(values[types[i]] * values[types[j]])
            for j, i in edge_index.t().tolist()
        ])
    return torch.tensor(out).t()


def factors(latent, edge_type, edge_index):
    """Whether edge types of one system are products of any values at all."""
    num_nodes = int(edge_index.max()) + 1
    for layer, k in enumerate(latent.num_node_types):
        single = NodeLatent([latent.values[layer]])
        if not any(
                torch.equal(
                    products(single,
                             torch.tensor(c)[:, None], edge_index)[:, 0],
                    edge_type[:, layer])
                for c in itertools.product(range(k), repeat=num_nodes)):
            return False
    return True


# Shapes and meaning ##########################################################


@pytest.mark.parametrize('latent, types, num_logits, num_channels', [
    (NodeLatent([CHARGED]), [2], 4, 2),
    (NodeLatent([CHARGED], drop_null=True), [2], 4, 1),
    (NodeLatent([SIGN]), [3], 6, 3),
    (NodeLatent([CHARGED, [0, 1, 2]], drop_null=True), [2, 4], 10, 4),
], ids=repr)
def test_sizes(latent, types, num_logits, num_channels):
    assert latent.num_edge_types == types
    assert latent.num_logits == num_logits
    assert latent.num_channels == num_channels
    assert latent.undirected
    logits = latent.tie(torch.randn(7, num_logits), SPARSE)
    assert logits.shape == (7, num_logits)
    sample = latent.sample(logits, edge_index=SPARSE)
    assert sample.shape == (7, num_channels)
    assert latent.kl(logits, SPARSE).shape == (7, len(types))
    assert latent.predict(logits).shape == (7, len(types))
    assert latent.predict(logits).dtype == torch.int64
    posterior = latent.posterior(logits)
    assert [q.shape for q in posterior] == [(7, k) for k in types]
    assert latent.channels(posterior).shape == (7, num_channels)
    nodes = latent.node_posterior(logits, SPARSE, num_nodes=8)
    assert [q.shape for q in nodes] == [(8, k) for k in latent.num_node_types]


@latents
def test_no_edges(latent):
    logits, edge_index = torch.empty(0, latent.num_logits), SPARSE[:, :0]
    assert latent.tie(logits, edge_index).shape == (0, latent.num_logits)
    sample = latent.sample(logits, hard=True, edge_index=edge_index)
    assert sample.shape == (0, latent.num_channels)
    assert latent.predict(logits).shape == (0, latent.num_layers)
    assert latent.kl(logits, edge_index).shape == (0, latent.num_layers)
    assert latent.posterior(logits)[0].shape == (0, latent.num_edge_types[0])


def test_posterior_of_an_edge_is_the_product_of_its_ends():
    latent = NodeLatent([CHARGED])
    logits = latent.tie(torch.randn(7, 4), SPARSE)
    charged = latent.node_posterior(logits, SPARSE)[0][:, 1]
    sender, receiver = SPARSE
    q, = latent.posterior(logits)
    torch.testing.assert_close(q[:, 1], charged[sender] * charged[receiver])
    torch.testing.assert_close(q.sum(-1), torch.ones(7))


def test_like_signs_are_one_type_and_unlike_ones_another():
    latent = NodeLatent([SIGN])
    logits = latent.tie(torch.randn(7, 6), SPARSE)
    c = latent.node_posterior(logits, SPARSE)[0]
    (_, p_j, m_j), (_, p_i, m_i) = c[SPARSE[0]].t(), c[SPARSE[1]].t()
    q, = latent.posterior(logits)
    torch.testing.assert_close(q[:, 1], p_i * p_j + m_i * m_j)
    torch.testing.assert_close(q[:, 2], p_i * m_j + m_i * p_j)


@latents
def test_certain_particles_make_certain_edges(latent):
    edge_index = together([fully_connected(5), SPARSE])
    node_types = random_types(latent, 11)
    logits = certain_logits(latent, node_types, edge_index)
    expected = products(latent, node_types, edge_index)
    tied = latent.tie(logits, edge_index)
    assert torch.equal(latent.predict(tied), expected)
    assert torch.equal(most_probable(latent.posterior(tied)), expected)
    # What the decoder sees of a truth is what it sees of certainty.
    channels = latent.encode_types(expected)
    for certain in (latent.channels(latent.posterior(tied)),
                    latent.sample(tied, 0.1, edge_index=edge_index),
                    latent.sample(tied, hard=True, edge_index=edge_index)):
        torch.testing.assert_close(certain, channels, atol=1e-4, rtol=0)
    assert latent.cross_entropy(tied, expected).max() < 1e-4


# Factorisation and symmetry ##################################################


@latents
@pytest.mark.parametrize('edge_index', [fully_connected(5), SPARSE],
                         ids=['all', 'sparse'])
def test_predictions_and_hard_samples_factor(latent, edge_index):
    generator = torch.Generator().manual_seed(0)
    whole = NodeLatent(latent.values)  # With its null channels.
    sizes = whole.num_edge_types
    for _ in range(5):
        logits = latent.tie(torch.randn(edge_index.size(1), latent.num_logits),
                            edge_index)
        assert factors(latent, latent.predict(logits), edge_index)
        sample = whole.sample(logits, 0.5, True, generator, edge_index)
        types = most_probable(sample.split(sizes, -1))
        assert torch.equal(whole.encode_types(types), sample.round())
        assert factors(latent, types, edge_index)


def test_most_probable_edges_by_themselves_need_not_factor():
    latent, edge_index = NodeLatent([CHARGED]), fully_connected(3)
    node = torch.tensor([0.9, 0.6, 0.6])
    node = torch.stack([1 - node, node], -1).log()
    logits = torch.cat([node[edge_index[1]], node[edge_index[0]]], -1)
    alone = most_probable(latent.posterior(logits))
    assert alone.flatten().tolist() == [1, 1, 1, 0, 1, 0]  # 0.6^2 < 1/2.
    assert not factors(latent, alone, edge_index)
    assert latent.predict(logits).all()


@latents
def test_both_directions_agree(latent):
    edge_index = fully_connected(5)[:, torch.randperm(20)]
    reverse = reverse_edges(edge_index)
    logits = latent.tie(torch.randn(20, latent.num_logits), edge_index)
    for q in latent.posterior(logits):
        torch.testing.assert_close(q, q[reverse], atol=1e-7, rtol=1e-6)
    for values in (latent.predict(logits), latent.kl(logits, edge_index),
                   latent.sample(logits, edge_index=edge_index),
                   latent.sample(logits, hard=True, edge_index=edge_index)):
        torch.testing.assert_close(values, values[reverse])


@latents
def test_renumbering_particles_and_edges_renumbers_the_results(latent):
    edge_index = together([fully_connected(4), SPARSE])
    logits = torch.randn(edge_index.size(1), latent.num_logits)
    order, node = torch.randperm(edge_index.size(1)), torch.randperm(10)
    other_index = node[edge_index][:, order]
    tied = latent.tie(logits, edge_index)
    other = latent.tie(logits[order], other_index)
    torch.testing.assert_close(other, tied[order])
    torch.testing.assert_close(latent.kl(other, other_index),
                               latent.kl(tied, edge_index)[order])
    torch.testing.assert_close(
        latent.node_logits(other, other_index, 10)[node],
        latent.node_logits(tied, edge_index, 10))
    assert torch.equal(latent.predict(other), latent.predict(tied)[order])


@latents
def test_batch_of_mixed_sizes_equals_systems_one_by_one(latent):
    graphs = [fully_connected(n) for n in (2, 5, 3)] + [SPARSE]
    logits = [torch.randn(g.size(1), latent.num_logits) for g in graphs]
    batch = together(graphs)
    tied = latent.tie(torch.cat(logits), batch)
    single = [latent.tie(*pair) for pair in zip(logits, graphs)]
    torch.testing.assert_close(tied, torch.cat(single))
    torch.testing.assert_close(
        latent.kl(tied, batch),
        torch.cat([latent.kl(*pair) for pair in zip(single, graphs)]))
    for layer, q in enumerate(latent.posterior(tied)):
        expected = [latent.posterior(own)[layer] for own in single]
        torch.testing.assert_close(q, torch.cat(expected))


@latents
def test_tying_is_done_once(latent):
    logits = torch.randn(7, latent.num_logits)
    tied = latent.tie(logits, SPARSE)
    torch.testing.assert_close(latent.tie(tied, SPARSE), tied)
    torch.testing.assert_close(latent.node_logits(tied, SPARSE),
                               latent.node_logits(logits, SPARSE))
    torch.testing.assert_close(latent.kl(tied, SPARSE),
                               latent.kl(logits, SPARSE))


def test_particles_without_edges_keep_their_prior():
    latent = NodeLatent([SIGN], prior=[[0.2, 0.5, 0.3]])
    q, = latent.node_posterior(torch.randn(7, 6), SPARSE, num_nodes=8)
    expected = torch.tensor([0.2, 0.5, 0.3]).expand(3, 3)
    torch.testing.assert_close(q[[2, 6, 7]], expected)
    assert not torch.allclose(q[0], expected[0], atol=0.01)


# Divergence ##################################################################


@latents
def test_divergence_is_that_of_the_whole_graph_s_particles(latent):
    edge_index = together([fully_connected(4), SPARSE])
    logits = 3 * torch.randn(edge_index.size(1), latent.num_logits)
    kl = latent.kl(logits, edge_index)
    assert (kl > 0).all()
    nodes = latent.node_posterior(logits, edge_index)
    for layer, (q, p) in enumerate(zip(nodes, latent.prior)):
        connected = [i for i in range(10) if i in edge_index]
        assert len(connected) == 9
        expected = torch_kl(Categorical(q[connected]),
                            Categorical(torch.tensor(p)))
        torch.testing.assert_close(kl[:, layer].sum(), expected.sum())


def test_divergence_equals_that_over_all_graphs():
    """Summed over all 2^4 charges of a system, not particle by particle."""
    latent = NodeLatent([CHARGED], prior=[[0.8, 0.2]])
    edge_index = fully_connected(4)
    logits = torch.randn(12, 4, dtype=torch.double)
    q, = latent.node_posterior(logits, edge_index)
    total = 0.0
    for c in itertools.product((0, 1), repeat=4):
        q_c = math.prod(q[i, c_i].item() for i, c_i in enumerate(c))
        p_c = math.prod((0.8, 0.2)[c_i] for c_i in c)
        total += q_c * math.log(q_c / p_c)
    assert latent.kl(logits, edge_index).sum().item() == pytest.approx(total)


@latents
def test_divergence_is_zero_at_the_prior(latent):
    at_prior = torch.cat([torch.tensor(p).log() for p in latent.prior])
    # Logits are free up to a constant per layer-graph, and mean what they do
    # on average: noise that cancels between a particle's edges is none.
    logits = (at_prior + 3).repeat(2).expand(12, -1)
    noise = torch.randn(12, latent.num_logits)
    edge_index = fully_connected(4)
    noise = noise - latent.tie(noise, edge_index)
    logits = (logits + noise).requires_grad_()
    kl = latent.kl(logits, edge_index)
    torch.testing.assert_close(kl, torch.zeros(12, latent.num_layers),
                               atol=1e-6, rtol=0)
    gradient, = torch.autograd.grad(kl.sum(), logits)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-6,
                               rtol=0)


@pytest.mark.parametrize('num_nodes', [2, 5, 20])
def test_divergence_per_particle_does_not_grow_with_the_system(num_nodes):
    latent = NodeLatent([CHARGED])
    edge_index = fully_connected(num_nodes)
    node_types = random_types(latent, num_nodes)
    logits = certain_logits(latent, node_types, edge_index)
    kl = kl_divergence(latent.kl(logits, edge_index), num_nodes)
    assert kl.item() == pytest.approx(math.log(2))


@latents
def test_prior_of_edges_is_that_of_products(latent):
    prior = latent.edge_prior
    at_prior = torch.cat([torch.tensor(p).log() for p in latent.prior])
    posterior = latent.posterior(at_prior.repeat(2)[None])
    for p, q in zip(prior, posterior):
        torch.testing.assert_close(torch.tensor([p]), q)
    assert NodeLatent([CHARGED]).edge_prior == [[0.75, 0.25]]


# Samples #####################################################################


@pytest.mark.parametrize(
    'latent', [NodeLatent([CHARGED]), NodeLatent([SIGN])], ids=repr)
@pytest.mark.parametrize('tau, hard', [(0.5, True), (0.02, False)])
def test_samples_follow_the_posterior(latent, tau, hard):
    # Many copies of a system of three particles, drawn one by one.
    copies = 20_000
    single = latent.tie(torch.randn(6, latent.num_logits), fully_connected(3))
    edge_index = fully_connected(3)[:, None] + 3 * torch.arange(copies)[:, None]
    sample = latent.sample(single.repeat(copies, 1), tau, hard,
                           torch.Generator().manual_seed(0),
                           edge_index.flatten(1))
    sample = sample.view(copies, 6, -1)
    p = torch.cat(latent.posterior(single), -1)
    # Four standard errors, and for soft samples what tau leaves.
    error = 4 * (p * (1 - p) / copies).sqrt() + (0 if hard else 0.01)
    assert ((sample.mean(0) - p).abs() < error).all()
    # Pairs that share a particle are not independent: by brute force.
    nodes = latent.node_posterior(single, fully_connected(3))[0]
    expected = 0.0
    for c in itertools.product(range(nodes.size(1)), repeat=3):
        types = products(latent, torch.tensor(c)[:, None], fully_connected(3))
        if types[0] == 1 and types[3] == 1:
            expected += math.prod(nodes[i, c_i].item()
                                  for i, c_i in enumerate(c))
    assert abs(expected - (p[0, 1] * p[3, 1]).item()) > 0.02
    both = (sample[:, 0, 1] * sample[:, 3, 1]).mean().item()
    error = 4 * math.sqrt(expected * (1 - expected) / copies)
    assert abs(both - expected) < error + (0 if hard else 0.01)


@latents
def test_one_seed_one_sample(latent):
    logits = torch.randn(7, latent.num_logits)

    def sample(seed, edge_index=SPARSE):
        generator = torch.Generator().manual_seed(seed)
        return latent.sample(logits, generator=generator, edge_index=edge_index)

    state = torch.get_rng_state()
    assert torch.equal(sample(1), sample(1))
    assert not torch.equal(sample(1), sample(2))
    assert torch.equal(torch.get_rng_state(), state)


@latents
def test_gradients_are_finite_and_of_soft_samples(latent):
    edge_index = fully_connected(4)
    logits = torch.randn(12, latent.num_logits, requires_grad=True)
    cotangent = torch.randn(12, latent.num_channels)
    gradients = []
    for hard in (False, True):
        generator = torch.Generator().manual_seed(0)
        sample = latent.sample(latent.tie(logits, edge_index), 0.7, hard,
                               generator, edge_index)
        gradient, = torch.autograd.grad(sample, logits, cotangent)
        gradients.append(gradient)
    assert gradients[0].abs().min() > 0
    torch.testing.assert_close(gradients[1], gradients[0])
    # Even of certainty.
    sure = (1e4 * torch.randn(12, latent.num_logits)).requires_grad_()
    tied = latent.tie(sure, edge_index)
    edge_type = torch.zeros(12, latent.num_layers, dtype=torch.long)
    for value in (latent.cross_entropy(tied,
                                       edge_type), latent.kl(tied, edge_index),
                  latent.sample(tied, 0.1, edge_index=edge_index)):
        gradient, = torch.autograd.grad(value.sum(), sure, retain_graph=True)
        assert gradient.isfinite().all()


def test_gradients_are_those_of_differences():
    latent = NodeLatent([SIGN])
    logits = torch.randn(6, 6, dtype=torch.double, requires_grad=True)
    edge_index = fully_connected(3)
    edge_type = torch.tensor([[0], [1], [2], [0], [1], [2]])

    def values(logits):
        tied = latent.tie(logits, edge_index)
        generator = torch.Generator().manual_seed(0)
        return (latent.sample(tied, 0.7, False, generator,
                              edge_index), latent.kl(tied, edge_index),
                latent.cross_entropy(tied, edge_type))

    torch.autograd.gradcheck(values, logits)


# What it is good for #########################################################


def noisy(truth, scale, generator):
    """Logits of a noisy opinion on each of `truth [*]`, of two types."""
    sure = scale * (2.0 * torch.nn.functional.one_hot(truth, 2) - 1)
    return sure + torch.randn(sure.shape, generator=generator)


@pytest.mark.parametrize('num_nodes', [5, 10])
@pytest.mark.parametrize('scale', [0.5, 1.0])
def test_pooling_over_particles_beats_edges_one_by_one(num_nodes, scale):
    generator = torch.Generator().manual_seed(0)
    edge_index = together([fully_connected(num_nodes)] * 200)
    charged = torch.randint(2, (200 * num_nodes, ), generator=generator)
    sender, receiver = charged[edge_index]
    truth = (sender * receiver)[:, None]
    latent, edges = NodeLatent([CHARGED]), CategoricalLatent([2])
    pairs = noisy(truth[:, 0], scale, generator)
    logits = torch.cat(
        [noisy(receiver, scale, generator),
         noisy(sender, scale, generator)], -1)

    def accuracy(edge_type):
        return (edge_type == truth).float().mean().item()

    # An opinion on each pair, one on its ends, and the ends pooled.
    alone = accuracy(edges.predict(pairs))
    ends = accuracy(latent.predict(logits))
    pooled = accuracy(latent.predict(latent.tie(logits, edge_index)))
    assert alone < 0.93 and ends < 0.93
    assert 1 - pooled < 0.5 * (1 - max(alone, ends))
    if num_nodes == 10 and scale == 1.0:
        assert pooled > 0.999


@pytest.mark.parametrize('values', [CHARGED, SIGN])
def test_recovers_true_charges_from_their_products(values):
    latent = NodeLatent([values])
    edge_index = together([fully_connected(n) for n in (3, 5, 8)])
    node_types = random_types(latent, 16)
    # An uncharged one, a lone charge and a pair are each among them.
    node_types[:3] = torch.tensor([[0], [1], [1]])
    truth = products(latent, node_types, edge_index)
    logits = torch.randn(edge_index.size(1), latent.num_logits,
                         requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        tied = latent.tie(logits, edge_index)
        latent.cross_entropy(tied, truth).mean().backward()
        optimizer.step()
    tied = latent.tie(logits, edge_index)
    assert torch.equal(latent.predict(tied), truth)
    found = latent.node_logits(tied, edge_index).argmax(-1)
    known = node_types[:, 0]
    assert torch.equal(found == 0, known == 0)
    for system in (slice(0, 3), slice(3, 8), slice(8, 16)):
        # Signs are known up to turning all of them.
        turned = torch.tensor([0, 2, 1])[known[system]]
        assert (torch.equal(found[system], known[system])
                or torch.equal(found[system], turned))


# Bad input ###################################################################


def test_edges_are_needed():
    latent = NodeLatent([CHARGED])
    logits = torch.randn(7, 4)
    for method in (latent.sample, latent.kl):
        with pytest.raises(ValueError, match='pass edge_index=edge_index'):
            method(logits)
    with pytest.raises(ValueError, match='edge_index of the 7 rows of logits'):
        latent.kl(logits, fully_connected(3))
    with pytest.raises(ValueError, match=r'\[num_edges, 4\].*got \[7, 2\]'):
        latent.tie(logits[:, :2], SPARSE)


@pytest.mark.parametrize('tau', [0, -0.5, float('nan')])
def test_impossible_temperatures(tau):
    with pytest.raises(ValueError, match='tau > 0'):
        NodeLatent([CHARGED]).sample(torch.randn(7, 4), tau, edge_index=SPARSE)


def test_prior_is_that_of_values():
    with pytest.raises(ValueError, match=r'lengths \[3\]'):
        NodeLatent([[0, 1, 2]], prior=[[0.25] * 4])


def test_repr():
    assert str(NodeLatent(((0, 1), ), drop_null=True)) == (
        'NodeLatent([[0, 1]], drop_null=True, prior=[[0.5, 0.5]])')


def test_moves_and_copies_with_a_model():
    latent = NodeLatent([SIGN])
    assert not latent.state_dict()  # Nothing that a checkpoint has to hold.
    assert latent.to('meta')._table0.device.type == 'meta'
