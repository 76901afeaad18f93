import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import ScatterSum


def loop(x, index, dim_size):
    out = x.new_zeros((dim_size, ) + x.shape[1:])
    for row, i in zip(x, index.tolist()):
        out[i] = out[i] + row
    return out


@pytest.mark.parametrize('size', [(3, 4), ()])
@pytest.mark.parametrize(
    'index', [fully_connected(5)[1].tolist(), [4, 0, 4, 2, 0, 4], []])
def test_equals_a_loop_to_the_bit(index, size):
    index = torch.tensor(index, dtype=torch.long)
    x = torch.randn((index.numel(), ) + size)
    out = ScatterSum()(x, index, dim_size=6, dim=0)
    assert torch.equal(out, loop(x, index, 6))
