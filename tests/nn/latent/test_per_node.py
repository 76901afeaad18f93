import pytest
import torch

from pyg_fnri.data import fully_connected
from pyg_fnri.nn.latent.per_node import mean_per_node


def test_mean_of_what_edges_say_of_receivers_and_senders():
    edge_index = torch.tensor([[3, 0, 3, 1], [0, 1, 1, 0]])
    logits = torch.randn(4, 6)
    mean, num_edges = mean_per_node(logits, edge_index, num_nodes=6)
    assert mean.shape == (6, 3)
    for node in range(6):
        said = [row[:3] for row, i in zip(logits, edge_index[1]) if i == node]
        said += [row[3:] for row, j in zip(logits, edge_index[0]) if j == node]
        assert num_edges[node] == len(said)
        expected = torch.stack(said).mean(0) if said else torch.zeros(3)
        torch.testing.assert_close(mean[node], expected)


def test_last_node_is_the_last_with_an_edge():
    mean, num_edges = mean_per_node(torch.randn(2, 4),
                                    torch.tensor([[0, 2], [2, 0]]))
    assert num_edges.flatten().tolist() == [2, 0, 2]
    mean, _ = mean_per_node(torch.randn(0, 4), torch.empty(2, 0).long())
    assert mean.shape == (0, 2)


@pytest.mark.parametrize('edge_index', [
    fully_connected(3)[:, 1:],
    fully_connected(3).t(),
    fully_connected(3)[0],
])
def test_edges_of_another_graph(edge_index):
    with pytest.raises(ValueError, match='edge_index of the 6 rows of logits'):
        mean_per_node(torch.randn(6, 4), edge_index)
