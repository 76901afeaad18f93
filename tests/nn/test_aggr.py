import pytest
import torch
from torch_geometric.nn import SimpleConv

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import ScatterSum, aggr

torch_scatter = pytest.param(
    'torch_scatter',
    marks=pytest.mark.skipif(aggr.torch_scatter is None,
                             reason='torch-scatter is not installed'))
ANY_ORDER = ['auto', 'index_add', 'scatter', torch_scatter]
PATHS = ['segment'] + ANY_ORDER


def batch_of_receivers(num_systems=3, num_particles=5):
    receiver = fully_connected(num_particles)[1]
    return torch.cat([receiver + num_particles * b for b in range(num_systems)])


def loop(x, index, dim_size):
    out = x.new_zeros((dim_size, ) + x.shape[1:])
    for row, i in zip(x, index.tolist()):
        out[i] = out[i] + row
    return out


@pytest.mark.parametrize('size', [(4, ), (3, 4), ()])
@pytest.mark.parametrize('path', PATHS)
def test_paths_equal_a_loop_with_gradients(path, size):
    index = batch_of_receivers()
    x = torch.randn((index.numel(), ) + size, requires_grad=True)
    cotangent = torch.randn((15, ) + size)

    out = ScatterSum(path)(x, index, dim_size=15, dim=0)
    expected = loop(x, index, 15)
    torch.testing.assert_close(out, expected)

    gradient, = torch.autograd.grad(out, x, cotangent)
    expected, = torch.autograd.grad(expected, x, cotangent)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize('path', ANY_ORDER)
@pytest.mark.parametrize('requires_grad', [False, True])
def test_paths_with_receivers_in_any_order_and_number(path, requires_grad):
    index = torch.tensor([4, 0, 4, 2, 0, 4])  # None for 1, 3 and 5.
    x = torch.randn(6, 3, requires_grad=requires_grad)
    out = ScatterSum(path)(x, index, dim_size=6, dim=0)
    torch.testing.assert_close(out, loop(x, index, 6))
    assert torch.equal(out[[1, 3, 5]], torch.zeros(3, 3))


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('dim', [1, -2])
def test_edges_in_another_dimension(path, dim):
    index = batch_of_receivers()
    x = torch.randn(2, index.numel(), 4)
    out = ScatterSum(path)(x, index, dim_size=15, dim=dim)
    expected = torch.stack([loop(part, index, 15) for part in x])
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize('path', PATHS)
def test_without_messages_sums_are_zero(path):
    index = torch.empty(0, dtype=torch.long)
    out = ScatterSum(path)(torch.empty(0, 4), index, dim_size=3, dim=0)
    assert torch.equal(out, torch.zeros(3, 4))


@pytest.mark.parametrize('path', ANY_ORDER)
def test_no_receivers(path):
    index = torch.empty(0, dtype=torch.long)
    out = ScatterSum(path)(torch.empty(0, 4), index, dim_size=0, dim=0)
    assert out.shape == (0, 4)


def test_number_of_receivers_by_default():
    index = torch.tensor([0, 3, 0])
    x = torch.randn(3, 2)
    torch.testing.assert_close(ScatterSum()(x, index, dim=0), loop(x, index, 4))


@pytest.mark.parametrize('index, requires_grad, path', [
    ([0, 0, 1, 1], True, 'segment'),
    ([0, 0, 1, 1], False, 'segment'),
    ([0, 1, 0, 1], True, 'index_add'),
    ([0, 1, 0, 1], False, 'scatter'),
    ([0, 0, 0, 1], True, 'index_add'),
    ([1, 1, 0, 0], True, 'index_add'),
])
def test_auto_on_cpus(index, requires_grad, path):
    x = torch.randn(4, 3, requires_grad=requires_grad)
    assert ScatterSum._fastest(x, torch.tensor(index), 2) == path


def test_any_graph_network_can_use_it(make_system):
    data = make_system()
    out = SimpleConv(aggr=ScatterSum())(data.x[:, 0], data.edge_index)
    expected = SimpleConv(aggr='sum')(data.x[:, 0], data.edge_index)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(
    'index', [[0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 2, 2]])
def test_segment_needs_equal_segments_in_order(index):
    dim_size = max(index) + 1
    with pytest.raises(ValueError, match='sort the edges by receiver'):
        ScatterSum('segment')(torch.randn(4, 3), torch.tensor(index),
                              dim_size=dim_size, dim=0)


def test_receiver_out_of_range():
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        ScatterSum()(torch.randn(2, 3), torch.tensor([0, 2]), dim_size=2, dim=0)


def test_needs_an_index():
    with pytest.raises(ValueError, match='receiver of each message'):
        ScatterSum()(torch.randn(4, 3), ptr=torch.tensor([0, 2, 4]), dim=0)


def test_unknown_path():
    with pytest.raises(ValueError, match="'fast'.*'segment', 'index_add'"):
        ScatterSum('fast')


def test_torch_scatter_is_optional(monkeypatch):
    monkeypatch.setattr(aggr, 'torch_scatter', None)
    with pytest.raises(ImportError, match='needs the package torch-scatter'):
        ScatterSum('torch_scatter')
    ScatterSum()


def test_repr():
    assert str(ScatterSum()) == "ScatterSum(path='auto')"
