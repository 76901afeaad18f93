"""Newton's equations of motion for many systems of particles in a box: the one
compiled time loop, built for any forces, and the threads in which it runs."""
import math
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import cache
from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple, Type

import numpy as np
from numba import config, njit
from numba.core.errors import NumbaError
from rich.console import Console
from rich.progress import track

from pyg_fnri.simulation.forces import (Force, check_graphs, draw_interactions,
                                        draw_positions, draw_velocities)

# Systems side by side in memory: vector instructions, yet the fastest cache.
NUM_LANES = 64

# Below this distance its square underflows. Finite forces fade to zero there.
NO_DISTANCE = 1e-160

# A division by zero gives infinity instead of a branch, which would keep the
# loop from being vectorised. Neither fast-math nor fused multiply-add, so that
# every vector width gives the same bytes.
compiled = njit(error_model='numpy', nogil=True)
Compiled = Callable[..., float]


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
    reflecting walls, by default as in the paper's section "Simulations".

    A step kicks, :math:`\mathbf{v} \leftarrow \mathbf{v} + \Delta t \,
    \mathbf{F}(\mathbf{x})`, drifts, :math:`\mathbf{x} \leftarrow \mathbf{x} +
    \Delta t \, \mathbf{v}`, and reflects a coordinate :math:`x` beyond the wall
    at :math:`b` to :math:`2b - x`: leapfrog integration, with velocities half a
    step behind the positions. A frame is kept after every ``sample_every``
    steps, neither at the start nor at the end: by default 99 frames, at 0.1 s,
    0.2 s, ..., 9.9 s. The first systems and forces do not depend on later ones.

    Args:
        num_systems, num_particles, num_dimensions (int): :math:`S, N, D`.
        num_steps (int): A multiple of ``sample_every``.
        step_size (float): In second.
        box_half_width (float, optional): Metres from the origin to each wall.
            The paper's text has a side length of 5 m, but only walls at 5 m
            give its static errors.
        position_std (float): Of initial coordinates, in metre.
        speed (float): Initial, in metre per second, in any direction.
        max_kick (float): The most that a step can change a component of a
            velocity, in metre per second, which tames close encounters.
        interactions (numpy.ndarray, optional): ``[S, L, N, N]``, 0 or 1.
        initial_position, initial_velocity (numpy.ndarray, optional):
            ``[S, N, D]``. (default: random)
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
    receiver, sender = np.tril_indices(graphs.shape[-1], -1)
    bits = np.zeros((len(graphs), len(receiver)), np.int64)
    for layer in range(graphs.shape[1]):
        bits |= graphs[:, layer, receiver, sender].astype(np.int64) << layer
    return bits


def _to_lanes(array: np.ndarray) -> np.ndarray:
    """Systems ``[S, ...]`` side by side in memory, the last one repeated."""
    lanes = np.minimum(np.arange(NUM_LANES), len(array) - 1)
    return np.ascontiguousarray(array.T[..., lanes])


def in_threads(function: Callable[[int], None], starts: range,
               progress: bool) -> None:
    """In Python's threads: unlike numba's, they may run after a fork."""
    num_threads = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    with ThreadPoolExecutor(num_threads) as pool:
        try:
            calls = [pool.submit(function, start) for start in starts]
            for call in track(calls, 'Simulating', disable=not progress,
                              console=Console(stderr=True)):
                call.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def compile_force(force: Force) -> Tuple[Compiled, Any]:
    """A force's compiled magnitude, and the constants in place of `self`."""
    cls = type(force)
    names = [field.name for field in fields(force)]  # type: ignore[arg-type]
    try:
        constants = _constants_type(cls)(*(getattr(force, n) for n in names))
        magnitude = _compile_magnitude(cls)
        if _is_outdated(magnitude, constants, force):
            _compile_magnitude.cache_clear()
            compile_time_loop.cache_clear()
            magnitude = _compile_magnitude(cls)
    except (NumbaError, ValueError) as error:
        reason = next(line for line in str(error).splitlines()
                      if not line.startswith('Failed in'))
        raise TypeError(
            f'numba cannot compile {cls.__name__}.magnitude ({reason}): write '
            f'it as a function of the distance and of the fields {names} with '
            f'numbers, conditions, numpy and math functions only') from error
    return magnitude, constants


