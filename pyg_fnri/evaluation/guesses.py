"""The accuracy of guesses, the floor for that of a model."""
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyg_fnri.metrics import EdgeAccuracy
from pyg_fnri.metrics.errors import majority_types, random_types


def guessing_accuracy(
    train_label: Tensor,
    edge_label: Tensor,
    num_edge_types: Sequence[int],
    seed: int = 0,
) -> dict[str, Any]:
    """What guesses score, as plain numbers under :obj:`combined` and
    :obj:`layers`: :obj:`random_accuracy`, each type as likely as another, with
    the strict metric; :obj:`majority_accuracy`, always what is most common in
    the training split, see :class:`~pyg_fnri.metrics.errors.Majority`.

    Args:
        train_label: True types of the training split, :obj:`[*, L]`.
        edge_label: True types of the edges to guess, :obj:`[num_edges, L]`.
        num_edge_types: Number of types of each layer-graph.
        seed: Seed of the random types.

    Raises:
        ValueError: If there are no edges or shapes do not fit.
    """
    generator = torch.Generator().manual_seed(seed)
    metric = EdgeAccuracy(num_edge_types)
    metric.update(random_types(len(edge_label), num_edge_types, generator),
                  edge_label.cpu())
    random = metric.compute()
    return {
        'random_accuracy': {
            'combined': random.combined.item(),
            'layers': [accuracy.item() for accuracy in random.layers],
        },
        'majority_accuracy': majority_types(train_label).accuracy(edge_label),
    }
