"""All figures of inferred graphs, as plain numbers."""
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from pyg_fnri.metrics.calibration import (
    brier_score,
    expected_calibration_error,
    reliability,
)
from pyg_fnri.metrics.consistency import Consistency, RelabellingConsistency
from pyg_fnri.metrics.detection import auroc, average_precision
from pyg_fnri.metrics.edge_accuracy import (
    EdgeAccuracy,
    EdgeAccuracyResult,
    JointEdgeAccuracy,
)
from pyg_fnri.metrics.edge_posterior import (
    EdgePosterior,
    join_posteriors,
    make_posterior,
)
from pyg_fnri.metrics.uncertainty import (
    asymmetric_share,
    asymmetry,
    posterior_entropy,
)


class GraphReport:
    """Collects inferred graphs, batch by batch, and tells what they are worth.

    What truth there is, is compared after the one relabelling that
    :class:`EdgeAccuracy` finds for all batches.

    :meth:`compute` returns a dictionary of plain numbers, None for what is not
    defined, such as an AUROC where all edges are of one kind:

    * a number per layer-graph (of the truth if it is known, as predicted if
      not): :obj:`entropy` in nats, :obj:`entropy_share` of the maximum,
      :obj:`asymmetric_share` and :obj:`asymmetry` of the two directions of
      pairs;
    * with truth, also :obj:`auroc`, :obj:`average_precision` and
      :obj:`brier_score`;
    * with truth, under :obj:`combined` and :obj:`layers`: :obj:`edge_accuracy`
      (strict), :obj:`joint_edge_accuracy` (as the authors' code),
      :obj:`calibration_error` of the confidence in the predicted types, and
      :obj:`reliability`, its bins;
    * with truth, :obj:`relabelling`, the :class:`Relabelling` found, and
      :obj:`relabelling_consistency` across batches.

    Args:
        num_edge_types (Sequence[int]): Number of true types of each layer.
        predicted_edge_types (Sequence[int]): Number of predicted types of
            each predicted layer.

    Raises:
        ValueError: If the predicted layers cannot be mapped onto the true
            ones.
    """
    def __init__(self, num_edge_types: Sequence[int],
                 predicted_edge_types: Sequence[int]) -> None:
        sizes = num_edge_types, predicted_edge_types
        self.strict = EdgeAccuracy(*sizes)
        self.joint = JointEdgeAccuracy(*sizes)
        self.consistency = RelabellingConsistency(*sizes)
        # Of 10,000 systems of 5 particles these are some ten megabytes.
        self._posteriors: list[EdgePosterior] = []
        self._labels: list[Tensor] = []

    def update(
        self,
        edge_type: Tensor,
        posterior: Sequence[Tensor],
        edge_index: Tensor,
        edge_label: Optional[Tensor] = None,
    ) -> None:
        """Adds a batch.

        Args:
            edge_type: The predicted types, :obj:`[E, L]`.
            posterior: Probabilities :obj:`[E, K_a]` of each predicted layer's
                types.
            edge_index: :obj:`[2, E]`.
            edge_label: The true types, in all batches or in none.

        Raises:
            TypeError: If dtypes do not fit.
            ValueError: If shapes do not fit, a type is out of range, a value
                is no probability, or the truth is known of some batches only.
        """
        if self._posteriors and bool(self._labels) != (edge_label is not None):
            raise ValueError('Some batches have an edge_label and others have '
                             'none: expected the truth of all or of none.')
        # Metrics hold their sums on the CPU, wherever the model is.
        edge_type, edge_index = edge_type.cpu(), edge_index.cpu()
        if edge_label is not None:
            edge_label = edge_label.cpu()
        part = make_posterior(edge_type, [q.cpu() for q in posterior],
                              edge_index)
        if edge_label is not None:
            for metric in (self.strict, self.joint, self.consistency):
                metric.update(edge_type, edge_label)
            self._labels.append(edge_label)
        self._posteriors.append(part)

    def compute(self) -> dict[str, Any]:
        """All figures; none before any batch."""
        if not self._posteriors:
            return {}
        posterior = join_posteriors(self._posteriors)
        if not self._labels:
            return _without_truth(posterior)
        accuracy = self.strict.compute()
        assert accuracy.relabelling is not None
        posterior = posterior.relabelled(accuracy.relabelling)
        return {
            'edge_accuracy': _accuracies(accuracy),
            'joint_edge_accuracy': _accuracies(self.joint.compute()),
            'relabelling': accuracy.relabelling,
            'relabelling_consistency': _agreement(self.consistency.compute()),
            **_with_truth(posterior, torch.cat(self._labels)),
            **_without_truth(posterior),
        }


def _with_truth(posterior: EdgePosterior, edge_label: Tensor) -> dict[str, Any]:
    """What the truth tells about probabilities."""
    correct = posterior.edge_type == edge_label
    layers = list(zip(posterior.layers, edge_label.unbind(-1)))
    confidence = list(
        zip(posterior.layer_confidence.unbind(-1), correct.unbind(-1)))
    combined = posterior.confidence, correct.all(-1)
    return {
        'auroc': [_plain(auroc(*pair)) for pair in layers],
        'average_precision':
        [_plain(average_precision(*pair)) for pair in layers],
        'brier_score': [_plain(brier_score(*pair)) for pair in layers],
        'calibration_error': {
            'combined':
            _plain(expected_calibration_error(*combined)),
            'layers':
            [_plain(expected_calibration_error(*pair)) for pair in confidence],
        },
        'reliability': {
            'combined': _bins(*combined),
            'layers': [_bins(*pair) for pair in confidence],
        },
    }


def _without_truth(posterior: EdgePosterior) -> dict[str, Any]:
    """What a posterior tells by itself."""
    entropy = [posterior_entropy(q) for q in posterior.layers]
    most = [torch.tensor(q.size(-1)).log() for q in posterior.layers]
    types, reverse = posterior.edge_type.unbind(-1), posterior.reverse
    return {
        'entropy': [_plain(h) for h in entropy],
        'entropy_share': [_plain(h / m) for h, m in zip(entropy, most)],
        'asymmetric_share':
        [_plain(asymmetric_share(t, reverse)) for t in types],
        'asymmetry': [_plain(asymmetry(q, reverse)) for q in posterior.layers],
    }


def _accuracies(result: EdgeAccuracyResult) -> dict[str, Any]:
    return {
        'combined': result.combined.item(),
        'layers': [accuracy.item() for accuracy in result.layers],
    }


def _agreement(consistency: Consistency) -> dict[str, Any]:
    frequencies = consistency.frequencies
    return {
        'share': consistency.share.item(),
        'num_batches': sum(frequencies.values()),
        'frequencies': {
            str(way): n
            for way, n in frequencies.items()
        },
    }


def _bins(confidence: Tensor, correct: Tensor) -> dict[str, list]:
    return {
        name: [_plain(value) for value in values]
        for name, values in reliability(confidence, correct)._asdict().items()
    }


def _plain(value: Tensor) -> Optional[float]:
    """A number, None where it is not defined."""
    return None if value.isnan() else value.item()
