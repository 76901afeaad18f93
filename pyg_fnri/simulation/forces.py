"""Pairwise central forces; random graphs and states, of which the first do not
depend on the number of systems."""
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Callable, Sequence, Tuple, cast

import numpy as np

# Systems that share one generator. A part of what a seed means.
SYSTEMS_PER_STREAM = 32


class Force(ABC):
    r"""The law of one kind of pairwise interaction, along the line between two
    particles: :math:`i` feels

    .. math::
        \mathbf{F}_{ij} = f(r_{ij}) \frac{\mathbf{r}_i - \mathbf{r}_j}{r_{ij}}

    from :math:`j`, and :math:`j` feels the opposite. A new force is a frozen
    dataclass of its constants with one method, :meth:`magnitude`, which numba
    compiles: fields, numbers, conditions, ``numpy`` and ``math`` functions.
    """
    @abstractmethod
    def magnitude(self, distance: float) -> float:
        """:math:`f(r)` in newton at a distance in metre: positive repels."""

    def sample_interactions(self, rng: np.random.Generator, num_systems: int,
                            num_particles: int) -> np.ndarray:
        """Draws who interacts, boolean and symmetric ``[S, N, N]``; by default
        as the paper's springs: random pairs, of a uniformly random number."""
        receiver, sender = np.tril_indices(num_particles, -1)
        rank = _random_ranks(rng, num_systems, len(receiver))
        count = rng.integers(0, len(receiver), num_systems, endpoint=True)
        interacts = np.zeros((num_systems, num_particles, num_particles), bool)
        interacts[:, receiver, sender] = rank < count[:, None]
        return cast(np.ndarray, interacts | interacts.transpose(0, 2, 1))


@dataclass(frozen=True)
class Spring(Force):
    """The paper's I-springs: :math:`f(r) = -k r`, :math:`k` in N/m."""
    stiffness: float = 0.1

    def magnitude(self, distance: float) -> float:
        return -self.stiffness * distance


@dataclass(frozen=True)
class Charge(Force):
    """The paper's unit charges: :math:`f(r) = C / r^2`, :math:`C` in N m^2."""
    strength: float = 0.2

    def magnitude(self, distance: float) -> float:
        return self.strength / distance**2

    def sample_interactions(self, rng: np.random.Generator, num_systems: int,
                            num_particles: int) -> np.ndarray:
        """Charges a random group of one to all particles, each size equally
        frequent; every pair within the group interacts."""
        rank = _random_ranks(rng, num_systems, num_particles)
        count = rng.integers(1, num_particles, num_systems, endpoint=True)
        charged = rank < count[:, None]
        interacts = charged[:, :, None] & charged[:, None, :]
        return interacts & ~np.eye(num_particles, dtype=bool)


@dataclass(frozen=True)
class FiniteSpring(Force):
    """The paper's F-springs: :math:`f(r) = -k (r - l)`, in N/m and metre."""
    stiffness: float = 0.1
    length: float = 1.0

    def magnitude(self, distance: float) -> float:
        return -self.stiffness * (distance - self.length)


@dataclass(frozen=True)
class SoftCharge(Force):
    r"""Coulomb's force without its pole (Plummer's softening), which no fixed
    step can follow: :math:`f(r) = C r / (r^2 + \epsilon^2)^{3/2}`, with the
    strength :math:`C` in N m^2 and the softening :math:`\epsilon` in metre."""
    strength: float = 1.0
    softening: float = 0.1

    def magnitude(self, distance: float) -> float:
        square = distance**2 + self.softening**2
        cube: float = square * np.sqrt(square)
        return self.strength * distance / cube


def _random_ranks(rng: np.random.Generator, num_systems: int,
                  size: int) -> np.ndarray:
    return rng.permuted(np.tile(np.arange(size), (num_systems, 1)), axis=1)


