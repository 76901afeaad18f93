"""Whether probabilities mean what they say."""
from typing import NamedTuple

import torch
from torch import Tensor
from torchmetrics.functional.classification import binary_calibration_error

#: Bins of equal width between 0 and 1, as is usual.
NUM_BINS = 15


class Reliability(NamedTuple):
    """How often predictions of one confidence are right, bin by bin.

    Args:
        confidence (torch.Tensor): Mean confidence of the predictions in each
            bin, :obj:`[num_bins]`; NaN where there are none.
        accuracy (torch.Tensor): Share of them that are right, likewise.
        num_edges (torch.Tensor): Their number, int64.
    """
    confidence: Tensor
    accuracy: Tensor
    num_edges: Tensor


def reliability(
    confidence: Tensor,
    correct: Tensor,
    num_bins: int = NUM_BINS,
) -> Reliability:
    """Bins predictions by confidence, as a reliability plot shows them.

    Args:
        confidence: Probability that the model gives to what it predicts,
            :obj:`[num_edges]`.
        correct: Whether that is right, :obj:`[num_edges]` bool.
        num_bins: Number of bins of equal width between 0 and 1.

    Raises:
        TypeError: If dtypes do not fit.
        ValueError: If shapes do not fit or a confidence is no probability.
    """
    _check(confidence, correct)
    confidence = confidence.double()
    edges = torch.linspace(0, 1, num_bins + 1, dtype=torch.double)[1:-1]
    index = torch.bucketize(confidence, edges.to(confidence.device), right=True)
    count = torch.bincount(index, minlength=num_bins)
    total = torch.bincount(index, confidence, minlength=num_bins)
    right = torch.bincount(index, correct.double(), minlength=num_bins)
    return Reliability(total / count, right / count, count)


def expected_calibration_error(
    confidence: Tensor,
    correct: Tensor,
    num_bins: int = NUM_BINS,
) -> Tensor:
    r"""The mean distance between confidence and accuracy,

    .. math::
        \mathrm{ECE} = \sum_b \frac{n_b}{n} |\mathrm{acc}_b -
        \mathrm{conf}_b|,

    over bins :math:`b` of equal width with :math:`n_b` predictions each, of
    the confidence in the predicted type. Zero for a model that is right in
    80 % of the cases in which it is 80 % sure.

    Args:
        confidence: As for :func:`reliability`.
        correct: Likewise.
        num_bins: Likewise.

    Returns:
        A scalar between 0 and 1; NaN where there are no predictions.

    Raises:
        TypeError: If dtypes do not fit.
        ValueError: If shapes do not fit or a confidence is no probability.
    """
    _check(confidence, correct)
    if not confidence.numel():
        return confidence.new_tensor(torch.nan, dtype=torch.double)
    return binary_calibration_error(confidence.double(), correct.long(),
                                    num_bins, norm='l1')


def brier_score(probabilities: Tensor, edge_label: Tensor) -> Tensor:
    r"""The mean squared distance between probabilities and the truth,
    :math:`\sum_k (q_k - [z = k])^2`, averaged over edges: 0 at best, 2 at
    worst, and 0.5 for one half on each of two types.

    Args:
        probabilities: Of one layer's types, :obj:`[num_edges, K]`.
        edge_label: The true types, :obj:`[num_edges]`.

    Returns:
        A scalar; NaN where there are no edges.

    Raises:
        ValueError: If shapes do not fit.
    """
    if (probabilities.dim() != 2
            or edge_label.size() != probabilities.size()[:1]):
        raise ValueError(f'probabilities have shape '
                         f'{list(probabilities.shape)} and edge_label '
                         f'{list(edge_label.shape)}: expected [num_edges, K] '
                         f'and [num_edges], one layer at a time.')
    truth = torch.nn.functional.one_hot(edge_label, probabilities.size(1))
    return (probabilities.double() - truth).square().sum(-1).mean()


def _check(confidence: Tensor, correct: Tensor) -> None:
    if not confidence.is_floating_point() or correct.dtype != torch.bool:
        raise TypeError(f'confidence must hold floating-point numbers and '
                        f'correct bools, got {confidence.dtype} and '
                        f'{correct.dtype}.')
    if confidence.dim() != 1 or correct.size() != confidence.size():
        raise ValueError(f'confidence has shape {list(confidence.shape)} and '
                         f'correct {list(correct.shape)}: expected '
                         f'[num_edges] for both.')
    # Written so that NaN fails as well.
    if not bool(((confidence >= 0) & (confidence <= 1)).all()):
        raise ValueError('confidence must hold probabilities between 0 and 1.')
