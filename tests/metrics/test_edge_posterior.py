import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.metrics import Relabelling, join_posteriors, make_posterior
from pyg_fnri.nn.latent import reverse_edges


def random_part(num_particles, sizes=(2, 3)):
    edge_index = fully_connected(num_particles)
    posterior = [
        torch.randn(edge_index.size(1), size).softmax(-1) for size in sizes
    ]
    edge_type = torch.stack([q.argmax(-1) for q in posterior], dim=-1)
    return edge_type, posterior, edge_index


def test_confidence_is_that_of_the_predicted_types():
    edge_type, posterior, edge_index = random_part(4)
    part = make_posterior(edge_type, posterior, edge_index)
    for layer, q in enumerate(posterior):
        assert part.layer_confidence[:, layer].equal(q.max(-1).values)
    expected = posterior[0].max(-1).values * posterior[1].max(-1).values
    assert part.confidence.equal(expected)
    other = 1 - edge_type[:, :1]
    part = make_posterior(torch.cat([other, edge_type[:, 1:]], -1), posterior,
                          edge_index)
    assert part.layer_confidence[:, 0].equal(posterior[0].min(-1).values)


def test_joined_batches_equal_all_at_once():
    parts = [random_part(n) for n in (3, 5, 2)]
    joined = join_posteriors([make_posterior(*part) for part in parts])
    shift = torch.tensor([0, 3, 8])
    edge_index = torch.cat([p[2] + s for p, s in zip(parts, shift)], dim=1)
    assert joined.reverse.equal(reverse_edges(edge_index))
    whole = make_posterior(torch.cat([
        p[0] for p in parts
    ]), [torch.cat([p[1][layer] for p in parts]) for layer in range(2)],
                           edge_index)
    for ours, theirs in zip(joined, whole):
        if isinstance(ours, tuple):
            assert all(a.equal(b) for a, b in zip(ours, theirs))
        else:
            assert ours.equal(theirs)


def test_relabelled_predictions_keep_their_combined_confidence():
    edge_type, posterior, edge_index = random_part(5, sizes=(4, ))
    part = make_posterior(edge_type, posterior, edge_index)
    relabelling = Relabelling((4, ), ((1, 0), (0, 0), (1, 1), (0, 1)))
    new = part.relabelled(relabelling)
    assert new.edge_type.equal(relabelling(edge_type))
    assert new.confidence.equal(part.confidence)
    # The probability of one type is at least that of the combination.
    assert (new.layer_confidence >= part.confidence.unsqueeze(-1) - 1e-6).all()
    assert new.layers[0][:, 0].allclose(posterior[0][:, 1] + posterior[0][:, 3])


def test_what_does_not_fit_is_refused():
    edge_type, posterior, edge_index = random_part(3)
    with pytest.raises(ValueError, match='type 2 in layer 0'):
        make_posterior(edge_type + 2, posterior, edge_index)
    with pytest.raises(ValueError, match='not logits'):
        make_posterior(edge_type, [5 * q for q in posterior], edge_index)
    with pytest.raises(ValueError, match='equally many'):
        make_posterior(edge_type, posterior, edge_index[:, 1:])
    with pytest.raises(ValueError, match='no batches'):
        join_posteriors([])
