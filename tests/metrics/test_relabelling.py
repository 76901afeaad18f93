import itertools

import pytest
import torch

from pyg_fnri.metrics import Relabelling

TYPES = [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_relabelling_translates_types():
    relabelling = Relabelling((4, ), ((1, 0), (0, 0), (1, 1), (0, 1)))
    types = torch.tensor([[3], [0], [0], [2]])
    assert relabelling(types).tolist() == [[0, 1], [1, 0], [1, 0], [1, 1]]
    with pytest.raises(ValueError, match='type 4 in layer 0'):
        relabelling(types + 1)


def test_relabelling_reads_well():
    assert str(Relabelling((2, 2), tuple(TYPES))) == 'as predicted'
    swapped = tuple((1 - b, a) for a, b in TYPES)
    assert str(Relabelling(
        (2, 2),
        swapped)) == ('layer 0 <- predicted layer 1, type 0 -> 1, type 1 -> 0; '
                      'layer 1 <- predicted layer 0')
    assert str(Relabelling(
        (4, ),
        swapped)) == ('0 -> (1, 0), 1 -> (0, 0), 2 -> (1, 1), 3 -> (0, 1)')
    entangled = ((0, 1), (1, 0), (1, 1), (0, 0))
    assert str(Relabelling(
        (2, 2),
        entangled)) == ('(0, 0) -> (0, 1), (0, 1) -> (1, 0), (1, 0) -> (1, 1), '
                        '(1, 1) -> (0, 0)')


def test_joint_posterior_is_marginalised():
    relabelling = Relabelling((4, ), ((1, 0), (0, 0), (1, 1), (0, 1)))
    q = torch.tensor([[0.1, 0.2, 0.3, 0.4], [1., 0., 0., 0.]])
    first, second = relabelling.probabilities([q])
    torch.testing.assert_close(first, torch.tensor([[0.6, 0.4], [0., 1.]]))
    torch.testing.assert_close(second, torch.tensor([[0.3, 0.7], [1., 0.]]))


def test_layers_that_only_change_places_keep_their_probabilities():
    swapped = Relabelling((2, 2), tuple((1 - b, a) for a, b in TYPES))
    q = [torch.rand(6, 2).softmax(-1) for _ in range(2)]
    first, second = swapped.probabilities(q)
    torch.testing.assert_close(first, q[1].flip(-1))
    torch.testing.assert_close(second, q[0])


def test_entangled_layers_share_their_probabilities():
    exclusive = Relabelling((2, 2), tuple((a, a ^ b) for a, b in TYPES))
    q = [torch.tensor([[0.9, 0.1]]), torch.tensor([[0.3, 0.7]])]
    first, second = exclusive.probabilities(q)
    torch.testing.assert_close(first, q[0])
    torch.testing.assert_close(second, torch.tensor([[0.27 + 0.07,
                                                      0.63 + 0.03]]))


def test_certain_posteriors_are_relabelled_as_types():
    relabelling = Relabelling((2, 2), ((0, 1), (1, 0), (1, 1), (0, 0)))
    types = torch.tensor(TYPES)
    q = [torch.eye(2)[types[:, layer]] for layer in range(2)]
    probabilities = relabelling.probabilities(q)
    found = torch.stack([p.argmax(-1) for p in probabilities], dim=-1)
    assert found.equal(relabelling(types))
    assert all(p.sum(-1).equal(torch.ones(4)) for p in probabilities)


@pytest.mark.parametrize('posterior, error, message', [
    ([torch.rand(3, 2)], ValueError, 'of 1 layers, expected 2'),
    ([torch.rand(3, 2), torch.rand(3, 3)], ValueError, 'sum to 1'),
    ([torch.full((3, 2), .5), torch.full(
        (2, 2), .5)], ValueError, r'shape \[2, 2\], expected \[3, 2\]'),
    ([torch.full(
        (3, 2), .5), torch.full(
            (3, 2), torch.nan)], ValueError, 'layer 1 holds values'),
    ([torch.full((3, 2), .5),
      torch.tensor([[-1., 2.]] * 3)], ValueError, 'layer 1 holds values'),
    ([torch.ones(3, 2, dtype=torch.long)] * 2, TypeError, 'floating-point'),
])
def test_what_is_no_posterior_is_refused(posterior, error, message):
    with pytest.raises(error, match=message):
        Relabelling((2, 2), tuple(TYPES)).probabilities(posterior)


def test_each_force_has_the_channel_that_stands_for_it_alone():
    plain = Relabelling((2, 2), tuple(TYPES))
    assert plain.channels(2) == [0, 1]
    order = Relabelling((2, 2), tuple((b, a) for a, b in TYPES))
    assert order.channels(2) == [1, 0]
    flipped = Relabelling((2, 2), tuple((1 - a, b) for a, b in TYPES))
    assert flipped.channels(2) is None
    assert plain.channels(4) is None
    assert Relabelling((4, ), tuple(TYPES)).channels(1) is None


def test_each_type_of_a_layer_has_its_channel():
    # Layer 0 has three types, layer 1 two; and the other way round.
    plain = tuple(itertools.product(range(3), range(2)))
    assert Relabelling((3, 2), plain).channels(3) == [0, 1, 2]
    # Predicted: layer 0 of the two types, layer 1 of three, numbered 0, 2, 1.
    other = tuple((kind, layer) for layer in range(2) for kind in (0, 2, 1))
    assert Relabelling((2, 3), other).channels(3) == [2, 1, 0]
    # A channel that stands for two types at once.
    assert Relabelling((4, ), tuple(TYPES)).channels(3) is None
    # The null type of the prediction is no null type.
    assert Relabelling((3, ), ((1, ), (0, ), (2, ))).channels(2) is None
    # A true type without a channel.
    assert Relabelling((2, ), ((0, ), (2, ))).channels(1) is None
