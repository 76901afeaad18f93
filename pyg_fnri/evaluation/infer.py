"""Interaction graphs of a user's own systems: tables, networks, pictures."""
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import networkx as nx
import pandas as pd
import torch
from matplotlib.figure import Figure
from rich.progress import track
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_fnri.convert import to_networkx, to_pandas
from pyg_fnri.datasets import NRIFolder, TrajectoryTable
from pyg_fnri.datasets.particle_systems import find_system
from pyg_fnri.datasets.spec import (OWN_UNIT, describe_files, frame_interval,
                                    open_dataset, remembered_reading)
from pyg_fnri.datasets.stored import check_writable
from pyg_fnri.evaluation.report import draw_rollouts
from pyg_fnri.inference import Refined, refine, shared_graph
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import type_confidence
from pyg_fnri.nn import Scaling
from pyg_fnri.nn.scaling import split_quantities
from pyg_fnri.plot import plot_adjacency, plot_multiplex
from pyg_fnri.training import Config, RelationalInference

OwnSystems = Union[TrajectoryTable, NRIFolder]

#: Files of inferred graphs, all that there can be.
RESULTS = ('edges.csv', 'graphs.graphml', 'changes.csv', 'graph.png',
           'heatmap.png', 'changes.png', 'trajectories.png')
#: Systems that are drawn, at the most.
NUM_DRAWN = 4
#: How many times larger or smaller trajectories may be than in training.
MAX_RATIO = 20.


def open_systems(config: Config, data: str, root: str,
                 reading: Optional[Mapping[str, Any]] = None,
                 **files: Any) -> OwnSystems:
    """Opens trajectories that a model was not trained on, whole; of a folder
    those of the test split. They are read (unless :obj:`reading` differs) and
    candidate edges chosen as in training; :obj:`files` as for
    :func:`~pyg_fnri.datasets.spec.describe_files`."""
    remembered = remembered_reading(config.data, data)
    if reading and 'position' in reading:  # Velocities are those of others.
        remembered.pop('velocity', None)
    reading = {**remembered, **(reading or {})}
    mass = config.data.get('reading', {}).get('mass')
    if mass is not None and reading.get('mass') is None:
        # All particles would be taken for alike, and forces be wrong.
        raise ValueError(f"The model was trained on particles whose masses "
                         f"are known, by mass={mass}, and those of '{data}' "
                         f"are not; say by mass=NAME which feature holds them.")
    for name in ('neighbours', 'radius', 'directed'):
        if name in config.data:
            files[name] = config.data[name]
    description = describe_files(data, num_observed=config.num_observed,
                                 reading=reading, **files)
    split = 'test' if 'folder' in description['files'] else 'all'
    dataset = open_dataset(description, root, split)
    assert isinstance(dataset, (TrajectoryTable, NRIFolder))
    num_steps, num_features = dataset[0].x.shape[1:]
    if num_features != config.in_channels:
        raise ValueError(f"The model was trained on {config.in_channels} "
                         f"features of a particle, positions and velocities, "
                         f"but '{data}' has {num_features}.")
    if config.recipe != 'laws' and num_steps < config.num_observed:
        raise ValueError(f"The model looks at {config.num_observed} frames, "
                         f"but the systems in '{data}' have {num_steps}.")
    # Frames further apart look like faster particles, and nothing would fail.
    trained = config.data.get('time_step')
    if 'num_systems' in config.data:
        trained = find_system(config.data.get('name'))[1].frame_interval
    found = frame_interval(description, dataset)
    if trained and found and abs(found - trained) > 0.05 * trained:
        raise ValueError(f"Frames of '{data}' are {found:g} apart, but "
                         f"those that the model was trained on {trained:g}; "
                         f"resample the trajectories.")
    return dataset


def observe(data: Any, num_observed: Optional[int]) -> Any:
    """Splits systems into observed :obj:`x`, by default all frames, and, from
    its end on, :obj:`y`."""
    num_observed = num_observed or data.x.size(1)
    data.x, data.y = data.x[:, :num_observed], data.x[:, num_observed - 1:]
    return data


