"""Handing the graphs that inference has found to an encoder."""
import copy
from collections.abc import Iterable

import torch
from torch_geometric.data import Batch, InMemoryDataset

from pyg_fnri.inference.refine import refine
from pyg_fnri.nn import RelationalAutoEncoder


def with_inferred_graphs(
    model: RelationalAutoEncoder,
    dataset: InMemoryDataset,
    batches: Iterable[Batch],
) -> InMemoryDataset:
    """The first systems of a data set together with :obj:`edge_target`, the
    refined graph of each, :obj:`[num_edges, num_layers]`.

    Args:
        model: The model that infers them.
        dataset: The systems, or a subset of them (:obj:`dataset[:1000]`).
        batches: The first of the same systems, in the same order.

    Returns:
        A data set of as many systems as there are in the batches, sharing
        its other tensors with the one given.

    Raises:
        ValueError: If there are no batches, or they are of other systems.
    """
    found, num_systems = [], 0
    for batch in batches:
        # A few graphs are stuck without restarts; a distillation bears that.
        found.append(refine(model, batch, num_restarts=0).edge_type)
        num_systems += batch.num_graphs
    if not found or num_systems > len(dataset):
        raise ValueError(f"Expected batches of some of the {len(dataset)} "
                         f"systems of the data set, but got {num_systems} "
                         f"systems.")
    out = dataset[:num_systems]
    # Where the systems' edges are stored; a system alone has no slices.
    slices, stored = dataset.slices or {}, dataset._data.num_edges
    ends = slices['edge_index'].tolist() if slices else [0, stored]
    rows = [torch.arange(ends[i], ends[i + 1]) for i in out.indices()]
    edge_type, row = torch.cat(found), torch.cat(rows)
    if edge_type.size(0) != row.numel():
        raise ValueError(f"The batches are not the data set's first "
                         f"{num_systems} systems: they have "
                         f"{edge_type.size(0)} edges, and those "
                         f"{row.numel()}.")
    # Of other systems nothing is known, and nothing will be asked.
    target = edge_type.new_zeros(stored, edge_type.size(1))
    target[row] = edge_type
    out._data = copy.copy(dataset._data)
    out._data.edge_target = target
    out._data_list = None
    if slices:
        out.slices = {**slices, 'edge_target': slices['edge_index']}
    return out
