import torch
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference import refine
from pyg_fnri.nn import (CategoricalLatent, RelationalAutoEncoder,
                         RolloutDecoder, StandardScaling)
from pyg_fnri.nn.rate_law import rate_laws
from pyg_fnri.simulation import LinearNetwork


def test_directed_networks_are_told_from_decaying_states():
    system = LinearNetwork(num_frames=49)
    graphs = system.draw_edge_types(0, 6, 15)
    x = system.simulate(graphs, 0)
    data = Batch.from_data_list(list(map(from_trajectory, x, graphs)))
    scaling = StandardScaling(1).fit(data.x)
    layer = rate_laws(1, scaling, interval=0.1, terms=['input', 'field'])
    table = layer.laws['input']
    table.value.data.copy_(0.4 * table.knots.unsqueeze(0))
    layer.coefficients['field'].data.copy_(torch.tensor([0.0, -1.0, 0.0]))
    layer.scale.fill_(0.004)
    model = RelationalAutoEncoder(
        torch.nn.Identity(),
        CategoricalLatent([2], drop_null=True, undirected=False),
        RolloutDecoder(layer), scaling)
    model.encoder.forward = lambda x, edges: torch.zeros(edges.size(1), 2)
    found = refine(model, data, num_restarts=0).edge_type
    # States decay into a few directions: one at a time gets stuck.
    assert (found == data.edge_label).double().mean() > 0.995
