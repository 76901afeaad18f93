import copy
import math
import pickle

import dense
import numpy as np
import pytest
import torch

from pyg_fnri.data import adjacency_to_edge_label, fully_connected
from pyg_fnri.nn import (
    FNRI,
    NRI,
    SFNRI,
    ForceLaw,
    ForceLawDecoder,
    MinMaxScaling,
    MultiplexConv,
    RolloutDecoder,
    StandardScaling,
    per_mass,
)
from pyg_fnri.nn.force_law import reflect
from pyg_fnri.simulation import Charge, Spring, simulate

FORCES = [Spring(), Charge()]


@pytest.fixture
def true_law():
    """Springs and charges, by a table fine enough to be exact to 1e-5."""
    law = ForceLaw(2, num_knots=200).double()
    law.value.data.copy_(
        torch.stack([force.magnitude(law.knots) for force in FORCES]))
    return law


def make_layer(law, num_dims=2, **kwargs):
    """A layer in units that are not the physical ones."""
    scaling = MinMaxScaling(2 * num_dims).double()
    scaling.offset.copy_(torch.tensor([0.3, -0.1]).repeat_interleave(num_dims))
    scaling.scale.copy_(torch.tensor([4.0, 0.5]).repeat_interleave(num_dims))
    return ForceLawDecoder(law, scaling, **kwargs)


def step(layer, x, edge_index, edge_attr):
    """States one interval later, all in physical units."""
    scaled = layer.scaling(x)
    return layer.scaling.inverse(scaled + layer(scaled, edge_index, edge_attr))


def plain_step(layer, x, z):
    """The same for `[N, 2D]` and a dense graph `[N, N, C]`, by loops."""
    position, velocity = x.chunk(2, dim=-1)

    def acceleration():
        out = torch.zeros_like(position)
        for i in range(len(x)):
            for j in range(len(x)):
                if i != j:
                    offset = position[i] - position[j]
                    law = layer.law(offset.norm())
                    out[i] += (z[i, j] @ law) * offset / offset.norm()
        return out

    h = layer.interval / layer.num_substeps
    for _ in range(layer.num_substeps):
        half = velocity + h / 2 * acceleration()
        position = position + h * half
        velocity = half + h / 2 * acceleration()
    return torch.cat([position, velocity], -1)


def random_states(*size, num_dims=2):
    return torch.randn(*size, 2 * num_dims).double() / 2


def symmetric(z, edge_index):
    """A random graph with both directions of each pair alike."""
    z = dense.to_dense(z, edge_index, int(edge_index.max()) + 1)
    return dense.of_edges((z + z.transpose(0, 1)) / 2, edge_index)


@pytest.fixture
def graph():
    edge_index = fully_connected(5)
    return edge_index, symmetric(torch.rand(20, 2).double(), edge_index)


def simulated(num_systems=10, **kwargs):
    """Frames `[S, N, T, 4]`, and graphs `[S, E, 2]`, of a simulation whose
    own step is too short to matter."""
    # Always 64, for which the simulation is compiled but once.
    run = simulate(FORCES, 64, step_size=1e-4, sample_every=1_000,
                   num_steps=20_000, **kwargs)
    x = np.concatenate([run.position, run.velocity], -1)[:num_systems]
    z = [
        adjacency_to_edge_label(graphs, fully_connected(5))
        for graphs in run.interactions[:num_systems]
    ]
    return torch.from_numpy(x).double(), torch.stack(z).double()


def errors(layer, x, z):
    """Absolute errors of one step from each frame, `[S, N, T - 1, 4]`."""
    edges = fully_connected(5)
    return torch.stack([
        (step(layer, frames[:, :-1], edges, graph) - frames[:, 1:]).abs()
        for frames, graph in zip(x, z)
    ])


def nearest(x):
    """Distance of each particle to the nearest, from either frame of each two,
    `[S, N, T - 1]`."""
    position = x[..., :2].transpose(1, 2)  # [S, T, N, 2]
    distance = torch.cdist(position, position) + 99 * torch.eye(5)
    nearest = distance.min(-1).values.transpose(1, 2)
    return torch.minimum(nearest[..., 1:], nearest[..., :-1])


