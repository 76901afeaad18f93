import copy
import math
import pickle

import dense
import numpy as np
import pytest
import torch

from pyg_fnri.data import adjacency_to_edge_label, fully_connected
from pyg_fnri.nn import ForceLaw, ForceLawDecoder, MinMaxScaling, per_mass
from pyg_fnri.simulation import Charge, Spring, simulate


@pytest.fixture
def law():
    """Three laws of no particular shape."""
    law = ForceLaw(3).double()
    torch.nn.init.normal_(law.value)
    return law


def between(law, num_distances=1000):
    """Distances all over the table, its ends included."""
    return torch.logspace(math.log10(law.min_distance),
                          math.log10(law.max_distance), num_distances,
                          dtype=law.value.dtype)


@pytest.mark.parametrize('num_knots', [4, 26])
def test_parabolas_in_the_logarithm_are_exact_from_end_to_end(num_knots):
    law = ForceLaw(1, 0.1, 10.0, num_knots).double()

    def parabola(distance):
        u = distance.log()
        return 0.3 * u.square() - 0.2 * u + 0.1

    law.value.data[0] = parabola(law.knots)
    distance = between(law)
    torch.testing.assert_close(law(distance)[0], parabola(distance))
    torch.testing.assert_close(law(law.knots), law.value)


def test_is_smooth_at_each_knot_and_constant_beyond_the_ends(law):
    sides = []
    for side in (1 - 1e-11, 1 + 1e-11):
        distance = (side * law.knots[1:-1]).requires_grad_()
        value = law(distance)
        slope, = torch.autograd.grad(value.sum(), distance)
        sides.append((value, slope))
    torch.testing.assert_close(*sides, atol=1e-6, rtol=1e-6)
    near = law(torch.tensor([0.0, 1e-9, 0.01, 0.03]).double())
    far = law(torch.tensor([15.0, 16.0, 1e9, math.inf]).double())
    for end, entry in ((near, law.value[:, :1]), (far, law.value[:, -1:])):
        torch.testing.assert_close(end, entry.expand(3, 4))


@pytest.mark.parametrize('factor', [1e-4, 3.7])
def test_laws_at_distances_of_another_size(law, factor):
    distance, made = between(law), repr(law)
    before = law(distance)
    law.rescale(factor)
    torch.testing.assert_close(law(factor * distance), before, atol=1e-9,
                               rtol=1e-9)
    # A state holds where the table is, to the last digit.
    fresh = ForceLaw(3)
    fresh.load_state_dict(copy.deepcopy(law).half().state_dict())
    assert repr(fresh) == repr(pickle.loads(pickle.dumps(law))) == repr(law)
    law.rescale(1 / factor)
    assert repr(law) == made == ('ForceLaw(3, min_distance=0.03, '
                                 'max_distance=15.0, num_knots=26)')


def test_finer_tables_say_the_same():
    law = ForceLaw(2).double()
    law.value.data.copy_(torch.stack([law.knots.log(), 1 / law.knots]))
    distance, table = torch.logspace(-1.4, 1, 99).double(), law.value.clone()
    before = law(distance)
    law.resample(51)
    assert law.num_knots == 51 and law.value.size() == (2, 51)
    torch.testing.assert_close(law(distance), before, atol=1e-3, rtol=0.01)
    law.resample(26)
    torch.testing.assert_close(law.value, table)


# Laws that move particles ###################################################

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


@pytest.fixture
def graph():
    edge_index = fully_connected(5)
    z = torch.rand(5, 5, 2).double()
    return edge_index, dense.of_edges(z + z.transpose(0, 1), edge_index)


