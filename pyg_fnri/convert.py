"""Interaction graphs in other libraries' terms: matrices, pandas, networkx."""
from collections.abc import Sequence
from typing import Any, Optional, Union

import networkx as nx
import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.data import Array, adjacency_to_edge_label, fully_connected

#: Of each edge and layer, `[E, L]`, or of all types, `[E, K]` for each layer.
Probability = Union[Tensor, Sequence[Tensor]]


def to_adjacency(
    edge_index: Tensor,
    edge_type: Tensor,
    num_nodes: Optional[int] = None,
) -> Tensor:
    """Makes one adjacency matrix per layer, `[L, N, N]`: row the receiver,
    column the sender, 0 where there is no edge.

    Args:
        edge_index (Tensor): Edges, `[2, E]`.
        edge_type (Tensor): What to put into the matrices, `[E, L]`: types, or
            probabilities or other weights.
        num_nodes (int, optional): The number `N` of particles.
            (default: as many as `edge_index` asks for)
    """
    _check_shapes(edge_index, edge_type)
    if num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
    sender, receiver = edge_index
    out = edge_type.new_zeros(edge_type.size(1), num_nodes, num_nodes)
    out[:, receiver, sender] = edge_type.t()
    return out


def from_adjacency(
    adjacency: Array,
    edge_index: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor]:
    """Makes `edge_index` `[2, E]` and `edge_type` `[E, L]` of one adjacency
    matrix per layer, the way back from :func:`to_adjacency`. Those that
    interact are `edge_index[:, edge_type.any(-1)]`.

    Args:
        adjacency (Tensor or ndarray): Types, `[L, N, N]`, integer or bool,
            with a zero diagonal; need not be symmetric.
        edge_index (Tensor, optional): The edges to look up, `[2, E]`.
            (default: every ordered pair, sorted by receiver)
    """
    if edge_index is None:
        edge_index = fully_connected(adjacency.shape[-1])
    edge_type = adjacency_to_edge_label(adjacency, edge_index)
    lost = int((adjacency != 0).sum()) - int((edge_type != 0).sum())
    if lost:
        raise ValueError(f'The adjacency has {lost} interactions between '
                         f'particles that edge_index does not join; leave '
                         f'edge_index out.')
    return edge_index, edge_type


def to_pandas(
    data: Data,
    edge_type: Tensor,
    names: Optional[Sequence[Any]] = None,
    probability: Optional[Probability] = None,
    systems: Optional[Sequence[Any]] = None,
    particles: Optional[Sequence[Sequence[Any]]] = None,
) -> pd.DataFrame:
    """Lists all candidate edges, one row per edge and layer.

    Args:
        data (Data): One system, or a batch of them.
        edge_type (Tensor): Types, `[E, L]` integer.
        names (sequence, optional): What each layer is called.
            (default: 0, 1, ...)
        probability (Tensor or sequence of Tensor, optional): How probable the
            types are, `[E, L]`; or the probability of every type, `[E, K]`
            for each layer, as a model's `posterior` gives it.
        systems (sequence, optional): What each system is called.
            (default: 0, 1, ...)
        particles (sequence of sequences, optional): What the particles of
            each system are called. (default: 0, 1, ... in each system)

    Returns:
        The columns `system`, `sender`, `receiver`, `layer`, `type` (0 = no
        interaction) and `probability` (of that type; NaN if not given), in the
        order of `edge_index`, then of the layers.
    """
    _check_shapes(data.edge_index, edge_type)
    num_edges, num_layers = edge_type.shape
    layers = _names(names, num_layers)
    system, particle = _nodes(data, systems, particles)
    sender, receiver = data.edge_index.repeat_interleave(num_layers, 1).tolist()
    edge_type = edge_type.detach().cpu()
    if edge_type.is_floating_point() or bool((edge_type < 0).any()):
        raise ValueError(
            f'edge_type must hold integers 0, 1, 2, ..., but holds '
            f'{edge_type.min()} of {edge_type.dtype}.')
    if probability is None:
        chosen = torch.full(edge_type.shape, torch.nan)
    elif isinstance(probability, Tensor):
        chosen = probability
    else:
        chosen = torch.stack([
            of_types.cpu()[torch.arange(num_edges), types]
            for of_types, types in zip(probability,
                                       edge_type.long().t(), strict=True)
        ], dim=1)
    if chosen.shape != edge_type.shape:
        raise ValueError(f'probability must be {list(edge_type.shape)}, as '
                         f'edge_type is, but is {list(chosen.shape)}.')
    return pd.DataFrame({
        'system': [system[node] for node in receiver],
        'sender': [particle[node] for node in sender],
        'receiver': [particle[node] for node in receiver],
        'layer':
        layers * num_edges,
        'type':
        edge_type.long().flatten().numpy(),
        'probability':
        chosen.detach().cpu().double().flatten().numpy(),
    })


