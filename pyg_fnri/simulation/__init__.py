"""Simulation of interacting particles, numpy arrays in and out."""
from pyg_fnri.simulation.dynamics import Trajectories, simulate
from pyg_fnri.simulation.forces import (Charge, FiniteSpring, Force, SoftCharge,
                                        Spring)
from pyg_fnri.simulation.kuramoto import Kuramoto
from pyg_fnri.simulation.sampling import graph_keys
from pyg_fnri.simulation.systems import (LinearNetwork, Newtonian, NRICharged,
                                         NRISprings, SignedCharges, System)

__all__ = [
    'Force', 'Spring', 'Charge', 'FiniteSpring', 'SoftCharge', 'Trajectories',
    'simulate', 'System', 'Newtonian', 'NRISprings', 'SignedCharges',
    'NRICharged', 'LinearNetwork', 'Kuramoto', 'graph_keys'
]
