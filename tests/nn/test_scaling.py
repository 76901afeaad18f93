import pytest
import torch

from pyg_fnri.nn import MinMaxScaling, Scaling, StandardScaling

SCALINGS = [MinMaxScaling, StandardScaling]


def trajectories(num_features=4):
    """Positions around 3 and velocities around -20, of other spread."""
    half = num_features // 2
    offset = torch.tensor([3.0] * half + [-20.0] * (num_features - half))
    scale = torch.tensor([2.0] * half + [0.1] * (num_features - half))
    return offset + scale * torch.randn(30, 20, num_features)


def test_extremes_of_each_quantity_become_one():
    x = trajectories()
    scaled = MinMaxScaling(4).fit(x)(x)
    for quantity in scaled.split(2, dim=-1):
        torch.testing.assert_close(quantity.min(), torch.tensor(-1.0),
                                   atol=1e-4, rtol=0)
        torch.testing.assert_close(quantity.max(), torch.tensor(1.0), atol=1e-4,
                                   rtol=0)


def test_standard_deviation_of_each_quantity_becomes_one():
    x = trajectories()
    scaled = StandardScaling(4).fit(x)(x)
    for quantity in scaled.split(2, dim=-1):
        assert quantity.mean().item() == pytest.approx(0, abs=1e-4)
        assert quantity.std().item() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize('scaling', SCALINGS)
def test_directions_in_space_stay_alike(scaling):
    scaling = scaling(6).fit(trajectories(6))
    for buffer in (scaling.offset, scaling.scale):
        assert len(set(buffer[:3].tolist())) == 1
        assert len(set(buffer[3:].tolist())) == 1
        assert buffer[0] != buffer[3]


@pytest.mark.parametrize('scaling', SCALINGS)
@pytest.mark.parametrize('num_features', [1, 3, 5])
def test_an_odd_number_of_features_is_scaled_one_by_one(scaling, num_features):
    x = trajectories(num_features)
    scaling_of_all = scaling(num_features).fit(x)
    for i in range(num_features):
        of_one = scaling(1).fit(x[..., i:i + 1])
        assert scaling_of_all.offset[i] == of_one.offset[0]
        assert scaling_of_all.scale[i] == of_one.scale[0]


@pytest.mark.parametrize('scaling', SCALINGS)
@pytest.mark.parametrize('size', [(7, 4), (7, 3, 4), (4, )])
def test_inverse_goes_back(scaling, size):
    scaling = scaling(4).fit(trajectories())
    x = torch.randn(size)
    torch.testing.assert_close(scaling.inverse(scaling(x)), x, atol=1e-5,
                               rtol=0)
    torch.testing.assert_close(scaling(scaling.inverse(x)), x, atol=1e-4,
                               rtol=0)


@pytest.mark.parametrize('scaling', SCALINGS)
def test_as_new_changes_nothing(scaling):
    x = torch.randn(5, 4)
    assert torch.equal(scaling(4)(x), x)


@pytest.mark.parametrize('scaling', SCALINGS)
def test_saved_with_the_weights(scaling):
    fitted = scaling(4).fit(trajectories())
    other = scaling(4)
    other.load_state_dict(fitted.state_dict())
    x = torch.randn(5, 4)
    assert torch.equal(other(x), fitted(x))
    assert not list(fitted.parameters())


def test_a_new_scaling_is_one_method():
    class Halving(Scaling):
        def statistics(self, x):
            return torch.tensor(1.0), torch.tensor(2.0)

    scaling = Halving(4).fit(trajectories())
    assert torch.equal(scaling(torch.full((4, ), 5.0)), torch.full((4, ), 2.0))
    assert str(scaling) == 'Halving(4)'


@pytest.mark.parametrize('scaling', SCALINGS)
@pytest.mark.parametrize('value', [float('nan'), float('inf'), -float('inf')])
def test_fit_needs_finite_numbers(scaling, value):
    scaling, x = scaling(4), trajectories()
    x[1, 2, 3] = value
    with pytest.raises(ValueError, match='Features 2 to 3 .* not finite'):
        scaling.fit(x)
    # The positions were fine, but half a fit is none.
    assert torch.equal(scaling.scale, torch.ones(4))
    assert torch.equal(scaling.offset, torch.zeros(4))


@pytest.mark.parametrize('scaling', SCALINGS)
def test_fit_needs_something_that_changes(scaling):
    x = trajectories()
    x[..., :2] = 0.1
    with pytest.raises(ValueError, match='Features 0 to 1 .* constant'):
        scaling(4).fit(x)


@pytest.mark.parametrize('scaling', SCALINGS)
def test_fit_to_nothing(scaling):
    with pytest.raises(ValueError, match='got none'):
        scaling(4).fit(torch.empty(0, 5, 4))


@pytest.mark.parametrize('scaling', SCALINGS)
@pytest.mark.parametrize('size', [(5, 6, 3), (5, 6, 1), ()])
def test_another_number_of_features(scaling, size):
    scaling, x = scaling(4), torch.randn(size)
    for function in (scaling.fit, scaling, scaling.inverse):
        with pytest.raises(ValueError, match='Expected 4 features'):
            function(x)


@pytest.mark.parametrize('scaling', SCALINGS)
def test_repr(scaling):
    assert str(scaling(4)) == f'{scaling.__name__}(4)'
