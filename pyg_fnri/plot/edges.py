"""Candidate edges, as they can be drawn."""
from typing import Any

import numpy as np

from pyg_fnri.plot.arrays import finite_array


def edge_rows(edge_index: Any) -> np.ndarray:
    """The edges as rows (sender, receiver), :obj:`[E, 2]`.

    Args:
        edge_index: Edges :obj:`[2, E]`.

    Raises:
        ValueError: If these are no edges between particles 0, 1, ..., or none
            at all.
    """
    edges = finite_array('edge_index', edge_index, (2, None),
                         '[2, num_edges]').T
    if edges.dtype.kind not in 'iu' or not edges.size or edges.min() < 0:
        raise ValueError('edge_index must hold at least one edge of '
                         'non-negative integers.')
    if (edges[:, 0] == edges[:, 1]).any():
        raise ValueError('edge_index holds self loops: expected edges between '
                         'different particles.')
    return edges
