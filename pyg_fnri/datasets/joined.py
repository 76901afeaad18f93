"""Systems of one size, joined into the tensors of an `InMemoryDataset`."""
from typing import Optional

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.data import fully_connected


def join(
    x: np.ndarray,
    edge_types: np.ndarray,
) -> tuple[Data, Optional[dict[str, Tensor]]]:
    """Joins systems as `InMemoryDataset.collate` would, at once.

    Args:
        x (ndarray): Trajectories, float32, `[S, N, T, F]`.
        edge_types (ndarray): Edge types, integer or bool, `[S, L, N, N]`: row
            the receiver, column the sender.

    Returns:
        The joined systems, and where each begins in each tensor.
    """
    num_systems, num_particles = x.shape[:2]
    edge_index = fully_connected(num_particles)
    sender, receiver = edge_index.numpy()
    edge_label = edge_types[:, :, receiver, sender]
    edge_label = edge_label.transpose(0, 2, 1).astype(np.int64)  # [S, E, L]
    num_edges, num_layers = edge_label.shape[1:]
    data = Data(
        x=torch.from_numpy(x).view(-1, *x.shape[2:]),
        edge_index=edge_index.repeat(1, num_systems),
        edge_label=torch.from_numpy(edge_label).reshape(-1, num_layers),
    )
    if num_systems == 1:
        return data, None
    start = torch.arange(num_systems + 1)
    return data, {
        'x': start * num_particles,
        'edge_index': start * num_edges,
        'edge_label': start * num_edges,
    }
