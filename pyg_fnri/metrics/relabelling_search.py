"""The search for what the labels of an unsupervised model mean."""
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product

import torch
from torch import Tensor

from pyg_fnri.metrics.assignment import assign
from pyg_fnri.metrics.joint_type import all_joint_types, joint_type

#: Above this the search over label permutations no longer takes about a second.
MAX_RELABELLINGS = 200_000


def check_mapping(
    predicted_sizes: Sequence[int],
    sizes: Sequence[int],
    fixed_null: bool = False,
) -> None:
    """Checks that :func:`best_relabelling` can map predicted layers onto the
    true ones.

    Raises:
        ValueError: If it cannot, or not in a second.
    """
    if len(predicted_sizes) == 1:
        check_equal_product(predicted_sizes, sizes)
        return
    if sorted(sizes) != sorted(predicted_sizes):
        raise ValueError(
            f'predicted_edge_types {list(predicted_sizes)} cannot be mapped '
            f'onto num_edge_types {list(sizes)}: expected the same layers in '
            f'any order, or one layer of {math.prod(sizes)} joint types.')
    count = count_layerwise(sizes, fixed_null)
    if count > MAX_RELABELLINGS:
        raise ValueError(
            f'num_edge_types {list(sizes)} allow {count:,} relabellings, too '
            f'many to try (limit {MAX_RELABELLINGS:,}). Expected fewer or '
            f'smaller layers; fixed_null=True leaves fewer to try.')


def check_equal_product(predicted_sizes: Sequence[int],
                        sizes: Sequence[int]) -> None:
    """Checks that there are as many joint types.

    Raises:
        ValueError: If there are not.
    """
    if math.prod(sizes) != math.prod(predicted_sizes):
        raise ValueError(
            f'predicted_edge_types {list(predicted_sizes)} give '
            f'{math.prod(predicted_sizes)} joint types, expected '
            f'{math.prod(sizes)} as num_edge_types {list(sizes)} do.')


def best_relabelling(
    confusion: Tensor,
    predicted_sizes: Sequence[int],
    sizes: Sequence[int],
    fixed_null: bool = False,
) -> Tensor:
    """The relabelling that is right most often: :func:`best_assignment` for a
    single predicted layer, :func:`best_layerwise` for others. Arguments and
    what is returned as there."""
    if len(predicted_sizes) == 1:
        return best_assignment(confusion, sizes, fixed_null)
    return best_layerwise(confusion, predicted_sizes, sizes, fixed_null)


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
    weights = {}
    for p, t in product(range(num_types), repeat=2):
        if not fixed_null or (p == 0) == (t == 0):
            weight = combined[p][t] * base + layers[p][t]
            weight = weight * (num_types + 1) + (p == t)
            weights[p, t] = weight
    joint = torch.empty(num_types, dtype=torch.long)
    for p, t in assign(weights).items():
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
