"""Newton's equations of motion for many systems of particles in a box."""

import math
from typing import NamedTuple, Optional, Sequence

import numpy as np

from pyg_fnri.simulation.checks import (
    check_contacts,
    check_forces,
    check_frames,
    integer,
    interaction_graphs,
    positive,
    state,
)
from pyg_fnri.simulation.forces import Force
from pyg_fnri.simulation.initial_state import (
    draw_interactions,
    draw_positions,
    draw_velocities,
)
from pyg_fnri.simulation.threads import in_threads
from pyg_fnri.simulation.time_loop import compile_force, compile_time_loop

# Systems that one call of the time loop advances side by side: enough for
# vector instructions, few enough to stay in the fastest cache.
NUM_LANES = 64


class Trajectories(NamedTuple):
    """Trajectories of :math:`S` systems of :math:`N` particles in :math:`D`
    dimensions, under :math:`L` forces, at :math:`T` instants.

    Args:
        position (numpy.ndarray): Positions in metre, float32, of shape
            ``[S, N, T, D]``.
        velocity (numpy.ndarray): Velocities in metre per second, float32, of
            shape ``[S, N, T, D]``.
        interactions (numpy.ndarray): Whether two particles interact by each
            force, boolean and symmetric, of shape ``[S, L, N, N]``.
        time (numpy.ndarray): Instants in second, float64, of shape ``[T]``.
    """
    position: np.ndarray
    velocity: np.ndarray
    interactions: np.ndarray
    time: np.ndarray


