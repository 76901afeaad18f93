r"""Edge accuracy and rollout error, with the paper's definitions.

Every state is a plain sum, so results weigh each edge and each predicted
value equally, whatever the batch size and the number of processes.
"""
from __future__ import annotations

import math
from collections import Counter
from itertools import permutations, product
from numbers import Integral
from typing import (
    Any,
    Iterable,
    Iterator,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
)

import networkx as nx
import torch
from torch import Tensor
from torchmetrics import Metric

# Above this the search over label permutations no longer takes about a second.
MAX_RELABELLINGS = 200_000


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
        _check_types('edge_type', edge_type, self.predicted_edge_types)
        table = torch.tensor(self.table, device=edge_type.device)
        return table[_joint_type(edge_type, self.predicted_edge_types)]

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
        true = _check_sizes('num_edge_types', num_edge_types)
        predicted = true
        if predicted_edge_types is not None:
            predicted = _check_sizes('predicted_edge_types',
                                     predicted_edge_types)
        self.num_edge_types = true
        self.predicted_edge_types = predicted
        self.fixed_null = fixed_null
        self._check_mapping()

        num_types = math.prod(true)
        self.add_state('confusion',
                       torch.zeros(num_types, num_types, dtype=torch.long),
                       dist_reduce_fx='sum')

    def update(self, edge_type: Tensor, edge_label: Tensor) -> None:
        self.confusion += self._confusion_of(edge_type, edge_label)

    def compute(self) -> EdgeAccuracyResult:
        confusion = self.confusion.cpu()
        if len(self.predicted_edge_types) == 1:
            joint = _best_assignment(confusion, self.num_edge_types,
                                     self.fixed_null)
        else:
            joint = self._best_layerwise(confusion)
        types = list(product(*map(range, self.num_edge_types)))
        relabelling = Relabelling(self.predicted_edge_types,
                                  tuple(types[t] for t in joint.tolist()))
        joint = joint.to(self.confusion.device)
        relabelled = torch.zeros_like(self.confusion)
        relabelled.index_add_(0, joint, self.confusion)
        return self._result(relabelled, relabelling)

    def _check_mapping(self) -> None:
        true, predicted = self.num_edge_types, self.predicted_edge_types
        if len(predicted) == 1:
            _check_equal_product(true, predicted)
            return
        if sorted(true) != sorted(predicted):
            raise ValueError(
                f'predicted_edge_types {list(predicted)} cannot be mapped onto '
                f'num_edge_types {list(true)}: expected the same layers in any '
                f'order, or one layer of {math.prod(true)} joint types.')
        orders = math.prod(map(math.factorial, Counter(true).values()))
        count = orders * math.prod(
            math.factorial(size - self.fixed_null) for size in true)
        if count > MAX_RELABELLINGS:
            raise ValueError(
                f'num_edge_types {list(true)} allow {count:,} relabellings, '
                f'too many to try (limit {MAX_RELABELLINGS:,}). Expected fewer '
                f'or smaller layers; fixed_null=True leaves fewer to try.')

    def _confusion_of(self, edge_type: Tensor,
                      edge_label: Optional[Tensor]) -> Tensor:
        if edge_label is None:
            raise ValueError(
                'edge_label is None: edge accuracy needs the true edge types '
                '[E, L]. Skip this metric for data without them.')
        _check_types('edge_type', edge_type, self.predicted_edge_types)
        _check_types('edge_label', edge_label, self.num_edge_types)
        if edge_type.size(0) != edge_label.size(0):
            raise ValueError(
                f'edge_type has {edge_type.size(0)} edges and edge_label '
                f'{edge_label.size(0)}: expected both for the same edges.')
        num_types = self.confusion.size(0)
        cell = (_joint_type(edge_type, self.predicted_edge_types) * num_types +
                _joint_type(edge_label, self.num_edge_types))
        count = torch.bincount(cell, minlength=num_types**2)
        return count.view(num_types, num_types)  # [predicted, true]

    def _layer_orders(self) -> Iterator[tuple[int, ...]]:
        """Orders in which predicted layers fit the true layers' sizes."""
        for order in permutations(range(len(self.predicted_edge_types))):
            if all(self.predicted_edge_types[p] == size
                   for p, size in zip(order, self.num_edge_types)):
                yield order

    def _best_layerwise(self, confusion: Tensor) -> Tensor:
        """Joint type of the truth for each predicted one, the best found
        among layer orders x permutations within layers."""
        types = _joint_types(self.predicted_edge_types)  # [P, L]
        labels = []  # per true layer, its permutations [num_permutations, K]
        for size in self.num_edge_types:
            fixed = (0, ) if self.fixed_null else ()
            rest = permutations(range(len(fixed), size))
            labels.append(torch.tensor([fixed + p for p in rest]))
        choices = torch.cartesian_prod(*[torch.arange(len(x)) for x in labels])
        relabellings = []
        for order in self._layer_orders():
            columns = [
                label[choice][:, types[:, source]]  # [num_choices, P]
                for label, choice, source in zip(labels, choices.T, order)
            ]
            relabellings.append(
                _joint_type(torch.stack(columns, dim=-1), self.num_edge_types))
        joint = torch.cat(relabellings)  # [num_relabellings, P]
        layers = _right_layers(confusion, self.num_edge_types)
        right = confusion.gather(1, joint.T).sum(dim=0)
        right_layers = layers.gather(1, joint.T).sum(dim=0)
        right_layers[right < right.max()] = -1
        return joint[right_layers.argmax()]  # the first comes nearest to none

    def _result(self, confusion: Tensor,
                relabelling: Optional[Relabelling]) -> EdgeAccuracyResult:
        """Accuracies from the counts of [relabelled, true] joint types."""
        total = confusion.sum()
        if total == 0:
            raise ValueError(f'{type(self).__name__} has seen no edges: call '
                             f'update(edge_type, edge_label) before compute().')
        types = _joint_types(self.num_edge_types).to(confusion.device)
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
        confusion = self._confusion_of(edge_type, edge_label)
        joint = _best_assignment(confusion.cpu(), self.num_edge_types)
        # The state counts relabelled predictions, so sums stay meaningful.
        self.confusion.index_add_(0, joint.to(confusion.device), confusion)

    def compute(self) -> EdgeAccuracyResult:
        return self._result(self.confusion, None)

    def _check_mapping(self) -> None:
        _check_equal_product(self.num_edge_types, self.predicted_edge_types)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(num_edge_types='
                f'{list(self.num_edge_types)}, predicted_edge_types='
                f'{list(self.predicted_edge_types)})')


