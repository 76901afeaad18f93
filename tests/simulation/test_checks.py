import numpy as np
import pytest

from pyg_fnri.simulation import Charge, Spring
from pyg_fnri.simulation.checks import (
    check_contacts,
    check_forces,
    check_frames,
    edge_types,
    features,
    integer,
    interaction_graphs,
    positive,
    state,
)


@pytest.mark.parametrize('forces, error, match', [
    (Spring(), TypeError, r'expected a list of forces'),
    ('springs', TypeError, r"forces holds 's', expected instances of Force"),
    ([Spring
      ], TypeError, r'the class Spring, expected an instance: Spring\(\)'),
    ([Spring(), 0.1], TypeError, r'forces holds 0.1, expected instances'),
    ([], ValueError, r'forces holds 0 forces, expected 1 to 63'),
    ([Spring()] * 64, ValueError, r'forces holds 64 forces'),
])
def test_check_forces(forces, error, match):
    with pytest.raises(error, match=match):
        check_forces(forces)


def test_integer():
    assert integer('n', np.int32(3), 2) == 3
    for value in (3.0, '3', None, True, np.nan):
        with pytest.raises(TypeError, match='n is .*, expected an integer'):
            integer('n', value, 2)
    with pytest.raises(ValueError, match='n is 1, expected at least 2'):
        integer('n', 1, 2)


def test_positive():
    assert positive('h', np.float32(0.5)) == 0.5
    assert positive('h', 3) == 3.0
    assert positive('h', 0, or_zero=True) == 0.0
    assert positive('h', np.inf, or_infinite=True) == np.inf
    for value in (0, -1e-3, np.inf, np.nan):
        with pytest.raises(ValueError, match='h is .*, expected a positive n'):
            positive('h', value)
    for value in (-1e-9, np.nan, np.inf):
        with pytest.raises(ValueError, match='positive number or zero'):
            positive('h', value, or_zero=True)
    for value in (-np.inf, np.nan, 0):
        with pytest.raises(ValueError, match='expected a positive number'):
            positive('h', value, or_infinite=True)
    for value in ('1', True, None, [1.0, 2.0]):
        with pytest.raises(TypeError, match='h is .*, expected a number'):
            positive('h', value)


def test_state():
    array = state('x', [[[1, 2], [3, 4]]], (1, 2, 2))
    assert array.dtype == np.float64 and array.tolist() == [[[1, 2], [3, 4]]]
    with pytest.raises(ValueError, match=r'x has the shape \(2, 2\), expected'):
        state('x', np.zeros((2, 2)), (1, 2, 2))
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match='x holds NaN or infinite values'):
            state('x', np.full((1, 2, 2), value), (1, 2, 2))
    for value in (np.zeros((1, 2, 2), complex), [['a', 'b']]):
        with pytest.raises(TypeError, match='expected real numbers'):
            state('x', value, (1, 2, 2))


def test_interaction_graphs():
    graph = np.array([[[0, 1], [1, 0]]])
    for dtype in (bool, np.int8, np.float32):
        out = interaction_graphs('g', graph.astype(dtype), (1, 2, 2))
        assert out.dtype == bool and (out == graph).all()
    for wrong, match in [
        (graph[0], r'g has the shape \(2, 2\), expected \(1, 2, 2\)'),
        (2 * graph, 'values other than 0 and 1'),
        (np.nan * graph, 'values other than 0 and 1'),
        (np.ones((1, 2, 2)), 'interact with itself'),
        (np.array([[[0, 1], [0, 0]]]), 'not symmetric'),
    ]:
        with pytest.raises(ValueError, match=match):
            interaction_graphs('g', wrong, (1, 2, 2))


def test_edge_types():
    graphs = np.zeros((2, 2, 3, 3), np.int8)
    graphs[0, 0, 0, 1] = 2
    out = edge_types('g', graphs, [3, 2])
    assert out.dtype == np.int64 and (out == graphs).all()
    assert (edge_types('g', graphs, [3, 2], 2, 3) == graphs).all()
    for wrong, match in [
        (graphs[0], r'g has the shape \(2, 3, 3\), expected \(2, 2, 3, 3\)'),
        (graphs[:, :1], r'expected \(2, 2, 3, 3\)'),
        (graphs[:, :, :2], r'expected \(2, 2, 3, 3\)'),
        (graphs[:1], r'expected \(2, 2, 3, 3\)'),
        (2 * graphs, 'types 0 to 4 in layer 0, expected 0 to 2'),
        (-graphs, 'types -2 to 0 in layer 0'),
        (graphs + np.eye(3, dtype=int), 'interact with itself'),
    ]:
        with pytest.raises(ValueError, match=match):
            edge_types('g', wrong, [3, 2], 2, 3)
    with pytest.raises(TypeError, match='g has the type float64'):
        edge_types('g', 1.0 * graphs, [3, 2])
    with pytest.raises(ValueError, match='expected .systems, 1, particles, p'):
        edge_types('g', graphs, [3])
    with pytest.raises(ValueError, match='has the shape'):
        edge_types('g', graphs[:0], [3, 2])


def test_features():
    x = np.zeros((2, 3, 4, 5))
    assert features('x', x, 2, 3).dtype == np.float32
    with pytest.raises(ValueError, match=r'\(2, 3, 4\), expected \(2, 3, fra'):
        features('x', x[..., 0], 2, 3)
    with pytest.raises(ValueError, match=r'expected \(3, 3, frames, feat'):
        features('x', x, 3, 3)
    with pytest.raises(ValueError, match='has the shape'):
        features('x', x[:, :, :0], 2, 3)
    with pytest.raises(TypeError, match='type int64, expected floating'):
        features('x', x.astype(int), 2, 3)
    # As float32, in which it is kept.
    for value in (np.nan, 1e39):
        with pytest.raises(ValueError, match='x holds NaN or infinite'):
            features('x', np.full_like(x, value), 2, 3)


def test_check_contacts_names_the_pair():
    position = np.random.default_rng(0).normal(size=(3, 4, 2))
    position[1, 3] = position[1, 2]
    graphs = np.zeros((3, 4, 4), bool)
    graphs[:, 0, 1] = graphs[:, 1, 0] = True
    check_contacts(position, graphs, Charge(), 10)
    graphs[1, 2, 3] = graphs[1, 3, 2] = True
    with pytest.raises(
            ValueError, match='particles 2 and 3 of system 11 start '
            r'on one spot, where Charge\(strength=0.2\) diverges'):
        check_contacts(position, graphs, Charge(), 10)


def test_check_frames_names_the_system():
    frames = np.zeros((3, 2, 4, 2), np.float32)
    reach = np.array([1.0, 5.0, 4.0])
    check_frames(frames, frames, reach, 5.0, 1e-3, 10)
    with pytest.raises(ValueError, match='of system 11 left the box within'):
        check_frames(frames, frames, reach, 4.5, 1e-3, 10)
    broken = frames.copy()
    broken[2, 0, 3, 1] = np.nan
    for pair in ((broken, frames), (frames, broken)):
        with pytest.raises(ValueError, match='system 12 left the range of n'):
            check_frames(*pair, reach, 5.0, 1e-3, 10)
