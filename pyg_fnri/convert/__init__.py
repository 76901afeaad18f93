"""Interaction graphs in other libraries' terms: matrices, pandas, networkx."""
from .adjacency import from_adjacency, to_adjacency
from .graph import to_networkx
from .table import to_pandas

__all__ = [
    'from_adjacency',
    'to_adjacency',
    'to_networkx',
    'to_pandas',
]
