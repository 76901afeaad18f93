"""Assignments of the highest total weight."""
from collections.abc import Mapping

import networkx as nx


def assign(weight: Mapping[tuple[int, int], int]) -> dict[int, int]:
    """The column of each row, each column once, of the highest total weight
    among those that leave the fewest without one.

    Args:
        weight: Of rows and columns that may be joined; Python's integers,
            which stay exact whatever their size.
    """
    graph = nx.Graph()
    for (row, column), value in weight.items():
        graph.add_edge(('row', row), ('column', column), weight=value)
    matching = nx.max_weight_matching(graph, maxcardinality=True)
    # 'column' sorts before 'row'.
    return {row: column for (_, column), (_, row) in map(sorted, matching)}