@cache
def compile_time_loop(classes: Tuple[Type[Force], ...],
                      num_dimensions: int) -> Callable[..., None]:
    """Constant dimensions make the innermost loop one that LLVM vectorises."""
    total_magnitude: Compiled = _no_force
    for index, cls in enumerate(classes):
        total_magnitude = _add_force(total_magnitude, _compile_magnitude(cls),
                                     index)

    @compiled
    def run(  # type: ignore[no-untyped-def]
            parameters,
            interacts,  # [N * (N - 1) / 2, lanes], its bit l is force l
            position,  # [D, N, lanes], overwritten
            velocity,  # [D, N, lanes], overwritten
            position_frames,  # [systems, N, T, D], systems <= lanes
            velocity_frames,  # [systems, N, T, D]
            reach,  # [lanes], greatest coordinate after reflection
            sample_every,
            step_size,
            max_force,
            half_width):
        num_particles = position.shape[1]
        num_systems, _, num_frames, _ = position_frames.shape
        force = np.empty((num_dimensions, num_particles, NUM_LANES))

        for frame in range(num_frames):
            for _ in range(sample_every):
                force[:] = 0.0
                pair = 0
                for i in range(num_particles):
                    for j in range(i):
                        for lane in range(NUM_LANES):
                            square = 0.0
                            for d in range(num_dimensions):
                                r = position[d, i, lane] - position[d, j, lane]
                                square += r * r
                            distance = np.sqrt(square)
                            f = total_magnitude(parameters,
                                                interacts[pair, lane], distance)
                            f /= max(distance, NO_DISTANCE)
                            for d in range(num_dimensions):
                                r = position[d, i, lane] - position[d, j, lane]
                                force[d, i, lane] += f * r
                                force[d, j, lane] -= f * r
                        pair += 1

                for d in range(num_dimensions):
                    for i in range(num_particles):
                        for lane in range(NUM_LANES):
                            # NaN passes all comparisons, found at the end.
                            f = force[d, i, lane]
                            f = max_force if f > max_force else f
                            f = -max_force if f < -max_force else f
                            v = velocity[d, i, lane] + step_size * f
                            x = position[d, i, lane] + step_size * v
                            if x > half_width:
                                x = 2 * half_width - x
                                v = -abs(v)
                            elif x < -half_width:
                                x = -2 * half_width - x
                                v = abs(v)
                            position[d, i, lane] = x
                            velocity[d, i, lane] = v
                            reach[lane] = max(reach[lane], abs(x))

            position_frames[:, :, frame] = position.T[:num_systems]
            velocity_frames[:, :, frame] = velocity.T[:num_systems]

    return run


@compiled
def _no_force(parameters, interacts, distance):  # type: ignore[no-untyped-def]
    return 0.0


def _add_force(previous: Compiled, magnitude: Compiled, index: int) -> Compiled:
    """Adds a force: numba has no loop over values of different types."""
    bit = 1 << index

    @compiled
    def total_magnitude(  # type: ignore[no-untyped-def]
            parameters, interacts, distance):
        f = magnitude(parameters[index], distance)
        others = previous(parameters, interacts, distance)
        # A choice and no product: a pair that does not interact may be on one
        # spot, where f is infinite.
        return others + (f if interacts & bit else 0.0)

    return total_magnitude


def _is_outdated(magnitude: Compiled, constants: Any, force: Force) -> bool:
    """Whether what a force's code takes from elsewhere changed since."""
    for distance in np.geomspace(0.05, 14, 16).tolist():
        try:
            value = force.magnitude(distance)
        except Exception:  # Compiled code gives infinity or NaN instead.
            continue
        if not np.isclose(magnitude(constants, distance), value, 1e-9, 0,
                          equal_nan=True):
            return True
    return False


@cache
def _constants_type(cls: Type[Force]) -> Any:
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    return namedtuple(cls.__name__, names)


@cache
def _compile_magnitude(cls: Type[Force]) -> Any:
    return compiled(cls.magnitude)
