import torch

from pyg_fnri.nn import SigmoidLatent


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


def test_sigmoids_have_no_divergence():
    assert not SigmoidLatent([2, 3]).kl(torch.randn(7, 3)).any()


def test_sigmoids_are_not_drawn():
    latent = SigmoidLatent([2, 3])
    logits = torch.randn(20, 3)
    assert torch.equal(latent.sample(logits, 0.1), latent.sample(logits, 2.0))
    hard = latent.sample(logits, hard=True)
    assert torch.equal(hard, logits.sigmoid().round())


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