def check_sizes(units: Scaling, x: Tensor) -> None:
    """Warns of trajectories :obj:`[num_nodes, T, F]` far larger or smaller
    than those of training: they may be in another unit, and graphs wrong."""
    parts = split_quantities(units(x))
    names = ['Positions', 'Velocities']
    if len(parts) != 2:
        names = [f'Feature {i}' for i in range(len(parts))]
    for name, values in zip(names, parts):
        some = values.flatten()[::max(1, values.numel() // 1_000_000)]
        low, high = some.quantile(torch.tensor([0.01, 0.99])).tolist()
        ratio = (high - low) / 2  # Of those of training, -1 to 1.
        if not 1 / MAX_RATIO <= ratio <= MAX_RATIO:
            warnings.warn(
                f"{name} spread {ratio:.3g} times as far as those that the "
                f"model was trained on; if they are in another unit, its "
                f"graphs are wrong: convert the data.", stacklevel=2)


def frames_looked_at(module: RelationalInference) -> Optional[int]:
    """How many frames the encoder takes; None without one: all there are."""
    encoder = module.is_trained('encoder')
    return module.config.num_observed if encoder else None


class InferredGraphs(NamedTuple):
    """Candidate edges of many systems, their interactions as one network (see
    :mod:`pyg_fnri.convert`), and the first systems with the graph of each."""
    table: pd.DataFrame
    network: nx.MultiGraph
    first: list[tuple[Data, Refined]]


def infer_graphs(module: RelationalInference, dataset: OwnSystems,
                 refined: bool = False, shared: bool = False,
                 batch_size: int = 100) -> InferredGraphs:
    """Infers a graph for each system, with whole trajectories.

    Args:
        refined: Refine each, see :func:`~pyg_fnri.inference.refine`; by all
            frames if there is no encoder that takes some.
        shared: Infer one graph for all, which must have the same particles,
            see :func:`~pyg_fnri.inference.shared_graph`.
    """
    model, num_observed = module.model, frames_looked_at(module)
    systems, particles = dataset.system_names, dataset.particle_names
    batches = (observe(batch, num_observed) for batch in track(
        SystemLoader(dataset, batch_size), 'inferring', transient=True))
    first = [
        observe(dataset[i], num_observed)
        for i in range(min(NUM_DRAWN, len(dataset)))
    ]
    if shared:
        for name, own in zip(systems, particles):
            if own != particles[0]:
                odd = [p for p in own if p not in particles[0]]
                odd += [p for p in particles[0] if p not in own]
                raise ValueError(f"Systems that share a graph have the same "
                                 f"particles, but {odd[0]!r} is in only one "
                                 f"of the systems {systems[0]!r} and {name!r}; "
                                 f"infer a graph for each.")
        graph = shared_graph(model, batches, refined, systems)
        data, graphs = first[0], [graph] * len(first)
        systems, particles = ['all'], particles[:1]
    else:
        parts, posteriors = list[Data](), list[Sequence[Tensor]]()
        masses = list[Optional[Tensor]]()
        for batch in batches:
            edge_type, posterior, mass = (refine(model, batch) if refined else
                                          Refined(*model.infer(batch)))
            owners = range(batch.num_graphs)
            masses += [
                None if mass is None else mass[batch.batch == i] for i in owners
            ]
            # Without the trajectories. PyG shifts what is called a batch.
            parts.append(
                Data(edge_index=batch.edge_index, edge_type=edge_type,
                     system_batch=batch.batch, num_nodes=batch.num_nodes))
            posteriors.append(posterior)
        data = Batch.from_data_list(parts)
        data.batch = data.system_batch  # Of systems, not of batches of them.
        graph = Refined(data.edge_type, [*map(torch.cat, zip(*posteriors))])
        owner = data.batch[data.edge_index[1]]
        graphs = [
            Refined(graph.edge_type[owner == i],
                    [q[owner == i] for q in graph.posterior], masses[i])
            for i in range(len(first))
        ]
    names: dict[str, Any] = dict(probability=graph.posterior, systems=systems,
                                 particles=particles)
    table = to_pandas(data, graph.edge_type, **names)
    network = to_networkx(data, graph.edge_type,
                          undirected=model.latent.undirected, **names)
    return InferredGraphs(
        table.drop(columns='system') if shared else table, network,
        list(zip(first, graphs)))


def draw_graphs(module: RelationalInference,
                first: Sequence[tuple[Data, Refined]], systems: Sequence[Any],
                particles: Sequence[Any]) -> dict[str, Figure]:
    """Draws the graph of the first system, how probable its interactions are,
    and predictions of :attr:`InferredGraphs.first`, by the names of files;
    :obj:`particles` are those of the first system."""
    data, graph = first[0]
    out: dict[str, Figure] = {}
    if data.num_edges:
        out['graph.png'] = plot_multiplex(
            data.edge_index, graph.edge_type,
            probability=type_confidence(graph.edge_type, graph.posterior))
        interacts = torch.stack([1 - q[:, 0] for q in graph.posterior], dim=-1)
        out['heatmap.png'] = plot_adjacency(data.edge_index,
                                            interacts.clamp(0, 1), particles)
    # As many frames as were looked at are as many as make a clear picture.
    num_steps = min(data.y.size(1) - 1, data.x.size(1))
    planar = data.x.size(2) >= 4
    if num_steps and planar and module.is_trained('decoder'):
        predict = module.model.predict_trajectory
        for d, own in first:
            if own.mass is not None:
                d.mass = own.mass
        frames = [predict(d, num_steps, own.edge_type) for d, own in first]
        out['trajectories.png'] = draw_rollouts(
            frames, [d.y[:, :num_steps + 1] for d, _ in first],
            observed=[d.x for d, _ in first],
            titles=[f'system {name}' for name in systems], unit=OWN_UNIT)
    return out


def present_results(out: str) -> list[str]:
    return [name for name in RESULTS if os.path.exists(os.path.join(out, name))]


def check_results(out: str, overwrite: bool = False) -> None:
    """Makes a directory, and sure that no results there get lost."""
    there = present_results(out)
    if there and not overwrite:
        raise ValueError(f"'{out}' holds {there[0]} already; allow to "
                         f"overwrite the results there, or name another "
                         f"directory.")
    check_writable(out)


def write_results(out: str, tables: Mapping[str, pd.DataFrame],
                  network: nx.MultiGraph, pictures: Mapping[str,
                                                            Figure]) -> None:
    """Replaces all :obj:`RESULTS` of a directory, once all are written."""
    with tempfile.TemporaryDirectory(dir=out) as folder:
        for name, table in tables.items():
            table.to_csv(os.path.join(folder, name), index=False)
        nx.write_graphml(network, os.path.join(folder, 'graphs.graphml'),
                         edge_id_from_attribute='id')
        for name, figure in pictures.items():
            figure.savefig(os.path.join(folder, name))
        for name in RESULTS:
            old, new = os.path.join(out, name), os.path.join(folder, name)
            if os.path.exists(new):
                os.replace(new, old)
            elif os.path.exists(old):
                os.remove(old)  # Of other systems, and replaced by nothing.
