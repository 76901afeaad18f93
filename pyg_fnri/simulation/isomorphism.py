"""A key of a graph that does not depend on how its particles are numbered."""

import numpy as np

# Graphs looked at together, few enough for the cache.
CHUNK_SIZE = 1024


def graph_keys(edge_types: np.ndarray) -> np.ndarray:
    """A key for each multiplex graph, the same for any order of its particles.

    Graphs that are equal up to relabelling of particles always share their
    key: a key is made of nothing but sums over particles. The converse does
    not hold for every graph, so that a key may stand for more than one class
    of isomorphic graphs, which is harmless where graphs of one key are kept
    together; among 166,000 classes of five particles in two layers, no two
    had the same.

    The colours of particles are refined by the colours of the others and the
    types of the edges from and to them (Weisfeiler and Leman), all layers
    together, once for each choice of a particle to tell apart first. That
    tells apart regular graphs too, which refinement alone does not.

    Args:
        edge_types (numpy.ndarray): Edge types, integers from 0 on, of shape
            ``[S, L, N, N]``. Need not be symmetric; the diagonal is ignored.

    Returns:
        The keys, uint64, of shape ``[S]``.
    """
    return np.concatenate([
        _keys(edge_types[first:first + CHUNK_SIZE])
        for first in range(0, len(edge_types), CHUNK_SIZE)
    ])


def _keys(edge_types: np.ndarray) -> np.ndarray:
    num_particles = edge_types.shape[-1]
    bond = np.zeros(edge_types.shape[:1] + edge_types.shape[2:], np.uint64)
    for layer in edge_types.swapaxes(0, 1).astype(np.uint64):
        bond = _mix(bond + layer)
    bond = _mix(bond + _mix(bond.swapaxes(1, 2)))
    bond *= ~np.eye(num_particles, dtype=bool)  # Of others only.
    # [S, first, particle]: the first particle is of another colour.
    colour = np.broadcast_to(np.eye(num_particles, dtype=np.uint64),
                             edge_types.shape[:1] + 2 * (num_particles, ))
    for _ in range(num_particles):
        # Sums of products of random numbers, modulo 2^64, differ wherever the
        # pairs of bond and colour do, but for a chance of about 2^-64.
        seen = _mix(colour) @ bond.swapaxes(1, 2)
        colour = _mix(colour + _mix(seen))
    rooted = _mix(colour).sum(-1, dtype=np.uint64)
    return _mix(rooted).sum(-1, dtype=np.uint64)


def _mix(number: np.ndarray) -> np.ndarray:
    """A number that looks random (the last step of the generator SplitMix64),
    a different one for each."""
    number = number + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ number >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ number >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return number ^ number >> np.uint64(31)
