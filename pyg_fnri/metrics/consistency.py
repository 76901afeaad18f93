"""Whether a model uses one numbering of layers and types throughout."""
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torchmetrics import Metric

from pyg_fnri.metrics.joint_type import check_sizes, count_joint_types
from pyg_fnri.metrics.relabelling import Relabelling, make_relabelling
from pyg_fnri.metrics.relabelling_search import best_relabelling, check_mapping


class Consistency(NamedTuple):
    """How often batches agree about the relabelling.

    Args:
        share (torch.Tensor): Share of batches that agree with the data set's.
        relabelling (Relabelling): The best one for the whole data set.
        frequencies (dict[Relabelling, int]): Number of batches for which each
            was the best, the most frequent one first.
    """
    share: Tensor
    relabelling: Relabelling
    frequencies: dict[Relabelling, int]


class RelabellingConsistency(Metric):
    r"""How consistent the relabelling is across batches (supplement of the
    paper, section "Edge Accuracy"): if the model has settled on one numbering
    of layer-graphs and edge types, each batch alone finds it.

    Each :meth:`update` is a batch, of 128 systems in the paper. Its best
    relabelling is searched as in :class:`EdgeAccuracy` and compared with the
    one for the whole data set. A batch agrees if the latter gets as many of
    its edges right in all layers at once as any other.

    :meth:`compute` returns a :class:`Consistency`.

    Args:
        num_edge_types (Sequence[int]): As for :class:`EdgeAccuracy`.
        predicted_edge_types (Sequence[int], optional): Likewise.
            (default: as :obj:`num_edge_types`)

    Raises:
        TypeError: If an update holds anything but integers.
        ValueError: As :class:`EdgeAccuracy`.
    """
    is_differentiable = False
    higher_is_better = True
    full_state_update = False

    confusions: list[Tensor]

    def __init__(
        self,
        num_edge_types: Sequence[int],
        predicted_edge_types: Optional[Sequence[int]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_edge_types = check_sizes('num_edge_types', num_edge_types)
        self.predicted_edge_types = self.num_edge_types
        if predicted_edge_types is not None:
            self.predicted_edge_types = check_sizes('predicted_edge_types',
                                                    predicted_edge_types)
        check_mapping(self.predicted_edge_types, self.num_edge_types)
        self.add_state('confusions', [], dist_reduce_fx='cat')

    def update(self, edge_type: Tensor, edge_label: Tensor) -> None:
        confusion = count_joint_types(edge_type, edge_label,
                                      self.predicted_edge_types,
                                      self.num_edge_types)
        if edge_type.size(0):  # A batch without edges has no opinion.
            self.confusions.append(confusion.unsqueeze(0))

    def compute(self) -> Consistency:
        # Gathered from several processes, the batches are one tensor, which
        # is of another dtype where one of the processes has seen none.
        num_types = math.prod(self.num_edge_types)
        confusions = torch.cat([x.view(-1, num_types) for x in self.confusions]
                               or [torch.empty(0, num_types)]).cpu().long()
        confusions = confusions.view(-1, num_types, num_types)
        if not len(confusions):
            raise ValueError('RelabellingConsistency has seen no edges: call '
                             'update(edge_type, edge_label) before compute().')
        overall = self._best(confusions.sum(0))
        batches = torch.arange(overall.numel())
        found: Counter = Counter()
        num_agreeing = 0
        for confusion in confusions:
            best = self._best(confusion)
            right = confusion[batches, overall].sum()
            if right == confusion[batches, best].sum():
                best = overall
                num_agreeing += 1
            found[self._relabelling(best)] += 1
        return Consistency(
            torch.tensor(num_agreeing / len(confusions), dtype=torch.double),
            self._relabelling(overall), dict(found.most_common()))

    def _best(self, confusion: Tensor) -> Tensor:
        return best_relabelling(confusion, self.predicted_edge_types,
                                self.num_edge_types)

    def _relabelling(self, joint: Tensor) -> Relabelling:
        return make_relabelling(joint, self.predicted_edge_types,
                                self.num_edge_types)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(num_edge_types='
                f'{list(self.num_edge_types)}, predicted_edge_types='
                f'{list(self.predicted_edge_types)})')
