"""Edge types of the values that files of interactions hold.

A value of 0 is type 0, no interaction, and the others are types 1, 2, ... in
ascending order; where 0 does not occur, the lowest value is type 0.
"""
from collections.abc import Mapping, Sequence

import numpy as np

#: More values than that are no types.
MOST_VALUES = 100


def find_values(edges: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The values of each layer, in the order of their types.

    Args:
        edges (mapping of str to ndarray): Interactions `[S, L, N, N]` of each
            file; what is on the diagonal plays no part.

    Raises:
        ValueError: If the files differ in the number of layers, or there are
            too many values.
    """
    layers = {file: array.shape[1] for file, array in edges.items()}
    if len(set(layers.values())) > 1:
        raise ValueError(f'All files of interactions must have as many '
                         f'layers, but they have {layers}.')
    out = []
    for layer in range(max(layers.values(), default=0)):
        found = [
            np.unique(array[:, layer, ~np.eye(array.shape[2], dtype=bool)])
            for array in edges.values()
        ]
        values = np.unique(np.concatenate(found)).astype(np.float64)
        if len(values) > MOST_VALUES:
            raise ValueError(
                f'Layer {layer} of the interactions has {len(values)} '
                f'different values, which are too many to be edge types; group '
                f'them into a few.')
        # Stable: 0 first, the others stay in order.
        out.append(values[np.argsort(values != 0, kind='stable')])
    return out


def to_types(edges: np.ndarray, values: Sequence[np.ndarray]) -> np.ndarray:
    """The type of each interaction.

    Args:
        edges (ndarray): Interactions, `[S, L, N, N]`.
        values (sequence of ndarray): The values of each layer, as
            :func:`find_values` gives them.

    Returns:
        Types `[S, L, N, N]` int64, 0 on the diagonal.
    """
    types = np.zeros(edges.shape, dtype=np.int64)
    for layer, of_layer in enumerate(values):
        for number, value in enumerate(of_layer):
            types[:, layer][edges[:, layer] == value] = number
    diagonal = np.arange(edges.shape[2])
    types[:, :, diagonal, diagonal] = 0
    return types
