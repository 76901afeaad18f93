"""What a trained model is worth: edge accuracies and rollout errors."""
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.metrics import EdgeAccuracy, JointEdgeAccuracy, RolloutMSE
from pyg_fnri.nn import RelationalAutoEncoder, Scaling


def static_rollout(y: Tensor, pred_steps: int) -> Tensor:
    """The Static baseline: each predicted state is a copy of the last true
    one that was looked at (every :obj:`pred_steps` steps).

    Args:
        y: Trajectories, :obj:`[num_nodes, T, num_features]`.
        pred_steps: Steps between two looks at the true state.

    Returns:
        Predictions of frames 1, ..., T - 1, :obj:`[num_nodes, T - 1, F]`.

    Raises:
        ValueError: If :obj:`pred_steps` is less than 1.
    """
    if pred_steps < 1:
        raise ValueError(f"Expected at least 1 step between two looks at the "
                         f"true state, but got pred_steps={pred_steps}.")
    num_steps = y.size(1) - 1
    start = torch.arange(num_steps, device=y.device)
    return y[:, start - start % pred_steps]


@torch.no_grad()
def evaluate(
    model: RelationalAutoEncoder,
    batches: Iterable[Data],
    units: Scaling,
    num_edge_types: Sequence[int],
    horizons: Sequence[int] = (1, 10, 20),
    infer: Optional[Callable[[Data], Tensor]] = None,
) -> dict[str, Any]:
    """Measures a model, without training it, on batches of systems.

    The graph is inferred from :obj:`x`; rollouts run along :obj:`y` with the
    most probable types, in the units given (the paper's tables: min-max scaled
    with the training split's extremes).

    Args:
        model: The model.
        batches: Hold :obj:`x`, :obj:`y`, :obj:`edge_index` and, where the
            truth is known, :obj:`edge_label`.
        units: Units of the errors.
        num_edge_types: Number of true types of each layer-graph.
        horizons: Steps of the rollouts; those longer than :obj:`y` are left
            out.
        infer: Gives the graph of a batch, :obj:`[num_edges, num_layers]`;
            :obj:`model.predict`, one pass of the encoder, by default.

    Returns:
        A dictionary of plain numbers: :obj:`num_systems`; with truth
        :obj:`edge_accuracy` (strict: one relabelling for the whole data set)
        and :obj:`joint_edge_accuracy` (as the authors' code), fractions;
        :obj:`rollout_mse` and :obj:`static_mse`, horizon to error; and
        :obj:`relabelling`, the :class:`~pyg_fnri.metrics.Relabelling` found.

    Raises:
        ValueError: If there are no batches, one has no :obj:`y`, or none of
            the horizons fits.
    """
    model.eval()
    infer = infer or model.predict
    predicted_types = model.latent.num_edge_types
    strict = EdgeAccuracy(num_edge_types, predicted_types)
    joint = JointEdgeAccuracy(num_edge_types, predicted_types)
    ours: Optional[RolloutMSE] = None
    theirs: Optional[RolloutMSE] = None
    num_systems = 0
    for batch in batches:
        if batch.get('y') is None:
            raise ValueError("These systems have no continuation y to compare "
                             "rollouts with; split their trajectories with "
                             "`pyg_fnri.transforms.SplitTrajectory`.")
        edge_type = infer(batch)
        if 'edge_label' in batch:
            strict.update(edge_type, batch.edge_label)
            joint.update(edge_type, batch.edge_label)
        if ours is None or theirs is None:
            fitting = [h for h in horizons if h < batch.y.size(1)]
            if not fitting:
                raise ValueError(f"None of the horizons {list(horizons)} fits "
                                 f"into continuations y of {batch.y.size(1)} "
                                 f"frames; ask for a horizon shorter than "
                                 f"that.")
            ours, theirs = RolloutMSE(fitting), RolloutMSE(fitting)
        edge_attr = model.latent.encode_types(edge_type)
        y = units(batch.y)
        ours.update(
            {
                h: units(model.decode(batch.y, batch.edge_index, edge_attr, h))
                for h in ours.horizons
            }, y[:, 1:])
        theirs.update({h: static_rollout(y, h)
                       for h in theirs.horizons}, y[:, 1:])
        num_systems += getattr(batch, 'num_graphs', 1)  # A single Data.
    if ours is None or theirs is None:
        raise ValueError("There are no systems to evaluate on; the data set "
                         "is empty.")
    report: dict[str, Any] = {
        'num_systems': num_systems,
        'rollout_mse': _plain(ours.compute()),
        'static_mse': _plain(theirs.compute()),
    }
    if strict.update_called:
        result = strict.compute()
        report['edge_accuracy'] = _accuracies(result)
        report['joint_edge_accuracy'] = _accuracies(joint.compute())
        report['relabelling'] = result.relabelling
    return report


def _accuracies(result: Any) -> dict[str, Any]:
    return {
        'combined': result.combined.item(),
        'layers': [accuracy.item() for accuracy in result.layers],
    }


def _plain(errors: dict[int, Tensor]) -> dict[int, float]:
    return {horizon: error.item() for horizon, error in errors.items()}
