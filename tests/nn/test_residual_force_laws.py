import copy
import pickle

import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import (
    FNRI,
    NRI,
    SFNRI,
    ForceLaw,
    ForceLawDecoder,
    ResidualForceLaws,
    RolloutDecoder,
    StandardScaling,
)


def make_law(num_channels=2):
    law = ForceLaw(num_channels)
    torch.nn.init.normal_(law.value)
    return law


def make_layer(num_dims=2, law=None, **kwargs):
    scaling = StandardScaling(2 * num_dims).fit(torch.randn(9, 9, 2 * num_dims))
    layer = ResidualForceLaws(law or make_law(), scaling, 8, **kwargs)
    layer.scale.fill_(0.02)
    return layer


def speak(layer):
    """As if the network had been trained."""
    torch.nn.init.normal_(layer.network.node_mlp[-1].weight)
    return layer


@pytest.mark.parametrize('size', [(5, 2 * 2), (5, 3, 2 * 2), (5, 3, 2 * 3)])
def test_starts_as_the_laws_exactly(size):
    layer = make_layer(size[-1] // 2, num_substeps=3, half_width=0.8)
    plain = ForceLawDecoder(layer.law, layer.scaling, num_substeps=3,
                            half_width=0.8)
    graph, x = (fully_connected(5), torch.rand(20, 2)), torch.randn(size)
    assert torch.equal(layer(x, *graph), plain(x, *graph))
    assert not torch.equal(speak(layer)(x, *graph), plain(x, *graph))


def test_laws_that_are_given_are_kept():
    law = make_law()
    value = law.value.clone()
    layer = make_layer(law=law)
    assert torch.equal(layer.law.value, value)
    layer = speak(layer)
    layer.reset_parameters()
    assert not layer.law.value.any()
    assert not layer.network.node_mlp[-1].weight.any()
    assert layer.network.weight1.any()


def test_corrects_in_units_of_what_forces_do():
    layer = speak(make_layer())
    graph, x = (fully_connected(4), torch.rand(12, 2)), torch.randn(4, 5, 4)
    plain = ForceLawDecoder(layer.law, layer.scaling)
    correction = layer(x, *graph) - plain(x, *graph)
    expected = 0.02 * layer.network(x, *graph) / layer.scaling.scale
    torch.testing.assert_close(correction, expected, atol=1e-6, rtol=1e-5)
    layer.scale.mul_(3)
    torch.testing.assert_close(
        layer(x, *graph) - plain(x, *graph), 3 * expected, atol=1e-6, rtol=1e-5)


def test_gradients_reach_the_silent_network():
    layer = make_layer()
    x = torch.randn(5, 3, 4)
    layer(x, fully_connected(5), torch.rand(20, 2)).square().sum().backward()
    last = layer.network.node_mlp[-1]
    assert last.weight.grad.any() and last.bias.grad.any()
    assert layer.law.value.grad.any()


@pytest.mark.parametrize('model_class, num_laws', [(NRI, 3), (FNRI, 2),
                                                   (SFNRI, 2)])
def test_serves_every_latent_graph(model_class, num_laws, make_system):
    kwargs = {} if model_class is SFNRI else {'drop_null': True}
    model = model_class(4, 6, [2, 2], hidden_channels=8, **kwargs)
    layer = speak(ResidualForceLaws(make_law(num_laws), model.scaling, 8))
    model.decoder = RolloutDecoder(layer)
    data = make_system(num_particles=2)
    _, path = model(data.x, data.edge_index, pred_steps=2)
    assert path.shape == (2, 5, 4) and path.isfinite().all()
    assert model.predict_trajectory(data, 3).shape == (2, 3, 4)


def test_weights_come_from_the_seed():
    weights = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        weights.append(make_layer().network.weight1)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_copies_and_pickles():
    layer = speak(make_layer())
    x, graph = torch.randn(5, 3, 4), (fully_connected(5), torch.rand(20, 2))
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x, *graph), layer(x, *graph))


def test_shows_its_arguments():
    layer = ResidualForceLaws(ForceLaw(2), StandardScaling(4), 16, interval=0.2)
    assert repr(layer) == (f'ResidualForceLaws({ForceLaw(2)}, interval=0.2, '
                           f'num_substeps=2, half_width=None, '
                           f'hidden_channels=16)')


def test_shapes_that_do_not_fit():
    layer, edges = make_layer(), fully_connected(5)
    with pytest.raises(ValueError, match='Expected states of shape'):
        layer(torch.randn(5, 6), edges, torch.rand(20, 2))
    with pytest.raises(ValueError, match='Expected edge attributes of shape'):
        layer(torch.randn(5, 4), edges, torch.rand(1, 2))
