"""The systems that have a name, and what a data set may be told to simulate."""
import re
from collections.abc import Sequence
from typing import Optional

from pyg_fnri.simulation import (
    Charge,
    FiniteSpring,
    Force,
    Kuramoto,
    Newtonian,
    NRISprings,
    SignedCharges,
    Spring,
    System,
)

#: The paper's systems, I+C and I+C+F, by their forces.
FORCES: dict[str, tuple[Force, ...]] = {
    'springs_charges': (Spring(), Charge()),
    'springs_charges_fsprings': (Spring(), Charge(), FiniteSpring()),
}

#: All systems that have a name: the paper's, then NRI's.
SYSTEMS: dict[str, System] = {
    **{
        name: Newtonian(forces)
        for name, forces in FORCES.items()
    },
    'nri_springs': NRISprings(),
    'nri_charged': SignedCharges(),
    'kuramoto': Kuramoto(),
}


def find_system(
    name: Optional[str] = None,
    forces: Optional[Sequence[Force]] = None,
    system: Optional[System] = None,
) -> tuple[str, System]:
    """What to simulate, and the name of its data set.

    Args:
        name (str, optional): One of `SYSTEMS`; with `forces` or `system`, a
            name of one's own.
        forces (sequence of Force, optional): Forces, each of them a layer.
        system (System, optional): A system.

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument is out of range or unknown, or both, forces
            and a system, are given.
    """
    if forces is not None:
        if system is not None:
            raise ValueError('Both forces and system are given; a system has '
                             'its own forces, leave one of the two out.')
        system = Newtonian(_check_forces(forces))
    elif system is None:
        name = 'springs_charges' if name is None else name
        if name not in SYSTEMS:
            raise ValueError(f'name is {name!r}, but must be one of '
                             f'{list(SYSTEMS)}; pass forces or a system for '
                             f'others.')
        return name, SYSTEMS[name]
    if not isinstance(system, System):
        raise TypeError(f'system must be a System object such as Kuramoto(), '
                        f'not {system!r}.')
    name = 'custom' if name is None else name
    if not isinstance(name, str) or not re.fullmatch(r'\w[\w.+-]*', name):
        raise ValueError(f'name is {name!r}, but it is to name a folder; use '
                         f'letters, digits, "_", "-", "+" and "." only.')
    if name in SYSTEMS and system != SYSTEMS[name]:
        raise ValueError(f'name {name!r} stands for {SYSTEMS[name]}; give your '
                         f'own system another name.')
    return name, system


def _check_forces(forces: Sequence[Force]) -> tuple[Force, ...]:
    if not isinstance(forces, Sequence):
        raise TypeError(f'forces must be a sequence of Force objects such as '
                        f'[Spring()], not {forces!r}.')
    if not forces:
        raise ValueError('forces is empty; pass at least one, or leave it '
                         'out.')
    for force in forces:
        if not isinstance(force, Force):
            raise TypeError(f'forces must hold Force objects such as '
                            f'Spring(), not {force!r}.')
    return tuple(forces)
