"""Systems under pairwise forces, each of which is a layer of the graph."""

import re
from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

import numpy as np

from pyg_fnri.simulation.checks import check_forces
from pyg_fnri.simulation.checks import edge_types as check_edge_types
from pyg_fnri.simulation.forces import Force, Spring
from pyg_fnri.simulation.initial_state import (
    draw_edge_types,
    draw_interactions,
)
from pyg_fnri.simulation.mechanical import Mechanical


@dataclass(frozen=True)
class Newtonian(Mechanical):
    """Particles under any mix of forces, as in the paper's section
    "Simulations". Each force is a layer with the types 0 (no interaction) and
    1, and draws its own graphs.

    Velocities are half a step behind positions, as the paper's are.

    Args:
        forces (sequence of Force): The forces, in the order of the layers.
        **constants: Those of :class:`Mechanical`, by name.
    """
    forces: Tuple[Force, ...]

    def __post_init__(self) -> None:
        check_forces(self.forces)
        object.__setattr__(self, 'forces', tuple(self.forces))

    @property
    def layers(self) -> Mapping[str, int]:
        """Named after the forces: ``{'spring': 2, 'charge': 2}``."""
        names = [
            re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_',
                   type(force).__name__).lower() for force in self.forces
        ]
        numbered = [
            f'{name}_{names[:layer].count(name) + 1}'
            if names.count(name) > 1 else name
            for layer, name in enumerate(names)
        ]
        return {name: 2 for name in numbered}

    @property
    def channels(self) -> Tuple[Force, ...]:
        """The force of each layer's type 1."""
        return self.forces

    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        """Draws the graph of each force by its
        :meth:`~pyg_fnri.simulation.Force.sample_interactions`."""
        return draw_interactions(seed, self.forces, num_systems,
                                 num_particles).astype(np.int64)

    def simulate(self, edge_types: np.ndarray, seed: int,
                 num_threads: Optional[int] = None,
                 progress: bool = False) -> np.ndarray:
        graphs = check_edge_types('edge_types', edge_types, self.num_edge_types)
        return self.move(self.forces, graphs, seed, num_threads, progress)


@dataclass(frozen=True)
class NRISprings(Newtonian):
    """NRI's springs (Kipf et al. 2018, section 5.1 and appendix B; constants
    of their published code): each pair is connected with probability 1/2,
    whatever the others are, by a spring of 0.1 N/m.

    All else is as in the paper's systems, which have the same box, initial
    states and integration.

    Args:
        forces (sequence of Force): The forces. (default: one spring)
        **constants: Those of :class:`Mechanical`, by name.
    """
    forces: Tuple[Force, ...] = (Spring(0.1), )

    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        """Draws each pair's type by itself."""
        return draw_edge_types(seed, self.num_edge_types, num_systems,
                               num_particles)
