import dense
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import (
    MultiplexConv,
    RecurrentConv,
    RecurrentDecoder,
    RolloutDecoder,
)


@pytest.fixture
def make_decoder():
    def make(burn_in=3):
        torch.manual_seed(3)
        return RecurrentDecoder(RecurrentConv(4, 4, 2, 8), burn_in)

    return make


@pytest.fixture
def graph():
    return fully_connected(5), torch.rand(20, 2)


class WithoutMemory(torch.nn.Module):
    """A layer that could do with the last state only."""
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, h, edge_index, edge_attr):
        return self.layer(x, edge_index, edge_attr), None


@pytest.mark.parametrize('burn_in', [1, 3, 4])
@pytest.mark.parametrize('pred_steps', [1, 2, 3, 20])
def test_equals_the_papers_equations(make_decoder, graph, burn_in, pred_steps):
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


@pytest.mark.parametrize('pred_steps', [1, 2, 3, 7, 100])
def test_is_a_rollout_where_there_is_nothing_to_remember(graph, pred_steps):
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


@pytest.mark.parametrize('pred_steps', [2, 5, 100])
def test_burn_in_sees_the_truth(make_decoder, graph, pred_steps):
    decoder = make_decoder(burn_in=4)
    x = torch.randn(5, 9, 4)
    out = decoder(x, *graph, pred_steps=pred_steps)
    forced = decoder(x, *graph, pred_steps=1)
    assert torch.equal(out[:, :4], forced[:, :4])
    assert not torch.isclose(out[:, 4], forced[:, 4]).all(-1).any()


def test_looks_at_every_mth_frame_after_burn_in(make_decoder, graph):
    decoder = make_decoder(burn_in=3)
    x = torch.randn(5, 12, 4)
    other = torch.randn(5, 12, 4)
    other[:, :3] = x[:, :3]
    for t in (6, 10):
        other[:, t] = x[:, t]
    assert torch.equal(decoder(x, *graph, pred_steps=4),
                       decoder(other, *graph, pred_steps=4))


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
    frame = torch.tensor([7, 0, 3, 3])
    assert torch.equal(decoder.one_step(x, *graph, frame=frame), out[:, frame])
    for frame in (8, -1):
        with pytest.raises((IndexError, RuntimeError)):
            decoder.one_step(x, *graph, frame=torch.tensor([frame]))
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


def test_batch_of_mixed_sizes_equals_systems_one_by_one(make_decoder,
                                                        make_system):
    decoder = make_decoder()
    systems = [make_system(n) for n in (2, 5, 3)]
    for data in systems:
        data.edge_attr = torch.rand(data.num_edges, 2)

    def run(data):
        return decoder(data.x, data.edge_index, data.edge_attr, pred_steps=2)

    expected = torch.cat([run(data) for data in systems])
    torch.testing.assert_close(run(Batch.from_data_list(systems)), expected)


def test_renumbering_the_particles_renumbers_the_results(make_decoder, graph):
    decoder, (edge_index, edge_attr) = make_decoder(), graph
    x, order = torch.randn(5, 6, 4), torch.tensor([3, 0, 4, 1, 2])
    out = decoder(x[order], order.argsort()[edge_index], edge_attr, 2)
    torch.testing.assert_close(out, decoder(x, *graph, pred_steps=2)[order])


def test_gradients_flow_through_all_steps(make_decoder, graph):
    decoder, (edge_index, edge_attr) = make_decoder(), graph
    edge_attr.requires_grad_()
    out = decoder(torch.randn(5, 9, 4), edge_index, edge_attr, pred_steps=4)
    out[:, -1].square().sum().backward()
    assert edge_attr.grad.abs().min() > 0
    for name, parameter in decoder.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


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


def test_reset_parameters_draws_the_layers_weights_again(make_decoder):
    decoder = make_decoder()
    first = decoder.layer.weight.clone()
    decoder.reset_parameters()
    assert not (decoder.layer.weight == first).any()


@pytest.mark.parametrize('size', [(5, 1, 4), (5, 4), (5, 0, 4)])
def test_too_few_frames(make_decoder, graph, size):
    for method in (make_decoder(), make_decoder().one_step):
        with pytest.raises(ValueError, match='at least T = 2 frames'):
            method(torch.randn(size), *graph)


@pytest.mark.parametrize('size', [(5, 4), (5, 0, 4)])
def test_no_history(make_decoder, graph, size):
    with pytest.raises(ValueError, match='a history .* at least T = 1 frame'):
        make_decoder().predict(torch.randn(size), *graph, num_steps=2)


@pytest.mark.parametrize('steps', [0, -1])
def test_no_steps(make_decoder, graph, steps):
    x = torch.randn(5, 3, 4)
    with pytest.raises(ValueError, match=f'pred_steps .* got {steps}'):
        make_decoder()(x, *graph, pred_steps=steps)
    with pytest.raises(ValueError, match=f'num_steps .* got {steps}'):
        make_decoder().predict(x, *graph, num_steps=steps)
    with pytest.raises(ValueError, match=f'burn_in .* got {steps}'):
        make_decoder(burn_in=steps)


def test_burn_in_is_a_whole_number(make_decoder):
    with pytest.raises(TypeError, match='float'):
        make_decoder(burn_in=2.5)


def test_burn_in_that_leaves_nothing_to_roll_out(make_decoder, graph):
    x = torch.randn(5, 6, 4)
    for burn_in in (5, 6):  # Of 5, too, each prediction starts at the truth.
        decoder = make_decoder(burn_in)
        with pytest.raises(ValueError,
                           match=f'burn_in of {burn_in} .* over 2 .* 6 frames'):
            decoder(x, *graph, pred_steps=2)
        assert decoder(x, *graph).shape == (5, 5, 4)
    assert make_decoder(burn_in=4)(x, *graph, pred_steps=2).size(1) == 5


def test_repr(make_decoder):
    assert 'burn_in=3' in str(make_decoder())