def test_true_laws_step_as_the_simulation(true_law):
    x, z = simulated(box_half_width=None)
    layer = make_layer(true_law, num_substeps=8)
    error = errors(layer, x, z)
    calm = nearest(x) > 0.3  # Closer, the charges need shorter steps.
    assert calm.double().mean() > 0.8
    assert error[calm][:, :2].max() < 5e-5  # m
    assert error[calm][:, 2:].max() < 2e-4  # m/s
    # That is a small part of what the forces do.
    free = make_layer(ForceLaw(2).double(), num_substeps=8)
    change = errors(free, x, z)[calm]
    assert error[calm][:, :2].mean() < 2e-3 * change[:, :2].mean()
    assert error[calm][:, 2:].mean() < 2e-3 * change[:, 2:].mean()


def test_reflects_as_the_simulation(true_law):
    x, z = simulated(num_systems=20, box_half_width=1.0, position_std=0.3)
    # Several bounces; an interval without walls would end outside.
    free = step(make_layer(ForceLaw(2).double()), x.flatten(0, 1),
                torch.empty(2, 0).long(),
                torch.empty(0, 2).double()).unflatten(0, (20, 5))
    outside = (free[:, :, :-1, :2].abs() > 1).any(-1) & (nearest(x) > 0.3)
    assert outside.sum() > 30
    walls = errors(make_layer(true_law, num_substeps=8, half_width=1.0), x, z)
    assert walls[outside].max() < 0.02
    assert walls[outside].median() < 1e-4
    none = errors(make_layer(true_law, num_substeps=8), x, z)
    assert none[outside].max(-1).values.min() > 0.1


def test_free_particle_bounces_off_each_wall():
    layer = make_layer(ForceLaw(2).double(), half_width=2.0)
    x = torch.tensor([[1.95, 0.0, 1.0, 0.3], [-1.95, 1.99, -1.0, 0.5],
                      [0.5, -1.98, 0.0, -1.0], [1.95, 0.0, 0.2, 0.0]]).double()
    out = step(layer, x, torch.empty(2, 0).long(), torch.empty(0, 2).double())
    expected = torch.tensor([[1.95, 0.03, -1.0, 0.3], [-1.95, 1.96, 1.0, -0.5],
                             [0.5, -1.92, 0.0, 1.0], [1.97, 0.0, 0.2,
                                                      0.0]]).double()
    torch.testing.assert_close(out, expected)


def test_reflection_never_turns_a_particle_outwards():
    position = torch.tensor([[2.25, -2.5], [1.5, 2.5], [-2.25, 0.0]])
    velocity = torch.tensor([[1.0, -3.0], [-2.0, -1.0], [0.5, -1.0]])
    position, velocity = reflect(position, velocity, 2.0)
    assert position.tolist() == [[1.75, -1.5], [1.5, 1.5], [-1.75, 0.0]]
    assert velocity.tolist() == [[-1.0, 3.0], [-2.0, -1.0], [0.5, -1.0]]


def test_converges_at_second_order(true_law, graph):
    x = random_states(5, 8)
    x[..., :2] *= 3  # No close encounters, where the order shows later.
    exact = step(make_layer(true_law, num_substeps=200), x, *graph)
    error = [(step(make_layer(true_law, num_substeps=n), x, *graph) -
              exact).norm().item() for n in (4, 8, 16)]
    for coarse, fine in zip(error, error[1:]):
        assert coarse / fine == pytest.approx(4, rel=0.1)


def test_equals_newtons_equations_as_loops(true_law):
    edge_index = fully_connected(5)
    z = torch.rand(20, 2).double()  # Even where action is not reaction.
    for num_dims in (1, 2, 3):
        layer = make_layer(true_law, num_dims, num_substeps=3, interval=0.05)
        x = random_states(5, num_dims=num_dims)
        expected = plain_step(layer, x, dense.to_dense(z, edge_index, 5))
        torch.testing.assert_close(step(layer, x, edge_index, z), expected)


