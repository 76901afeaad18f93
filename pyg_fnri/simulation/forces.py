"""Pairwise central forces: how strongly two particles push or pull, and
which pairs of a random system do so."""
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np


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
        return interacts | interacts.transpose(0, 2, 1)


@dataclass(frozen=True)
class Spring(Force):
    r"""The paper's I-springs, of zero length: :math:`f(r) = -k r`, with the
    stiffness :math:`k` in newton per metre."""
    stiffness: float = 0.1

    def magnitude(self, distance: float) -> float:
        return -self.stiffness * distance


@dataclass(frozen=True)
class Charge(Force):
    r"""The paper's unit charges: :math:`f(r) = C / r^2`, with the strength
    :math:`C` in newton square metre."""
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
    r"""The paper's F-springs: :math:`f(r) = -k (r - l)`, with the stiffness
    :math:`k` in newton per metre and the length at rest :math:`l` in metre."""
    stiffness: float = 0.1
    length: float = 1.0

    def magnitude(self, distance: float) -> float:
        return -self.stiffness * (distance - self.length)


@dataclass(frozen=True)
class SoftCharge(Force):
    r"""Coulomb's force without its pole (Plummer's softening):
    :math:`f(r) = C r / (r^2 + \epsilon^2)^{3/2}`, with the potential energy
    :math:`C / \sqrt{r^2 + \epsilon^2}`, the strength :math:`C` in newton
    square metre and the softening :math:`\epsilon` in metre. Opposite charges
    that meet would otherwise gain any speed, which no fixed step can follow."""
    strength: float = 1.0
    softening: float = 0.1

    def magnitude(self, distance: float) -> float:
        square = distance**2 + self.softening**2
        return self.strength * distance / (square * np.sqrt(square))


def _random_ranks(rng: np.random.Generator, num_systems: int,
                  size: int) -> np.ndarray:
    return rng.permuted(np.tile(np.arange(size), (num_systems, 1)), axis=1)
