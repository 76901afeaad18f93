"""Pictures of trajectories, multiplex graphs, force laws, training and
expectation-maximisation, calibration.

Each function returns a :class:`matplotlib.figure.Figure` that belongs to no
global state and needs no display: ``figure.savefig('picture.png')`` writes it.
"""
from pyg_fnri.plot.curves import plot_curves, plot_em, plot_reliability
from pyg_fnri.plot.graphs import plot_adjacency, plot_multiplex
from pyg_fnri.plot.laws import plot_laws
from pyg_fnri.plot.trajectories import plot_trajectories

__all__ = [
    'plot_adjacency', 'plot_curves', 'plot_em', 'plot_laws', 'plot_multiplex',
    'plot_reliability', 'plot_trajectories'
]
