"""Pictures of trajectories, graphs, force laws, training, calibration: each a
:class:`matplotlib.figure.Figure` without global state or display."""
from pyg_fnri.plot.curves import plot_curves, plot_laws, plot_reliability
from pyg_fnri.plot.systems import (plot_adjacency, plot_changes, plot_multiplex,
                                   plot_trajectories)

__all__ = [
    'plot_adjacency', 'plot_changes', 'plot_curves', 'plot_laws',
    'plot_multiplex', 'plot_reliability', 'plot_trajectories'
]