class RolloutMSE(Metric):
    r"""Mean squared error of rollouts of several lengths (table 2 of the
    paper).

    A rollout with horizon :math:`M` starts from a true state, feeds its own
    predictions back for :math:`M` steps, then starts again from the truth
    until every frame but the first is predicted. The error is the mean over
    all particles, predicted frames and features.

    The unit is that of the tensors handed in. The paper's figures are for
    positions and velocities that were each min-max scaled to
    :math:`[-1, 1]` with the training split's extremes.

    :meth:`compute` returns :obj:`{horizon: error}`, scalar tensors summed in
    double precision.

    Args:
        horizons (Sequence[int]): Rollout lengths :math:`M`.
            (default: :obj:`(1, 10, 20)`)

    Raises:
        TypeError: If an update holds anything but floating-point tensors.
        ValueError: If the horizons or the shapes of an update do not fit, a
            value is not finite, or :meth:`compute` comes before any frame.

    Shapes:
        :meth:`update` takes :obj:`predictions`, a mapping from each horizon
        to the predicted frames :obj:`[N, T - 1, F]`, and :obj:`target`, the
        true frames :obj:`[N, T - 1, F]`.
    """
    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    squared_error: Tensor
    num_values: Tensor

    def __init__(self, horizons: Sequence[int] = (1, 10, 20),
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        horizons = tuple(horizons)
        if (not horizons or len(set(horizons)) < len(horizons)
                or any(not isinstance(h, Integral) or h < 1 for h in horizons)):
            raise ValueError(f'horizons must be different whole numbers of '
                             f'steps, at least 1, got {horizons}.')
        self.horizons = tuple(int(h) for h in horizons)
        self.add_state('squared_error',
                       torch.zeros(len(horizons), dtype=torch.double),
                       dist_reduce_fx='sum')
        self.add_state('num_values', torch.tensor(0), dist_reduce_fx='sum')

    def update(self, predictions: Mapping[int, Tensor], target: Tensor) -> None:
        self._check(predictions, target)
        target = target.double()
        self.squared_error += torch.stack([
            (predictions[h].double() - target).square().sum()
            for h in self.horizons
        ]).to(self.squared_error.device)
        self.num_values += target.numel()

    def compute(self) -> dict[int, Tensor]:
        if self.num_values == 0:
            raise ValueError('RolloutMSE has seen no frames: call '
                             'update(predictions, target) before compute().')
        return dict(zip(self.horizons, self.squared_error / self.num_values))

    def _check(self, predictions: Mapping[int, Tensor], target: Tensor) -> None:
        if not isinstance(predictions, Mapping):
            raise TypeError(f'predictions must map each horizon to its '
                            f'predicted frames, got '
                            f'{type(predictions).__name__}.')
        if set(predictions) != set(self.horizons):
            raise ValueError(f'predictions are for the horizons '
                             f'{list(predictions)}, expected '
                             f'{list(self.horizons)}.')
        _check_frames('target', target)
        if target.size(1) < max(self.horizons):
            raise ValueError(
                f'target has {target.size(1)} frames, too few for a rollout of '
                f'{max(self.horizons)} steps. Expected at least that many; '
                f'leave out the longer horizons for shorter trajectories.')
        for horizon, prediction in predictions.items():
            name = f'the prediction for horizon {horizon}'
            _check_frames(name, prediction)
            if prediction.shape != target.shape:
                raise ValueError(f'{name} has shape {list(prediction.shape)}, '
                                 f"expected the target's "
                                 f'{list(target.shape)}.')

    def __repr__(self) -> str:
        return f'{type(self).__name__}(horizons={self.horizons})'


def _joint_type(edge_type: Tensor, sizes: Sequence[int]) -> Tensor:
    """Number the combinations of types row-major: [..., L] -> [...]."""
    strides = [math.prod(sizes[layer + 1:]) for layer in range(len(sizes))]
    weight = torch.tensor(strides, device=edge_type.device)
    return (edge_type * weight).sum(dim=-1)


def _joint_types(sizes: Sequence[int]) -> Tensor:
    """All combinations of types, in the order of their numbers, [P, L]."""
    types = torch.cartesian_prod(*map(torch.arange, sizes))
    return types.view(math.prod(sizes), len(sizes))


def _right_layers(confusion: Tensor, sizes: Sequence[int]) -> Tensor:
    """Right layers, over all edges, if predicted type p meant t: [P, P]."""
    types = _joint_types(sizes)
    return confusion @ (types.unsqueeze(0) == types.unsqueeze(1)).sum(dim=-1)


def _best_assignment(confusion: Tensor,
                     sizes: Sequence[int],
                     fixed_null: bool = False) -> Tensor:
    """Joint type of the truth for each predicted one, the best one-to-one
    map. Of equally good ones that with more right layers is taken, then that
    which changes fewer types."""
    num_types = confusion.size(0)
    combined = confusion.tolist()
    layers = _right_layers(confusion, sizes).tolist()
    # Python integers of any size keep the three criteria apart exactly.
    base = int(confusion.sum()) * len(sizes) + 1
    graph = nx.Graph()
    for p, t in product(range(num_types), repeat=2):
        if not fixed_null or (p == 0) == (t == 0):
            weight = combined[p][t] * base + layers[p][t]
            weight = weight * (num_types + 1) + (p == t)
            graph.add_edge(('predicted', p), ('true', t), weight=weight)
    matching = nx.max_weight_matching(graph, maxcardinality=True)
    joint = torch.empty(num_types, dtype=torch.long)
    for pair in matching:
        (_, p), (_, t) = sorted(pair)  # 'predicted' sorts before 'true'
        joint[p] = t
    return joint


def _check_sizes(name: str, sizes: Sequence[int]) -> tuple[int, ...]:
    values = tuple(sizes) if isinstance(sizes, Iterable) else ()
    if not values or any(not isinstance(k, Integral) or k < 2 for k in values):
        raise ValueError(f'{name} must give a number of edge types, at least '
                         f'2, for each layer (such as [2, 2]), got {sizes}.')
    return tuple(int(k) for k in values)


def _check_equal_product(true: Sequence[int], predicted: Sequence[int]) -> None:
    if math.prod(true) != math.prod(predicted):
        raise ValueError(
            f'predicted_edge_types {list(predicted)} give '
            f'{math.prod(predicted)} joint types, expected '
            f'{math.prod(true)} as num_edge_types {list(true)} do.')


def _check_types(name: str, types: Tensor, sizes: Sequence[int]) -> None:
    if not isinstance(types, Tensor):
        raise TypeError(f'{name} must be a tensor, got '
                        f'{type(types).__name__}.')
    if types.is_floating_point() or types.dtype == torch.bool:
        raise TypeError(f'{name} must hold integer edge types, got '
                        f'{types.dtype}. Choose a type per edge and layer '
                        f'first; logits or probabilities will not do.')
    if types.dim() != 2 or types.size(1) != len(sizes):
        raise ValueError(f'{name} has shape {list(types.shape)}, expected '
                         f'[num_edges, {len(sizes)}].')
    limit = torch.tensor(sizes, device=types.device)
    wrong = (types < 0) | (types >= limit)
    if wrong.any():
        edge, layer = wrong.nonzero()[0].tolist()
        raise ValueError(f'{name} holds the type {int(types[edge, layer])} '
                         f'in layer {layer}, expected 0 to '
                         f'{sizes[layer] - 1}. Were the numbers of edge types '
                         f'given in the order of the layers?')


def _check_frames(name: str, frames: Tensor) -> None:
    if not isinstance(frames, Tensor) or not frames.is_floating_point():
        kind = frames.dtype if isinstance(frames, Tensor) else type(frames)
        raise TypeError(f'{name} must be a floating-point tensor, got {kind}.')
    if frames.dim() != 3:
        raise ValueError(f'{name} has shape {list(frames.shape)}, expected '
                         f'[num_particles, num_frames, num_features].')
    if not frames.isfinite().all():
        raise ValueError(f'{name} holds NaN or infinite values: expected '
                         f'finite numbers. A rollout that diverges has no '
                         f'mean squared error.')
