import dense
import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import MultiplexConv


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
