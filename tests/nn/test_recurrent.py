import dense
import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import (
    MultiplexConv,
    RecurrentConv,
    RecurrentDecoder,
    RolloutDecoder,
)


@pytest.fixture
def conv():
    return RecurrentConv(4, 3, edge_dim=2, hidden_channels=8)


@pytest.fixture
def graph():
    return fully_connected(5), torch.rand(20, 2)


@pytest.fixture
def args(graph):
    """Features, hidden states and a graph of five particles."""
    return torch.randn(5, 4), torch.randn(5, 8), *graph


@pytest.mark.parametrize('num_particles', [2, 3, 5])
def test_layer_equals_the_papers_equations(conv, num_particles):
    conv = conv.double()
    edge_index = fully_connected(num_particles)
    x = torch.randn(num_particles, 4).double()
    h = torch.randn(num_particles, 8).double()
    z = torch.rand(num_particles, num_particles, 2).double()
    out = conv(x, h, edge_index, dense.of_edges(z, edge_index))
    torch.testing.assert_close(out, dense.recurrent_conv(conv, x, h, z))


@pytest.mark.parametrize('num_edges', [13, 0])
def test_an_edge_of_no_weight_is_no_edge(conv, args, num_edges):
    x, h, edge_index, edge_attr = args
    edge_attr[num_edges:] = 0
    torch.testing.assert_close(
        conv(x, h, edge_index[:, :num_edges], edge_attr[:num_edges]),
        conv(*args))


def test_messages_go_from_senders_to_receivers(conv, args):
    x, h, _, edge_attr = args
    edge_index = torch.tensor([[0, 3], [1, 4]])  # 0 acts on 1, 3 on 4.
    _, before = conv(x, h, edge_index, edge_attr[:2])
    h = h.clone()
    h[0] += 1
    _, after = conv(x, h, edge_index, edge_attr[:2])
    changed = (after - before).abs().amax(-1) > 1e-6
    assert changed.tolist() == [True, True, False, False, False]
    turned = RecurrentConv(4, 3, 2, 8, flow='target_to_source', aggr='sum')
    turned.load_state_dict(conv.state_dict())
    torch.testing.assert_close(
        turned(x, h, edge_index.flip(0), edge_attr[:2])[1], after)


def test_layer_compiles_to_one_graph(conv, args, assert_one_graph):
    assert_one_graph(conv, *args)


# The decoder ################################################################


@pytest.fixture
def make_decoder():
    def make(burn_in=3):
        torch.manual_seed(3)
        return RecurrentDecoder(RecurrentConv(4, 4, 2, 8), burn_in)

    return make


class WithoutMemory(torch.nn.Module):
    """A layer that could do with the last state only."""
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, h, edge_index, edge_attr):
        return self.layer(x, edge_index, edge_attr), None


@pytest.mark.parametrize('burn_in', [1, 3, 4])
@pytest.mark.parametrize('pred_steps', [1, 2, 3, 20])
def test_decoder_equals_the_papers_equations(make_decoder, graph, burn_in,
                                             pred_steps):
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


@pytest.mark.parametrize('pred_steps', [1, 3, 100])
def test_is_a_rollout_where_there_is_no_memory(graph, pred_steps):
    layer = MultiplexConv(4, 4, edge_dim=2, hidden_channels=8)
    x = torch.randn(5, 9, 4)
    decoder = RecurrentDecoder(WithoutMemory(layer), burn_in=1)
    rollout = RolloutDecoder(layer)
    torch.testing.assert_close(decoder(x, *graph, pred_steps=pred_steps),
                               rollout(x, *graph, pred_steps=pred_steps))
    frame = torch.tensor([4, 1])
    torch.testing.assert_close(decoder.one_step(x, *graph, frame=frame),
                               rollout.one_step(x, *graph, frame=frame))
    torch.testing.assert_close(decoder.predict(x, *graph, num_steps=4),
                               rollout.predict(x, *graph, num_steps=4))


@pytest.mark.parametrize('frame', [0, 2, 6, 9])
def test_no_frame_changes_predictions_up_to_itself(make_decoder, graph, frame):
    decoder = make_decoder(burn_in=3)
    x = torch.randn(5, 10, 4)
    changed = x.clone()
    changed[:, frame] += 1
    for pred_steps in (1, 4):
        out = decoder(x, *graph, pred_steps=pred_steps)
        other = decoder(changed, *graph, pred_steps=pred_steps)
        # Prediction t is that of frame t + 1.
        assert torch.equal(out[:, :frame], other[:, :frame])
        if frame < 9 and (pred_steps == 1 or frame in (0, 2, 6)):
            # All that come later remember it.
            assert ((out - other).abs().amax((0, 2)) > 0)[frame:].all()
        else:
            assert torch.equal(out, other)


def test_one_step_is_the_true_past(make_decoder, graph):
    decoder = make_decoder()
    x = torch.randn(5, 9, 4)
    out = decoder.one_step(x, *graph)
    assert torch.equal(out, decoder(x, *graph, pred_steps=1))
    # Shorter trajectories than burn-in are no problem here.
    torch.testing.assert_close(decoder.one_step(x[:, :2], *graph), out[:, :1])


@pytest.mark.parametrize('history', [1, 3, 5])
def test_predict_goes_on_from_a_history(make_decoder, graph, history):
    x = torch.randn(5, 9, 4)
    out = make_decoder(burn_in=2).predict(x[:, :history], *graph,
                                          num_steps=9 - history)
    # The same as one rollout after burn-in over the history.
    expected = make_decoder(burn_in=history)(x, *graph, pred_steps=100)
    torch.testing.assert_close(out, expected[:, history - 1:])


def test_learns_what_the_last_state_does_not_tell():
    # To and fro: from 0, it goes on to where it has been, 1 or -1.
    decoder = RecurrentDecoder(RecurrentConv(1, 1, 1, 16), burn_in=2)
    optimizer = torch.optim.Adam(decoder.parameters(), lr=3e-2)
    graph = fully_connected(4), torch.ones(12, 1)
    side = torch.tensor([1.0, -1.0, -1.0, 1.0]).view(4, 1, 1)
    x = side * torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0]).view(1, 5, 1)
    for _ in range(60):
        optimizer.zero_grad()
        out = decoder(x, *graph, pred_steps=10)
        # Nobody can know which way the first step goes.
        loss = (out - x[:, 1:])[:, 1:].square().mean()
        loss.backward()
        optimizer.step()
    assert loss < 0.1  # At best 1 / 3 without a memory.


def test_burn_in_that_leaves_no_rollout(make_decoder, graph):
    x = torch.randn(5, 6, 4)
    with pytest.raises(ValueError, match='burn_in'):
        make_decoder(burn_in=0)
    for burn_in in (5, 6):  # Of 5, too, each prediction starts at the truth.
        with pytest.raises(ValueError, match='burn_in'):
            make_decoder(burn_in)(x, *graph, pred_steps=2)
        assert make_decoder(burn_in)(x, *graph).shape == (5, 5, 4)
    assert make_decoder(burn_in=4)(x, *graph, pred_steps=2).size(1) == 5
    with pytest.raises(RuntimeError):
        make_decoder().predict(x, *graph, num_steps=0)
