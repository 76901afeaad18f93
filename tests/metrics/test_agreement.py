import pytest
import torch

from pyg_fnri.metrics import Agreement, EdgeAccuracy, agreement


def random_types(num_edges, sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.stack(
        [torch.randint(k, (num_edges, ), generator=generator) for k in sizes],
        dim=-1)


def every_combination(*sizes):
    return torch.cartesian_prod(*map(torch.arange, sizes))


def test_other_names_for_the_same_graph_agree_wholly():
    types = random_types(200, [2, 3, 2], seed=0)
    code = torch.tensor([2, 0, 1])
    other = torch.stack([types[:, 2], code[types[:, 1]], 1 - types[:, 0]], -1)
    found = agreement(types, other, [2, 3, 2])
    assert found.share == found.adjusted == 1
    assert 1 / 12 < found.chance < 0.15


def test_share_and_chance_by_hand():
    #        a: 0 0 0 0 0 0 1 1 1 1,  b, with other names, differs twice.
    a = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 1, 1]).view(-1, 1)
    b = torch.tensor([1, 1, 1, 1, 1, 0, 0, 0, 0, 1]).view(-1, 1)
    # Independent: 0.6 * 0.6 + 0.4 * 0.4, as b has six of one type, too.
    share, chance, adjusted = agreement(a, b, [2])
    assert (share, chance) == (0.8, 0.52)
    assert adjusted == pytest.approx(0.28 / 0.48)
    assert agreement(b, a, [2]) == agreement(a, b, [2])


def test_graphs_that_have_nothing_in_common_agree_by_chance():
    # Every pair of combinations equally often: independent exactly.
    both = every_combination(2, 2, 2, 2)
    assert agreement(both[:, :2], both[:, 2:], [2, 2]) == (0.25, 0.25, 0)
    # Uneven shares: 3 of 4 are of type 0 in both.
    both = torch.tensor([0, 0, 0, 1])[every_combination(4, 4)]
    found = agreement(both[:, :1], both[:, 1:], [2])
    assert found == (0.625, 0.625, 0)
    # Random ones nearly so.
    types = [random_types(20_000, [2, 2], seed) for seed in (1, 2)]
    found = agreement(*types, [2, 2])
    assert found.share == pytest.approx(0.25, abs=0.02)
    assert abs(found.adjusted) < 0.02


def test_one_type_everywhere_says_nothing():
    same = torch.zeros(50, 2, dtype=torch.long)
    assert agreement(same, same, [2, 2]) == Agreement(1., 1., None)
    # Against a graph that has both, sparse as they are: chance, no more.
    other = same.clone()
    other[:5, 0] = 1
    assert agreement(same, other, [2, 2]) == (0.9, 0.9, 0)


def test_share_is_the_strict_edge_accuracy():
    for sizes in ([2, 2], [3], [2, 3]):
        a = random_types(60, sizes, seed=3)
        b = torch.where(
            torch.arange(60).view(-1, 1) < 40, a,
            random_types(60, sizes, seed=4))
        metric = EdgeAccuracy(sizes)
        metric.update(a, b)
        assert agreement(a, b, sizes).share == metric.compute().combined


def test_what_cannot_be_compared_is_refused():
    types = random_types(8, [2, 2], seed=5)
    with pytest.raises(ValueError, match='no edges'):
        agreement(types[:0], types[:0], [2, 2])
    with pytest.raises(ValueError, match='types_a has 8 edges and types_b 7'):
        agreement(types, types[1:], [2, 2])
    with pytest.raises(ValueError, match='types_b holds the type 2'):
        agreement(types, types + 1, [2, 2])
    with pytest.raises(TypeError, match='must hold integer edge types'):
        agreement(types.float(), types, [2, 2])
    with pytest.raises(TypeError, match='as tensors, got list'):
        agreement(types.tolist(), types, [2, 2])
    with pytest.raises(ValueError, match='sizes must give'):
        agreement(types, types, [1, 2])
