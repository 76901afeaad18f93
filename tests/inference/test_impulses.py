import math

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.inference import impulses
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.nn import ForceLaw, ForceLawDecoder, StandardScaling

INTERVAL = 0.1
SCALE = torch.tensor([1e-3, 1e-3, 0.02, 0.02])


def law(distance):
    """A spring and a charge at once, in m/s^2."""
    return 0.2 / distance**2 - 0.1 * distance


def fly_by(num_frames=6, num_fine=100):
    """Two particles that pass each other at 0.35 m: frames, and the
    impulse and the shift of the first one in each interval, by small steps."""
    position = torch.tensor([[-0.6, 0.2], [0.5, -0.2]]).double()
    velocity = torch.tensor([[1.5, 0.1], [-1.0, 0.3]]).double()
    h = INTERVAL / num_fine

    def force():
        offset = position[0] - position[1]
        return law(offset.norm()) * offset / offset.norm()

    frames, effects = [torch.cat([position, velocity], -1)], []
    for _ in range(num_frames - 1):
        impulse, shift = torch.zeros(2).double(), torch.zeros(2).double()
        for k in range(num_fine):
            f = force()
            velocity = velocity + h / 2 * torch.stack([f, -f])
            position = position + h * velocity
            g = force()
            velocity = velocity + h / 2 * torch.stack([g, -g])
            impulse += h * (f + g) / 2
            shift += h * ((num_fine - k) * f + (num_fine - k - 1) * g) / 2 * h
        frames.append(torch.cat([position, velocity], -1))
        effects.append(torch.cat([shift, impulse]))
    return torch.stack(frames, 1), torch.stack(effects)


def make_flights(x, edge_index, undirected=True, **kwargs):
    return Transitions([x], find_choices(edge_index, undirected), INTERVAL,
                       **kwargs)


def direction_of(transitions):
    """Of receivers from senders: what a unit impulse goes along."""
    impulse = transitions.unit_effect.chunk(2, -1)[1]
    return impulse / transitions.weight[1].unsqueeze(-1)


def make_layer(num_channels=3):
    layer = ForceLawDecoder(ForceLaw(num_channels), StandardScaling(4))
    torch.nn.init.normal_(layer.law.value, std=0.3)
    layer.scale.copy_(SCALE)
    return layer


def test_impulse_and_shift_are_those_along_the_path():
    x, effects = fly_by()
    transitions = make_flights(x, fully_connected(2))
    first = transitions.choices.receiver == 0
    sign = torch.where(first, 1.0, -1.0).double().view(1, 1, 1)
    out = sign * transitions.integrate(law(transitions.distance))
    assert out.shape == (1, 5, 4)
    # The cubic costs less than a thousandth, and the quadrature is no worse.
    size = effects.abs().max(0).values
    assert ((out[0] - effects).abs() < 1e-3 * size).all()
    assert size[:2].max() > 0.005 and size[2:].max() > 0.1
    # They are all that happens to the two particles.
    total = transitions.sum_at_particles(sign * out)
    assert ((transitions.change - total).abs() < 1e-3 * size).all()


def test_a_constant_force_is_integrated_exactly():
    # Particles at rest keep the direction of the force, too.
    position = torch.randn(3, 1, 2).double().expand(3, 4, 2)
    x = torch.cat([position, torch.zeros_like(position)], -1)
    edges = fully_connected(3)
    transitions = make_flights(x, edges, undirected=False)
    out = transitions.integrate(torch.full_like(transitions.distance, 2.0))
    sender, receiver = edges[:, transitions.choices.edge]
    offset = position[receiver, :3] - position[sender, :3]
    force = 2.0 * offset / offset.norm(dim=-1, keepdim=True)
    expected = torch.cat([force * INTERVAL**2 / 2, force * INTERVAL], -1)
    torch.testing.assert_close(out, expected)


