"""Interaction graphs in other libraries' terms: matrices, pandas, networkx."""
from pyg_fnri.convert.adjacency import from_adjacency, to_adjacency
from pyg_fnri.convert.graph import to_networkx
from pyg_fnri.convert.table import to_pandas

__all__ = [
    'from_adjacency',
    'to_adjacency',
    'to_networkx',
    'to_pandas',
]
