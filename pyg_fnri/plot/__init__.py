"""Pictures of trajectories, multiplex graphs, force laws, training and
expectation-maximisation, calibration, robustness and comparisons of candidates.

Each function returns a :class:`matplotlib.figure.Figure` that belongs to no
global state and needs no display: ``figure.savefig('picture.png')`` writes it.
"""
from .adjacency import plot_adjacency
from .compression import plot_compression
from .curves import plot_curves
from .em import plot_em
from .laws import plot_laws
from .multiplex import plot_multiplex
from .reliability import plot_reliability
from .robustness import plot_robustness
from .selection import plot_selection
from .trajectories import plot_trajectories

__all__ = [
    'plot_adjacency',
    'plot_compression',
    'plot_curves',
    'plot_em',
    'plot_laws',
    'plot_multiplex',
    'plot_reliability',
    'plot_robustness',
    'plot_selection',
    'plot_trajectories',
]
