import numpy as np
import pytest
import torch

from pyg_fnri.data import (adjacency_to_edge_label, from_trajectory,
                           fully_connected)


def trajectory(num_particles=4, num_steps=6):
    return torch.randn(num_particles, num_steps, 4)


@pytest.mark.parametrize('num_particles', [2, 5, 11])
def test_fully_connected_joins_every_pair_once(num_particles):
    # Sorted by receiver, then by sender.
    pairs = [(j, i) for i in range(num_particles) for j in range(num_particles)
             if i != j]
    edge_index = fully_connected(num_particles)
    assert edge_index.dtype == torch.int64
    assert list(map(tuple, edge_index.t().tolist())) == pairs


def test_trajectory_alone_becomes_an_unlabelled_system():
    x = np.random.default_rng(0).normal(size=(4, 6, 4))
    data = from_trajectory(x)
    assert data.validate() and sorted(data.keys()) == ['edge_index', 'x']
    assert data.x.dtype == torch.float32
    assert np.allclose(data.x, x, atol=1e-6)
    assert torch.equal(data.edge_index, fully_connected(4))
    x[:] = 0  # The system is a copy.
    assert data.x.abs().max() > 0


def test_row_is_receiver_and_candidate_edges_keep_their_order():
    adjacency = np.arange(16).reshape(1, 4, 4) * (1 - np.eye(4, dtype=int))
    edge_index = np.array([[3, 0, 1], [0, 2, 0]], dtype=np.int32)
    data = from_trajectory(trajectory(), adjacency, edge_index)
    assert data.edge_index.tolist() == edge_index.tolist()
    assert data.edge_index.dtype == torch.int64
    assert data.edge_label.tolist() == [[3], [8], [1]]
    assert data.edge_label.dtype == torch.int64
    label = adjacency_to_edge_label(adjacency > 7, data.edge_index)
    assert label.tolist() == [[0], [1], [0]]


MASKED = np.ma.masked_array(np.ones((4, 6, 4)), mask=False)
MASKED[1, 2:4] = np.ma.masked


@pytest.mark.parametrize(
    'arguments, error',
    [(dict(x=torch.zeros(4, 6)), ValueError),
     (dict(x=np.zeros((4, 6, 4), int)), TypeError),
     (dict(x=np.full((4, 6, 4), np.nan)), ValueError),
     (dict(x=1e20 * torch.randn(4, 6, 4)), ValueError),
     (dict(x=MASKED), ValueError), (dict(mass=MASKED[:, 2, 0]), ValueError),
     (dict(mass=torch.ones(3)), ValueError),
     (dict(mass=np.array([1, 0, 1, 1])), ValueError),
     (dict(edge_label=torch.zeros(2, 3, 3).long()), ValueError),
     (dict(edge_label=torch.ones(2, 4, 4).long()), ValueError),
     (dict(edge_label=-torch.ones(12, 2).long()), ValueError),
     (dict(edge_label=torch.zeros(12, 2)), TypeError),
     (dict(edge_label=np.ma.masked_equal(np.eye(4, dtype=int), 0)), ValueError),
     (dict(edge_index=torch.tensor([[0, -1], [1, 0]])), ValueError),
     (dict(edge_index=torch.tensor([[0, 0], [1, 1]])), ValueError),
     (dict(edge_index=torch.tensor([[0.], [1.]])), TypeError)])
def test_what_would_give_wrong_numbers_is_refused(arguments, error):
    name, = arguments
    with pytest.raises(error, match=f'{name}|adjacency'):
        from_trajectory(**{'x': trajectory(), **arguments})


X = np.random.default_rng(0).normal(size=(3, 6, 4))
LABEL = np.array([[[0, 0, 2], [1, 0, 0], [0, 0, 0]]])


@pytest.mark.parametrize('convert', [
    np.asfortranarray, np.ma.asarray, list,
    lambda a: a.astype(a.dtype.newbyteorder()),
    lambda a: a.astype(np.longdouble if a.dtype.kind == 'f' else np.uint8),
    lambda a: a[::-1].copy()[::-1], torch.from_numpy
])
def test_arrays_of_any_form_are_the_same_system(convert):
    mass = np.arange(3) + 1.0
    expected = from_trajectory(X, LABEL, mass=mass)
    index = convert(expected.edge_index.numpy())
    data = from_trajectory(convert(X), convert(LABEL), index, convert(mass))
    for name in ('x', 'edge_index', 'edge_label', 'mass'):
        assert torch.equal(data[name], expected[name])


def test_motion_far_from_the_origin_is_not_lost_in_rounding():
    x = 0.05 * np.random.default_rng(0).normal(size=(3, 8, 4)).cumsum(1)
    far = x + [5e5, 4.5e6, 0, 0]
    with pytest.raises(ValueError, match='up to 45000'):
        from_trajectory(far)
    near = from_trajectory(far - [5e5, 4.5e6, 0, 0]).x
    torch.testing.assert_close(near,
                               torch.from_numpy(x).float(), atol=1e-6, rtol=0)
    # What is in float32 already has lost nothing here.
    from_trajectory(far.astype(np.float32))
