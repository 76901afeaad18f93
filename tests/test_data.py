import numpy as np
import pytest
import torch

from pyg_fnri.data import (
    adjacency_to_edge_label,
    from_trajectory,
    fully_connected,
)


def trajectory(num_particles=4, num_steps=6):
    return torch.randn(num_particles, num_steps, 4)


def test_fully_connected_is_sorted_by_receiver():
    assert fully_connected(3).tolist() == [[1, 2, 0, 2, 0, 1],
                                           [0, 0, 1, 1, 2, 2]]
    assert fully_connected(2).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize('num_particles', [2, 5, 11])
def test_fully_connected_joins_every_pair_once(num_particles):
    edge_index = fully_connected(num_particles)
    pairs = set(map(tuple, edge_index.t().tolist()))
    assert edge_index.dtype == torch.int64
    assert edge_index.size(1) == num_particles * (num_particles - 1)
    assert pairs == {(j, i)
                     for i in range(num_particles)
                     for j in range(num_particles) if i != j}


@pytest.mark.parametrize('num_particles', [1, 0, -1])
def test_fully_connected_needs_two_particles(num_particles):
    with pytest.raises(ValueError, match='at least 2 particles'):
        fully_connected(num_particles)


def test_label_of_an_edge_is_at_row_receiver_and_column_sender():
    adjacency = np.zeros((2, 3, 3), dtype=int)
    adjacency[0, 2, 1] = 1  # Particle 1 acts on particle 2, not vice versa.
    adjacency[1, 0, 2] = 3
    edge_index = fully_connected(3)
    label = adjacency_to_edge_label(adjacency, edge_index)

    assert label.shape == (6, 2) and label.dtype == torch.int64
    for (j, i), of_edge in zip(edge_index.t().tolist(), label.tolist()):
        assert of_edge[0] == (1 if (j, i) == (1, 2) else 0)
        assert of_edge[1] == (3 if (j, i) == (2, 0) else 0)


def test_label_reads_any_candidate_graph():
    adjacency = torch.arange(9).view(1, 3, 3)
    adjacency[0].fill_diagonal_(0)
    edge_index = torch.tensor([[2, 0], [1, 2]])
    label = adjacency_to_edge_label(adjacency, edge_index)
    assert label.tolist() == [[5], [6]]


@pytest.mark.parametrize('adjacency, message', [
    (torch.zeros(3, 3).long(), r'\[num_layers, N, N\]'),
    (torch.zeros(2, 3, 4).long(), r'\[2, 3, 4\]'),
    (torch.ones(1, 3, 3).long(), 'diagonal'),
    (-torch.ones(1, 3, 3).long(), 'smallest one is -1'),
    (torch.zeros(1, 2, 2).long(), 'particles 0 to 1'),
])
def test_wrong_adjacencies_are_refused(adjacency, message):
    with pytest.raises(ValueError, match=message):
        adjacency_to_edge_label(adjacency, fully_connected(3))


def test_trajectory_alone_becomes_an_unlabelled_system():
    x = np.random.default_rng(0).normal(size=(4, 6, 4))
    data = from_trajectory(x)

    assert data.validate() and type(data).__name__ == 'Data'
    assert sorted(data.keys()) == ['edge_index', 'x']
    assert data.x.dtype == torch.float32
    assert np.allclose(data.x, x, atol=1e-6)
    assert torch.equal(data.edge_index, fully_connected(4))
    assert data.num_nodes == 4 and data.num_node_features == 4

    x[:] = 0  # The system is a copy.
    assert data.x.abs().max() > 0


def test_both_forms_of_labels_agree():
    x = trajectory()
    adjacency = torch.randint(0, 2, (2, 4, 4)) * (1 - torch.eye(4).long())
    data = from_trajectory(x, adjacency)
    again = from_trajectory(x, data.edge_label.numpy())
    assert torch.equal(data.edge_label, again.edge_label)
    assert data.is_edge_attr('edge_label')
    assert torch.equal(
        from_trajectory(x, adjacency.bool()).edge_label, data.edge_label)


def test_two_particles_keep_edge_labels_apart_from_nodes():
    data = from_trajectory(trajectory(2), torch.tensor([[1, 0], [0, 2]]))
    assert data.validate()
    assert data.is_edge_attr('edge_label') and data.is_node_attr('x')


def test_candidate_edges_keep_their_order():
    edge_index = np.array([[3, 0, 1], [0, 2, 0]], dtype=np.int32)
    data = from_trajectory(trajectory(), np.array([[1], [0], [1]]), edge_index)
    assert data.edge_index.tolist() == edge_index.tolist()
    assert data.edge_index.dtype == torch.int64
    assert data.edge_label.tolist() == [[1], [0], [1]]


@pytest.mark.parametrize('mass', [
    np.array([1, 2, 3, 4]),
    np.array([1.0, 2.0, 3.0, 4.0]),
    torch.tensor([1.0, 2.0, 3.0, 4.0]).double()
])
def test_masses_are_copied_to_float32(mass):
    data = from_trajectory(trajectory(), mass=mass)
    mass[0] = 9
    assert data.mass.tolist() == [1, 2, 3, 4]
    assert data.mass.dtype == torch.float32 and data.validate()
    assert 'mass' not in from_trajectory(trajectory())


