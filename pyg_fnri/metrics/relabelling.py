"""What the labels of an unsupervised model mean. A joint type numbers a
combination of types, row-major: of two layers of two, (0, 1) is 1."""
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from typing import NamedTuple, Optional, cast

import torch
from torch import Tensor

from pyg_fnri.nn.latent import all_joint_types

#: Above this, the search over label permutations takes more than a second.
MAX_RELABELLINGS = 200_000


def joint_type(edge_type: Tensor, sizes: Sequence[int]) -> Tensor:
    """Joint types :obj:`[*]` from :obj:`[*, L]`, of layers with these sizes."""
    strides = [math.prod(sizes[layer + 1:]) for layer in range(len(sizes))]
    return (edge_type * torch.tensor(strides, device=edge_type.device)).sum(-1)


def check_types(name: str, types: Tensor, sizes: Sequence[int]) -> None:
    """Others would become wrong joint types without an error."""
    if types.dim() != 2 or types.size(1) != len(sizes):
        raise ValueError(f'{name} has shape {list(types.shape)}, expected '
                         f'[num_edges, {len(sizes)}].')
    if ((types < 0) | (types >= types.new_tensor(sizes))).any():
        raise ValueError(f'{name} holds types beyond the {list(sizes)} types '
                         f'of its layers; give the numbers of edge types in '
                         f'the order of the layers.')


def check_probabilities(posterior: Sequence[Tensor]) -> None:
    """Logits would become wrong numbers without an error."""
    for layer, q in enumerate(posterior):
        right = (q >= 0) & ((q.sum(-1, keepdim=True) - 1).abs() < 1e-3)
        if not right.all():  # NaN fails as well.
            raise ValueError(f'The posterior of layer {layer} holds values '
                             f'that are negative, not finite or do not sum to '
                             f'1; hand over probabilities, not logits.')


def count_joint_types(edge_type: Tensor, edge_label: Tensor,
                      predicted_sizes: Sequence[int],
                      sizes: Sequence[int]) -> Tensor:
    """Edges of each predicted and true joint type, :obj:`[P, P]`."""
    check_types('edge_type', edge_type, predicted_sizes)
    check_types('edge_label', edge_label, sizes)
    num_types = math.prod(sizes)
    # Stacked, as a sum of other numbers of edges could broadcast.
    predicted, true = torch.stack(
        [joint_type(edge_type, predicted_sizes),
         joint_type(edge_label, sizes)])
    count = torch.bincount(predicted * num_types + true, minlength=num_types**2)
    return count.view(num_types, num_types)


class Relabelling(NamedTuple):
    """Maps predicted types :obj:`[E, Lp]` to true ones :obj:`[E, L]`, by a
    table of the true type of each layer for each predicted joint type."""
    predicted_edge_types: tuple[int, ...]
    table: tuple[tuple[int, ...], ...]

    def __call__(self, edge_type: Tensor) -> Tensor:
        check_types('edge_type', edge_type, self.predicted_edge_types)
        table = torch.tensor(self.table, device=edge_type.device)
        return table[joint_type(edge_type, self.predicted_edge_types)]

    def probabilities(self, posterior: Sequence[Tensor]) -> list[Tensor]:
        """A posterior of the predicted types, :obj:`[E, K_a]` of each layer,
        as one of the true types, :obj:`[E, K_l]`."""
        check_probabilities(posterior)
        joint = posterior[0]
        for q in posterior[1:]:
            joint = (joint.unsqueeze(-1) * q.unsqueeze(1)).flatten(1)
        out = []
        for types in zip(*self.table):  # One to one: each type occurs.
            layer = joint.new_zeros(joint.size(0), max(types) + 1)
            index = torch.tensor(types, device=joint.device)
            out.append(layer.index_add_(1, index, joint).clamp_(max=1))
        return out

    def channels(self, num_channels: int) -> Optional[list[int]]:
        """The decoder's channel for each true type but null types; None where
        a type has no channel, or a channel several types."""
        def alone(sizes: Sequence[int]) -> Tensor:
            blocks = [torch.arange(1, k).view(-1, 1) for k in sizes]
            return cast(Tensor, torch.block_diag(*blocks))

        found = self(alone(self.predicted_edge_types)).tolist()
        wanted = alone([max(types) + 1 for types in zip(*self.table)]).tolist()
        if len(found) == num_channels and sorted(found) == sorted(wanted):
            return [found.index(types) for types in wanted]
        return None

    def __str__(self) -> str:
        sizes = self.predicted_edge_types
        types = list(product(*map(range, sizes)))
        if list(self.table) == types:
            return 'as predicted'
        words = []
        for layer, new in enumerate(zip(*self.table)):
            # The predicted layer that alone decides it, if any.
            for source, old in enumerate(zip(*types)):
                pairs = sorted(set(zip(old, new)))
                if len(pairs) == sizes[source]:
                    changes = [f', type {a} -> {b}' for a, b in pairs if a != b]
                    words.append(f'layer {layer} <- predicted layer {source}' +
                                 ''.join(changes))
                    break
        if len(words) == len(sizes) == len(self.table[0]):
            return '; '.join(words)
        names = types if len(sizes) > 1 else range(len(types))
        return ', '.join(f'{a} -> {b}' for a, b in zip(names, self.table))


