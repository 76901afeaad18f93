"""What the labels of an unsupervised model mean, and the search for it."""
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import NamedTuple, Optional

import networkx as nx
import torch
from torch import Tensor

from .joint_type import all_joint_types, check_types, joint_type


class Relabelling(NamedTuple):
    r"""What the labels of a prediction mean in terms of the true edge types.

    An unsupervised model numbers its layer-graphs and edge types as it
    likes. Calling the relabelling translates its predictions:
    ``relabelling(edge_type)`` takes :obj:`[E, Lp]` and gives :obj:`[E, L]`,
    column :math:`l` now belonging to force :math:`l`.

    Args:
        predicted_edge_types (tuple[int, ...]): Number of edge types in each
            of the :math:`L_p` predicted layers.
        table (tuple[tuple[int, ...], ...]): Row :math:`p` holds the true
            type of each of the :math:`L` layers for the predicted joint type
            :math:`p` (row-major: the last layer counts fastest).
    """
    predicted_edge_types: tuple[int, ...]
    table: tuple[tuple[int, ...], ...]

    def __call__(self, edge_type: Tensor) -> Tensor:
        check_types('edge_type', edge_type, self.predicted_edge_types)
        table = torch.tensor(self.table, device=edge_type.device)
        return table[joint_type(edge_type, self.predicted_edge_types)]

    def __str__(self) -> str:
        types = list(product(*map(range, self.predicted_edge_types)))
        if list(self.table) == types:
            return 'as predicted'
        lines = [self._layer_str(layer) for layer in range(len(self.table[0]))]
        if None in lines or len(lines) != len(self.predicted_edge_types):
            return ', '.join(f'{old} -> {new}' for old, new in zip(
                types if len(types[0]) > 1 else range(len(types)), self.table))
        return '; '.join(f'layer {layer} <- {line}'
                         for layer, line in enumerate(lines))

    def _layer_str(self, layer: int) -> Optional[str]:
        """The predicted layer that alone decides a true layer, if any."""
        types = product(*map(range, self.predicted_edge_types))
        columns = list(zip(*types))
        for source, size in enumerate(self.predicted_edge_types):
            pairs = set(zip(columns[source],
                            [new[layer] for new in self.table]))
            if len(pairs) == size:
                return ', '.join(
                    [f'predicted layer {source}'] +
                    [f'type {a} -> {b}' for a, b in sorted(pairs) if a != b])
        return None


def count_layerwise(sizes: Sequence[int], fixed_null: bool) -> int:
    """How many relabellings :func:`best_layerwise` tries."""
    orders = math.prod(map(math.factorial, Counter(sizes).values()))
    return orders * math.prod(
        math.factorial(size - fixed_null) for size in sizes)


def best_layerwise(
    confusion: Tensor,
    predicted_sizes: Sequence[int],
    sizes: Sequence[int],
    fixed_null: bool,
) -> Tensor:
    """The best of all layer orders x permutations of types within layers.

    Of those that get equally many edges right in all layers at once, one with
    the most right layers is taken.

    Args:
        confusion: Number of edges of each predicted and true joint type,
            :obj:`[P, P]`.
        predicted_sizes: Number of types of each predicted layer.
        sizes: Number of types of each true layer, the same in some order.
        fixed_null: Whether type 0 stays 0 in each layer.

    Returns:
        The true joint type for each predicted one, :obj:`[P]`.
    """
    types = all_joint_types(predicted_sizes)  # [P, L]
    labels = []  # per true layer, its permutations [num_permutations, K]
    for size in sizes:
        fixed = (0, ) if fixed_null else ()
        rest = permutations(range(len(fixed), size))
        labels.append(torch.tensor([fixed + p for p in rest]))
    choices = torch.cartesian_prod(*[torch.arange(len(x)) for x in labels])
    relabellings = []
    for order in _layer_orders(predicted_sizes, sizes):
        columns = [
            label[choice][:, types[:, source]]  # [num_choices, P]
            for label, choice, source in zip(labels, choices.T, order)
        ]
        relabellings.append(joint_type(torch.stack(columns, dim=-1), sizes))
    joint = torch.cat(relabellings)  # [num_relabellings, P]
    layers = _right_layers(confusion, sizes)
    right = confusion.gather(1, joint.T).sum(dim=0)
    right_layers = layers.gather(1, joint.T).sum(dim=0)
    right_layers[right < right.max()] = -1
    return joint[right_layers.argmax()]  # the first comes nearest to none


def best_assignment(
    confusion: Tensor,
    sizes: Sequence[int],
    fixed_null: bool = False,
) -> Tensor:
    """The best of all one-to-one maps between joint types.

    Of those that get equally many edges right in all layers at once, the ones
    with the most right layers are taken, and of these one that changes the
    fewest types.

    Args:
        confusion: Number of edges of each predicted and true joint type,
            :obj:`[P, P]`.
        sizes: Number of types of each true layer.
        fixed_null: Whether joint type 0 stays 0.

    Returns:
        The true joint type for each predicted one, :obj:`[P]`.
    """
    num_types = confusion.size(0)
    combined = confusion.tolist()
    layers = _right_layers(confusion, sizes).tolist()
    # Python integers of any size keep the three criteria apart exactly.
    base = int(confusion.sum()) * len(sizes) + 1
    graph = nx.Graph()
    for p, t in product(range(num_types), repeat=2):
        if not fixed_null or (p == 0) == (t == 0):
            weight = combined[p][t] * base + layers[p][t]
            weight = weight * (num_types + 1) + (p == t)
            graph.add_edge(('predicted', p), ('true', t), weight=weight)
    matching = nx.max_weight_matching(graph, maxcardinality=True)
    joint = torch.empty(num_types, dtype=torch.long)
    for pair in matching:
        (_, p), (_, t) = sorted(pair)  # 'predicted' sorts before 'true'
        joint[p] = t
    return joint


def _layer_orders(predicted_sizes: Sequence[int],
                  sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Orders in which predicted layers fit the true layers' sizes."""
    for order in permutations(range(len(predicted_sizes))):
        if all(predicted_sizes[p] == size for p, size in zip(order, sizes)):
            yield order


def _right_layers(confusion: Tensor, sizes: Sequence[int]) -> Tensor:
    """Right layers, over all edges, if predicted type p meant t: [P, P]."""
    types = all_joint_types(sizes)
    return confusion @ (types.unsqueeze(0) == types.unsqueeze(1)).sum(dim=-1)
