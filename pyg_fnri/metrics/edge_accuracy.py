"""The share of edges whose types are recovered."""
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torchmetrics import Metric

from pyg_fnri.metrics.joint_type import (
    all_joint_types,
    check_sizes,
    count_joint_types,
)
from pyg_fnri.metrics.relabelling import Relabelling, make_relabelling
from pyg_fnri.metrics.relabelling_search import (
    best_assignment,
    best_relabelling,
    check_equal_product,
    check_mapping,
)


class EdgeAccuracyResult(NamedTuple):
    r"""Edge accuracies, each a scalar tensor between 0 and 1.

    Args:
        combined (torch.Tensor): Share of edges that are right in all layers
            at once.
        layers (tuple[torch.Tensor, ...]): Share of right edges per layer, in
            the order of the true layers.
        relabelling (Relabelling, optional): The relabelling that was used;
            :obj:`None` where every batch had its own.
    """
    combined: Tensor
    layers: tuple[Tensor, ...]
    relabelling: Optional[Relabelling]


class EdgeAccuracy(Metric):
    r"""Share of edges whose types are recovered, up to **one** relabelling
    for the whole data set (section "Edge Accuracy" of the paper).

    A prediction with as many layers as the truth may be relabelled by an
    ordering of the layers of equal size and a permutation of the types
    within each layer: 8 ways for two layers of two types, 48 for three. A
    prediction with a single layer of :math:`\prod_l K_l` joint types (NRI)
    may be relabelled by any one-to-one map onto the joint types. The way with
    the highest combined accuracy is taken (of equals the one with the higher
    layer accuracies).

    :meth:`compute` returns an :class:`EdgeAccuracyResult`.

    Args:
        num_edge_types (Sequence[int]): Number of true edge types per layer.
        predicted_edge_types (Sequence[int], optional): Number of predicted
            edge types per predicted layer, :obj:`[4]` for an NRI of two
            layers of two types. (default: as :obj:`num_edge_types`)
        fixed_null (bool): Type 0 already means "no interaction" in each
            predicted layer, as in a model that drops its null channels, and
            stays 0. For layers of two types that leaves their order alone.
            (default: :obj:`False`)

    Raises:
        TypeError: If an update holds anything but integers.
        ValueError: If the predicted layers cannot be mapped one to one onto
            the true ones, an update has no labels, wrong shapes or types out
            of range, or :meth:`compute` comes before any edge.

    Shapes:
        :meth:`update` takes :obj:`edge_type` :obj:`[E, Lp]`, the predicted
        types, and :obj:`edge_label` :obj:`[E, L]`, the true ones; both hold
        integers.
    """
    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    confusion: Tensor

    def __init__(
        self,
        num_edge_types: Sequence[int],
        predicted_edge_types: Optional[Sequence[int]] = None,
        fixed_null: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        true = check_sizes('num_edge_types', num_edge_types)
        predicted = true
        if predicted_edge_types is not None:
            predicted = check_sizes('predicted_edge_types',
                                    predicted_edge_types)
        self.num_edge_types = true
        self.predicted_edge_types = predicted
        self.fixed_null = fixed_null
        self._check_sizes()

        num_types = math.prod(true)
        self.add_state('confusion',
                       torch.zeros(num_types, num_types, dtype=torch.long),
                       dist_reduce_fx='sum')

    def update(self, edge_type: Tensor, edge_label: Tensor) -> None:
        self.confusion += self._count(edge_type, edge_label)

    def compute(self) -> EdgeAccuracyResult:
        joint = best_relabelling(self.confusion.cpu(),
                                 self.predicted_edge_types, self.num_edge_types,
                                 self.fixed_null)
        relabelling = make_relabelling(joint, self.predicted_edge_types,
                                       self.num_edge_types)
        joint = joint.to(self.confusion.device)
        relabelled = torch.zeros_like(self.confusion)
        relabelled.index_add_(0, joint, self.confusion)
        return self._result(relabelled, relabelling)

    def _check_sizes(self) -> None:
        check_mapping(self.predicted_edge_types, self.num_edge_types,
                      self.fixed_null)

    def _count(self, edge_type: Tensor, edge_label: Tensor) -> Tensor:
        return count_joint_types(edge_type, edge_label,
                                 self.predicted_edge_types, self.num_edge_types)

    def _result(self, confusion: Tensor,
                relabelling: Optional[Relabelling]) -> EdgeAccuracyResult:
        """Accuracies from the counts of [relabelled, true] joint types."""
        total = confusion.sum()
        if total == 0:
            raise ValueError(f'{type(self).__name__} has seen no edges: call '
                             f'update(edge_type, edge_label) before compute().')
        types = all_joint_types(self.num_edge_types).to(confusion.device)
        same = types.unsqueeze(1) == types  # [P, P, L]
        layers = (confusion.unsqueeze(-1) * same).sum(dim=(0, 1)).double()
        return EdgeAccuracyResult(confusion.trace().double() / total,
                                  tuple(layers / total), relabelling)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(num_edge_types='
                f'{list(self.num_edge_types)}, predicted_edge_types='
                f'{list(self.predicted_edge_types)}, '
                f'fixed_null={self.fixed_null})')


class JointEdgeAccuracy(EdgeAccuracy):
    r"""The edge accuracy of the paper's published code: the best of *all*
    permutations of the joint type, chosen anew for every batch.

    This is generous and only meant for comparing with published figures.
    Guessing two layers of two types at random scores 26.7 % at batch size 128
    and 44 % at batch size 1 instead of 25 %, and a prediction in which the
    layers are entangled (one layer holding "spring or charge", say) can score
    100 %. The result depends on how the data set was cut into batches, one
    :meth:`update` each; batches are weighted by their number of edges.
    Report :class:`EdgeAccuracy`.

    Args:
        num_edge_types (Sequence[int]): Number of true edge types per layer.
        predicted_edge_types (Sequence[int], optional): Number of predicted
            edge types per predicted layer; any layers with as many joint
            types as the truth. (default: as :obj:`num_edge_types`)
    """
    def __init__(
        self,
        num_edge_types: Sequence[int],
        predicted_edge_types: Optional[Sequence[int]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_edge_types, predicted_edge_types, **kwargs)

    def update(self, edge_type: Tensor, edge_label: Tensor) -> None:
        confusion = self._count(edge_type, edge_label)
        joint = best_assignment(confusion.cpu(), self.num_edge_types)
        # The state counts relabelled predictions, so sums stay meaningful.
        self.confusion.index_add_(0, joint.to(confusion.device), confusion)

    def compute(self) -> EdgeAccuracyResult:
        return self._result(self.confusion, None)

    def _check_sizes(self) -> None:
        check_equal_product(self.predicted_edge_types, self.num_edge_types)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(num_edge_types='
                f'{list(self.num_edge_types)}, predicted_edge_types='
                f'{list(self.predicted_edge_types)})')
