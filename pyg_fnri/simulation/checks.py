"""What a simulation accepts, and what it may return."""

import math
import operator
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from pyg_fnri.simulation.forces import Force


def check_forces(forces: Sequence[Force]) -> None:
    """Raises :class:`TypeError` or :class:`ValueError` unless ``forces`` is a
    sequence of one or more forces."""
    if not isinstance(forces, Sequence):
        raise TypeError(f'forces is {forces!r}, expected a list of forces such '
                        f'as [Spring(), Charge()]')
    for force in forces:
        if isinstance(force, type):
            raise TypeError(f'forces holds the class {force.__name__}, '
                            f'expected an instance: {force.__name__}()')
        if not isinstance(force, Force):
            raise TypeError(f'forces holds {force!r}, expected instances of '
                            f'Force such as Spring()')
    # The time loop marks the forces of a pair in the bits of a 64-bit integer.
    if not 1 <= len(forces) <= 63:
        raise ValueError(f'forces holds {len(forces)} forces, expected 1 to 63')


def integer(name: str, value: Any, minimum: int) -> int:
    """Returns a whole number of at least ``minimum``."""
    if isinstance(value, bool):
        raise TypeError(f'{name} is {value}, expected an integer')
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f'{name} is {value!r}, expected an integer') from None
    if value < minimum:
        raise ValueError(f'{name} is {value}, expected at least {minimum}')
    return value


def positive(name: str, value: Any, or_zero: bool = False,
             or_infinite: bool = False) -> float:
    """Returns a positive number, finite and not zero unless allowed."""
    if isinstance(value, (bool, str)):
        raise TypeError(f'{name} is {value!r}, expected a number')
    try:
        value = float(value)
    except (TypeError, ValueError):
        raise TypeError(f'{name} is {value!r}, expected a number') from None
    if not (value > 0 or (or_zero and value == 0)) or (value == math.inf
                                                       and not or_infinite):
        kind = 'a positive number or zero' if or_zero else 'a positive number'
        raise ValueError(f'{name} is {value}, expected {kind}')
    return value


def state(name: str, value: Any, shape: Tuple[int, int, int]) -> np.ndarray:
    """Returns positions or velocities as finite float64 of a shape."""
    array = np.asarray(value)
    if array.dtype.kind not in 'iuf':
        raise TypeError(f'{name} has the type {array.dtype}, expected real '
                        f'numbers')
    if array.shape != shape:
        raise ValueError(f'{name} has the shape {array.shape}, expected '
                         f'{shape} (systems, particles, dimensions)')
    if not np.isfinite(array).all():
        raise ValueError(f'{name} holds NaN or infinite values, expected '
                         f'finite numbers')
    return array.astype(np.float64)


def interaction_graphs(name: str, value: Any, shape: Tuple[int,
                                                           ...]) -> np.ndarray:
    """Returns symmetric graphs without self-interaction as booleans."""
    graphs = np.asarray(value)
    if graphs.shape != shape:
        raise ValueError(f'{name} has the shape {graphs.shape}, expected '
                         f'{shape}')
    interacts = graphs == 1
    if not (interacts | (graphs == 0)).all():
        raise ValueError(f'{name} has values other than 0 and 1: write 1 where '
                         f'two particles interact and 0 elsewhere')
    if interacts.diagonal(axis1=-2, axis2=-1).any():
        raise ValueError(f'{name} lets a particle interact with itself: write '
                         f'0 on the diagonal')
    if (interacts != interacts.swapaxes(-2, -1)).any():
        raise ValueError(f'{name} is not symmetric, but a pairwise force acts '
                         f'on both particles: make (i, j) and (j, i) equal')
    return interacts


