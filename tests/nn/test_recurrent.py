import dense
import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import RecurrentConv, RecurrentDecoder


@pytest.fixture
def graph():
    return fully_connected(5), torch.rand(20, 2)


@pytest.mark.parametrize('num_particles', [2, 5])
def test_layer_equals_the_papers_equations(num_particles):
    conv = RecurrentConv(4, 3, edge_dim=2, hidden_channels=8).double()
    edge_index = fully_connected(num_particles)
    x = torch.randn(num_particles, 4).double()
    h = torch.randn(num_particles, 8).double()
    z = torch.rand(num_particles, num_particles, 2).double()
    out = conv(x, h, edge_index, dense.of_edges(z, edge_index))
    torch.testing.assert_close(out, dense.recurrent_conv(conv, x, h, z))
    with pytest.raises(ValueError, match='edge attributes'):
        conv(x, h, edge_index, torch.rand(1, 2).double())


# The decoder ################################################################


def make_decoder(burn_in=3):
    torch.manual_seed(3)
    return RecurrentDecoder(RecurrentConv(4, 4, 2, 8), burn_in)


@pytest.mark.parametrize('burn_in', [1, 3, 4])
@pytest.mark.parametrize('pred_steps', [1, 3, 20])
def test_decoder_equals_the_papers_equations(graph, burn_in, pred_steps):
    decoder = make_decoder(burn_in).double()
    edge_index, edge_attr = graph[0], graph[1].double()
    z = dense.to_dense(edge_attr, edge_index, 5)
    x = torch.randn(5, 10, 4).double()
    h, since, expected = torch.zeros(5, 8).double(), 0, []
    for t in range(9):
        if t < burn_in or since == pred_steps:
            state, since = x[:, t], 0
        change, h = dense.recurrent_conv(decoder.layer, state, h, z)
        state, since = state + change, since + 1
        expected.append(state)
    out = decoder(x, edge_index, edge_attr, pred_steps)
    torch.testing.assert_close(out, torch.stack(expected, 1))
    # One step is the true past; of any length.
    out, args = decoder(x, edge_index, edge_attr), (edge_index, edge_attr)
    assert torch.equal(decoder.one_step(x, *args), out)
    torch.testing.assert_close(decoder.one_step(x[:, :2], *args), out[:, :1])


@pytest.mark.parametrize('history', [1, 3, 5])
def test_predict_goes_on_from_a_history(graph, history):
    x = torch.randn(5, 9, 4)
    out = make_decoder(burn_in=2).predict(x[:, :history], *graph,
                                          num_steps=9 - history)
    # The same as one rollout after burn-in over the history.
    expected = make_decoder(burn_in=history)(x, *graph, pred_steps=100)
    torch.testing.assert_close(out, expected[:, history - 1:])


def test_burn_in_that_leaves_no_rollout(graph):
    x = torch.randn(5, 6, 4)
    with pytest.raises(ValueError, match='burn_in'):
        make_decoder(burn_in=0)
    for burn_in in (5, 6):  # Of 5, too, each prediction starts at the truth.
        with pytest.raises(ValueError, match='burn_in'):
            make_decoder(burn_in)(x, *graph, pred_steps=2)
        assert make_decoder(burn_in)(x, *graph).shape == (5, 5, 4)