def to_networkx(
    data: Data,
    edge_type: Tensor,
    names: Optional[Sequence[Any]] = None,
    probability: Optional[Probability] = None,
    systems: Optional[Sequence[Any]] = None,
    particles: Optional[Sequence[Sequence[Any]]] = None,
    undirected: bool = False,
) -> nx.MultiGraph:
    """Makes a `networkx.MultiDiGraph` of the interactions, with one edge per
    interacting pair and layer, from sender to receiver.

    Nodes are the rows of `x`, 0, 1, ..., with the attributes `system` and
    `particle`. Edges have the name of their layer as key, and the attributes
    `layer`, `type`, where given `probability`, and an `id` of their own for
    `networkx.write_graphml(graph, path, edge_id_from_attribute='id')`.

    Where the two directions of a pair disagree, an **undirected** graph (a
    `networkx.MultiGraph`) has the type of the more probable direction, which
    may be no interaction; without probabilities, or if they are equal, it has
    no interaction. The attribute `agree` tells whether directions agreed; where
    they did, the edge has the mean of their probabilities. A candidate edge
    without its reverse stands for itself.

    Args:
        data, edge_type, names, probability, systems, particles: As with
            :func:`to_pandas`.
        undirected (bool): Whether to make one edge of both directions.
            (default: `False`)
    """
    table = to_pandas(data, edge_type, names, probability, systems, particles)
    graph = nx.MultiGraph() if undirected else nx.MultiDiGraph()
    system, particle = _nodes(data, systems, particles)
    for node in range(len(system)):
        graph.add_node(node, system=system[node], particle=particle[node])
    layers = _names(names, edge_type.size(1))
    edges = [(*ends, layer) for ends in data.edge_index.t().tolist()
             for layer in layers]
    found = dict(
        zip(edges, zip(table['type'].tolist(), table['probability'].tolist())))
    if len(found) < len(edges):
        raise ValueError(f'The names of the layers, {layers}, and the '
                         f'candidate edges must differ.')
    seen = set()
    for (sender, receiver, layer), (kind, value) in found.items():
        attributes = {}
        if undirected:
            seen.add((sender, receiver, layer))
            reverse = receiver, sender, layer
            if reverse in seen:
                continue
            other, other_value = found.get(reverse, (kind, value))
            attributes['agree'] = kind == other
            if kind == other:
                value = (value + other_value) / 2
            elif other_value > value:
                kind, value = other, other_value
            elif not value > other_value:  # Equal, or NaN.
                continue
        if kind == 0:
            continue
        if not np.isnan(value):
            attributes['probability'] = value
        graph.add_edge(sender, receiver, key=layer, layer=layer, type=kind,
                       id=f'{sender}-{receiver}-{layer}', **attributes)
    return graph


def _check_shapes(edge_index: Tensor, edge_type: Tensor) -> None:
    if edge_type.dim() != 2 or edge_type.size(0) != edge_index.size(1):
        raise ValueError(f'edge_type must be [{edge_index.size(1)}, '
                         f'num_layers] for as many edges, but is '
                         f'{list(edge_type.shape)}.')


def _nodes(
    data: Data,
    systems: Optional[Sequence[Any]],
    particles: Optional[Sequence[Sequence[Any]]],
) -> tuple[list[Any], list[Any]]:
    """Of each node, the name of its system and its own."""
    batch = data.get('batch')
    sizes = [data.num_nodes] if batch is None else batch.bincount().tolist()
    if particles is None:
        particles = [range(size) for size in sizes]
    if [len(of_system) for of_system in particles] != sizes:
        raise ValueError(f'particles must name the {sizes} particles of the '
                         f'systems, but names '
                         f'{[len(of_system) for of_system in particles]}.')
    names = _names(systems, len(sizes))
    return ([name for name, size in zip(names, sizes) for _ in range(size)],
            [_plain(name) for of_system in particles for name in of_system])


def _names(names: Optional[Sequence[Any]], number: int) -> list[Any]:
    """Given names, or numbers."""
    names = range(number) if names is None or len(names) == 0 else names
    if len(names) != number:
        raise ValueError(f'There must be {number} names, but they are '
                         f'{list(names)}.')
    return [_plain(name) for name in names]


def _plain(name: Any) -> Any:
    """A number as Python's own, which files can be written of."""
    return name.item() if isinstance(name, np.generic) else name
