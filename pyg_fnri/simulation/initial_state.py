"""Random initial states and graphs, in streams of random numbers that depend
on neither each other nor the number of systems."""

from typing import Callable, Sequence, Tuple

import numpy as np

from .checks import interaction_graphs
from .forces import Force

# Systems that share one generator, which is costly to make for each system
# alone. A part of what a seed means: another value gives other data.
SYSTEMS_PER_STREAM = 32


def draw_positions(seed: int, shape: Tuple[int, int, int], std: float,
                   half_width: float) -> np.ndarray:
    """Normally distributed positions, reflected into the box.

    Args:
        seed (int): Seed of the data set.
        shape (tuple of int): Systems, particles, dimensions.
        std (float): Standard deviation of each coordinate in metre.
        half_width (float): Distance of each wall from the origin in metre.
    """
    def draw(rng: np.random.Generator, num_systems: int) -> np.ndarray:
        return std * rng.standard_normal((num_systems, ) + shape[1:])

    position = _in_streams(draw, seed, 0, shape[0])
    outside = np.abs(position) > half_width
    if outside.any():
        phase = (position[outside] + half_width) % (4 * half_width)
        folded = half_width - np.abs(phase - 2 * half_width)
        # Rounding must not leave a particle outside.
        position[outside] = folded.clip(-half_width, half_width)
    return position


def draw_velocities(seed: int, shape: Tuple[int, int, int],
                    speed: float) -> np.ndarray:
    """Velocities of one norm in random directions.

    Args:
        seed (int): Seed of the data set.
        shape (tuple of int): Systems, particles, dimensions.
        speed (float): Norm of each velocity in metre per second.
    """
    def draw(rng: np.random.Generator, num_systems: int) -> np.ndarray:
        direction = rng.standard_normal((num_systems, ) + shape[1:])
        norm = np.linalg.norm(direction, axis=-1, keepdims=True)
        return speed * direction / norm

    return _in_streams(draw, seed, 1, shape[0])


def draw_interactions(seed: int, forces: Sequence[Force], num_systems: int,
                      num_particles: int) -> np.ndarray:
    """One interaction graph per system and force, of shape
    ``[num_systems, num_forces, num_particles, num_particles]``.

    Raises:
        ValueError: If a force draws an invalid graph.
    """
    graphs = []
    for index, force in enumerate(forces):

        def draw(rng: np.random.Generator, num_systems: int,
                 force: Force = force) -> np.ndarray:
            return interaction_graphs(
                f'the result of {type(force).__name__}.sample_interactions',
                force.sample_interactions(rng, num_systems, num_particles),
                (num_systems, num_particles, num_particles))

        graphs.append(_in_streams(draw, seed, 2 + index, num_systems))
    return np.stack(graphs, axis=1)


def _in_streams(draw: Callable[[np.random.Generator, int], np.ndarray],
                seed: int, quantity: int, num_systems: int) -> np.ndarray:
    """Draws a quantity for groups of systems, each from its own generator.

    The last group is drawn whole and cut, so that more systems leave those
    before as they are.
    """
    groups = []
    for group in range(-(-num_systems // SYSTEMS_PER_STREAM)):
        stream = np.random.SeedSequence(seed, spawn_key=(quantity, group))
        groups.append(draw(np.random.default_rng(stream), SYSTEMS_PER_STREAM))
    return np.concatenate(groups)[:num_systems]
