import math

import pytest
import torch
from torch.distributions import Categorical
from torch.distributions import kl_divergence as torch_kl

from pyg_fnri.nn import CategoricalLatent

LATENTS = [
    CategoricalLatent([2, 2]),
    CategoricalLatent([2, 3, 4]),
    CategoricalLatent([4]),
    CategoricalLatent([2, 3], drop_null=True),
]
categoricals = pytest.mark.parametrize('latent', LATENTS, ids=repr)


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
    logits = 1e4 * torch.tensor([[-1.0, 1.0, 1.0, -1.0]])  # Types 1 and 0.
    expected = torch.tensor([[-math.log(0.1), math.log(2)]])
    torch.testing.assert_close(latent.kl(logits), expected)


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


@pytest.mark.parametrize('tau', [0, -0.5, float('nan')])
def test_impossible_temperatures(tau):
    with pytest.raises(ValueError, match='tau > 0'):
        CategoricalLatent([2]).sample(torch.randn(3, 2), tau)
