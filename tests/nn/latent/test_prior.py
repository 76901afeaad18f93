import pytest

from pyg_fnri.nn.latent import check_prior


def test_uniform_unless_given():
    assert check_prior(None, [2, 4]) == [[0.5, 0.5], [0.25] * 4]
    given = check_prior(((1 / 3, 2 / 3), ), [2])
    assert given == [[1 / 3, 2 / 3]]


@pytest.mark.parametrize('prior', [
    [[0.5, 0.5]],
    [[0.5, 0.5], [0.5, 0.5]],
    [[0.5, 0.5], [0.5, 0.5, 0.5]],
    [[1.0, 0.0], [0.2, 0.3, 0.5]],
    [[1.5, -0.5], [0.2, 0.3, 0.5]],
    [[float('nan'), 1.0], [0.2, 0.3, 0.5]],
    [[0.5, float('nan')], [0.2, 0.3, 0.5]],
    [0.5, 0.5],
])
def test_impossible_priors(prior):
    with pytest.raises(ValueError, match=r'sum to 1 .* lengths \[2, 3\]'):
        check_prior(prior, [2, 3])