def in_streams(draw: Callable[[np.random.Generator, int], np.ndarray],
               seed: int, quantity: int, num_systems: int) -> np.ndarray:
    """Draws a quantity (0 for initial positions, 1 for initial velocities, from
    2 on for layers) for groups of systems, each from its own generator. The
    last group is drawn whole and cut: more systems leave the first as is."""
    groups = []
    for group in range(-(-num_systems // SYSTEMS_PER_STREAM)):
        stream = np.random.SeedSequence(seed, spawn_key=(quantity, group))
        groups.append(draw(np.random.default_rng(stream), SYSTEMS_PER_STREAM))
    return np.concatenate(groups)[:num_systems]


def draw_positions(seed: int, shape: Tuple[int, int, int], std: float,
                   half_width: float) -> np.ndarray:
    """Normally distributed positions ``[S, N, D]``, reflected into the box."""
    position = in_streams(
        lambda rng, size: std * rng.standard_normal((size, *shape[1:])), seed,
        0, shape[0])
    outside = np.abs(position) > half_width
    phase = (position[outside] + half_width) % (4 * half_width)
    folded = half_width - np.abs(phase - 2 * half_width)
    # Rounding must not leave a particle outside.
    position[outside] = folded.clip(-half_width, half_width)
    return position


def draw_velocities(seed: int, shape: Tuple[int, int, int],
                    speed: float) -> np.ndarray:
    """Velocities ``[S, N, D]`` of one norm in random directions."""
    def draw(rng: np.random.Generator, num_systems: int) -> np.ndarray:
        direction = rng.standard_normal((num_systems, *shape[1:]))
        norm = np.linalg.norm(direction, axis=-1, keepdims=True)
        return cast(np.ndarray, speed * direction / norm)

    return in_streams(draw, seed, 1, shape[0])


def draw_interactions(seed: int, forces: Sequence[Force], num_systems: int,
                      num_particles: int) -> np.ndarray:
    """The graphs of each force, boolean ``[S, num_forces, N, N]``."""
    graphs = []
    for layer, force in enumerate(forces):
        drawn = in_streams(
            lambda rng, size: force.sample_interactions(
                rng, size, num_particles), seed, 2 + layer, num_systems)
        graphs.append(
            check_graphs(f'the result of {force}.sample_interactions', drawn,
                         (num_systems, num_particles, num_particles)))
    return np.stack(graphs, axis=1)


def check_graphs(name: str, value: Any, shape: Tuple[int, ...]) -> np.ndarray:
    graphs = np.asarray(value)
    interacts: np.ndarray = graphs == 1
    if (graphs.shape != shape or not (interacts | (graphs == 0)).all()
            or interacts.diagonal(axis1=-2, axis2=-1).any()
            or (interacts != interacts.swapaxes(-2, -1)).any()):
        raise ValueError(
            f'{name}, of the shape {graphs.shape}, must be zeros and ones of '
            f'the shape {shape}, symmetric, with zeros on the diagonal')
    return interacts


def graph_keys(edge_types: np.ndarray) -> np.ndarray:
    """A key of each multiplex graph ``[S, L, N, N]``, uint64 ``[S]``, the same
    for any order of its particles. Two that are not isomorphic may share one;
    among 166,000 classes of five particles in two layers, none do. Refines
    colours of particles (Weisfeiler and Leman), once with each as the first to
    tell apart, for regular graphs."""
    num_particles = edge_types.shape[-1]
    bond = np.zeros(edge_types.shape[:1] + edge_types.shape[2:], np.uint64)
    for layer in edge_types.swapaxes(0, 1).astype(np.uint64):
        bond = _mix(bond + layer)
    bond = _mix(bond + _mix(bond.swapaxes(1, 2)))
    bond *= ~np.eye(num_particles, dtype=bool)  # Of others only.
    # [S, first, particle]: the first particle is of another colour.
    colour = np.broadcast_to(np.eye(num_particles, dtype=np.uint64), bond.shape)
    for _ in range(num_particles):
        # Sums of products of random numbers, modulo 2^64, differ wherever the
        # pairs of bond and colour do, but for a chance of about 2^-64.
        seen = _mix(colour) @ bond.swapaxes(1, 2)
        colour = _mix(colour + _mix(seen))
    rooted = _mix(colour).sum(-1, dtype=np.uint64)
    return cast(np.ndarray, _mix(rooted).sum(-1, dtype=np.uint64))


def _mix(number: np.ndarray) -> np.ndarray:
    """A number that looks random (last step of the generator SplitMix64)."""
    number = number + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ number >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ number >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return cast(np.ndarray, number ^ number >> np.uint64(31))
