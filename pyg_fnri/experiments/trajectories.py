"""The paper's figure of predicted over true trajectories."""
from typing import Optional

import torch
from matplotlib.figure import Figure

from pyg_fnri.datasets.spec import Systems, box_half_width
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy, Relabelling
from pyg_fnri.plot import plot_trajectories
from pyg_fnri.training import RelationalInference


def draw_continuations(module: RelationalInference, dataset: Systems,
                       num_systems: int = 4) -> Figure:
    """Draws how the first systems of a data set go on after what the encoder
    saw, each predicted in one rollout from its last observed state alone.

    Args:
        module: A trained module.
        dataset: Systems with the observed frames as :obj:`x`, and the frames
            that follow them without a gap as :obj:`y`.
        num_systems: How many to draw.
    """
    model = module.model
    relabelling = find_relabelling(module, dataset)
    predicted, true, titles = [], [], []
    for i, data in enumerate(dataset[:num_systems]):
        edge_type = model.predict(data)
        path = model.predict_trajectory(data, data.y.size(1), edge_type)
        start = data.x[:, -1:]
        predicted.append(torch.cat([start, path], dim=1))
        true.append(torch.cat([start, data.y], dim=1))
        title = f'system {i}'
        if relabelling is not None:
            right = (relabelling(edge_type) == data.edge_label).all(-1)
            title += f': edges {right.double().mean():.0%} right'
        titles.append(title)
    return plot_trajectories(predicted, true, titles=titles,
                             half_width=box_half_width(dataset))


def find_relabelling(module: RelationalInference, dataset: Systems,
                     num_systems: int = 1_000) -> Optional[Relabelling]:
    """The relabelling that fits the first systems of a data set best, None
    where the truth is not known."""
    accuracy = EdgeAccuracy(module.config.num_edge_types,
                            module.model.latent.num_edge_types)
    for batch in SystemLoader(dataset[:num_systems], batch_size=500):
        if 'edge_label' in batch:
            accuracy.update(module.model.predict(batch), batch.edge_label)
    return accuracy.compute().relabelling if accuracy.update_called else None
