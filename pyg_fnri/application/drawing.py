"""Pictures of inferred graphs, and of what follows from them."""
from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_fnri.datasets.spec import OWN_UNIT
from pyg_fnri.inference import Refined
from pyg_fnri.plot import plot_adjacency, plot_multiplex, plot_trajectories
from pyg_fnri.training import RelationalInference


def draw_graphs(
    module: RelationalInference,
    first: Sequence[tuple[Data, Refined]],
    systems: Sequence[Any],
    particles: Sequence[Any],
) -> dict[str, Figure]:
    """Draws the graph of the first system, how probable its interactions are,
    and where systems go from their last observed frame.

    Args:
        module: A trained module.
        first: Systems, split by :func:`~pyg_fnri.application.observe`, and
            the graph of each.
        systems: What each of them is called.
        particles: What the particles of the first one are called.

    Returns:
        The pictures, by the names of their files; without those that there is
        nothing to show on.
    """
    data, graph = first[0]
    out: dict[str, Figure] = {}
    if data.num_edges:
        chosen = torch.stack([
            q.gather(1, types.unsqueeze(1)).squeeze(1)
            for q, types in zip(graph.posterior, graph.edge_type.unbind(-1))
        ], dim=-1)
        out['graph.png'] = plot_multiplex(data.edge_index, graph.edge_type,
                                          probability=chosen.clamp(0, 1))
        interacts = torch.stack([1 - q[:, 0] for q in graph.posterior], dim=-1)
        out['heatmap.png'] = plot_adjacency(
            data.edge_index, interacts.clamp(0, 1), particles=particles,
            label='probability of a type other than 0')
    # As many frames as were looked at are as many as make a clear picture.
    num_steps = min(data.y.size(1) - 1, data.x.size(1))
    if (num_steps == 0 or data.x.size(2) < 4
            or not module.is_trained('decoder')):
        return out  # Nothing to compare or to predict, or no plane to draw in.
    paths = _predict(module, first, num_steps)
    if all(bool(path.isfinite().all()) for path in paths):
        out['trajectories.png'] = plot_trajectories(
            paths, [d.y[:, :num_steps + 1] for d, _ in first],
            observed=[d.x for d, _ in first],
            titles=[f'system {name}' for name in systems], unit=OWN_UNIT)
    return out


def _predict(module: RelationalInference, first: Sequence[tuple[Data, Refined]],
             num_steps: int) -> list[Tensor]:
    """Where each system goes from its last observed frame, which leads."""
    batch = Batch.from_data_list([data for data, _ in first])
    edge_type = torch.cat([graph.edge_type for _, graph in first])
    steps = module.model.predict_trajectory(batch, num_steps, edge_type)
    path = torch.cat([batch.y[:, :1], steps], dim=1)
    return list(path.split(batch.ptr.diff().tolist()))
