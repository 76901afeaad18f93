import dense
import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import MultiplexConv, RolloutDecoder


@pytest.fixture
def decoder():
    return RolloutDecoder(MultiplexConv(4, 4, edge_dim=2, hidden_channels=8))


@pytest.fixture
def graph():
    return fully_connected(5), torch.rand(20, 2)


@pytest.mark.parametrize('pred_steps', [1, 5, 12])
def test_equals_the_authors(reference, pred_steps):
    decoder = reference.model().decoder
    out = decoder(reference.x, reference.edge_index,
                  reference.flat('edge_attr'), pred_steps)
    expected = reference.flat(f'rollout_{pred_steps}')
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize('pred_steps', [1, 3, 8, 100])
def test_rollout_equals_a_loop(decoder, graph, pred_steps):
    x = torch.randn(5, 9, 4)
    out = decoder(x, *graph, pred_steps=pred_steps)
    expected = dense.rollout(lambda state: decoder.step(state, *graph), x,
                             pred_steps)
    torch.testing.assert_close(out, expected)


def test_predictions_from_the_last_state_and_from_each_frame(decoder, graph):
    x = torch.randn(5, 9, 4)
    out = decoder.predict(x[:, :1], *graph, num_steps=8)
    torch.testing.assert_close(out, decoder(x, *graph, pred_steps=8))
    history = torch.cat([torch.randn(5, 3, 4), x[:, :1]], dim=1)
    assert torch.equal(decoder.predict(history, *graph, num_steps=8), out)
    out = decoder.one_step(x, *graph)
    torch.testing.assert_close(out, decoder(x, *graph, pred_steps=1))


@pytest.mark.slow
def test_step_compiles_to_one_graph(decoder, graph, assert_one_graph):
    assert_one_graph(decoder.step, torch.randn(5, 3, 4), *graph)