def edge_types(name: str, value: Any, num_edge_types: Sequence[int],
               num_systems: Optional[int] = None,
               num_particles: Optional[int] = None) -> np.ndarray:
    """Returns the edge types of multiplex graphs as int64.

    Args:
        name (str): What to call them.
        value (array_like): Edge types ``[S, L, N, N]``; row the receiver,
            column the sender.
        num_edge_types (sequence of int): Number of types in each layer.
        num_systems (int, optional): Number of systems expected.
        num_particles (int, optional): Number of particles expected.
    """
    graphs = np.asarray(value)
    if graphs.dtype.kind not in 'biu':
        raise TypeError(f'{name} has the type {graphs.dtype}, expected '
                        f'integers: the types of edges')
    num_layers = len(num_edge_types)
    if (graphs.ndim != 4 or graphs.shape[1] != num_layers
            or graphs.shape[2] != graphs.shape[3] or graphs.shape[2] < 2
            or graphs.shape[0] != (num_systems or graphs.shape[0])
            or graphs.shape[2] != (num_particles or graphs.shape[2])
            or not len(graphs)):
        particles = num_particles or 'particles'
        raise ValueError(f'{name} has the shape {graphs.shape}, expected '
                         f'({num_systems or "systems"}, {num_layers}, '
                         f'{particles}, {particles})')
    graphs = graphs.astype(np.int64)
    for layer, num_types in enumerate(num_edge_types):
        low, high = graphs[:, layer].min(), graphs[:, layer].max()
        if low < 0 or high >= num_types:
            raise ValueError(f'{name} has the types {low} to {high} in layer '
                             f'{layer}, expected 0 to {num_types - 1}')
    if graphs.diagonal(axis1=-2, axis2=-1).any():
        raise ValueError(f'{name} lets a particle interact with itself: write '
                         f'0 on the diagonal')
    return graphs


def features(name: str, value: Any, num_systems: int,
             num_particles: int) -> np.ndarray:
    """Returns the features of trajectories ``[S, N, T, F]`` as finite
    float32."""
    array = np.asarray(value)
    if array.dtype.kind != 'f':
        raise TypeError(f'{name} has the type {array.dtype}, expected floating '
                        f'point numbers')
    if (array.ndim != 4 or array.shape[:2] != (num_systems, num_particles)
            or 0 in array.shape):
        raise ValueError(f'{name} has the shape {array.shape}, expected '
                         f'({num_systems}, {num_particles}, frames, features)')
    with np.errstate(over='ignore'):
        array = array.astype(np.float32, copy=False)
    if not np.isfinite(array).all():
        raise ValueError(f'{name} holds NaN or infinite values, expected '
                         f'finite numbers')
    return array


def check_contacts(position: np.ndarray, interacts: np.ndarray, force: Force,
                   first: int) -> None:
    """Raises :class:`ValueError` if two particles on one spot interact.

    Args:
        position (numpy.ndarray): Positions ``[S, N, D]``.
        interacts (numpy.ndarray): Graphs ``[S, N, N]`` of the force.
        force (Force): A force that diverges at distance zero.
        first (int): Number of the first of these systems.
    """
    touching = interacts & (position[:, :, None] == position[:, None]).all(-1)
    if touching.any():
        system, i, j = np.argwhere(touching)[0]
        raise ValueError(f'particles {i} and {j} of system {first + system} '
                         f'start on one spot, where {force} diverges: move '
                         f'one of them, or let them not interact')


def check_frames(position: np.ndarray, velocity: np.ndarray, reach: np.ndarray,
                 half_width: float, step_size: float, first: int) -> None:
    """Raises :class:`ValueError` if a system left the range of numbers, or the
    box.

    Args:
        position (numpy.ndarray): Positions ``[S, N, T, D]``.
        velocity (numpy.ndarray): Velocities ``[S, N, T, D]``.
        reach (numpy.ndarray): Greatest coordinate ever, for each system.
        half_width (float): Distance of the walls from the origin.
        step_size (float): Length of a step.
        first (int): Number of the first of these systems.
    """
    finite = (np.isfinite(position) & np.isfinite(velocity)).all((1, 2, 3))
    lost = ~finite | (reach > half_width)
    if lost.any():
        system = int(lost.argmax())
        what = ('left the box within one step'
                if finite[system] else 'left the range of numbers')
        raise ValueError(f'a particle of system {first + system} {what}: it '
                         f'moves too far in steps of {step_size} s, make '
                         f'step_size, the speeds or the forces smaller')
