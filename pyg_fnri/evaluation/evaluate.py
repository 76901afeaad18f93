"""What a trained model is worth: graphs, their probabilities, rollouts."""
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.metrics import GraphReport, RolloutMSE
from pyg_fnri.metrics.errors import linear_rollout, static_rollout
from pyg_fnri.nn import LinearStep, RelationalAutoEncoder, Scaling, per_mass

#: Types :obj:`[num_edges, num_layers]` of a batch, and their probabilities
#: :obj:`[num_edges, K_a]` for each layer; None where the types are given.
Graph = tuple[Tensor, Optional[Sequence[Tensor]]]


@torch.no_grad()
def evaluate(
    model: RelationalAutoEncoder,
    batches: Iterable[Data],
    units: Scaling,
    num_edge_types: Sequence[int],
    horizons: Sequence[int] = (1, 10, 20),
    infer: Optional[Callable[[Data], Graph]] = None,
    linear_step: Optional[LinearStep] = None,
) -> dict[str, Any]:
    """Measures a model, without training it, on batches of systems.

    The graph is inferred from :obj:`x`; rollouts run along :obj:`y` with the
    most probable types, in the units given (the paper's tables: min-max scaled
    with the training split's extremes). They start after the burn-in of a
    recurrent decoder, and so do the baselines.

    Args:
        model: The model.
        batches: Hold :obj:`x`, :obj:`edge_index`, for rollouts :obj:`y` and,
            where the truth is known, :obj:`edge_label`. The consistency of
            the relabelling is that of these batches, of 128 systems in the
            paper.
        units: Units of the errors.
        num_edge_types: Number of true types of each layer-graph.
        horizons: Steps of the rollouts; those longer than :obj:`y` are left
            out. None at all for an encoder alone.
        infer: Gives the graph of a batch and its posterior, such as
            :func:`~pyg_fnri.inference.refine`; one pass of the encoder by
            default. A graph without posterior is a given one: nothing is said
            about it, only rollouts are measured.
        linear_step: A linear step in these units, to compare rollouts with.

    Returns:
        A dictionary of plain numbers, None for what is not defined, such as
        an AUROC where all edges are of one kind.

        * :obj:`num_systems`.
        * With horizons, horizon to mean squared error: :obj:`rollout_mse`,
          :obj:`static_mse` and, given a linear step, :obj:`linear_mse`.
        * Of inferred graphs, the figures of
          :class:`~pyg_fnri.metrics.GraphReport`.

    Raises:
        ValueError: If there are no batches, or rollouts are asked for and one
            has no :obj:`y` or none of the horizons fits.
    """
    model.eval()
    graphs = GraphReport(num_edge_types, model.latent.num_edge_types)
    rollouts: dict[str, RolloutMSE] = {}
    burn_in, num_systems = model.decoder.burn_in, 0
    for batch in batches:
        edge_type, posterior = (model.infer(batch)
                                if infer is None else infer(batch))
        if posterior is not None:
            graphs.update(edge_type, posterior, batch.edge_index,
                          batch.get('edge_label'))
        if horizons:
            if not rollouts:
                fitting = fitting_horizons(batch, horizons, burn_in)
                rollouts = {
                    name: RolloutMSE(fitting)
                    for name in ('rollout_mse', 'static_mse', 'linear_mse')
                    if name != 'linear_mse' or linear_step is not None
                }
            predict = _predictors(model, batch, units, edge_type, linear_step)
            target = units(_continuation(batch))[:, burn_in:]
            for name, metric in rollouts.items():
                metric.update({h: predict[name](h)
                               for h in metric.horizons}, target)
        num_systems += getattr(batch, 'num_graphs', 1)  # A single Data.
    if not num_systems:
        raise ValueError("There are no systems to evaluate on; the data set "
                         "is empty.")
    report: dict[str, Any] = {'num_systems': num_systems}
    for name, metric in rollouts.items():
        report[name] = {h: e.item() for h, e in metric.compute().items()}
    return {**report, **graphs.compute()}


def fitting_horizons(data: Data, horizons: Sequence[int],
                     burn_in: int = 1) -> list[int]:
    """Those of the horizons that fit into the continuation :obj:`y`, after
    its first :obj:`burn_in` frames.

    Raises:
        ValueError: If none does, or there is no :obj:`y`.
    """
    y = _continuation(data)
    fitting = [h for h in horizons if h <= y.size(1) - burn_in]
    if not fitting:
        first = 'the first' if burn_in == 1 else f'a burn-in of {burn_in}'
        raise ValueError(f"None of the horizons {list(horizons)} fits into "
                         f"continuations y of {y.size(1)} frames after "
                         f"{first}; ask for a shorter horizon, or hand over "
                         f"longer continuations.")
    return fitting


def _predictors(
    model: RelationalAutoEncoder,
    batch: Data,
    units: Scaling,
    edge_type: Tensor,
    linear_step: Optional[LinearStep],
) -> dict[str, Callable[[int], Tensor]]:
    """What predicts a batch's continuation, given the horizon."""
    edge_attr = per_mass(model.latent.encode_types(edge_type), batch)
    first = model.decoder.burn_in - 1
    y = units(batch.y)[:, first:]
    out: dict[str, Callable[[int], Tensor]] = {
        'rollout_mse':
        lambda h: units(model.decode(batch.y, batch.edge_index, edge_attr, h))
        [:, first:],
        'static_mse':
        lambda h: static_rollout(y, h),
    }
    if linear_step is not None:
        step = linear_step
        out['linear_mse'] = lambda h: linear_rollout(step, y, h)
    return out


def _continuation(data: Data) -> Tensor:
    if data.get('y') is None:
        raise ValueError("These systems have no continuation y to compare "
                         "rollouts with; split their trajectories with "
                         "`pyg_fnri.transforms.SplitTrajectory`.")
    return data.y
