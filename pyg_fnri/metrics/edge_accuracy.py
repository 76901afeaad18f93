"""The share of edges whose types are recovered, or on which graphs agree."""
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torchmetrics import Metric

from pyg_fnri.metrics.relabelling import (Relabelling, best_assignment,
                                          best_relabelling, check_mapping,
                                          count_joint_types, make_relabelling)
from pyg_fnri.nn.latent import all_joint_types


class EdgeAccuracyResult(NamedTuple):
    """Accuracies in all layers at once and in each true one, after a
    relabelling, None where each batch had its own."""
    combined: Tensor
    layers: tuple[Tensor, ...]
    relabelling: Optional[Relabelling]

    def numbers(self) -> dict[str, Any]:
        return dict(combined=self.combined.item(),
                    layers=torch.stack(self.layers).tolist())


class EdgeAccuracy(Metric):
    r"""Share of edges whose types are recovered, up to **one** relabelling
    for the whole data set (section "Edge Accuracy" of the paper): the best
    ordering of layers of equal size and permutation of the types within each;
    of a single layer of :math:`\prod_l K_l` joint types (NRI), the best
    one-to-one map. :meth:`update` takes predicted types :obj:`[E, Lp]` and true
    ones :obj:`[E, L]`.

    Args:
        num_edge_types: Number of true edge types per layer.
        predicted_edge_types: Of the predicted layers; by default as the truth.
        fixed_null: Type 0 is "no interaction" in predicted layers and stays 0.
    """
    full_state_update = False
    higher_is_better = True
    confusion: Tensor

    def __init__(self, num_edge_types: Sequence[int],
                 predicted_edge_types: Optional[Sequence[int]] = None,
                 fixed_null: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.num_edge_types = tuple(num_edge_types)
        self.predicted_edge_types = tuple(predicted_edge_types
                                          or num_edge_types)
        self.fixed_null = fixed_null
        self._sizes = self.predicted_edge_types, self.num_edge_types
        check_mapping(*self._sizes, fixed_null)
        num_types = math.prod(num_edge_types)
        self.add_state('confusion',
                       torch.zeros(num_types, num_types, dtype=torch.long),
                       dist_reduce_fx='sum')

    # States are never changed in place: reset under inference mode, as by
    # `trainer.validate`, they could not be.
    def update(self, edge_type: Tensor, edge_label: Tensor) -> None:
        self.confusion = self.confusion + count_joint_types(
            edge_type, edge_label, *self._sizes)

    def compute(self) -> EdgeAccuracyResult:
        joint = best_relabelling(self.confusion.cpu(), *self._sizes,
                                 self.fixed_null)
        return self._result(_relabelled(self.confusion, joint),
                            make_relabelling(joint, *self._sizes))

    def _result(self, confusion: Tensor,
                relabelling: Optional[Relabelling]) -> EdgeAccuracyResult:
        total = confusion.sum()
        if total == 0:
            raise ValueError(f'{type(self).__name__} has seen no edges: call '
                             f'update(edge_type, edge_label) before compute().')
        types = all_joint_types(self.num_edge_types).to(confusion.device)
        same = types.unsqueeze(1) == types  # [P, P, L]
        layers = (confusion.unsqueeze(-1) * same).sum(dim=(0, 1)).double()
        return EdgeAccuracyResult(confusion.trace().double() / total,
                                  tuple(layers / total), relabelling)


class JointEdgeAccuracy(EdgeAccuracy):
    """The edge accuracy of the paper's published code: the best of *all*
    permutations of the joint type, chosen anew for every batch.

    Only for comparing with published numbers: guessing two layers of two types
    scores 26.7 % at batch size 128 and 44 % at batch size 1, not 25 %, and
    entangled layers ("spring or charge" in one) can score 100 %."""
    def update(self, edge_type: Tensor, edge_label: Tensor) -> None:
        confusion = count_joint_types(edge_type, edge_label, *self._sizes)
        joint = best_assignment(confusion.cpu(), self.num_edge_types)
        # The state counts relabelled predictions, so sums stay meaningful.
        self.confusion = self.confusion + _relabelled(confusion, joint)

    def compute(self) -> EdgeAccuracyResult:
        return self._result(self.confusion, None)


def relabelling_consistency(
        batches: Sequence[tuple[Tensor, Tensor]], num_edge_types: Sequence[int],
        predicted_edge_types: Sequence[int]) -> dict[str, Any]:
    """How consistent the relabelling is across batches of types :obj:`[E, Lp]`
    and :obj:`[E, L]` (supplement of the paper, section "Edge Accuracy"): the
    :obj:`share` of the :obj:`num_batches` in which that for all is as good as
    any; and :obj:`frequencies`, in how many batches each is the best."""
    sizes = predicted_edge_types, num_edge_types
    confusions = torch.stack([
        count_joint_types(*batch, *sizes).cpu() for batch in batches
        if len(batch[0])
    ])
    overall = best_relabelling(confusions.sum(0), *sizes)
    found: Counter[str] = Counter()
    num_agreeing = 0
    for confusion in confusions:
        best = best_relabelling(confusion, *sizes)
        if _num_right(confusion, overall) == _num_right(confusion, best):
            best = overall
            num_agreeing += 1
        found[str(make_relabelling(best, *sizes))] += 1
    return dict(share=num_agreeing / len(confusions),
                num_batches=len(confusions),
                frequencies=dict(found.most_common()))


class Agreement(NamedTuple):
    """The share of edges on which two graphs agree in all layers; that of
    independent graphs (:obj:`chance`); and the share adjusted for it as Cohen's
    kappa: 1 for the same graph, 0 for chance, None where both have one type."""
    share: float
    chance: float
    adjusted: Optional[float]


def agreement(types_a: Tensor, types_b: Tensor,
              sizes: Sequence[int]) -> Agreement:
    r"""How far two inferred graphs of the same edges, types :obj:`[E, L]`,
    agree: the strict edge accuracy :math:`p` of one, were the other the truth.
    By chance, the shares :math:`a_s` and :math:`b_t` of joint types multiply,
    :math:`c = \max_\pi \sum_s a_s b_{\pi(s)}` over relabellings :math:`\pi`;
    the adjusted agreement is :math:`(p - c) / (1 - c)`."""
    check_mapping(sizes, sizes)
    confusion = count_joint_types(types_a, types_b, sizes, sizes).cpu()
    # Counts of independent graphs, times the number of edges.
    independent = confusion.sum(1, keepdim=True) * confusion.sum(0)
    share, chance = (_num_right(count, best_relabelling(count, sizes, sizes)) /
                     count.sum().item() for count in (confusion, independent))
    adjusted = None if chance == 1 else (share - chance) / (1 - chance)
    return Agreement(share, chance, adjusted)


def _relabelled(confusion: Tensor, joint: Tensor) -> Tensor:
    return torch.zeros_like(confusion).index_add_(0, joint.to(confusion.device),
                                                  confusion)


def _num_right(confusion: Tensor, joint: Tensor) -> int:
    return int(_relabelled(confusion, joint).trace())
