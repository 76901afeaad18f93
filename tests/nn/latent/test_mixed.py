import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import (
    CategoricalLatent,
    MixedLatent,
    NodeLatent,
    SigmoidLatent,
)

EDGES = fully_connected(4)


@pytest.fixture(params=[False, True], ids=['directed', 'undirected'])
def parts(request):
    undirected = request.param
    return [
        CategoricalLatent([2, 3], prior=[[0.6, 0.4], [0.1, 0.7, 0.2]],
                          undirected=undirected),
        NodeLatent([[0, 1], [0, 1, -1]], drop_null=True),
        SigmoidLatent([3], undirected=undirected),
    ]


@pytest.fixture
def latent(parts):
    return MixedLatent(parts)


def test_sizes(latent):
    assert latent.num_edge_types == [2, 3, 2, 3, 3]
    assert latent.num_logits == 5 + 10 + 2
    assert latent.num_channels == 5 + 3 + 2
    prior = [[0.6, 0.4], [0.1, 0.7, 0.2], [3 / 4, 1 / 4], [5 / 9, 2 / 9, 2 / 9],
             [1 / 3] * 3]
    for p, expected in zip(latent.edge_prior, prior, strict=True):
        assert p == pytest.approx(expected)


def test_is_undirected_if_all_parts_are(latent, parts):
    assert latent.undirected == parts[0].undirected
    tied = latent.tie(torch.randn(12, 17), EDGES)
    edges = EDGES.t().tolist()
    reverse = [edges.index([i, j]) for j, i in edges]
    symmetric = [torch.allclose(q, q[reverse]) for q in latent.posterior(tied)]
    # Outer products always are.
    assert symmetric == [latent.undirected] * 2 + [True] * 2 + [
        latent.undirected
    ]


def test_everything_is_the_parts_one_after_the_other(latent, parts):
    logits = torch.randn(12, 17)
    split = [
        part.tie(own, EDGES)
        for part, own in zip(parts, logits.split([5, 10, 2], -1))
    ]
    tied = latent.tie(logits, EDGES)
    assert torch.equal(tied, torch.cat(split, -1))
    edge_type = latent.predict(tied)
    types = edge_type.split([2, 2, 1], -1)
    generators = [torch.Generator().manual_seed(0) for _ in range(2)]
    for name, whole, single in [
        ('kl', latent.kl(tied, EDGES),
         [part.kl(own, EDGES) for part, own in zip(parts, split)]),
        ('predict', edge_type,
         [part.predict(own) for part, own in zip(parts, split)]),
        ('sample', latent.sample(tied, 0.7, True, generators[0], EDGES), [
            part.sample(own, 0.7, True, generators[1], EDGES)
            for part, own in zip(parts, split)
        ]),
        ('cross_entropy', latent.cross_entropy(tied, edge_type), [
            part.cross_entropy(own, t)
            for part, own, t in zip(parts, split, types)
        ]),
        ('encode_types', latent.encode_types(edge_type),
         [part.encode_types(t) for part, t in zip(parts, types)]),
        ('posterior', torch.cat(latent.posterior(tied), -1),
         [q for part, own in zip(parts, split) for q in part.posterior(own)]),
        ('channels', latent.channels(latent.posterior(tied)), [
            part.channels(part.posterior(own))
            for part, own in zip(parts, split)
        ]),
    ]:
        assert torch.equal(whole, torch.cat(single, -1)), name


def test_types_that_do_not_fit(latent):
    edge_type = torch.zeros(12, 5, dtype=torch.long)
    edge_type[0, 3] = 3
    with pytest.raises(ValueError, match='Layer-graph 3 has types 0 to 2'):
        latent.encode_types(edge_type)


def test_per_layer():
    latent = MixedLatent.per_layer([2, 2, 3], [1, 2], drop_null=True,
                                   prior=[[0.9, 0.1], [0.8, 0.2],
                                          [0.2, 0.4, 0.4]], undirected=True)
    assert latent.num_edge_types == [2, 2, 3]
    assert latent.num_logits == 2 + 4 + 6
    assert latent.num_channels == 4
    assert latent.undirected
    springs, charges, signs = latent.parts
    assert isinstance(springs, CategoricalLatent)
    assert springs.prior == [[0.9, 0.1]] and springs.drop_null
    assert charges.values == [[0, 1]] and charges.prior == [[0.8, 0.2]]
    assert signs.values == [[0, 1, -1]] and signs.drop_null
    assert not MixedLatent.per_layer([2, 2], [1]).undirected


@pytest.mark.parametrize('types, node_layers, error, message', [
    ([2, 2], [2], ValueError, r'from 0 to 1, but got \[2\]'),
    ([2, 2], [-1], ValueError, r'from 0 to 1, but got \[-1\]'),
    ([2, 2], [1, 1], ValueError, r'different .* but got \[1, 1\]'),
    ([2, 2], [], ValueError, r'but got \[\]'),
    ([2, 2], 1, TypeError, r'such as node_layers=\[1\], but got 1'),
    ([2, 2], 'charge', TypeError, "but got 'charge'"),
    ([2, 4], [1], ValueError, 'Layer-graph 1 of node_layers has 4 types'),
])
def test_layers_that_cannot_factor(types, node_layers, error, message):
    with pytest.raises(error, match=message):
        MixedLatent.per_layer(types, node_layers)


def test_no_parts():
    with pytest.raises(ValueError, match='but got none'):
        MixedLatent([])


def test_repr_names_all_parts(latent, parts):
    assert str(latent) == f'MixedLatent({parts})'
