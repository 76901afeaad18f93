"""What a trained model is worth: graphs, their probabilities, rollouts."""
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Optional

import torch
from rich.progress import track
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.datasets.spec import Systems, open_dataset
from pyg_fnri.inference import Refined, infer_graph
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import (EdgePosterior, RolloutMSE, graph_report,
                              guessing_accuracy, linear_rollout, static_rollout)
from pyg_fnri.nn import LinearStep, RelationalAutoEncoder, Scaling
from pyg_fnri.training.module import Graph, RelationalInference

#: Systems in a batch, as in the paper: whether batches agree about what the
#: model's labels mean depends on it.
BATCH_SIZE = 128
#: Steps of rollouts in the paper's table 2.
HORIZONS = (1, 10, 20)


@torch.no_grad()
def roll_out(model: RelationalAutoEncoder, data: Data, edge_type: Tensor,
             pred_steps: int) -> Tensor:
    """Frames 1, ..., T - 1 of :obj:`y` over a graph :obj:`[num_edges,
    num_layers]`, from a true state every so many steps; with masses, and rates
    of each particle's own, where they are known."""
    edge_attr = model.weights(edge_type, data)
    known = model.seeing(data, edge_attr)
    return known.decode(data.y, data.edge_index, edge_attr, pred_steps)


@torch.no_grad()
def evaluate(model: RelationalAutoEncoder, batches: Iterable[Data],
             units: Scaling, num_edge_types: Sequence[int],
             horizons: Sequence[int] = HORIZONS,
             infer: Optional[Callable[[Data], Graph]] = None,
             linear_step: Optional[LinearStep] = None) -> dict[str, Any]:
    """Measures a model on batches of systems: the graph is inferred from
    :obj:`x`; rollouts run along :obj:`y` with the most probable types, after
    the burn-in of a recurrent decoder.

    Args:
        batches: Of 128 systems in the paper; with :obj:`y` for rollouts and,
            where the truth is known, :obj:`edge_label`.
        units: Of the errors, in the paper min-max of the training split.
        num_edge_types: Number of true types of each layer.
        horizons: Steps of the rollouts; those longer than :obj:`y` are left
            out. None at all for an encoder alone.
        infer: Gives a batch's graph, by default
            :func:`~pyg_fnri.inference.infer_graph`.
        linear_step: In these units, to compare rollouts with.

    Returns:
        Plain numbers: :obj:`num_systems`; :obj:`rollout_mse`,
        :obj:`static_mse` and :obj:`linear_mse` by horizon, infinite where a
        rollout diverges; and a :func:`~pyg_fnri.metrics.graph_report`.
    """
    model.eval()
    graphs, rollouts = list[EdgePosterior](), dict[str, RolloutMSE]()
    first, num_systems = model.decoder.burn_in - 1, 0
    for batch in batches:
        num_systems += getattr(batch, 'num_graphs', 1)  # A single Data.
        graph = infer(batch) if infer else infer_graph(model, batch)
        edge_type, posterior = graph[:2]
        if isinstance(graph, Refined) and graph.mass is not None:
            batch.mass = graph.mass
        if posterior is not None:
            label = batch.get('edge_label')
            graphs.append(
                EdgePosterior(edge_type.cpu(), [q.cpu() for q in posterior],
                              batch.edge_index.cpu(),
                              None if label is None else label.cpu()))
        if not horizons:
            continue
        if not rollouts:
            fitting = _fitting_horizons(batch, horizons, first + 1)
        y = units(batch.y)[:, first:]
        ways: dict[str, Callable[[int], Tensor]] = {
            'rollout_mse':
            lambda h: units(roll_out(model, batch, edge_type, h))[:, first:],
            'static_mse':
            partial(static_rollout, y)
        }
        if linear_step is not None:
            ways['linear_mse'] = partial(linear_rollout, linear_step, y)
        for name, predict in ways.items():
            metric = rollouts.setdefault(name, RolloutMSE(fitting))
            metric.update({h: predict(h) for h in fitting}, y[:, 1:])
    if not num_systems:
        raise ValueError('The data set holds no systems to evaluate on.')
    report: dict[str, Any] = {'num_systems': num_systems}
    for name, metric in rollouts.items():
        report[name] = {h: e.item() for h, e in metric.compute().items()}
    if graphs:
        report |= graph_report(graphs, num_edge_types,
                               model.latent.num_edge_types)
    return report


def _fitting_horizons(data: Data, horizons: Sequence[int],
                      burn_in: int) -> list[int]:
    if data.get('y') is None:
        raise ValueError('These systems have no continuation y to compare '
                         'rollouts with; split their trajectories with '
                         '`pyg_fnri.transforms.SplitTrajectory`.')
    fitting = [h for h in horizons if h <= data.y.size(1) - burn_in]
    if not fitting:
        raise ValueError(f'None of the horizons {list(horizons)} fits into '
                         f'continuations y of {data.y.size(1)} frames after a '
                         f'burn-in of {burn_in}; ask for a shorter horizon.')
    return fitting


def measure(module: RelationalInference, dataset: Systems,
            infer: Optional[Callable[[Data], Graph]] = None,
            doing: str = 'evaluating') -> tuple[dict[str, Any], Tensor]:
    """:func:`evaluate` of a module, by default with its own graphs, with the
    :obj:`seconds` that it takes; and the types :obj:`[E, L]` inferred for the
    first batch."""
    types: list[Tensor] = []

    def infer_and_keep(batch: Data) -> Graph:
        graph = (infer or module.infer)(batch)
        if not types:
            types.append(graph[0])
        return graph

    start = time.monotonic()
    batches = track(SystemLoader(dataset, BATCH_SIZE), doing, transient=True)
    horizons = HORIZONS if module.is_trained('decoder') else ()
    report = evaluate(module.model, batches, module.units,
                      module.config.num_edge_types, horizons, infer_and_keep,
                      module.linear_step)
    report['seconds'] = time.monotonic() - start
    return report, types[0]


def measure_guesses(module: RelationalInference, dataset: Systems, root: str,
                    data: Optional[str] = None) -> dict[str, Any]:
    """The accuracy of guesses, where graphs are inferred and the truth is
    known; :obj:`data` is where the trajectories of training were moved."""
    if module.config.regime == 'true_graph' or 'edge_label' not in dataset[0]:
        return {}
    train = open_dataset(module.config.data, root, 'train', data=data)
    train_label, label = [
        torch.cat([batch.edge_label for batch in SystemLoader(systems, 1000)])
        for systems in (train, dataset)
    ]
    return guessing_accuracy(train_label, label, module.config.num_edge_types)
