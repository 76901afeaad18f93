"""Simulation of systems of interacting particles.

Knows nothing of graphs in PyG's sense or of models: numpy arrays in and out.
"""

from .dynamics import Trajectories, simulate
from .forces import Charge, FiniteSpring, Force, SoftCharge, Spring
from .isomorphism import graph_keys
from .kuramoto import Kuramoto
from .mechanical import Mechanical
from .newtonian import Newtonian, NRISprings
from .signed_charges import SignedCharges
from .system import System

__all__ = [
    'Force',
    'Spring',
    'Charge',
    'FiniteSpring',
    'SoftCharge',
    'Trajectories',
    'simulate',
    'System',
    'Mechanical',
    'Newtonian',
    'NRISprings',
    'SignedCharges',
    'Kuramoto',
    'graph_keys',
]
