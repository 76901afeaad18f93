"""The files of inferred graphs, which replace older ones together."""
import os
import tempfile
from collections.abc import Mapping

import networkx as nx
import pandas as pd
from matplotlib.figure import Figure

from pyg_fnri.datasets.stored import check_writable

#: All that there can be.
RESULTS = ('edges.csv', 'graphs.graphml', 'graph.png', 'heatmap.png',
           'trajectories.png')


def present_results(out: str) -> list[str]:
    """The names of the results that a directory holds."""
    return [name for name in RESULTS if os.path.exists(os.path.join(out, name))]


def check_results(out: str, overwrite: bool = False) -> None:
    """Makes sure, before the work, that results can be written, and that none
    get lost.

    Args:
        out: The directory, made if need be.
        overwrite: Whether results there may be replaced.

    Raises:
        OSError: If nothing can be written there.
        ValueError: If there are results which may not be replaced.
    """
    there = present_results(out)
    if there and not overwrite:
        raise ValueError(f"'{out}' holds {there[0]} already; replace the "
                         f"results there by --overwrite, or name another "
                         f"directory with --out.")
    check_writable(out)


def write_results(out: str, table: pd.DataFrame, network: nx.MultiGraph,
                  pictures: Mapping[str, Figure]) -> None:
    """Writes all results, then moves them into their place; of those that
    stood there, none is left.

    Args:
        out: The directory.
        table: Candidate edges, as edges.csv.
        network: Interactions, as graphs.graphml.
        pictures: Others of :obj:`RESULTS`.
    """
    with tempfile.TemporaryDirectory(dir=out) as folder:
        table.to_csv(os.path.join(folder, 'edges.csv'), index=False)
        nx.write_graphml(network, os.path.join(folder, 'graphs.graphml'),
                         edge_id_from_attribute='id')
        for name, figure in pictures.items():
            figure.savefig(os.path.join(folder, name))
        for name in RESULTS:
            old, new = os.path.join(out, name), os.path.join(folder, name)
            if os.path.exists(new):
                os.replace(new, old)
            elif os.path.exists(old):
                os.remove(old)  # Of other systems, and replaced by nothing.