def test_any_candidate_graph(true_law):
    layer = make_layer(true_law)
    full = fully_connected(6)
    kept = torch.randperm(30)[:11]  # In no order, some without a reverse.
    z = torch.rand(11, 2).double()
    x = random_states(6)
    dense_z = dense.to_dense(z, full[:, kept], 6)
    out = step(layer, x, full[:, kept], z)
    torch.testing.assert_close(out, plain_step(layer, x, dense_z))
    # Missing edges are edges that carry nothing.
    everywhere = dense.of_edges(dense_z, full)
    torch.testing.assert_close(out, step(layer, x, full, everywhere))


def test_without_interactions_particles_move_on(true_law):
    layer = make_layer(true_law, interval=0.5)
    x = random_states(5)
    edges = fully_connected(5)
    drift = torch.cat([x[:, :2] + 0.5 * x[:, 2:], x[:, 2:]], -1)
    none = torch.zeros(20, 2).double()
    torch.testing.assert_close(step(layer, x, edges, none), drift)
    torch.testing.assert_close(step(layer, x, edges[:, :0], none[:0]), drift)


def test_momentum_is_conserved(true_law, graph):
    x = random_states(5, 7)
    out = step(make_layer(true_law), x, *graph)
    assert (out - x)[..., 2:].abs().max() > 0.01
    torch.testing.assert_close(out[..., 2:].sum(0), x[..., 2:].sum(0),
                               atol=1e-12, rtol=0)
    centre = x[..., :2].mean(0) + 0.1 * x[..., 2:].mean(0)
    torch.testing.assert_close(out[..., :2].mean(0), centre, atol=1e-12, rtol=0)


def test_energy_is_conserved(true_law, graph):
    edge_index, z = graph
    layer = make_layer(true_law, num_substeps=4)
    x = torch.cat([2 * random_states(5)[:, :2], random_states(5)[:, :2]], -1)
    path = [x]
    for _ in range(50):
        path.append(step(layer, path[-1], edge_index, z))
    path = torch.stack(path)  # [51, 5, 4]
    sender, receiver = edge_index
    distance = (path[:, sender, :2] - path[:, receiver, :2]).norm(dim=-1)
    potential = z[:, 0] * 0.05 * distance**2 + z[:, 1] * 0.2 / distance
    kinetic = path[..., 2:].square().sum((1, 2)) / 2
    energy = kinetic + potential.sum(-1) / 2  # Each pair is two edges.
    assert kinetic.std() > 0.1
    drift = (energy - energy[0]).abs().max()
    assert drift < 5e-3 * kinetic.std()


def test_numbering_of_particles_and_edges_does_not_matter(true_law, graph):
    edge_index, z = graph
    layer, x = make_layer(true_law), random_states(5, 3)
    node, edge = torch.randperm(5), torch.randperm(20)
    place = node.argsort()
    out = step(layer, x[node], place[edge_index[:, edge]], z[edge])
    torch.testing.assert_close(out, step(layer, x, edge_index, z)[node])


@pytest.mark.parametrize('num_dims', [2, 3])
def test_directions_in_space_do_not_matter(true_law, graph, num_dims):
    layer, x = make_layer(true_law,
                          num_dims), random_states(5, 4, num_dims=num_dims)
    turn, _ = torch.linalg.qr(torch.randn(num_dims, num_dims).double())
    shift = torch.cat([torch.randn(num_dims), torch.zeros(num_dims)]).double()

    def move(x):
        return (x.unflatten(-1, (2, -1)) @ turn.t()).flatten(-2) + shift

    torch.testing.assert_close(step(layer, move(x), *graph),
                               move(step(layer, x, *graph)))


def test_frames_side_by_side_equal_one_by_one(true_law, graph):
    layer, x = make_layer(true_law, half_width=0.8), random_states(5, 6)
    out = layer(x, *graph)
    assert out.shape == x.shape
    for t in range(6):
        torch.testing.assert_close(out[:, t], layer(x[:, t], *graph))