def test_distances_and_directions_are_those_of_receivers_from_senders():
    x = torch.randn(4, 6, 6)  # In three dimensions.
    x[..., 3:] = 0  # At rest in all frames.
    x[:, 1:, :3] = x[:, :1, :3]
    edges = fully_connected(4)
    transitions = make_flights(x, edges, undirected=False)
    sender, receiver = edges[:, transitions.choices.edge]
    offset = (x[receiver, 0, :3] - x[sender, 0, :3])[:, None, None]
    torch.testing.assert_close(transitions.distance,
                               offset.norm(dim=-1).expand(12, 5, 3))
    direction = offset / offset.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(direction_of(transitions),
                               direction.expand(12, 5, 3, 3))
    assert not transitions.change.any()


@pytest.mark.parametrize('unit', [1e-12, 1e9])
def test_directions_are_the_same_in_any_unit(unit):
    x = torch.randn(4, 6, 4)
    x[3] = x[2]  # At one place: in no direction.
    transitions, scaled = (make_flights(x * factor, fully_connected(4))
                           for factor in (1.0, unit))
    torch.testing.assert_close(direction_of(scaled), direction_of(transitions))
    length = direction_of(scaled).norm(dim=-1)
    assert ((length - 1).abs() < 1e-5).sum() == length.numel() * 5 / 6
    assert (scaled.distance > 0).all()


def test_free_particles_do_not_change():
    x = torch.randn(4, 6, 4)
    time = INTERVAL * torch.arange(6).view(1, -1, 1)
    x = torch.cat(
        [x[:, :1, :2] + time * x[:, :1, 2:], x[:, :1, 2:].expand(4, 6, 2)], -1)
    change = make_flights(x, fully_connected(4)).change
    torch.testing.assert_close(change, torch.zeros(4, 5, 4), atol=1e-6, rtol=0)


def test_nothing_flies_across_a_gap():
    x, y = torch.randn(3, 4, 4), torch.randn(3, 6, 4)
    choices = find_choices(fully_connected(3), True)
    both = Transitions([x, y], choices, INTERVAL)
    for name, dim in (('change', 1), ('valid', 1), ('distance', 1),
                      ('unit_effect', 1)):
        parts = [
            getattr(Transitions([part], choices, INTERVAL), name)
            for part in (x, y)
        ]
        assert torch.equal(getattr(both, name), torch.cat(parts, dim)), name


def test_what_may_have_met_a_wall_says_nothing():
    x = torch.zeros(2, 3, 4)
    x[0, 0] = torch.tensor([0.85, 0.0, 1.0, 0.0])  # To 0.95 in an interval,
    x[0, 1] = torch.tensor([0.95, 0.0, 1.0, 0.0])  # and then beyond.
    x[0, 2] = torch.tensor([0.95, 0.0, -1.0, 0.0])
    x[1, :, 1], x[1, 2, 3] = -0.5, 6.0  # The last could come from beyond.
    edges = fully_connected(2)
    assert make_flights(x, edges).valid.all()
    transitions = make_flights(x, edges, half_width=1.06)
    assert transitions.valid.tolist() == [[True, True], [True, False]]
    transitions = make_flights(x, edges, half_width=1.0)
    assert transitions.valid.tolist() == [[False, False], [True, False]]
    evidence = ImpulseEvidence(transitions, make_layer(1))
    channels = torch.ones(1, 1)
    assert torch.equal(evidence.errors(channels).any(-1), transitions.valid)
    at_receiver, at_sender = evidence.changed_errors(evidence.errors(channels),
                                                     channels,
                                                     torch.tensor([0]),
                                                     2 * channels)
    i, j = transitions.choices.receiver[0], transitions.choices.sender[0]
    assert torch.equal(at_receiver[0, 0].any(-1), transitions.valid[i])
    assert torch.equal(at_sender[0, 0].any(-1), transitions.valid[j])