@pytest.mark.parametrize('mass, error, message', [
    (torch.ones(3), ValueError, r'mass must be \[4\].* \[3\]'),
    (torch.ones(4, 1), ValueError, r'\[4, 1\]'),
    (torch.tensor([1, 0, 1, 1]), ValueError, 'particle 1 is 0.0; leave'),
    (np.array([1, 2, np.nan, 1]), ValueError, 'particle 2 is nan'),
    (np.array([1, 2, 1e300, 1]), ValueError, 'particle 2 is inf'),
    (np.array([1e-300, 2, 1, 1]), ValueError, 'particle 0 is 0.0'),
    (torch.ones(4).bool(), TypeError, 'torch.bool'),
    (torch.ones(4).to(torch.cfloat), TypeError, 'complex64'),
    ([1, 1, 1, 1], TypeError, 'not list'),
])
def test_wrong_masses_are_refused(mass, error, message):
    with pytest.raises(error, match=message):
        from_trajectory(trajectory(), mass=mass)


@pytest.mark.parametrize('x, message', [
    (torch.zeros(4, 6), r'shape is \[4, 6\]'),
    (torch.zeros(1, 6, 4), 'at least 2 particles'),
    (torch.zeros(4, 0, 4), '1 step'),
    (torch.zeros(4, 6, 0), '1 feature'),
    (torch.full((4, 6, 4), float('nan')), r'\[0, 0, 0\] is nan'),
    (torch.full((4, 6, 4), 1e300, dtype=torch.float64), 'finite float32'),
])
def test_wrong_trajectories_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        from_trajectory(x)


@pytest.mark.parametrize('x, message', [
    ([[[0.]]], 'not list'),
    (torch.zeros(4, 6, 4, dtype=torch.int64), 'torch.int64'),
    (torch.zeros(4, 6, 4, dtype=torch.complex64), 'torch.complex64'),
    (np.array([[['a']]]), 'must hold numbers'),
])
def test_trajectories_of_wrong_type_are_refused(x, message):
    with pytest.raises(TypeError, match=message):
        from_trajectory(x)


@pytest.mark.parametrize('edge_label, error, message', [
    (torch.zeros(11, 2).long(), ValueError, r'12 edges .* \[11, 2\]'),
    (torch.zeros(12).long(), ValueError, r'\[12\]'),
    (torch.zeros(12, 0).long(), ValueError, 'no layers'),
    (torch.zeros(2, 5, 5).long(), ValueError, r'\[num_layers, 4, 4\]'),
    (torch.zeros(2, 3, 3).long(), ValueError, r'\[num_layers, 4, 4\]'),
    (-torch.ones(12, 2).long(), ValueError, 'edge types 0, 1, 2'),
    (torch.zeros(12, 2), TypeError, 'torch.float32'),
])
def test_wrong_labels_are_refused(edge_label, error, message):
    with pytest.raises(error, match=message):
        from_trajectory(trajectory(), edge_label)


@pytest.mark.parametrize('edge_index, error, message', [
    (torch.tensor([[0, 4], [1, 0]]), ValueError, 'particles 0 to 3'),
    (torch.tensor([[0, -1], [1, 0]]), ValueError, 'from -1 to 1'),
    (torch.tensor([[0, 2], [1, 2]]), ValueError, 'particle 2 to itself'),
    (torch.tensor([[0, 0], [1, 1]]), ValueError, 'twice'),
    (torch.tensor([[0, 1]]), ValueError, r'\[1, 2\]'),
    (torch.tensor([[0.], [1.]]), TypeError, 'torch.float32'),
])
def test_wrong_edges_are_refused(edge_index, error, message):
    with pytest.raises(error, match=message):
        from_trajectory(trajectory(), edge_index=edge_index)


def test_motion_far_from_the_origin_is_not_lost_in_rounding():
    x = 0.05 * np.random.default_rng(0).normal(size=(3, 8, 4)).cumsum(1)
    far = x + [5e5, 4.5e6, 0, 0]
    with pytest.raises(ValueError, match='up to 45000.* Subtract one offset'):
        from_trajectory(far)
    near = from_trajectory(far - [5e5, 4.5e6, 0, 0]).x
    torch.testing.assert_close(near,
                               torch.from_numpy(x).float(), atol=1e-6, rtol=0)
    # What is in float32 already has lost nothing here.
    from_trajectory(far.astype(np.float32))


def test_what_rests_is_not_lost_in_rounding():
    x = 1e-3 * np.random.default_rng(0).normal(size=(3, 8, 6)).cumsum(1)
    x[..., 2] = 1234.567  # A plane in space.
    x[..., 3:] = 0.3 + 1e-15 * np.arange(8)[:, None]  # Free particles.
    from_trajectory(x)
    from_trajectory(1 / 3 + 1e-9 * x + np.arange(3)[:, None, None])


def test_numbers_whose_squares_are_too_large():
    with pytest.raises(ValueError, match='take a unit in which they are'):
        from_trajectory(1e20 * torch.randn(3, 8, 4))