def simulate(
    forces: Sequence[Force],
    num_systems: int,
    num_particles: int = 5,
    *,
    num_dimensions: int = 2,
    seed: int = 0,
    num_steps: int = 10_000,
    step_size: float = 1e-3,
    sample_every: int = 100,
    box_half_width: Optional[float] = 5.0,
    position_std: float = 0.5,
    speed: float = 0.5,
    max_kick: float = 0.1,
    interactions: Optional[np.ndarray] = None,
    initial_position: Optional[np.ndarray] = None,
    initial_velocity: Optional[np.ndarray] = None,
    num_threads: Optional[int] = None,
    progress: bool = False,
) -> Trajectories:
    r"""Simulates systems of particles of 1 kg that move under pairwise forces
    in a box with reflecting walls. The defaults are those of the paper's
    section "Simulations".

    A step of length :math:`\Delta t` kicks, drifts, and reflects:

    .. math::
        \mathbf{v} &\leftarrow \mathbf{v} + \Delta t \, \mathbf{F}(\mathbf{x})

        \mathbf{x} &\leftarrow \mathbf{x} + \Delta t \, \mathbf{v}

    and a coordinate :math:`x` beyond the wall at :math:`b` becomes
    :math:`2b - x`, its velocity turned inwards. This is the paper's leapfrog
    integration, with velocities half a step behind the positions.

    A frame is kept after every ``sample_every`` steps, but neither at the start
    nor after ``num_steps``, when it all ends. The defaults give 99 frames, at
    0.1 s, 0.2 s, ..., 9.9 s.

    The result depends on neither the number of threads nor the number of
    systems: the first hundred out of a thousand systems are those of a run of
    a hundred. Positions, velocities, and the graphs of each force come from
    separate streams of random numbers, so that one more force leaves the
    initial states and the other forces' graphs as they were.

    Args:
        forces (sequence of Force): The forces, in the order of the
            ``interactions``. The first use of a kind of force takes some
            seconds, in which it is compiled.
        num_systems (int): Number of systems :math:`S`.
        num_particles (int): Number of particles :math:`N`, at least two.
        num_dimensions (int): Number of dimensions :math:`D`: 1, 2 or 3.
        seed (int): Seed of all randomness.
        num_steps (int): Number of steps, a multiple of ``sample_every``.
        step_size (float): Length of a step in second.
        sample_every (int): Number of steps from one frame to the next.
        box_half_width (float, optional): Distance of each wall from the origin
            in metre. :obj:`None` means no walls. The paper's text has a side
            length of 5 m, but its errors of a static prediction only come out
            with the walls at 5 m from the origin, a side length of 10 m.
        position_std (float): Standard deviation of the initial coordinates,
            normally distributed, in metre. A coordinate drawn beyond a wall is
            reflected into the box.
        speed (float): Initial speed of each particle in metre per second, in a
            random direction.
        max_kick (float): The most that a component of a velocity can change in
            one step, in metre per second: a component of the total force on a
            particle is clamped to ``max_kick / step_size`` newton. This tames
            close encounters under a divergent force. ``math.inf`` means no
            clamp.
        interactions (numpy.ndarray, optional): Who interacts with whom, as
            zeros and ones, of shape ``[S, L, N, N]``. Drawn by each force's
            :meth:`~pyg_fnri.simulation.Force.sample_interactions` if absent.
        initial_position (numpy.ndarray, optional): Initial positions in metre,
            inside the box, of shape ``[S, N, D]``. Drawn if absent.
        initial_velocity (numpy.ndarray, optional): Initial velocities in metre
            per second, of shape ``[S, N, D]``. Drawn if absent.
        num_threads (int, optional): Number of threads. If absent, as many as
            numba's ``NUMBA_NUM_THREADS``, by default all processors.
        progress (bool): Whether to show a progress bar on standard error.

    Returns:
        The trajectories and the interaction graphs.

    Raises:
        TypeError: If an argument has the wrong type, or numba cannot compile a
            force.
        ValueError: If an argument is out of range or of the wrong shape, if two
            interacting particles start on one spot where their force diverges,
            or if a particle leaves the range of numbers or, within one step,
            the box. No trajectory ever holds a NaN.
    """
    check_forces(forces)
    num_systems = integer('num_systems', num_systems, 1)
    num_particles = integer('num_particles', num_particles, 2)
    num_dimensions = integer('num_dimensions', num_dimensions, 1)
    shape = (num_systems, num_particles, num_dimensions)
    if num_dimensions > 3:
        raise ValueError(f'num_dimensions is {num_dimensions}, expected 1, 2 '
                         f'or 3')
    seed = integer('seed', seed, 0)
    num_steps = integer('num_steps', num_steps, 1)
    sample_every = integer('sample_every', sample_every, 1)
    if num_steps % sample_every or num_steps < 2 * sample_every:
        raise ValueError(f'num_steps is {num_steps}, expected twice, three '
                         f'times, ... sample_every ({sample_every}): frames '
                         f'lie between the initial state and the last step')
    step_size = positive('step_size', step_size)
    half_width = positive(
        'box_half_width',
        math.inf if box_half_width is None else box_half_width,
        or_infinite=True)
    position_std = positive('position_std', position_std)
    speed = positive('speed', speed, or_zero=True)
    max_kick = positive('max_kick', max_kick, or_infinite=True)
    if num_threads is not None:
        integer('num_threads', num_threads, 1)

    if initial_position is None:
        position = draw_positions(seed, shape, position_std, half_width)
    else:
        position = state('initial_position', initial_position, shape)
        if np.abs(position).max() > half_width:
            raise ValueError(f'initial_position has a coordinate '
                             f'{np.abs(position).max()} m from the origin, '
                             f'beyond the walls at {half_width} m: enlarge '
                             f'box_half_width')
    if initial_velocity is None:
        velocity = draw_velocities(seed, shape, speed)
    else:
        velocity = state('initial_velocity', initial_velocity, shape)
    if interactions is None:
        graphs = draw_interactions(seed, forces, num_systems, num_particles)
    else:
        graphs = interaction_graphs(
            'interactions', interactions,
            (num_systems, len(forces), num_particles, num_particles))

    compiled = [compile_force(force) for force in forces]
    parameters = tuple(force.parameters for force in compiled)
    divergent = [
        layer for layer, force in enumerate(compiled) if force.diverges()
    ]
    # With few systems, most lanes would run idle.
    num_lanes = NUM_LANES if num_systems >= NUM_LANES // 4 else 1
    run = compile_time_loop(tuple(type(force) for force in forces),
                            num_dimensions, num_lanes)
    num_frames = num_steps // sample_every - 1
    frames = (num_systems, num_particles, num_frames, num_dimensions)
    position_frames = np.empty(frames, np.float32)
    velocity_frames = np.empty(frames, np.float32)

    def run_lanes(first: int) -> None:
        systems = slice(first, min(first + num_lanes, num_systems))
        for layer in divergent:
            check_contacts(position[systems], graphs[systems, layer],
                           forces[layer], first)
        reach = np.zeros(num_lanes)
        run(parameters, _to_lanes(_pair_bits(graphs[systems]), num_lanes),
            _to_lanes(position[systems], num_lanes),
            _to_lanes(velocity[systems], num_lanes), position_frames[systems],
            velocity_frames[systems], reach, sample_every, step_size,
            max_kick / step_size, half_width)
        check_frames(position_frames[systems], velocity_frames[systems],
                     reach[:systems.stop - first], half_width, step_size, first)

    in_threads(run_lanes, range(0, num_systems, num_lanes), num_threads,
               progress)
    time = np.arange(1, num_frames + 1) * (sample_every * step_size)
    return Trajectories(position_frames, velocity_frames, graphs, time)


def _pair_bits(graphs: np.ndarray) -> np.ndarray:
    """Interactions ``[S, L, N, N]`` as one integer for each pair of particles,
    in the time loop's order, ``[S, N * (N - 1) / 2]``. Bit l is force l."""
    receiver, sender = np.tril_indices(graphs.shape[-1], -1)
    bits = np.zeros((len(graphs), len(receiver)), np.int64)
    for layer in range(graphs.shape[1]):
        bits |= graphs[:, layer, receiver, sender].astype(np.int64) << layer
    return bits


def _to_lanes(array: np.ndarray, num_lanes: int) -> np.ndarray:
    """Reverses the dimensions of ``[S, ...]``, for systems to be side by side
    in memory. Lanes without a system repeat the last one."""
    lanes = np.minimum(np.arange(num_lanes), len(array) - 1)
    return np.ascontiguousarray(array.T[..., lanes])