def test_errors_are_what_the_graph_leaves_unexplained():
    x, edges = torch.randn(4, 5, 4), fully_connected(4)
    layer, transitions = make_layer(), make_flights(x, edges)
    channels = torch.rand(6, 3)
    errors = ImpulseEvidence(transitions, layer).errors(channels)
    expected = transitions.change.clone()
    force = layer.law(transitions.distance)
    for c in range(6):
        total = (channels[c].view(3, 1, 1) * force[:, c]).sum(0)
        effect = torch.stack([
            torch.einsum('tp,tpd,p->td', total,
                         direction_of(transitions)[c], weight)
            for weight in transitions.weight
        ], 1).flatten(1)
        expected[transitions.choices.receiver[c]] -= effect
        expected[transitions.choices.sender[c]] += effect
    torch.testing.assert_close(errors, expected / SCALE, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize('undirected', [True, False])
def test_changes_agree_with_errors_anew(some_graph, assert_changes_agree,
                                        undirected):
    x, edge_index = some_graph
    transitions = make_flights(x, edge_index, undirected, half_width=1.5)
    assert 0 < transitions.valid.double().mean() < 1
    evidence = ImpulseEvidence(transitions, make_layer())
    assert_changes_agree(evidence, transitions.choices, torch.rand(4, 3))


def test_masses_divide_what_happens_to_particles(some_graph):
    x, edge_index = some_graph
    mass = 0.5 + torch.rand(x.size(0))
    plain, heavy = (make_flights(x, edge_index, mass=m) for m in (None, mass))
    effect = torch.randn(plain.choices.edge.numel(), 3, 2)
    torch.testing.assert_close(
        heavy.sum_at_particles(effect),
        plain.sum_at_particles(effect) / mass.view(-1, 1, 1))
    # What is to be explained are changes of state still.
    assert torch.equal(heavy.change, plain.change)


@pytest.mark.parametrize('undirected', [True, False])
def test_changes_agree_with_errors_anew_whatever_the_masses(
        some_graph, assert_changes_agree, undirected):
    x, edge_index = some_graph
    transitions = make_flights(x, edge_index, undirected,
                               mass=0.5 + torch.rand(x.size(0)))
    evidence = ImpulseEvidence(transitions, make_layer())
    assert_changes_agree(evidence, transitions.choices, torch.rand(4, 3))


def test_true_graph_and_laws_leave_little(batch, make_model):
    model = make_model(batch.edge_label)
    transitions = make_flights(batch.x, batch.edge_index, half_width=5.0)
    evidence = ImpulseEvidence(transitions, model.decoder.layer)
    channels = batch.edge_label[transitions.choices.edge].float()
    error = evidence.errors(channels)[transitions.valid].abs()
    nothing = evidence.errors(0 * channels)[transitions.valid].abs()
    assert error.median() < 0.01 < 0.3 < nothing.median()
    assert error.quantile(0.9) < 0.1


@pytest.mark.parametrize('num_distances', [1, 100])
def test_laws_are_looked_up_in_parts(systems, monkeypatch, num_distances):
    batch = Batch.from_data_list(systems[:2])
    transitions = make_flights(batch.x, batch.edge_index)
    layer = make_layer()
    expected = transitions.integrate(layer.law(transitions.distance)) / SCALE
    monkeypatch.setattr(impulses, 'NUM_DISTANCES', num_distances)
    found = ImpulseEvidence(transitions, layer).effect
    assert torch.equal(found, expected.detach().transpose(0, 1))


def test_systems_side_by_side_equal_one_by_one(systems):
    layer = make_layer(2)
    batch = Batch.from_data_list(systems[:4])
    transitions = make_flights(batch.x, batch.edge_index)
    channels = torch.rand(40, 2)
    errors = ImpulseEvidence(transitions, layer).errors(channels)
    for i in range(4):
        own = make_flights(systems[i].x, systems[i].edge_index)
        part = ImpulseEvidence(own, layer).errors(channels[10 * i:10 * i + 10])
        torch.testing.assert_close(errors[5 * i:5 * i + 5], part, atol=1e-4,
                                   rtol=1e-4)


@pytest.mark.parametrize(
    'sizes', [[(3, 4)], [(3, 1, 4)], [(3, 4, 4),
                                      (2, 4, 4)], [(3, 4, 4), (3, 4, 6)], []])
def test_trajectories_that_do_not_fit(sizes):
    choices = find_choices(fully_connected(3), True)
    with pytest.raises(ValueError, match='trajectories of the same particles'):
        Transitions([torch.randn(size) for size in sizes], choices, INTERVAL)


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_numbers_that_are_not_finite(value):
    x = torch.randn(3, 4, 4)
    x[1, 2, 3] = value
    with pytest.raises(ValueError, match='finite trajectories'):
        make_flights(x, fully_connected(3))
