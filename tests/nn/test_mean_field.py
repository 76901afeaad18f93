import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import CategoricalLatent, SigmoidLatent
from pyg_fnri.nn.latent import most_probable
from pyg_fnri.nn.mean_field import mean_field


@pytest.fixture
def systems():
    return Batch.from_data_list(
        [Data(edge_index=fully_connected(4), num_nodes=4) for _ in range(50)])


@pytest.mark.parametrize('latent', [
    CategoricalLatent([2, 3], drop_null=True, undirected=True),
    CategoricalLatent([6], drop_null=True, undirected=True),
    CategoricalLatent([2, 2]),
    SigmoidLatent([2, 2], undirected=True),
    CategoricalLatent([2, 2], undirected=True, shared=True)
])
def test_graphs_are_those_of_which_changes_are_made(latent, systems):
    edge_index = systems.edge_index
    num_edges = edge_index.size(1)
    effects = torch.randn(num_edges, latent.num_channels, 10, 4)
    logits = torch.randn(num_edges, latent.num_logits)
    truth = latent.predict(latent.tie(logits, edge_index, systems.batch))
    sent = torch.einsum('ec,ectf->etf', latent.encode_types(truth), effects)
    change = torch.zeros(systems.num_nodes, 10, 4)
    change.index_add_(0, edge_index[1], sent)
    change += 0.1 * torch.randn(change.size())
    change[:, 0] += 100.  # A frame that nothing explains.
    start = latent.posterior(torch.zeros(logits.size()))
    found = most_probable(mean_field(latent, start, effects, change, systems))
    assert (found == truth).all(-1).double().mean() > 0.99
    if latent.undirected:
        by_pair = found.view(50, 4, 3, -1)
        assert by_pair[:, 0, 0].equal(by_pair[:, 1, 0])
