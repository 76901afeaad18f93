"""What the probabilities of inferred graphs are worth."""
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torchmetrics.functional.classification import (binary_auroc,
                                                    binary_average_precision)

from pyg_fnri.metrics.edge_accuracy import (EdgeAccuracy, JointEdgeAccuracy,
                                            relabelling_consistency)
from pyg_fnri.metrics.relabelling import check_probabilities
from pyg_fnri.nn.latent import reverse_edges


class EdgePosterior(NamedTuple):
    """Of a batch: types :obj:`[E, L]`, each layer's probabilities
    :obj:`[E, K_a]`, candidate edges :obj:`[2, E]` and perhaps true types."""
    edge_type: Tensor
    layers: Sequence[Tensor]
    edge_index: Tensor
    edge_label: Optional[Tensor] = None


def type_confidence(edge_type: Tensor, layers: Sequence[Tensor]) -> Tensor:
    """Probability :obj:`[E, L]` of predicted types, from :obj:`[E, K_l]`."""
    return torch.stack([
        q.gather(1, types.unsqueeze(1)).squeeze(1)
        for q, types in zip(layers, edge_type.unbind(-1), strict=True)
    ], dim=-1).clamp(max=1)


class Reliability(NamedTuple):
    """Mean confidence, share of right predictions, and their number, in bins
    of equal width between 0 and 1: :obj:`[num_bins]`, NaN in empty ones."""
    confidence: Tensor
    accuracy: Tensor
    num_edges: Tensor


def reliability(confidence: Tensor, correct: Tensor,
                num_bins: int = 15) -> Reliability:
    """Bins predictions by confidence; both arguments are :obj:`[num_edges]`."""
    if not ((confidence >= 0) & (confidence <= 1)).all():  # Nor NaN.
        raise ValueError('confidence holds numbers beyond 0 and 1; hand over '
                         'probabilities.')
    confidence = confidence.double()
    edges = torch.linspace(0, 1, num_bins + 1, dtype=torch.double)[1:-1]
    index = torch.bucketize(confidence, edges.to(confidence.device), right=True)
    count = torch.bincount(index, minlength=num_bins)
    total = torch.bincount(index, confidence, minlength=num_bins)
    right = torch.bincount(index, correct.double(), minlength=num_bins)
    return Reliability(total / count, right / count, count)


def expected_calibration_error(confidence: Tensor, correct: Tensor) -> Tensor:
    r"""The mean distance of confidence and accuracy,
    :math:`\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|`, over the
    bins :math:`b` of :func:`reliability`; NaN without predictions."""
    bins = reliability(confidence, correct)
    distance = (bins.accuracy - bins.confidence).abs().nan_to_num()
    return (bins.num_edges * distance).sum() / bins.num_edges.sum()


def brier_score(probabilities: Tensor, edge_label: Tensor) -> Tensor:
    r"""The mean squared distance :math:`\sum_k (q_k - [z = k])^2` of one
    layer's probabilities :obj:`[num_edges, K]` and true types
    :obj:`[num_edges]`: 0 at best, 2 at worst."""
    truth = one_hot(edge_label, probabilities.size(1))
    return (probabilities.double() - truth).square().sum(-1).mean()


def detection(probabilities: Tensor,
              edge_label: Tensor) -> tuple[Tensor, Tensor]:
    """AUROC and average precision of telling any interaction from none; NaN
    unless there are both. Arguments as for :func:`brier_score`."""
    present = (edge_label != 0).long()
    if present.unique().numel() < 2:
        return (probabilities.new_tensor(torch.nan), ) * 2
    # Not 1 - q_0: where q_0 is all but 1, that is all rounding.
    score = probabilities[:, 1:].sum(-1).clamp(max=1)
    # In single precision, sums over all edges can exceed 1 by rounding.
    return (binary_auroc(score, present).clamp(max=1),
            binary_average_precision(score, present).clamp(max=1))


def posterior_entropy(probabilities: Tensor) -> Tensor:
    r"""The mean entropy of one layer's types, :math:`- \sum_k q_k \log q_k`
    in nats, of :obj:`[num_edges, K]`; :math:`\log K` at most."""
    return torch.mean(torch.special.entr(probabilities.double()).sum(-1))


def asymmetric_share(edge_type: Tensor, reverse: Tensor) -> Tensor:
    """The share of pairs whose two directions have different types in one
    layer. Edges without a reverse do not count; NaN if none has."""
    edge, back = _both_ways(reverse)
    return (edge_type[edge] != edge_type[back]).double().mean()


