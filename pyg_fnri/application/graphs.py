"""The interaction graphs of many systems, with the names that users gave."""
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import networkx as nx
import pandas as pd
import torch
from rich.progress import track
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_fnri.application.systems import OwnSystems, observe
from pyg_fnri.convert import to_networkx, to_pandas
from pyg_fnri.inference import Refined, refine, shared_graph
from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import RelationalInference

#: Systems in a batch.
BATCH_SIZE = 100


class InferredGraphs(NamedTuple):
    """What is inferred of many systems.

    Args:
        table: Their candidate edges, as of
            :func:`~pyg_fnri.convert.to_pandas`.
        network: Their interactions as parts of one graph, as of
            :func:`~pyg_fnri.convert.to_networkx`.
        first: The first systems, split by
            :func:`~pyg_fnri.application.observe`, and the graph of each.
    """
    table: pd.DataFrame
    network: nx.MultiGraph
    first: list[tuple[Data, Refined]]


def infer_each(module: RelationalInference, dataset: OwnSystems,
               refined: bool = False, num_first: int = 4) -> InferredGraphs:
    """Infers a graph for each system.

    Args:
        module: A trained module.
        dataset: The systems, with whole trajectories.
        refined: Whether graphs are refined, by
            :func:`~pyg_fnri.inference.refine`.
        num_first: How many systems to give back by themselves, at the most.

    Raises:
        As :meth:`RelationalAutoEncoder.posterior`, or
        :func:`~pyg_fnri.inference.refine`.
    """
    parts: list[Data] = []
    posteriors: list[list[Tensor]] = []
    for batch in _batches(module, dataset):
        graph = (refine(module.model, batch) if refined else Refined(
            *module.model.infer(batch)))
        # Without the trajectories. PyG shifts what is called a batch, too.
        parts.append(
            Data(edge_index=batch.edge_index, edge_type=graph.edge_type,
                 system_batch=batch.batch, num_nodes=batch.num_nodes))
        posteriors.append(graph.posterior)
    joined = Batch.from_data_list(parts)
    joined.batch = joined.system_batch  # Of systems, not of batches of them.
    graph = Refined(joined.edge_type,
                    [torch.cat(layer) for layer in zip(*posteriors)])
    table, network = _convert(module, joined, graph, dataset.system_names,
                              dataset.particle_names)
    owner = joined.batch[joined.edge_index[1]]
    first = [(data,
              Refined(graph.edge_type[owner == i],
                      [q[owner == i] for q in graph.posterior]))
             for i, data in enumerate(_first(module, dataset, num_first))]
    return InferredGraphs(table, network, first)


def infer_shared(module: RelationalInference, dataset: OwnSystems,
                 refined: bool = False, num_first: int = 4) -> InferredGraphs:
    """Infers one graph for all systems, see
    :func:`~pyg_fnri.inference.shared_graph`; the table has no column `system`.

    Args:
        module, dataset, refined, num_first: As for :func:`infer_each`.

    Raises:
        ValueError: If they have not all the same particles and candidate
            edges; and
        As :func:`~pyg_fnri.inference.shared_graph`.
    """
    _check_same_particles(dataset.system_names, dataset.particle_names)
    graph = shared_graph(module.model, _batches(module, dataset), refined,
                         dataset.system_names)
    first = _first(module, dataset, num_first)
    table, network = _convert(module, first[0], graph, ['all'],
                              dataset.particle_names[:1])
    return InferredGraphs(table.drop(columns='system'), network,
                          [(data, graph) for data in first])


def _batches(module: RelationalInference,
             dataset: OwnSystems) -> Iterator[Batch]:
    """All systems, as the model looks at them."""
    for batch in track(SystemLoader(dataset, BATCH_SIZE), 'inferring',
                       transient=True):
        yield observe(batch, module.config.num_observed)


def _first(module: RelationalInference, dataset: OwnSystems,
           number: int) -> list[Data]:
    """The first systems, likewise."""
    return [
        observe(dataset[i], module.config.num_observed)
        for i in range(min(number, len(dataset)))
    ]


def _convert(
    module: RelationalInference,
    data: Data,
    graph: Refined,
    systems: Sequence[Any],
    particles: Sequence[Sequence[Any]],
) -> tuple[pd.DataFrame, nx.MultiGraph]:
    """The graphs as a table and as networkx has them."""
    names: dict[str, Any] = {
        'probability': graph.posterior,
        'systems': systems,
        'particles': particles,
    }
    return (to_pandas(data, graph.edge_type, **names),
            to_networkx(data, graph.edge_type,
                        undirected=module.model.latent.undirected, **names))


def _check_same_particles(systems: Sequence[Any],
                          particles: Sequence[Sequence[Any]]) -> None:
    """Makes sure that all systems have the particles of the first one.

    Raises:
        ValueError: If one has not.
    """
    for name, own in zip(systems, particles):
        if own != particles[0]:
            odd = [p for p in own if p not in particles[0]]
            odd += [p for p in particles[0] if p not in own]
            raise ValueError(f"Systems that share a graph have the same "
                             f"particles, but {odd[0]!r} is in only one of "
                             f"the systems {systems[0]!r} and {name!r}; leave "
                             f"out --shared to infer a graph for each.")