def make_relabelling(joint: Tensor, predicted_sizes: Sequence[int],
                     sizes: Sequence[int]) -> Relabelling:
    """Predicted joint type :obj:`p` stands for the true :obj:`joint[p]`."""
    types = all_joint_types(sizes)[joint].tolist()
    return Relabelling(tuple(predicted_sizes), tuple(map(tuple, types)))


def check_mapping(predicted_sizes: Sequence[int], sizes: Sequence[int],
                  fixed_null: bool = False) -> None:
    """Refuses what :func:`best_relabelling` cannot map in about a second."""
    if list(predicted_sizes) == [math.prod(sizes)]:
        return
    if sorted(sizes) != sorted(predicted_sizes):
        raise ValueError(f'predicted_edge_types {list(predicted_sizes)} cannot '
                         f'be mapped onto num_edge_types {list(sizes)}; give '
                         f'the same layers in any order, or one layer of '
                         f'{math.prod(sizes)} joint types.')
    ways = [*Counter(sizes).values(), *(size - fixed_null for size in sizes)]
    count = math.prod(map(math.factorial, ways))
    if count > MAX_RELABELLINGS:
        raise ValueError(f'num_edge_types {list(sizes)} allow {count:,} '
                         f'relabellings; take fewer or smaller layers.')


def best_relabelling(confusion: Tensor, predicted_sizes: Sequence[int],
                     sizes: Sequence[int], fixed_null: bool = False) -> Tensor:
    """The true joint type for each predicted one, :obj:`[P]`, that is right
    most often in all layers at once; of equals, one with most right layers."""
    if len(predicted_sizes) == 1:
        return best_assignment(confusion, sizes, fixed_null)
    # All orders of layers x permutations of types within layers.
    types = all_joint_types(predicted_sizes)  # [P, L]
    labels = [  # per true layer, its permutations [num_permutations, K]
        torch.tensor([
            way for way in permutations(range(size))
            if not (fixed_null and way[0])
        ]) for size in sizes
    ]
    choices = torch.cartesian_prod(*[torch.arange(len(x)) for x in labels])
    relabellings = []
    for order in permutations(range(len(sizes))):
        if [predicted_sizes[p] for p in order] == list(sizes):
            columns = [
                label[choice][:, types[:, source]]  # [num_choices, P]
                for label, choice, source in zip(labels, choices.T, order)
            ]
            relabellings.append(joint_type(torch.stack(columns, -1), sizes))
    joint = torch.cat(relabellings)  # [num_relabellings, P]
    right = confusion.gather(1, joint.T).sum(dim=0)
    layers = _right_layers(confusion, sizes).gather(1, joint.T).sum(dim=0)
    layers[right < right.max()] = -1
    return joint[layers.argmax()]  # the first comes nearest to none


def best_assignment(confusion: Tensor, sizes: Sequence[int],
                    fixed_null: bool = False) -> Tensor:
    """The best one-to-one map; of equals, one that changes the fewest types."""
    num_types = len(confusion)
    combined = confusion.tolist()
    layers = _right_layers(confusion, sizes).tolist()
    # Python integers of any size keep the three criteria apart exactly.
    base = int(confusion.sum()) * len(sizes) + 1
    weights = {}
    for p, t in product(range(num_types), repeat=2):
        if not fixed_null or (p == 0) == (t == 0):
            weight = combined[p][t] * base + layers[p][t]
            weights[p, t] = weight * (num_types + 1) + (p == t)
    return torch.tensor([t for _, t in sorted(assign(weights).items())])


def assign(weight: Mapping[tuple[int, int], int]) -> dict[int, int]:
    """The column of each row, each column once, of the highest total weight
    (of exact integers) among those that leave the fewest without one."""
    import networkx as nx
    graph = nx.Graph()
    for (row, column), value in weight.items():
        graph.add_edge(('row', row), ('column', column), weight=value)
    matching = nx.max_weight_matching(graph, maxcardinality=True)
    # 'column' sorts before 'row'.
    return {row: column for (_, column), (_, row) in map(sorted, matching)}


def _right_layers(confusion: Tensor, sizes: Sequence[int]) -> Tensor:
    """Right layers, over all edges, if predicted type p meant t: [P, P]."""
    types = all_joint_types(sizes)
    return confusion @ (types.unsqueeze(0) == types.unsqueeze(1)).sum(dim=-1)
