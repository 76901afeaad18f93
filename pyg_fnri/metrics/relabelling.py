"""What the labels of an unsupervised model mean."""
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from pyg_fnri.metrics.joint_type import (
    all_joint_types,
    check_probabilities,
    check_types,
    joint_type,
)


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

    def probabilities(self, posterior: Sequence[Tensor]) -> list[Tensor]:
        """A posterior in terms of the true edge types: the probability of a
        true type is the sum over all combinations of predicted types that
        stand for it. Predicted layers are independent of each other.

        Args:
            posterior: Probabilities :obj:`[E, K_a]` of each predicted layer's
                types.

        Returns:
            Those of each true layer's types, :obj:`[E, K_l]`.

        Raises:
            TypeError: If the posterior holds anything but floating-point
                numbers.
            ValueError: If shapes do not fit or it holds no probabilities.
        """
        check_probabilities(posterior, self.predicted_edge_types)
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
        """The decoder's channel that stands for each true type alone, where
        the decoder has a channel for each predicted type but the null types.

        Args:
            num_channels: Number of channels of the decoder.

        Returns:
            A channel for each true type but the null types, layer by layer;
            None where one has no channel, or a channel stands for several.
        """
        sizes = self.predicted_edge_types
        if num_channels != sum(sizes) - len(sizes):
            return None
        # What one channel alone stands for, a row per channel.
        alone = torch.block_diag(
            *[torch.arange(1, k).view(-1, 1) for k in sizes])
        true = self(alone).tolist()
        found: dict[tuple[int, int], int] = {}
        for channel, types in enumerate(true):
            parts = [(layer, kind) for layer, kind in enumerate(types) if kind]
            if len(parts) != 1 or parts[0] in found:
                return None
            found[parts[0]] = channel
        wanted = [(layer, kind) for layer, types in enumerate(zip(*self.table))
                  for kind in range(1,
                                    max(types) + 1)]
        if len(found) != len(wanted):
            return None
        return [found[part] for part in wanted]

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


def make_relabelling(
    joint: Tensor,
    predicted_sizes: Sequence[int],
    sizes: Sequence[int],
) -> Relabelling:
    """The relabelling in which predicted joint type :obj:`p` stands for the
    true joint type :obj:`joint[p]`."""
    types = all_joint_types(sizes)[joint]
    return Relabelling(tuple(predicted_sizes), tuple(map(tuple,
                                                         types.tolist())))
