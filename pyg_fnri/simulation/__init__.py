"""Simulation of systems of interacting particles.

Knows nothing of graphs in PyG's sense or of models: numpy arrays in and out.
"""

from pyg_fnri.simulation.dynamics import Trajectories, simulate
from pyg_fnri.simulation.forces import (
    Charge,
    FiniteSpring,
    Force,
    SoftCharge,
    Spring,
)
from pyg_fnri.simulation.isomorphism import graph_keys
from pyg_fnri.simulation.kuramoto import Kuramoto
from pyg_fnri.simulation.mechanical import Mechanical
from pyg_fnri.simulation.newtonian import Newtonian, NRISprings
from pyg_fnri.simulation.signed_charges import SignedCharges
from pyg_fnri.simulation.system import System

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
