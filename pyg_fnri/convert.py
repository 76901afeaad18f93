"""Interaction graphs in other libraries' terms: matrices, pandas, networkx."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

if TYPE_CHECKING:
    import networkx as nx

#: Of each edge and layer, `[E, L]`, or of all types, `[E, K]` for each layer.
Probability = Union[Tensor, Sequence[Tensor]]


def to_adjacency(edge_index: Tensor, edge_type: Tensor,
                 num_nodes: Optional[int] = None) -> Tensor:
    """Makes one adjacency matrix per layer, `[L, N, N]`, of types or
    weights such as probabilities `[E, L]`: row receiver, column sender,
    0 where there is no edge; `num_nodes` is by default that of the edges."""
    _check_shapes(edge_index, edge_type)
    if num_nodes is None:
        num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
    sender, receiver = edge_index
    out = edge_type.new_zeros(edge_type.size(1), num_nodes, num_nodes)
    out[:, receiver, sender] = edge_type.t()
    return out


def to_pandas(
        data: Data, edge_type: Tensor, names: Optional[Sequence[Any]] = None,
        probability: Optional[Probability] = None,
        systems: Optional[Sequence[Any]] = None,
        particles: Optional[Sequence[Sequence[Any]]] = None) -> pd.DataFrame:
    """Lists all candidate edges, one row per edge and layer, in the columns
    `system`, `sender`, `receiver`, `layer`, `type` (0 = no interaction) and
    `probability` (of that type; NaN if not given).

    Args:
        data: One system, or a batch of them.
        edge_type: Types, `[E, L]` integer.
        names: What each layer is called; all names are by default 0, 1, ...
        probability: Of these types, `[E, L]`; or of every type, `[E, K]` for
            each layer, as a model's `posterior` gives it.
        systems, particles: Names of systems, and of the particles of each.
    """
    _check_shapes(data.edge_index, edge_type)
    num_edges, num_layers = edge_type.shape
    nodes = _nodes(data, systems, particles)
    sender, receiver = data.edge_index.repeat_interleave(num_layers, 1).tolist()
    edge_type = edge_type.detach().cpu()
    if edge_type.is_floating_point() or bool((edge_type < 0).any()):
        raise ValueError(f'edge_type must hold 0, 1, 2, ..., but holds '
                         f'{edge_type.min()} of {edge_type.dtype}.')
    edge_type = edge_type.long()
    if probability is None:
        probability = torch.full(edge_type.shape, torch.nan)
    elif not isinstance(probability, Tensor):
        rows = torch.arange(num_edges)
        probability = torch.stack([
            of_types.cpu()[rows, types]
            for of_types, types in zip(probability, edge_type.t(), strict=True)
        ], dim=1)
    if probability.shape != edge_type.shape:
        raise ValueError(f'probability must be {list(edge_type.shape)}, as '
                         f'edge_type is, but is {list(probability.shape)}.')
    return pd.DataFrame({
        'system': [nodes[i][0] for i in receiver],
        'sender': [nodes[j][1] for j in sender],
        'receiver': [nodes[i][1] for i in receiver],
        'layer': _names(names, num_layers) * num_edges,
        'type': edge_type.flatten().numpy(),
        'probability': probability.detach().cpu().double().flatten().numpy()
    })  # yapf: disable


def to_changes(table: pd.DataFrame, stay: float = 0.5) -> pd.DataFrame:
    r"""How probable each interaction is in each window of a recording.

    Args:
        table: As :func:`to_pandas` makes it, of systems `RECORDING/FIRST_FRAME`
            and layers of two types.
        stay: The prior probability that a pair stays as it is from one window
            to the next: with more than 0.5, the posterior of each window is
            smoothed by those before and after it (forward-backward algorithm).

    Returns:
        A row for each pair and layer, in the columns `recording`, `sender`,
        `receiver`, `layer`; then a column for each first frame, NaN where the
        two are not both there.
    """
    if not 0 < stay < 1:
        raise ValueError(f'stay must be between 0 and 1, not {stay}.')
    place = table['system'].astype(str).str.extract(r'^(.*)/(\d+)$')
    if place.isna().any(axis=None):
        raise ValueError('Graphs change from window to window, but these '
                         'systems are no windows; cut some by window=NUMBER.')
    probability = table['probability']
    out = table.assign(
        recording=place[0], frame=place[1].astype(int),
        probability=probability.where(table['type'] > 0, 1 - probability))
    return pd.concat([
        _smoothed(rows, stay)
        for _, rows in out.groupby('recording', sort=False)
    ]).sort_index(axis=1).reset_index()


def _smoothed(table: pd.DataFrame, stay: float) -> pd.DataFrame:
    """Of one recording, by pairs and layers, a column for each frame."""
    keys = ['recording', 'sender', 'receiver', 'layer']
    out = table.pivot(index=keys, columns='frame', values='probability')
    known = out.to_numpy()
    # Of absent and present; a window without the pair says nothing.
    likelihood = np.nan_to_num(np.stack([1 - known, known]), nan=0.5)
    step = np.array([[stay, 1 - stay], [1 - stay, stay]])
    message = [np.ones_like(likelihood) for _ in range(2)]
    for passed, order in zip(message, (1, -1)):
        state = np.ones((2, len(known)))
        for t in range(known.shape[1])[::order]:
            passed[..., t] = state
            state = step @ (state * likelihood[..., t])
            state /= state.sum(0).clip(min=1e-300)
    joint = likelihood * message[0] * message[1]
    smoothed = joint[1] / joint.sum(0).clip(min=1e-300)
    out[:] = np.where(np.isnan(known), np.nan, smoothed)
    return out


def to_networkx(data: Data, edge_type: Tensor,
                names: Optional[Sequence[Any]] = None,
                probability: Optional[Probability] = None,
                systems: Optional[Sequence[Any]] = None,
                particles: Optional[Sequence[Sequence[Any]]] = None,
                undirected: bool = False) -> nx.MultiGraph:
    """Makes a `networkx.MultiDiGraph` of the interactions, with one edge per
    interacting pair and layer, from sender to receiver.

    Nodes are the rows of `x`, with attributes `system` and `particle`. Edges
    have the name of their layer as key, and attributes `layer`, `type`, where
    given `probability`, and an `id` for
    `networkx.write_graphml(graph, path, edge_id_from_attribute='id')`.

    An **undirected** `networkx.MultiGraph` has, where the two directions of a
    pair disagree (attribute `agree`), the type of the more probable one; no
    interaction where neither is. Where they agree, it has the mean of
    probabilities. A candidate edge without its reverse stands for itself.
    Arguments are those of :func:`to_pandas`."""
    import networkx as nx
    table = to_pandas(data, edge_type, names, probability, systems, particles)
    graph = nx.MultiGraph() if undirected else nx.MultiDiGraph()
    for i, (system, own) in enumerate(_nodes(data, systems, particles)):
        graph.add_node(i, system=readable(system), particle=readable(own))
    ends = data.edge_index.repeat_interleave(edge_type.size(1), 1).tolist()
    keys = zip(*ends, table['layer'])
    found = dict(zip(keys, zip(table['type'], table['probability'])))
    if len(found) < len(table):
        raise ValueError('Layers must have different names.')
    for (sender, receiver, layer), (kind, value) in found.items():
        attributes = {}
        if undirected:
            reverse = receiver, sender, layer
            if sender < receiver and reverse in found:
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
        graph.add_edge(sender, receiver, key=layer, layer=readable(layer),
                       id=readable(f'{sender}-{receiver}-{layer}'), type=kind,
                       **attributes)
    return graph


def readable(name: Any) -> Any:
    """A name without the control characters that XML and fonts lack."""
    if not isinstance(name, str):
        return name
    return re.sub('[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]',
                  '\ufffd', name)


def _check_shapes(edge_index: Tensor, edge_type: Tensor) -> None:
    if edge_type.dim() != 2 or edge_type.size(0) != edge_index.size(1):
        raise ValueError(f'edge_type must be [{edge_index.size(1)}, L] for as '
                         f'many edges, but is {list(edge_type.shape)}.')


def _nodes(
        data: Data, systems: Optional[Sequence[Any]],
        particles: Optional[Sequence[Sequence[Any]]]) -> list[tuple[Any, Any]]:
    """Of each node, the name of its system and its own."""
    batch = data.get('batch')
    sizes = [data.num_nodes] if batch is None else batch.bincount().tolist()
    names = _names(systems, len(sizes))
    if particles is None:
        particles = [range(size) for size in sizes]
    return [(name, particle)
            for name, size, own in zip(names, sizes, particles, strict=True)
            for particle in _names(own, size)]


def _names(names: Optional[Sequence[Any]], number: int) -> list[Any]:
    """Given names, or numbers, as Python's own, which files can hold."""
    names = range(number) if names is None or len(names) == 0 else names
    if len(names) != number:
        raise ValueError(f'{list(names)} must be {number} names.')
    return [n.item() if isinstance(n, np.generic) else n for n in names]
