import math

import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.metrics import asymmetric_share, asymmetry, posterior_entropy
from pyg_fnri.nn.latent import reverse_edges


@pytest.mark.parametrize('size', [2, 3, 8])
def test_entropy_lies_between_none_and_the_maximum(size):
    uniform = torch.full((10, size), 1 / size)
    assert posterior_entropy(uniform).item() == pytest.approx(math.log(size))
    certain = torch.eye(size)
    assert posterior_entropy(certain) == 0
    q = torch.rand(50, size).softmax(-1)
    expected = -(q * q.log()).sum(-1).mean()
    assert posterior_entropy(q).item() == pytest.approx(expected.item())


def test_asymmetry_by_hand():
    # 0 -> 1, 1 -> 0, 0 -> 2, 2 -> 0, and 1 -> 2 without its reverse.
    edge_index = torch.tensor([[0, 1, 0, 2, 1], [1, 0, 2, 0, 2]])
    reverse = reverse_edges(edge_index)
    q = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7], [1., 0.]])
    assert asymmetric_share(q.argmax(-1), reverse).item() == 0.5
    assert asymmetry(q, reverse).item() == pytest.approx((0.5 + 0.1) / 2)


def test_both_directions_alike_are_symmetric():
    edge_index = fully_connected(5)
    reverse = reverse_edges(edge_index)
    logits = torch.randn(20, 3)
    q = (logits + logits[reverse]).softmax(-1)
    assert asymmetric_share(q.argmax(-1), reverse) == 0
    assert asymmetry(q, reverse).item() == pytest.approx(0, abs=1e-7)
    opposite = torch.eye(3)[(edge_index[0] > edge_index[1]).long()]
    assert asymmetric_share(opposite.argmax(-1), reverse) == 1
    assert asymmetry(opposite, reverse) == 1


def test_without_edges_or_pairs_there_are_no_figures():
    assert posterior_entropy(torch.empty(0, 2)).isnan()
    alone = torch.arange(3)  # Each edge without its reverse.
    assert asymmetric_share(torch.tensor([0, 1, 0]), alone).isnan()
    assert asymmetry(torch.rand(3, 2), alone).isnan()
