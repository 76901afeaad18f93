"""Edges of one system or many, with the names that users gave them."""
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.convert.adjacency import check_shapes

#: Of each edge and layer, `[E, L]`, or of all types, `[E, K]` for each layer.
Probability = Union[Tensor, Sequence[Tensor]]


@dataclass(frozen=True, eq=False)
class Labels:
    """What nodes, edges and layers are called, and the types of the edges.

    Args:
        system: Of each node, the name of its system.
        particle: Of each node, its own name.
        sender: Of each edge, the node that it is from.
        receiver: Of each edge, the node that it leads to.
        layers: The name of each layer.
        edge_type: Types, `[E, L]`.
        probability: Of those types, `[E, L]`, NaN where not known.
    """
    system: Sequence[Any]
    particle: Sequence[Any]
    sender: Sequence[int]
    receiver: Sequence[int]
    layers: Sequence[Any]
    edge_type: np.ndarray
    probability: np.ndarray


def read_labels(
    data: Data,
    edge_type: Tensor,
    names: Optional[Sequence[Any]],
    probability: Optional[Probability],
    systems: Optional[Sequence[Any]],
    particles: Optional[Sequence[Sequence[Any]]],
) -> Labels:
    """Checks the arguments of :func:`~pyg_fnri.convert.to_pandas` and numbers
    what they do not name.

    Raises:
        TypeError: If the types are not integers.
        ValueError: If a shape or a number of names does not fit.
    """
    types, chosen = _check(data, edge_type, probability)
    layers = _names(names, types.shape[1], 'names', 'layers')
    if len(set(layers)) < len(layers):
        raise ValueError(f'names must differ from layer to layer, but are '
                         f'{list(layers)}.')
    system, local = _nodes(data)
    system_names = _names(systems, int(system.max()) + 1, 'systems', 'systems')
    sender, receiver = data.edge_index.tolist()
    return Labels(
        [system_names[s] for s in system],
        _particle_names(particles, system, local),
        sender,
        receiver,
        layers,
        types,
        chosen,
    )


def _check(
    data: Data,
    edge_type: Tensor,
    probability: Optional[Probability],
) -> tuple[np.ndarray, np.ndarray]:
    """Types and the probability of each, `[E, L]`, NaN where not given."""
    if edge_type.is_floating_point() or edge_type.is_complex():
        raise TypeError(f'edge_type must hold integers, but its dtype is '
                        f'{edge_type.dtype}; pass probabilities by '
                        f'probability.')
    check_shapes(data.edge_index, edge_type)
    types = edge_type.detach().cpu().long()
    num_edges, num_layers = types.shape
    if bool((types < 0).any()):
        raise ValueError(f'edge_type must hold types 0, 1, 2, ..., but the '
                         f'smallest one is {int(types.min())}.')
    if probability is None:
        return types.numpy(), np.full(types.shape, np.nan)
    if isinstance(probability, Tensor):
        if probability.shape != types.shape:
            raise ValueError(
                f'probability must be {list(types.shape)}, as edge_type is, '
                f'but it is {list(probability.shape)}.')
        return types.numpy(), probability.detach().cpu().double().numpy()
    if len(probability) != num_layers:
        raise ValueError(f'probability must have one tensor for each of the '
                         f'{num_layers} layers, but has {len(probability)}.')
    chosen = []
    for layer, of_types in enumerate(probability):
        least = int(types[:, layer].max()) + 1 if num_edges else 0
        if (of_types.dim() != 2 or of_types.size(0) != num_edges
                or of_types.size(1) < least):
            raise ValueError(
                f'probability of layer {layer} must be [{num_edges}, '
                f'num_types] with at least {least} types, but it is '
                f'{list(of_types.shape)}.')
        of_types = of_types.detach().cpu().double()
        chosen.append(of_types.gather(1, types[:, layer:layer + 1]))
    return types.numpy(), torch.cat(chosen, dim=1).numpy()


def _nodes(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Of each node, its system and its number therein."""
    batch = data.get('batch')
    if batch is None:
        return np.zeros(data.num_nodes,
                        dtype=np.int64), np.arange(data.num_nodes)
    system = batch.cpu().numpy()
    start = np.searchsorted(system, system)
    return system, np.arange(len(system)) - start


def _names(names: Optional[Sequence[Any]], number: int, argument: str,
           of: str) -> Sequence[Any]:
    if names is None or len(names) == 0:
        return range(number)
    if len(names) != number:
        raise ValueError(f'{argument} must have one name for each of the '
                         f'{number} {of}, but is {list(names)}.')
    return [_plain(name) for name in names]


def _particle_names(
    particles: Optional[Sequence[Sequence[Any]]],
    system: np.ndarray,
    local: np.ndarray,
) -> list[Any]:
    """What each node is called."""
    if particles is None:
        return local.tolist()
    sizes = np.bincount(system).tolist()
    if [len(of_system) for of_system in particles] != sizes:
        raise ValueError(
            f'particles must have the names of the {sizes} particles of each '
            f'system, but has {[len(of_system) for of_system in particles]}.')
    return [_plain(name) for of_system in particles for name in of_system]


def _plain(name: Any) -> Any:
    """A number as Python's own, which files can be written of."""
    return name.item() if isinstance(name, np.generic) else name
