"""Random initial states and graphs, in streams of random numbers that depend
on neither each other nor the number of systems."""

from typing import Callable, Sequence, Tuple

import numpy as np

from pyg_fnri.simulation.checks import interaction_graphs
from pyg_fnri.simulation.forces import Force

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

    position = in_streams(draw, seed, 0, shape[0])
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

    return in_streams(draw, seed, 1, shape[0])


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

        graphs.append(in_streams(draw, seed, 2 + index, num_systems))
    return np.stack(graphs, axis=1)


def draw_edge_types(seed: int, num_edge_types: Sequence[int], num_systems: int,
                    num_particles: int) -> np.ndarray:
    """Edge types of random multiplex graphs: in each layer, each pair of
    particles has any of the types with the same probability, whatever the
    other pairs have. With two types this is how NRI connects particles (Kipf
    et al. 2018, appendix B).

    Args:
        seed (int): Seed of the data set.
        num_edge_types (sequence of int): The number of types in each layer.
        num_systems (int): Number of graphs.
        num_particles (int): Number of particles in each.

    Returns:
        Symmetric edge types, int64, zero on the diagonal, of shape
        ``[num_systems, num_layers, num_particles, num_particles]``.
    """
    receiver, sender = np.tril_indices(num_particles, -1)
    graphs = np.zeros(
        (num_systems, len(num_edge_types)) + 2 * (num_particles, ), np.int64)
    for layer, num_types in enumerate(num_edge_types):

        def draw(rng: np.random.Generator, num_systems: int,
                 num_types: int = num_types) -> np.ndarray:
            return rng.integers(0, num_types, (num_systems, len(receiver)))

        types = in_streams(draw, seed, 2 + layer, num_systems)
        graphs[:, layer, receiver, sender] = types
        graphs[:, layer, sender, receiver] = types
    return graphs


def in_streams(draw: Callable[[np.random.Generator, int], np.ndarray],
               seed: int, quantity: int, num_systems: int) -> np.ndarray:
    """Draws a quantity for groups of systems, each from its own generator.

    The last group is drawn whole and cut, so that more systems leave those
    before as they are.

    Args:
        draw (callable): Given a generator and a number of systems, returns an
            array with the systems first.
        seed (int): Seed of the data set.
        quantity (int): Number of the quantity: 0 is for initial positions, 1
            for initial velocities, from 2 on for the layers of the graph.
        num_systems (int): Number of systems.
    """
    groups = []
    for group in range(-(-num_systems // SYSTEMS_PER_STREAM)):
        stream = np.random.SeedSequence(seed, spawn_key=(quantity, group))
        groups.append(draw(np.random.default_rng(stream), SYSTEMS_PER_STREAM))
    return np.concatenate(groups)[:num_systems]
