import copy
import math
import pickle

import pytest
import torch

from pyg_fnri.nn import ForceLaw


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


def test_new_laws_are_zero():
    law = ForceLaw(2)
    assert law.value.shape == (2, 26)
    assert torch.equal(law(torch.rand(7)), torch.zeros(2, 7))


def test_is_exact_at_the_knots(law):
    torch.testing.assert_close(law(law.knots), law.value)


@pytest.mark.parametrize('num_knots', [4, 5, 26])
def test_parabolas_in_the_logarithm_are_exact_from_end_to_end(num_knots):
    law = ForceLaw(1, 0.1, 10.0, num_knots).double()

    def parabola(distance):
        u = distance.log()
        return 0.3 * u.square() - 0.2 * u + 0.1

    law.value.data[0] = parabola(law.knots)
    distance = between(law)
    torch.testing.assert_close(law(distance)[0], parabola(distance))


def test_is_smooth(law):
    # Value and slope come to the same on both sides of each knot.
    knots = law.knots[1:-1]
    sides = []
    for side in (1 - 1e-11, 1 + 1e-11):
        distance = (side * knots).requires_grad_()
        value = law(distance)
        slopes = [
            torch.autograd.grad(f.sum(), distance, retain_graph=True)[0]
            for f in value
        ]
        sides.append((value, torch.stack(slopes)))
    for left, right in zip(*sides):
        torch.testing.assert_close(left, right, atol=1e-6, rtol=1e-6)
    assert sides[0][1].abs().min() > 1e-3


def test_slope_is_that_of_differences(law):
    distance = between(law, 50)[1:-1].requires_grad_()
    assert torch.autograd.gradcheck(law, distance)


def test_depends_on_four_entries_around_a_distance(law):
    distance = between(law, 200)
    first, weight = law.interpolation(distance)
    torch.testing.assert_close(weight.sum(-1), torch.ones(200).double())
    entry = first.unsqueeze(-1) + torch.arange(4)
    expected = (law.value[:, entry] * weight).sum(-1)
    torch.testing.assert_close(law(distance), expected)
    # The distance lies among the four, between the middle two but at the ends.
    knots, eps = law.knots, 1e-9
    assert (knots[first] <= distance + eps).all()
    assert (knots[first + 3] >= distance - eps).all()
    inner = (distance > knots[1]) & (distance < knots[-2])
    assert (knots[first + 1] <= distance + eps)[inner].all()
    assert (knots[first + 2] >= distance - eps)[inner].all()


def test_is_linear_in_its_table(law):
    distance = between(law)
    first, other = law.value.data.clone(), torch.randn_like(law.value)
    parts = []
    for table in (first, other, 2 * first - 3 * other):
        law.value.data.copy_(table)
        parts.append(law(distance).detach())
    torch.testing.assert_close(2 * parts[0] - 3 * parts[1], parts[2])


def test_gradient_to_the_table_is_the_weights(law):
    distance = between(law, 40)
    law(distance)[1].sum().backward()
    first, weight = law.interpolation(distance)
    expected = torch.zeros_like(law.value)
    for start, row in zip(first.tolist(), weight):
        expected[1, start:start + 4] += row
    torch.testing.assert_close(law.value.grad, expected)


def test_is_constant_beyond_the_ends(law):
    near = law(torch.tensor([0.0, 1e-9, 0.01, 0.03]).double())
    far = law(torch.tensor([15.0, 16.0, 1e9, math.inf]).double())
    for end, entry in ((near, law.value[:, 0]), (far, law.value[:, -1])):
        torch.testing.assert_close(end, entry.unsqueeze(-1).expand(3, 4))


def test_nan_stays_nan(law):
    out = law(torch.tensor([math.nan, 1.0]).double())
    assert out[:, 0].isnan().all() and out[:, 1].isfinite().all()


@pytest.mark.parametrize('size', [(), (5, ), (5, 3), (2, 4, 3)])
def test_takes_distances_of_any_shape(law, size):
    distance = 5 * torch.rand(size).double()
    out = law(distance)
    assert out.shape == (3, *size)
    expected = law(distance.flatten()).view(3, *size)
    torch.testing.assert_close(out, expected)


