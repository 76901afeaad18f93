import numpy as np
import pytest

from pyg_fnri.datasets.edge_values import find_values, to_types


def edges(*layers, num_particles=3):
    """Two systems whose directed interactions have the values given."""
    out = np.zeros((2, len(layers), num_particles, num_particles))
    off_diagonal = ~np.eye(num_particles, dtype=bool)
    for layer, values in enumerate(layers):
        out[:, layer, off_diagonal] = np.resize(values, off_diagonal.sum())
    return out


@pytest.mark.parametrize('values, expected', [
    ([0, 0.5, 1], [0, 0.5, 1]),
    ([2, 1, 0], [0, 1, 2]),
    ([-1, 1], [-1, 1]),
    ([-1, 0, 1], [0, -1, 1]),
    ([3], [3]),
])
def test_each_value_is_a_type(values, expected):
    array = edges(values)
    found, = find_values({'a': array})
    assert found.tolist() == expected
    types = to_types(array, [found])
    assert types.dtype == np.int64
    off_diagonal = ~np.eye(3, dtype=bool)
    assert np.array_equal(found[types[:, 0, off_diagonal]], array[:, 0,
                                                                  off_diagonal])


def test_the_diagonal_plays_no_part():
    array = edges([0, 1])
    array[:, :, [0, 1, 2], [0, 1, 2]] = 7
    found, = find_values({'a': array})
    assert found.tolist() == [0, 1]
    assert not to_types(array, [found])[:, :, [0, 1, 2], [0, 1, 2]].any()


def test_layers_are_by_themselves_and_files_together():
    found = find_values({
        'a': edges([0, 1], [0]),
        'b': edges([0, 0.5], [0, 2], num_particles=4)
    })
    assert [values.tolist() for values in found] == [[0, 0.5, 1], [0, 2]]
    assert find_values({}) == []


def test_what_are_no_types_is_said():
    with pytest.raises(ValueError, match="as many layers.*'b': 1"):
        find_values({'a': edges([0], [1]), 'b': edges([0])})
    with pytest.raises(ValueError, match='Layer 1 .* 110 different values'):
        find_values({'a': edges([0], np.arange(110), num_particles=11)})