@pytest.mark.parametrize('box', [None, 1.0])
def test_true_laws_step_as_the_simulation(true_law, box):
    # Its own step is too short to matter; in the box, particles bounce.
    run = simulate(FORCES, 16, step_size=1e-4, sample_every=1_000,
                   num_steps=20_000, box_half_width=box, position_std=0.3)
    x = torch.from_numpy(np.concatenate([run.position, run.velocity], -1))
    edges = fully_connected(5)

    def errors(law):
        layer = make_layer(law, num_substeps=8, half_width=box)
        return torch.stack([
            (step(layer, frames[:, :-1], edges,
                  adjacency_to_edge_label(graphs, edges).double()) -
             frames[:, 1:]).abs()
            for frames, graphs in zip(x.double(), run.interactions)
        ])

    # Where charges come closer, they need shorter steps.
    position = x[..., :2].transpose(1, 2)  # [S, T, N, 2]
    distance = torch.cdist(position, position) + 99 * torch.eye(5)
    nearest = distance.min(-1).values.transpose(1, 2)
    calm = torch.minimum(nearest[..., 1:], nearest[..., :-1]) > 0.3
    error = errors(true_law)[calm]
    assert error.max() < (2e-4 if box is None else 0.02)
    assert error.median() < 1e-4 and len(error) > 100
    assert errors(ForceLaw(2).double())[calm].mean() > 100 * error.mean()


@pytest.mark.parametrize('num_dims', [1, 2, 3])
def test_equals_newtons_equations_as_loops(true_law, num_dims):
    full = fully_connected(5)
    kept = torch.randperm(20)[:11]  # In no order, some without a reverse.
    layer = make_layer(true_law, num_dims, num_substeps=3, interval=0.05)
    x, z = random_states(5, num_dims=num_dims), torch.rand(11, 2).double()
    dense_z = dense.to_dense(z, full[:, kept], 5)
    expected = plain_step(layer, x, dense_z)
    torch.testing.assert_close(step(layer, x, full[:, kept], z), expected)
    # Missing edges are edges of no weight.
    everywhere = dense.of_edges(dense_z, full)
    torch.testing.assert_close(step(layer, x, full, everywhere), expected)
    with pytest.raises(ValueError, match='edge attributes'):
        step(layer, x, full, z[:1])
    with pytest.raises(ValueError, match='half_width'):
        make_layer(true_law, half_width=-5.0)


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
    assert (energy - energy[0]).abs().max() < 5e-3 * kinetic.std()


@pytest.mark.parametrize('num_dims', [2, 3])
def test_momentum_is_conserved_in_any_direction(true_law, graph, make_system,
                                                num_dims):
    layer, data = make_layer(true_law, num_dims), make_system()
    data.mass = 0.5 + torch.rand(5)
    x, z = random_states(5, 4, num_dims=num_dims), per_mass(graph[1], data)
    out = step(layer, x, graph[0], z)
    change = data.mass.view(-1, 1, 1) * (out - x)[..., num_dims:]
    assert change.abs().max() > 0.01
    assert change.sum(0).abs().max() < 1e-6
    turn, _ = torch.linalg.qr(torch.randn(num_dims, num_dims).double())
    shift = torch.cat([torch.randn(num_dims), torch.zeros(num_dims)]).double()

    def move(x):
        return (x.unflatten(-1, (2, -1)) @ turn.t()).flatten(-2) + shift

    torch.testing.assert_close(step(layer, move(x), graph[0], z), move(out))


@pytest.mark.parametrize('unit', [1e-8, 1e5])
def test_unit_of_lengths_does_not_matter(true_law, graph, unit):
    x = random_states(5, 7)
    x[1, :, :2] = x[0, :, :2] + 1e-4  # Less than the table's least,
    x[2] = x[3]  # or at one place.
    expected = step(make_layer(true_law), x, *graph)
    layer = make_layer(copy.deepcopy(true_law))
    layer.law.rescale(unit)
    layer.law.value.data *= unit
    layer.scaling.offset *= unit
    layer.scaling.scale *= unit
    x.requires_grad_()
    out = step(layer, unit * x, *graph) / unit
    torch.testing.assert_close(out, expected)
    out.square().sum().backward()
    assert x.grad.isfinite().all()