def test_two_masses_circle_in_space():
    # A spring without a rest length: any distance, one angular velocity.
    law = ForceLaw(1, num_knots=200).double()
    law.value.data.copy_(-0.5 * law.knots)
    layer = make_layer(law, num_dims=3, num_substeps=20)
    mass = torch.tensor([0.5, 2.0]).double()
    turn, _ = torch.linalg.qr(torch.randn(3, 3).double())
    omega = (0.5 / mass).sum().sqrt()
    angle = omega * 0.1 * torch.arange(9).double()
    zero = torch.zeros_like(angle)
    way = torch.stack([angle.cos(), angle.sin(), zero], -1) @ turn.t()
    along = torch.stack([-angle.sin(), angle.cos(), zero], -1) @ turn.t()
    # On either side of the common centre, the lighter one further away.
    radius = torch.tensor([1.0, -1.0]).double() / mass
    x = radius.view(2, 1, 1) * torch.cat([way, omega * along], -1)
    edges = fully_connected(2)
    weight = (1 / mass[edges[1]]).unsqueeze(-1)
    scaled = layer.scaling(x)
    out = RolloutDecoder(layer)(scaled, edges, weight, pred_steps=8)
    torch.testing.assert_close(layer.scaling.inverse(out), x[:, 1:], atol=2e-5,
                               rtol=0)
    # Of one mass they would not.
    out = RolloutDecoder(layer)(scaled, edges, torch.ones_like(weight), 8)
    assert (layer.scaling.inverse(out) - x[:, 1:]).abs().max() > 0.1


def test_momentum_is_conserved_of_any_masses(true_law, graph, make_system):
    edge_index, z = graph
    data = make_system()
    data.mass = 0.5 + torch.rand(5)
    layer, x = make_layer(true_law), random_states(5, 7)
    out = step(layer, x, edge_index, per_mass(z, data))
    change = data.mass.view(-1, 1, 1) * (out - x)[..., 2:]
    assert change.abs().max() > 0.01
    torch.testing.assert_close(change.sum(0),
                               torch.zeros(7, 2).double(), atol=1e-7, rtol=0)


@pytest.mark.parametrize('unit', [1e-8, 1e-3, 1e5])
def test_unit_of_lengths_does_not_matter(true_law, graph, unit):
    x = random_states(5, 7)
    x[1, :, :2] = x[0, :, :2] + 1e-4  # Less than the table's least.
    expected = step(make_layer(true_law), x, *graph)
    layer = make_layer(copy.deepcopy(true_law))
    layer.law.rescale(unit)
    layer.law.value.data *= unit
    layer.scaling.offset *= unit
    layer.scaling.scale *= unit
    out = step(layer, unit * x, *graph) / unit
    torch.testing.assert_close(out, expected)


def test_gradients_of_particles_at_one_place(true_law, graph):
    x = random_states(5, 7)
    x[1] = x[0]
    x.requires_grad_()
    out = step(make_layer(true_law.float().double()), x, *graph)
    out.square().sum().backward()
    assert x.grad.isfinite().all() and out.isfinite().all()


def test_rollout_repeats_the_step(true_law, graph):
    decoder = RolloutDecoder(make_layer(true_law))
    x = random_states(5, 7)
    expected = dense.rollout(lambda state: decoder.step(state, *graph), x, 3)
    torch.testing.assert_close(decoder(x, *graph, pred_steps=3), expected)


@pytest.mark.parametrize('model_class, num_laws', [(NRI, 3), (FNRI, 2),
                                                   (SFNRI, 2)])
