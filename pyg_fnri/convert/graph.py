"""Interaction graphs as multigraphs of networkx."""
from collections.abc import Sequence
from typing import Any, Optional

import networkx as nx
import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.convert.labels import Probability, read_labels


def to_networkx(
    data: Data,
    edge_type: Tensor,
    names: Optional[Sequence[Any]] = None,
    probability: Optional[Probability] = None,
    systems: Optional[Sequence[Any]] = None,
    particles: Optional[Sequence[Sequence[Any]]] = None,
    undirected: bool = False,
) -> nx.MultiGraph:
    """Makes a multigraph of the interactions, with one edge per interacting
    pair and layer, from sender to receiver.

    Nodes are the rows of `x`, 0, 1, ...; a batch becomes one graph of many
    parts. Each node has the attributes `system` and `particle`; each edge,
    whose key is the name of its layer, `layer`, `type`, where it is given
    `probability`, and an `id` of its own, which other programs want:

    .. code-block:: python

        networkx.write_graphml(graph, path, edge_id_from_attribute='id')

    Where the two directions of a pair disagree, an **undirected** graph has
    the type of the more probable direction, which may be no interaction.
    Without probabilities, or if they are equal, it has no interaction: both
    directions would have to agree. The attribute `agree` tells whether they
    did; where they did, the edge has the mean of their probabilities. A
    candidate edge without its reverse stands for itself.

    Args:
        data (Data): One system, or a batch of them.
        edge_type (Tensor): Types, `[E, L]` integer.
        names, probability, systems, particles: As with :func:`to_pandas`.
        undirected (bool): Whether to make one edge of both directions.
            (default: `False`)

    Returns:
        A `networkx.MultiDiGraph`, or a `networkx.MultiGraph` if undirected.

    Raises:
        TypeError: If the types are not integers.
        ValueError: If a shape or a number of names does not fit.
    """
    labels = read_labels(data, edge_type, names, probability, systems,
                         particles)
    graph = nx.MultiGraph() if undirected else nx.MultiDiGraph()
    for node, (system,
               particle) in enumerate(zip(labels.system, labels.particle)):
        graph.add_node(node, system=system, particle=particle)
    ends = list(zip(labels.sender, labels.receiver))
    place = {pair: edge for edge, pair in enumerate(ends)}
    types = labels.edge_type.tolist()
    values = labels.probability.tolist()
    for edge, (sender, receiver) in enumerate(ends):
        reverse = place.get((receiver, sender), edge)
        if undirected and reverse < edge:
            continue  # The pair has had its turn.
        for layer, name in enumerate(labels.layers):
            kind, value = types[edge][layer], values[edge][layer]
            attributes: dict[str, Any] = {}
            if undirected:
                attributes['agree'] = kind == types[reverse][layer]
                kind, value = _settle(kind, value, types[reverse][layer],
                                      values[reverse][layer])
            if kind == 0:
                continue
            if not np.isnan(value):
                attributes['probability'] = value
            graph.add_edge(sender, receiver, key=name, layer=name, type=kind,
                           id=f'{sender}-{receiver}-{name}', **attributes)
    return graph


def _settle(kind: int, value: float, other: int,
            other_value: float) -> tuple[int, float]:
    """One type for both directions of a pair, and how probable it is."""
    if kind == other:
        return kind, (value + other_value) / 2
    if value > other_value:  # False where they are NaN.
        return kind, value
    if other_value > value:
        return other, other_value
    return 0, value
