"""Simulation of interacting particles, numpy arrays in and out."""
from pyg_fnri.simulation.dynamics import Trajectories, simulate
from pyg_fnri.simulation.forces import (Charge, FiniteSpring, Force, SoftCharge,
                                        Spring, graph_keys)
from pyg_fnri.simulation.systems import (Kuramoto, LinearNetwork, Newtonian,
                                         NRICharged, NRISprings, SignedCharges,
                                         System)

__all__ = [
    'Force', 'Spring', 'Charge', 'FiniteSpring', 'SoftCharge', 'Trajectories',
    'simulate', 'System', 'Newtonian', 'NRISprings', 'SignedCharges',
    'NRICharged', 'LinearNetwork', 'Kuramoto', 'graph_keys'
]
