import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from pyg_fnri.data import fully_connected
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.paths import GAP, rate_path
from pyg_fnri.nn import FNRI, EvenLaw, RolloutDecoder, StandardScaling
from pyg_fnri.nn.rate_law import rate_laws
from pyg_fnri.simulation import Kuramoto, LinearNetwork


def make_layer(num_features=4, num_channels=1, **kwargs):
    layer = rate_laws(num_channels, StandardScaling(num_features), **kwargs)
    for table in layer.tables():
        table.stretch(np.pi)
        table.value.data.copy_(-table.knots.sin().expand_as(table.value))
    return layer


@pytest.fixture(scope='module')
def oscillators():
    """Features, edges and true weights of a system."""
    system = Kuramoto()
    graph = system.draw_edge_types(0, 1, 5)
    edge_index = fully_connected(5)
    sender, receiver = edge_index
    weight = torch.from_numpy(graph[0, 0])[receiver, sender]
    x = torch.from_numpy(system.simulate(graph, 0)[0])
    return x, edge_index, weight.float().unsqueeze(-1)


def test_even_laws_are_straight_where_they_should_be():
    law = EvenLaw(1, 0.1, 2.0, 20)
    law.value.data.copy_(3 - 2 * law.knots)
    distance = torch.tensor([0.0, 0.05, 0.1, 0.77, 1.95, 2.0, 7.0])
    assert torch.allclose(law(distance)[0], 3 - 2 * distance, atol=1e-5)


@pytest.mark.parametrize('measured', [True, False])
def test_oscillators_turn_as_simulated(oscillators, measured):
    x, edge_index, weight = oscillators
    if not measured:
        x = x[..., [0, 1, 3]]
    layer = make_layer(x.size(-1), circle=True, measured=measured,
                       num_constants=1, terms=['drive'])
    layer.coefficients['drive'].data.fill_(1.0)
    out = x[:, :-1] + layer(x[:, :-1], edge_index, weight)
    assert torch.allclose(out, x[:, 1:], atol=2e-3)
    # Constants stay, to the bit.
    assert torch.equal(out[..., -1], x[:, 1:, -1])


@pytest.mark.parametrize('undirected', [True, False])
@pytest.mark.parametrize('terms', [['drive', 'even'], ['field', 'input'], []])
def test_evidence_agrees_with_the_layer(oscillators, terms, undirected):
    x, edge_index, weight = oscillators
    layer = make_layer(circle='even' in terms, measured=True, num_channels=2,
                       num_constants=1 if 'even' in terms else 2, terms=terms)
    torch.manual_seed(0)
    for value in [*layer.coefficients.values(), *layer.laws.values()]:
        value = getattr(value, 'value', value)
        value.data.normal_()
    choices = find_choices(edge_index, undirected)
    channels = torch.rand(len(choices.edge), 2)
    weight = torch.zeros(edge_index.size(1), 2)
    weight[choices.edge] = channels
    weight[choices.reverse] = channels
    path = rate_path(layer, [x, x[:, :7]])
    assert path.frame[-1] == GAP + 6
    rate = layer._force(*layer.split(x), edge_index, weight)
    change = torch.cat([rate, rate[:, :7]], dim=1)
    transitions = Transitions(path._replace(change=change), choices)
    evidence = ImpulseEvidence(transitions, layer)
    assert evidence.errors(channels).abs().max() < 1e-4 * change.abs().max()
    # So do changes of single choices.
    options = torch.tensor([[0.0, 0.0], [2.0, -1.0]])
    errors, members = evidence.errors(channels), choices.rounds[0]
    at_receiver, _ = evidence.changed_errors(errors, channels, members, options)
    channels[members] = options[1]
    anew = evidence.errors(channels)[choices.receiver[members]]
    assert torch.allclose(at_receiver[:, 1], anew, atol=1e-4)


def test_own_rates_explain_themselves(oscillators):
    x, edge_index, weight = oscillators
    layer = make_layer(2, circle=True, terms=['own-rate'])
    choices = find_choices(edge_index, True)
    path = rate_path(layer, [x[..., :2]])
    errors = ImpulseEvidence(Transitions(path, choices),
                             layer).errors(weight[choices.edge])
    # Frequencies are 1 to 10, of which nothing is left.
    assert errors.abs().median() < 1e-4 and errors.abs().max() < 0.01


def test_linear_networks_are_followed_without_rates():
    system = LinearNetwork()
    graph = system.draw_edge_types(0, 1, 6)
    x = torch.from_numpy(system.simulate(graph, 0)[0])
    edge_index = fully_connected(6)
    layer = make_layer(1, terms=['input', 'field'])
    layer.law.reset_parameters()
    knots = layer.laws['input'].knots
    layer.laws['input'].value.data.copy_(0.4 * knots.unsqueeze(0))
    layer.coefficients['field'].data.copy_(torch.tensor([0.0, -1.0, 0.0]))
    weight = torch.from_numpy(graph[0, 0])[edge_index[1], edge_index[0]]
    weight = weight.float().unsqueeze(-1)
    out = x[:, :-1] + layer(x[:, :-1], edge_index, weight)
    assert torch.allclose(out, x[:, 1:], atol=1e-5)
    transitions = Transitions(rate_path(layer, [x]),
                              find_choices(edge_index, False))
    errors = ImpulseEvidence(transitions, layer).errors(weight)
    assert errors.abs().max() < 1e-4


def test_rates_of_its_own_are_read_off_and_predicted():
    system = Kuramoto()
    graph = system.draw_edge_types(0, 1, 5)
    x = torch.from_numpy(system.simulate(graph, 0)[0])
    frequency, edge_index = x[:, 0, 3:], fully_connected(5)
    model = FNRI(2, 49, [2], 8, drop_null=True, scaling=StandardScaling(2))
    layer = rate_laws(1, model.scaling, circle=True, terms=['own-rate'])
    layer.law.stretch(np.pi)
    layer.law.value.data.copy_(-layer.law.knots.sin())
    model.decoder = RolloutDecoder(layer)
    data = Data(x[:, :49, :2], edge_index)
    label = torch.from_numpy(graph[0, 0])[edge_index[1], edge_index[0]]
    edge_attr = model.latent.encode_types(label.unsqueeze(1))
    own = model.seeing(data, edge_attr).decoder.layer.own
    torch.testing.assert_close(own, frequency, atol=0.02, rtol=0)
    out = model.predict_trajectory(data, 20, label.unsqueeze(1))
    assert (out - x[:, 49:69, :2]).abs().max() < 0.1
    assert layer.own is None  # Other systems have others.
