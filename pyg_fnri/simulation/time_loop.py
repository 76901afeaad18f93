"""The one compiled time loop, built for any tuple of forces, and the threads
in which compiled code runs."""
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import cache
from typing import Any, Callable, Tuple, Type

import numpy as np
from numba import config, njit
from numba.core.errors import NumbaError
from rich.console import Console
from rich.progress import track

from pyg_fnri.simulation.forces import Force

# Systems side by side in memory: vector instructions, yet the fastest cache.
NUM_LANES = 64

# Below this distance its square underflows. Finite forces fade to zero there.
NO_DISTANCE = 1e-160

# A division by zero gives infinity instead of a branch, which would keep the
# loop from being vectorised. Neither fast-math nor fused multiply-add, so that
# every vector width gives the same bytes.
compiled = njit(error_model='numpy', nogil=True)


def in_threads(function: Callable[[int], None], starts: range,
               progress: bool) -> None:
    """Calls a function with each start, in threads of Python: unlike numba's
    own, they may run beside each other and after a fork."""
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


def compile_force(force: Force) -> Tuple[Callable, Any]:
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
                      num_dimensions: int) -> Callable:
    """Builds the time loop for kinds of forces. With constant dimensions, the
    innermost loop is plain arithmetic, which LLVM vectorises."""
    total_magnitude: Callable = _no_force
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


def _add_force(previous: Callable, magnitude: Callable, index: int) -> Callable:
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


def _is_outdated(magnitude: Callable, constants: Any, force: Force) -> bool:
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