def asymmetry(probabilities: Tensor, reverse: Tensor) -> Tensor:
    r"""The mean distance :math:`\frac{1}{2} \sum_k |q_{k,ij} - q_{k,ji}|` of
    the two directions of pairs, from one layer's :obj:`[num_edges, K]`."""
    edge, back = _both_ways(reverse)
    distance = (probabilities[edge] - probabilities[back]).double().abs()
    return distance.sum(-1).mean() / 2


def _both_ways(reverse: Tensor) -> tuple[Tensor, Tensor]:
    """Each pair once: the positions of its two directions."""
    edge = torch.arange(reverse.numel(), device=reverse.device)
    once = edge < reverse
    return edge[once], reverse[once]


def graph_report(batches: Sequence[EdgePosterior],
                 num_edge_types: Sequence[int],
                 predicted_edge_types: Sequence[int]) -> dict[str, Any]:
    """All metrics of inferred graphs, all with truth or none, as plain numbers;
    None for what is not defined, as an AUROC where all edges are of one kind.

    Returns:
        * For each layer (of the truth where it is known), :obj:`entropy`,
          :obj:`entropy_share` of the maximum, :obj:`asymmetric_share`,
          :obj:`asymmetry`; with truth also :obj:`auroc`,
          :obj:`average_precision` and :obj:`brier_score`;
        * with truth, under :obj:`combined` and :obj:`layers`:
          :obj:`edge_accuracy` (strict), :obj:`joint_edge_accuracy` (as the
          authors' code), :obj:`calibration_error` and :obj:`reliability`;
        * with truth, the :obj:`relabelling` of :class:`EdgeAccuracy`, and
          :func:`relabelling_consistency`.
    """
    edge_type = torch.cat([batch.edge_type for batch in batches])
    layers = [torch.cat(q) for q in zip(*[batch.layers for batch in batches])]
    check_probabilities(layers)
    layers = [q.clamp(max=1) for q in layers]
    labels = [b.edge_label for b in batches if b.edge_label is not None]
    out: dict[str, Any] = {}
    if labels:
        sizes = num_edge_types, predicted_edge_types
        strict, joint = EdgeAccuracy(*sizes), JointEdgeAccuracy(*sizes)
        pairs = [(batch.edge_type, label)
                 for batch, label in zip(batches, labels, strict=True)]
        for pair in pairs:
            strict.update(*pair)
            joint.update(*pair)
        accuracy = strict.compute()
        relabelling = accuracy.relabelling
        assert relabelling is not None
        # Of the same event under another name.
        confidence = type_confidence(edge_type, layers).prod(-1)
        edge_type = relabelling(edge_type)
        layers = relabelling.probabilities(layers)
        label = torch.cat(labels)
        auroc, precision = zip(*map(detection, layers, label.T))
        correct = edge_type == label
        # Of all layers at once, then of each.
        judged = [(confidence, correct.all(-1)),
                  *zip(type_confidence(edge_type, layers).T, correct.T)]
        errors = _plain(expected_calibration_error(*pair) for pair in judged)
        bins = [{
            name: _plain(values)
            for name, values in reliability(*pair)._asdict().items()
        } for pair in judged]
        out = dict(
            edge_accuracy=accuracy.numbers(),
            joint_edge_accuracy=joint.compute().numbers(),
            relabelling=relabelling,
            relabelling_consistency=relabelling_consistency(pairs, *sizes),
            auroc=_plain(auroc), average_precision=_plain(precision),
            brier_score=_plain(map(brier_score, layers, label.T)),
            calibration_error=dict(combined=errors[0], layers=errors[1:]),
            reliability=dict(combined=bins[0], layers=bins[1:]))
    start, parts = 0, []
    for batch in batches:
        parts.append(reverse_edges(batch.edge_index) + start)
        start += len(batch.edge_type)
    reverse = torch.cat(parts)
    entropy = [posterior_entropy(q) for q in layers]
    shares = [
        h / torch.tensor(q.size(-1)).log() for h, q in zip(entropy, layers)
    ]
    differ = [asymmetric_share(types, reverse) for types in edge_type.T]
    return dict(out, entropy=_plain(entropy), entropy_share=_plain(shares),
                asymmetric_share=_plain(differ),
                asymmetry=_plain(asymmetry(q, reverse) for q in layers))


def _plain(values: Iterable[Tensor]) -> list[Optional[float]]:
    return [None if value.isnan() else value.item() for value in values]
