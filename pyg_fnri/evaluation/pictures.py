"""Pictures of what a model sees and predicts, beside the truth."""
import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import torch
from matplotlib.figure import Figure
from torch import Tensor

from pyg_fnri.datasets.spec import Systems, box_half_width, length_unit
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.evaluation.law_curves import LawCurves
from pyg_fnri.evaluation.printing import layer_names
from pyg_fnri.metrics import Relabelling
from pyg_fnri.nn import per_mass
from pyg_fnri.plot import (
    plot_laws,
    plot_multiplex,
    plot_reliability,
    plot_trajectories,
)
from pyg_fnri.training import RelationalInference


def write_pictures(
    module: RelationalInference,
    dataset: Systems,
    figures: Mapping[str, Any],
    graphs: Sequence[Tensor],
    laws: Optional[LawCurves],
    out: str,
) -> list[str]:
    """Writes what there is to see: rollouts, a graph, how far probabilities
    can be trusted, force laws.

    Args:
        module: A trained module.
        dataset: Its systems.
        figures: What :func:`~pyg_fnri.evaluation.evaluate` says of them.
        graphs: Types :obj:`[num_edges, num_layers]` of the first systems, as
            predicted.
        laws: Its force laws, if it has some.
        out: The directory.

    Returns:
        The names of the files.
    """
    relabelling = figures.get('relabelling')
    pictures: dict[str, Figure] = {}
    if 'rollout_mse' in figures and module.config.in_channels >= 4:
        pictures['trajectories.png'] = draw_rollouts(module, dataset, graphs,
                                                     relabelling)
    if 'entropy' in figures and dataset[0].num_edges:  # It has been inferred.
        pictures['graph.png'] = plot_multiplex(
            dataset[0].edge_index,
            graphs[0] if relabelling is None else relabelling(graphs[0]),
            dataset[0].get('edge_label'), names=list(module.config.names)
            or None)
    if 'reliability' in figures:
        pictures['reliability.png'] = draw_reliability(module, figures)
    if laws is not None:
        pictures['laws.png'] = plot_laws(laws.distance, laws.learned, laws.true,
                                         names=laws.names, seen=laws.seen,
                                         unit=laws.unit,
                                         force_unit=laws.force_unit)
    for name, picture in pictures.items():
        with written_whole(os.path.join(out, name)) as path:
            picture.savefig(path, format='png')
    return list(pictures)


@torch.no_grad()
def draw_rollouts(
    module: RelationalInference,
    dataset: Systems,
    graphs: Sequence[Tensor],
    relabelling: Optional[Relabelling] = None,
) -> Figure:
    """Predictions from the first state of :obj:`y` alone, as in the paper's
    figure, of as many systems as there are graphs; arguments as of
    :func:`write_pictures`."""
    model = module.model
    predicted, true, titles = [], [], []
    for i, (data, edge_type) in enumerate(zip(dataset, graphs)):
        edge_attr = per_mass(model.latent.encode_types(edge_type), data)
        path = model.decode(data.y, data.edge_index, edge_attr, data.y.size(1))
        predicted.append(torch.cat([data.y[:, :1], path], dim=1))
        true.append(data.y)
        title = f'{dataset.name} {i}'
        if relabelling is not None:
            right = (relabelling(edge_type) == data.edge_label).all(-1)
            title = f'edges {right.double().mean():.0%} right'
        titles.append(title)
    return plot_trajectories(predicted, true, titles=titles,
                             half_width=box_half_width(dataset),
                             unit=length_unit(dataset))


def draw_reliability(module: RelationalInference,
                     figures: Mapping[str, Any]) -> Figure:
    """How often edges are right, by how sure the model is: of all layers
    together, and of each."""
    bins, errors = figures['reliability'], figures['calibration_error']
    layers = {
        name: layer.values()
        for name, layer in zip(layer_names(module), bins['layers'])
    }
    return plot_reliability({
        'combined': bins['combined'].values(),
        **layers
    }, [errors['combined'], *errors['layers']])
