"""Newton's equations of motion for many systems of particles in a box."""
import math
from typing import NamedTuple, Optional, Sequence

import numpy as np

from pyg_fnri.simulation.forces import Force
from pyg_fnri.simulation.sampling import (check_graphs, draw_interactions,
                                          draw_positions, draw_velocities)
from pyg_fnri.simulation.time_loop import (NUM_LANES, compile_force,
                                           compile_time_loop, in_threads)


class Trajectories(NamedTuple):
    """Trajectories of :math:`S` systems of :math:`N` particles in :math:`D`
    dimensions, under :math:`L` forces, at :math:`T` instants."""
    position: np.ndarray  #: In metre, float32 ``[S, N, T, D]``.
    velocity: np.ndarray  #: In metre per second, float32 ``[S, N, T, D]``.
    interactions: np.ndarray  #: Boolean, symmetric ``[S, L, N, N]``.
    time: np.ndarray  #: In second, float64 ``[T]``.


def simulate(forces: Sequence[Force], num_systems: int, num_particles: int = 5,
             *, num_dimensions: int = 2, seed: int = 0, num_steps: int = 10_000,
             step_size: float = 1e-3, sample_every: int = 100,
             box_half_width: Optional[float] = 5.0, position_std: float = 0.5,
             speed: float = 0.5, max_kick: float = 0.1,
             interactions: Optional[np.ndarray] = None,
             initial_position: Optional[np.ndarray] = None,
             initial_velocity: Optional[np.ndarray] = None,
             progress: bool = False) -> Trajectories:
    r"""Simulates particles of 1 kg under pairwise forces in a box with
    reflecting walls, by default those of the paper's section "Simulations".

    A step of length :math:`\Delta t` kicks, drifts, and reflects:

    .. math::
        \mathbf{v} &\leftarrow \mathbf{v} + \Delta t \, \mathbf{F}(\mathbf{x})

        \mathbf{x} &\leftarrow \mathbf{x} + \Delta t \, \mathbf{v}

    and a coordinate :math:`x` beyond the wall at :math:`b` becomes
    :math:`2b - x`, its velocity turned inwards. This is the paper's leapfrog
    integration, with velocities half a step behind the positions. A frame is
    kept after every ``sample_every`` steps, but neither at the start nor at the
    end: by default 99 frames, at 0.1 s, 0.2 s, ..., 9.9 s.

    The result does not depend on the number of threads
    (``NUMBA_NUM_THREADS``), nor the first systems and forces on later ones.

    Args:
        forces (sequence of Force): The forces, compiled in some seconds.
        num_systems, num_particles, num_dimensions (int): :math:`S, N, D`.
        seed (int): Seed of all randomness.
        num_steps (int): Number of steps, a multiple of ``sample_every``.
        step_size (float): Length of a step in second.
        sample_every (int): Number of steps from one frame to the next.
        box_half_width (float, optional): Metres from the origin to each wall.
            The paper's text has a side length of 5 m, but only walls at 5 m
            give its static errors.
        position_std (float): Standard deviation of initial coordinates in
            metre, before reflection into the box.
        speed (float): Initial speed in metre per second, in any direction.
        max_kick (float): The most that a step can change a component of a
            velocity, in metre per second, which tames close encounters.
        interactions (numpy.ndarray, optional): Zeros and ones
            ``[S, L, N, N]``. (default: drawn by each force)
        initial_position, initial_velocity (numpy.ndarray, optional):
            ``[S, N, D]``. (default: random)
        progress (bool): Whether to show a progress bar on standard error.
    """
    check_forces(forces)
    half_width = math.inf if box_half_width is None else box_half_width
    if not (step_size > 0 and max_kick > 0 and half_width > 0):
        raise ValueError(f'step_size is {step_size}, max_kick {max_kick} and '
                         f'box_half_width {half_width}, expected above 0')
    if num_steps % sample_every or num_steps < 2 * sample_every:
        raise ValueError(f'num_steps is {num_steps}, expected twice, three '
                         f'times, ... sample_every ({sample_every})')
    shape = (num_systems, num_particles, num_dimensions)
    if initial_position is None:
        initial_position = draw_positions(seed, shape, position_std, half_width)
    if initial_velocity is None:
        initial_velocity = draw_velocities(seed, shape, speed)
    if interactions is None:
        interactions = draw_interactions(seed, forces, num_systems,
                                         num_particles)
    position = np.asarray(initial_position, np.float64)
    velocity = np.asarray(initial_velocity, np.float64)
    if position.shape != shape or velocity.shape != shape:
        raise ValueError(f'initial_position is {position.shape} and '
                         f'initial_velocity {velocity.shape}, expected {shape}')
    if (np.abs(position) > half_width).any():
        raise ValueError(f'initial_position reaches beyond the walls at '
                         f'{half_width} m: enlarge box_half_width')
    graphs = check_graphs(
        'interactions', interactions,
        (num_systems, len(forces), num_particles, num_particles))

    constants = tuple(compile_force(force)[1] for force in forces)
    run = compile_time_loop(tuple(type(force) for force in forces),
                            num_dimensions)
    num_frames = num_steps // sample_every - 1
    frames = (num_systems, num_particles, num_frames, num_dimensions)
    position_frames = np.empty(frames, np.float32)
    velocity_frames = np.empty(frames, np.float32)

    def run_lanes(first: int) -> None:
        systems = slice(first, min(first + NUM_LANES, num_systems))
        reach = np.zeros(NUM_LANES)
        run(constants, _to_lanes(_pair_bits(graphs[systems])),
            _to_lanes(position[systems]), _to_lanes(velocity[systems]),
            position_frames[systems], velocity_frames[systems], reach,
            sample_every, step_size, max_kick / step_size, half_width)
        finite = (np.isfinite(position_frames[systems])
                  & np.isfinite(velocity_frames[systems])).all((1, 2, 3))
        lost = ~finite | (reach[:systems.stop - first] > half_width)
        if lost.any():
            what = 'box within one step' if finite.all() else 'range of numbers'
            raise ValueError(
                f'a particle of system {first + lost.argmax()} left the {what}:'
                f' make step_size, the speeds or the forces smaller')

    in_threads(run_lanes, range(0, num_systems, NUM_LANES), progress)
    time = np.arange(1, num_frames + 1) * (sample_every * step_size)
    return Trajectories(position_frames, velocity_frames, graphs, time)


def check_forces(forces: Sequence[Force]) -> None:
    # The time loop marks the forces of a pair in the bits of a 64-bit integer.
    if not (1 <= len(forces) <= 63
            and all(isinstance(force, Force) for force in forces)):
        raise ValueError(f'forces is {forces}, expected 1 to 63 objects such '
                         f'as [Spring(), Charge()]')


def _pair_bits(graphs: np.ndarray) -> np.ndarray:
    """Interactions as an integer of each pair, whose bit l is force l."""
    receiver, sender = np.tril_indices(graphs.shape[-1], -1)
    bits = np.zeros((len(graphs), len(receiver)), np.int64)
    for layer in range(graphs.shape[1]):
        bits |= graphs[:, layer, receiver, sender].astype(np.int64) << layer
    return bits


def _to_lanes(array: np.ndarray) -> np.ndarray:
    """Systems ``[S, ...]`` side by side in memory, the last one repeated."""
    lanes = np.minimum(np.arange(NUM_LANES), len(array) - 1)
    return np.ascontiguousarray(array.T[..., lanes])