def test_default_table_holds_the_forces_of_springs_and_charges():
    law = ForceLaw(2)
    law.value.data.copy_(torch.stack([-0.1 * law.knots, 0.2 / law.knots**2]))
    distance = between(law)
    true = torch.stack([-0.1 * distance, 0.2 / distance**2])
    error = (law(distance) - true).abs() / true.abs()
    # Cubic convolution is off by a few thousandths of the steepest law, and a
    # per cent where a parabola stands in for it at the ends.
    inner = (distance > law.knots[1]) & (distance < law.knots[-2])
    assert error[:, inner].max() < 0.004
    assert error.max() < 0.012


def test_knots_are_of_the_tables_dtype_and_device():
    law = ForceLaw(2, 0.5, 8.0, 5)
    torch.testing.assert_close(law.knots, torch.tensor([0.5, 1, 2, 4, 8]))
    assert law.double().knots.dtype == torch.double
    assert law.to('meta').knots.device.type == 'meta'


def test_reset_parameters_sets_the_laws_to_zero(law):
    law.reset_parameters()
    assert not law.value.any()


@pytest.mark.parametrize('factor', [1e-4, 0.1, 1.0, 1e3, 3.7])
def test_laws_at_distances_of_another_size(law, factor):
    distance = between(law)
    before = law(distance)
    law.rescale(factor)
    torch.testing.assert_close(law(factor * distance), before, atol=1e-9,
                               rtol=1e-9)
    torch.testing.assert_close(law(law.knots), law.value)
    with pytest.raises(ValueError, match='finite, but got inf and inf'):
        law.rescale(math.inf)


def test_powers_of_ten_keep_round_numbers():
    law = ForceLaw(1)
    law.rescale(1e-4)
    assert 'min_distance=3e-06, max_distance=0.0015' in repr(law)
    law.rescale(1e4)
    assert repr(law) == repr(ForceLaw(1))


@pytest.mark.parametrize('dtype', [torch.float, torch.half])
def test_state_holds_where_the_table_is(law, dtype):
    law.rescale(1e-3)
    ends = law.min_distance, law.max_distance
    fresh = ForceLaw(3)
    fresh.load_state_dict(law.to(dtype).state_dict())
    assert (fresh.min_distance, fresh.max_distance) == ends
    for other in (copy.deepcopy(law), pickle.loads(pickle.dumps(law))):
        assert repr(other) == repr(fresh) == repr(law)


def test_states_that_do_not_say_where_the_table_is(law):
    """Those of older versions: where it was when it was made."""
    state = law.state_dict()
    del state['_extra_state']
    for fresh in (ForceLaw(3), ForceLaw(3, 0.5, 8.0)):
        made = repr(fresh)
        fresh.rescale(10.0)
        fresh.load_state_dict(state)
        assert repr(fresh) == made
        torch.testing.assert_close(fresh.value.double(), law.value)
    assert '_extra_state' not in state
    del state['value']
    with pytest.raises(RuntimeError, match='Missing key.* "value"'):
        fresh.load_state_dict(state)


def test_shows_its_arguments():
    assert repr(ForceLaw(3, num_knots=9)) == (
        'ForceLaw(3, min_distance=0.03, max_distance=15.0, num_knots=9)')


@pytest.mark.parametrize('arguments, message', [
    (dict(num_channels=0), 'at least one channel, .* num_channels=0'),
    (dict(min_distance=0.0), r'0 < min_distance < .* got 0.0 and 15.0'),
    (dict(min_distance=2.0, max_distance=1.0), 'but got 2.0 and 1.0'),
    (dict(min_distance=math.nan), 'but got nan and 15.0'),
    (dict(max_distance=math.inf), 'finite, but got 0.03 and inf'),
    (dict(num_knots=3), 'at least 4 knots, but got 3'),
])
def test_arguments_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        ForceLaw(**{'num_channels': 2, **arguments})