def test_takes_the_place_of_multiplex_conv(model_class, num_laws, make_system):
    kwargs = {} if model_class is SFNRI else {'drop_null': True}
    model = model_class(4, 6, [2, 2], hidden_channels=8, **kwargs)
    scaling = model.scaling.fit(torch.randn(50, 3, 4))
    assert isinstance(model.decoder.layer, MultiplexConv)
    layer = ForceLawDecoder(ForceLaw(num_laws), scaling)
    torch.nn.init.normal_(layer.law.value)
    model.decoder = RolloutDecoder(layer)
    data = make_system()
    logits, path = model(data.x, data.edge_index, pred_steps=2)
    assert path.shape == (5, 5, 4) and path.isfinite().all()
    path.square().sum().backward()
    assert layer.law.value.grad.abs().sum(-1).min() > 0
    assert model.encoder.lin.weight.grad.abs().max() > 0
    assert model.predict_trajectory(data, 3).shape == (5, 3, 4)


def test_gradients_to_states_graph_and_laws():
    edge_index, z = fully_connected(3), torch.rand(6, 2).double()
    layer = make_layer(ForceLaw(2, num_knots=8).double())
    x = random_states(3, 2).requires_grad_()
    value = torch.randn(2, 8).double().requires_grad_()

    def function(x, z, value):
        return torch.func.functional_call(layer, {'law.value': value},
                                          (x, edge_index, z))

    assert torch.autograd.gradcheck(function, (x, z.requires_grad_(), value))


def test_particles_on_one_spot_do_not_break_it(true_law):
    x = torch.zeros(2, 4, dtype=torch.double).requires_grad_()
    out = step(make_layer(true_law), x, fully_connected(2),
               torch.ones(2, 2).double())
    assert torch.equal(out, torch.zeros(2, 4).double())
    gradient, = torch.autograd.grad(out.sum(), x)
    assert gradient.isfinite().all()


def test_compiles_to_one_graph(true_law, graph, assert_one_graph):
    decoder = RolloutDecoder(make_layer(true_law, half_width=0.8))
    assert_one_graph(decoder.step, random_states(5, 3), *graph)


def test_copies_and_pickles(true_law, graph):
    layer, x = make_layer(true_law), random_states(5, 3)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x, *graph), layer(x, *graph))


def test_reset_parameters_sets_the_laws_to_zero(true_law):
    decoder = RolloutDecoder(make_layer(true_law))
    decoder.reset_parameters()
    assert not true_law.value.any()


def test_shows_its_arguments():
    layer = ForceLawDecoder(ForceLaw(2), StandardScaling(4), 0.2, 3, 5.0)
    assert repr(layer) == (f'ForceLawDecoder({ForceLaw(2)}, interval=0.2, '
                           f'num_substeps=3, half_width=5.0)')


@pytest.mark.parametrize('size', [(5, 3), (5, ), (5, 2, 2, 4), (5, 6)])
def test_states_of_another_shape(true_law, graph, size):
    with pytest.raises(ValueError, match=r'states .* \[num_nodes, 4\] or'):
        make_layer(true_law)(torch.randn(size).double(), *graph)


@pytest.mark.parametrize('size', [(20, 1), (20, 3), (1, 2), (19, 2), (20, ),
                                  (20, 2, 1)])
def test_graphs_of_another_shape(true_law, graph, size):
    with pytest.raises(ValueError, match=r'\[num_edges, 2\].* for 20 edges'):
        make_layer(true_law)(random_states(5), graph[0],
                             torch.ones(size).double())


@pytest.mark.parametrize('arguments, message', [
    (dict(scaling=StandardScaling(5)), 'as many velocities, .* have 5'),
    (dict(interval=0.0), 'positive interval .* got 0.0'),
    (dict(interval=math.nan), 'positive interval .* got nan'),
    (dict(interval=math.inf), 'positive interval .* got inf'),
    (dict(num_substeps=0), 'one substep, but got 0.1 and 0'),
    (dict(half_width=0.0), 'positive half_width, but got 0.0'),
    (dict(half_width=-5.0), 'positive half_width, but got -5.0'),
    (dict(half_width=math.nan), 'positive half_width, but got nan'),
])
def test_arguments_out_of_range(arguments, message):
    arguments = {'scaling': StandardScaling(4), **arguments}
    with pytest.raises(ValueError, match=message):
        ForceLawDecoder(ForceLaw(2), **arguments)
