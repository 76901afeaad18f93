"""Simulation of particles under pairwise forces.

Knows nothing of graphs in PyG's sense or of models: numpy arrays in and out.
"""

from .dynamics import Trajectories, simulate
from .forces import Charge, FiniteSpring, Force, Spring

__all__ = [
    'Force',
    'Spring',
    'Charge',
    'FiniteSpring',
    'Trajectories',
    'simulate',
]
