"""What simulated systems depend on, in words that change whenever they do."""
import inspect

import numpy as np

from pyg_fnri.datasets.fingerprint import describe
from pyg_fnri.simulation import Force, Newtonian, System, simulate


def describe_system(system: System) -> list[str]:
    """Lines that tell all of a system: constants and code.

    Args:
        system (System): The system to simulate.

    Returns:
        A line `simulate: ...` with the constants of systems that are nothing
        but forces, or `system: ...` of others, and a line for each force.
    """
    forces = [
        f'force: {_describe_force(force)}'
        for force in getattr(system, 'forces', ())
    ]
    if type(system) is not Newtonian:
        return [f'system: {describe(system)}', *forces]
    constants = {
        key: getattr(system, key, parameter.default)
        for key, parameter in inspect.signature(simulate).parameters.items()
        if parameter.default is not inspect.Parameter.empty and key not in (
            'seed', 'num_particles', 'num_threads', 'progress')
    }
    return [f'simulate: {constants}', *forces]


def _describe_force(force: Force) -> str:
    """What makes a force: constants, code, and the values that it takes."""
    try:  # Values as well, since code may use what is defined elsewhere.
        values = [
            f'{float(force.magnitude(distance)):.9g}'
            for distance in np.geomspace(0.05, 14, 16).tolist()
        ]
    except Exception:  # `simulate` tells better what is wrong with a force.
        values = []
    return ' '.join([describe(force), *values])
