import dense
import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import EquivariantConv, MultiplexConv


@pytest.fixture
def conv():
    return MultiplexConv(4, 6, edge_dim=3, hidden_channels=8)


@pytest.mark.parametrize(
    'edge_index',
    [  # None to particle 2.
        fully_connected(2),
        torch.tensor([[3, 0, 1, 2, 4], [0, 1, 0, 4, 3]])
    ])
def test_equals_the_papers_equations(conv, edge_index):
    conv = conv.double()
    num_particles = int(edge_index.max()) + 1
    x = torch.randn(num_particles, 4, dtype=torch.double)
    edge_attr = torch.rand(edge_index.size(1), 3, dtype=torch.double)
    z = dense.to_dense(edge_attr, edge_index, num_particles)
    out = conv(x, edge_index, edge_attr)
    torch.testing.assert_close(out, dense.multiplex_conv(conv, x, z))
    # Steps side by side.
    steps = torch.stack([x + 1, x], dim=1)
    torch.testing.assert_close(conv(steps, edge_index, edge_attr)[:, 1], out)


def test_messages_turn_with_the_particles():
    conv = EquivariantConv(6, 6, edge_dim=2, hidden_channels=8).double()
    edge_index = fully_connected(4)
    x, z = torch.randn(4, 3, 6).double(), torch.rand(12, 2).double()

    def messages(x):
        return (conv(x, edge_index, z) - conv.lin_own(x)).chunk(2, dim=-1)

    turn = torch.linalg.qr(torch.randn(3, 3).double()).Q  # Or a mirror.
    place, velocity = x.chunk(2, dim=-1)
    moved = torch.cat([place @ turn + 3, velocity @ turn - 2], dim=-1)
    torch.testing.assert_close(messages(moved),
                               tuple(k @ turn for k in messages(x)))


def test_effects_add_up():
    conv = EquivariantConv(4, 4, edge_dim=3, hidden_channels=8).double()
    edge_index = fully_connected(4)
    x, z = torch.randn(4, 2, 4).double(), torch.rand(12, 3).double()
    sent = torch.einsum('ek,ektf->etf', z, conv.effects(x, edge_index))
    expected = conv.lin_own(x).index_add(0, edge_index[1], sent)
    torch.testing.assert_close(conv(x, edge_index, z), expected)


def test_equals_its_equation():
    conv = EquivariantConv(4, 4, edge_dim=2, hidden_channels=8).double()
    x, z = torch.randn(2, 4).double(), torch.rand(1, 2).double()
    out = conv(x, torch.tensor([[0], [1]]), z)
    line, w = (x[0] - x[1]).chunk(2)
    r, s = (k.square().sum().add(1e-4).sqrt() for k in (line, w))
    pair = torch.stack([r, r.log(), line @ w / r, s])
    h = sum(z[0, k] * dense.messages(conv, pair, k) for k in range(2))
    vectors = torch.stack([line, line / r**3, w])
    change = (conv.lin.weight @ h).view(2, 3) @ vectors
    expected = torch.stack([dense.linear(conv.lin_own, row) for row in x])
    expected[1] += change.flatten()
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize('sizes', [(3, 3), (4, 2)])
def test_needs_positions_and_velocities(sizes):
    with pytest.raises(ValueError, match='take MultiplexConv'):
        EquivariantConv(*sizes, edge_dim=2)


def test_graphs_follow_from_messages_of_one_flow_alone():
    with pytest.raises(ValueError, match='flip edge_index'):
        EquivariantConv(4, 4, edge_dim=2, flow='target_to_source')
