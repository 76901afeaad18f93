"""Interaction graphs as tables."""
from collections.abc import Sequence
from typing import Any, Optional

import pandas as pd
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.convert.labels import Probability, read_labels


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
        A table with the columns `system`, `sender`, `receiver`, `layer`,
        `type` (0 = no interaction) and `probability` (of that type; NaN where
        it was not given), in the order of `edge_index`, then of the layers.

    Raises:
        TypeError: If the types are not integers.
        ValueError: If a shape or a number of names does not fit.
    """
    labels = read_labels(data, edge_type, names, probability, systems,
                         particles)
    num_layers = len(labels.layers)

    def of_edge(names: Sequence[Any], nodes: Sequence[int]) -> list[Any]:
        return [names[node] for node in nodes for _ in range(num_layers)]

    return pd.DataFrame({
        'system': of_edge(labels.system, labels.receiver),
        'sender': of_edge(labels.particle, labels.sender),
        'receiver': of_edge(labels.particle, labels.receiver),
        'layer': list(labels.layers) * len(labels.sender),
        'type': labels.edge_type.flatten(),
        'probability': labels.probability.flatten(),
    })
