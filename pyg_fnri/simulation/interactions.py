"""Random interaction graphs: which pairs of particles interact."""

import numpy as np


def random_pairs(rng: np.random.Generator, num_systems: int,
                 num_particles: int) -> np.ndarray:
    r"""Connects random pairs, as springs in the paper's section "Simulations".

    The number of pairs is uniform on :math:`\{0, \dots, N (N - 1) / 2\}`, so
    that a pair interacts with probability 1/2, but every density of the graph
    is equally frequent.

    Args:
        rng (numpy.random.Generator): Source of randomness.
        num_systems (int): Number of graphs.
        num_particles (int): Number of particles :math:`N` in each.

    Returns:
        Symmetric boolean adjacency without self-interaction, of shape
        ``[num_systems, num_particles, num_particles]``.
    """
    receiver, sender = np.tril_indices(num_particles, -1)
    rank = _random_ranks(rng, num_systems, len(receiver))
    count = rng.integers(0, len(receiver), num_systems, endpoint=True)
    interacts = np.zeros((num_systems, num_particles, num_particles), bool)
    interacts[:, receiver, sender] = rank < count[:, None]
    return interacts | interacts.transpose(0, 2, 1)


def pairs_in_random_group(rng: np.random.Generator, num_systems: int,
                          num_particles: int) -> np.ndarray:
    r"""Connects all pairs within a random group, as charges in the paper's
    section "Simulations".

    The size of the group is uniform on :math:`\{1, \dots, N\}`: of five
    particles, a pair interacts with probability 0.4.

    Args:
        rng (numpy.random.Generator): Source of randomness.
        num_systems (int): Number of graphs.
        num_particles (int): Number of particles :math:`N` in each.

    Returns:
        Symmetric boolean adjacency without self-interaction, of shape
        ``[num_systems, num_particles, num_particles]``.
    """
    rank = _random_ranks(rng, num_systems, num_particles)
    count = rng.integers(1, num_particles, num_systems, endpoint=True)
    member = rank < count[:, None]
    interacts = member[:, :, None] & member[:, None, :]
    return interacts & ~np.eye(num_particles, dtype=bool)


def _random_ranks(rng: np.random.Generator, num_systems: int,
                  size: int) -> np.ndarray:
    """A random order of ``size`` things for each system."""
    return rng.permuted(np.tile(np.arange(size), (num_systems, 1)), axis=1)
