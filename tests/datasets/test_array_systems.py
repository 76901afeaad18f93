import numpy as np
import pytest

from pyg_fnri.datasets.array_systems import array_recordings


def test_systems_of_one_size():
    x = np.random.rand(3, 4, 5, 2).astype(np.float32)
    found = array_recordings({'': x}, 0.1)
    assert [recording.name for recording in found] == [0, 1, 2]
    assert list(found[0].particles) == [0, 1, 2, 3]
    assert found[2].time_step == 0.1
    assert found[2].x.dtype == np.float64 and np.array_equal(found[2].x, x[2])
    one, = array_recordings({'trial': x[1]}, 1.0)
    assert one.name == 0 and np.array_equal(one.x, x[1])


def test_systems_of_many_sizes_are_called_as_their_arrays():
    a, b = np.random.rand(3, 5, 2), np.random.rand(6, 5, 2)
    found = array_recordings({'a': a, 'b': b}, 1.0)
    assert [(r.name, r.x.shape[0]) for r in found] == [('a', 3), ('b', 6)]


def test_x_goes_before_all_others():
    x, edges = np.random.rand(2, 3, 5, 2), np.zeros((2, 3, 3), dtype=int)
    assert len(array_recordings({'edges': edges, 'x': x}, 1.0)) == 2


@pytest.mark.parametrize('arrays, error, message', [
    ({}, ValueError, 'no arrays'),
    ({
        '': np.zeros((5, 4))
    }, ValueError, r'system 0 is \[5, 4\]'),
    ({
        '': np.zeros((2, 1, 5, 4))
    }, ValueError, r'at least 2 .* is \[1, 5, 4\]'),
    ({
        '': np.zeros((2, 3, 1, 4))
    }, ValueError, r'is \[3, 1, 4\]'),
    ({
        '': np.zeros((3, 5, 4), dtype=int)
    }, TypeError, 'The array must .* is int64; convert'),
    ({
        'a': np.zeros((3, 5, 4)),
        'b': np.zeros((3, 5, 2))
    }, ValueError, r'\[2, 4\]; call the trajectories x'),
    ({
        'a': np.zeros((3, 5, 4)),
        'edges': np.zeros((3, 3), dtype=int)
    }, TypeError, "The array 'edges' must .* is int64"),
    ({
        'a': np.zeros((3, 5, 4)),
        'b': np.zeros((2, 3, 5, 4))
    }, ValueError, "'b'"),
])
def test_other_arrays_are_refused(arrays, error, message):
    with pytest.raises(error, match=message):
        array_recordings(arrays, 1.0)


def test_infinite_numbers_are_refused_and_missing_ones_kept():
    x = np.zeros((2, 3, 5, 4))
    x[1, 2, 3, 0] = np.nan
    assert np.isnan(array_recordings({'': x}, 1.0)[1].x[2, 3, 0])
    x[1, 2, 3, 0] = -np.inf
    with pytest.raises(
            ValueError, match='feature 0 of system 1, particle 2, '
            'time 3 is -inf'):
        array_recordings({'': x}, 1.0)
