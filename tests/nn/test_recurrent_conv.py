import dense
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import RecurrentConv, ScatterSum


@pytest.fixture
def conv():
    return RecurrentConv(4, 3, edge_dim=2, hidden_channels=8)


@pytest.fixture
def args():
    """Features, hidden states and a graph of five particles."""
    return (torch.randn(5, 4), torch.randn(5, 8), fully_connected(5),
            torch.rand(20, 2))


@pytest.mark.parametrize('num_particles', [2, 3, 5])
def test_equals_the_papers_equations(conv, num_particles):
    conv = conv.double()
    edge_index = fully_connected(num_particles)
    x = torch.randn(num_particles, 4).double()
    h = torch.randn(num_particles, 8).double()
    z = torch.rand(num_particles, num_particles, 2).double()
    out = conv(x, h, edge_index, dense.of_edges(z, edge_index))
    torch.testing.assert_close(out, dense.recurrent_conv(conv, x, h, z))


def test_starts_from_zeros(conv, args):
    x, h, *graph = args
    torch.testing.assert_close(conv(x, None, *graph),
                               conv(x, torch.zeros_like(h), *graph))


def test_renumbering_the_particles_renumbers_the_results(conv, args):
    x, h, edge_index, edge_attr = args
    order = torch.tensor([3, 0, 4, 1, 2])
    out = conv(x[order], h[order], order.argsort()[edge_index], edge_attr)
    expected = conv(*args)
    torch.testing.assert_close(out, tuple(part[order] for part in expected))


def test_order_of_edges_is_nothing_to_it(conv, args):
    x, h, edge_index, edge_attr = args
    order = torch.randperm(20)[:13]
    kept = torch.zeros(20, 1)
    kept[order] = 1
    # An edge of no weight is none.
    torch.testing.assert_close(
        conv(x, h, edge_index[:, order], edge_attr[order]),
        conv(x, h, edge_index, edge_attr * kept))


def test_batch_of_mixed_sizes_equals_systems_one_by_one(conv, make_system):
    systems = [make_system(n) for n in (2, 5, 3)]
    for data in systems:
        data.h = torch.randn(data.num_nodes, 8)
        data.edge_attr = torch.rand(data.num_edges, 2)

    def run(data):
        return conv(data.x[:, 0], data.h, data.edge_index, data.edge_attr)

    expected = zip(*map(run, systems))
    torch.testing.assert_close(run(Batch.from_data_list(systems)),
                               tuple(map(torch.cat, expected)))


def test_messages_go_from_senders_to_receivers(conv, args):
    x, h, _, edge_attr = args
    edge_index = torch.tensor([[0, 3], [1, 4]])  # 0 acts on 1, 3 on 4.
    _, before = conv(x, h, edge_index, edge_attr[:2])
    h = h.clone()
    h[0] += 1
    _, after = conv(x, h, edge_index, edge_attr[:2])
    changed = (after - before).abs().amax(-1) > 1e-6
    assert changed.tolist() == [True, True, False, False, False]
    turned = RecurrentConv(4, 3, 2, 8, flow='target_to_source')
    turned.load_state_dict(conv.state_dict())
    torch.testing.assert_close(
        turned(x, h, edge_index.flip(0), edge_attr[:2])[1], after)


def test_channels_have_networks_of_their_own(conv, args):
    x, h, edge_index, edge_attr = args
    _, one = conv(x, h, edge_index, edge_attr)
    _, other = conv(x, h, edge_index, edge_attr.flip(1))
    assert not torch.allclose(one, other)


def test_hidden_states_stay_within_bounds(conv, args):
    x, _, *graph = args
    h = None
    for _ in range(50):
        _, h = conv(100 * x, h, *graph)
    assert h.abs().max() <= 1


@pytest.mark.parametrize('aggr', ['sum', ScatterSum()])
def test_any_sum_can_be_given(conv, args, aggr):
    other = RecurrentConv(4, 3, 2, 8, aggr=aggr)
    other.load_state_dict(conv.state_dict())
    torch.testing.assert_close(other(*args), conv(*args))


def test_no_candidate_edges(conv, args):
    x, h = args[:2]
    out, new = conv(x, h, torch.empty(2, 0).long(), torch.empty(0, 2))
    torch.testing.assert_close(new, conv.gru(torch.cat([0 * h, x], -1), h))
    assert out.shape == (5, 3)


def test_gradients_reach_every_weight(conv, args):
    for part in conv(*args):
        part.square().sum().backward(retain_graph=True)
    for name, parameter in conv.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_compiles_to_one_graph(conv, args, assert_one_graph):
    assert_one_graph(conv, *args)


def test_reset_parameters_draws_every_weight_again(conv):
    torch.manual_seed(1)
    conv.reset_parameters()
    first = {key: value.clone() for key, value in conv.state_dict().items()}
    conv.reset_parameters()
    for key, value in conv.state_dict().items():
        assert not (value == first[key]).any(), key
    torch.manual_seed(1)
    conv.reset_parameters()
    for key, value in conv.state_dict().items():
        assert torch.equal(value, first[key]), key


@pytest.mark.parametrize('place, size, message', [
    (0, (5, 3), r'one frame, \[num_nodes, 4\], but got \[5, 3\]'),
    (0, (5, 6, 4), r'one frame, .* got \[5, 6, 4\]'),
    (1, (5, 7), r'hidden states of shape \[5, 8\] .* got \[5, 7\]'),
    (1, (1, 8), r'hidden states of shape \[5, 8\] .* got \[1, 8\]'),
    (3, (20, 3), r'edge attributes of shape \[20, 2\] .* got \[20, 3\]'),
    (3, (1, 2), r'edge attributes of shape \[20, 2\] .* got \[1, 2\]'),
    (3, (20, ), r'edge attributes of shape \[20, 2\] .* got \[20\]'),
])
def test_wrong_shapes(conv, args, place, size, message):
    args = list(args)
    args[place] = torch.randn(size)
    with pytest.raises(ValueError, match=message):
        conv(*args)


def test_repr(conv):
    assert str(conv) == 'RecurrentConv(4, 3, edge_dim=2, hidden_channels=8)'
