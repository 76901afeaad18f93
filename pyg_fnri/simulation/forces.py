"""Pairwise central forces: how strongly two particles push or pull, and
which pairs of a random system do so."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import numpy as np

from pyg_fnri.simulation.interactions import (
    pairs_in_random_group,
    random_pairs,
)


class Force(ABC):
    r"""The law of one kind of pairwise interaction.

    A force acts along the line between two particles and depends on nothing
    but their distance. Particle :math:`i` feels

    .. math::
        \mathbf{F}_{ij} = f(r_{ij}) \frac{\mathbf{r}_i - \mathbf{r}_j}{r_{ij}}

    from particle :math:`j`, and :math:`j` feels the opposite. A new force is a
    frozen dataclass of its constants with one method, :meth:`magnitude`:

    .. code-block:: python

        @dataclass(frozen=True)
        class Yukawa(Force):
            strength: float = 0.2
            screening_length: float = 1.0

            def magnitude(self, distance):
                decay = np.exp(-distance / self.screening_length)
                return self.strength * decay / distance**2

    :func:`~pyg_fnri.simulation.simulate` compiles the method with numba, so
    that it may use numbers, ``numpy`` and ``math`` functions, conditions,
    and the fields of the dataclass, but no other attribute of ``self``.
    """
    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value,
                          (float, np.floating)) and not np.isfinite(value):
                raise ValueError(f'{type(self).__name__}: {field.name} is '
                                 f'{value}, expected a finite number')

    @abstractmethod
    def magnitude(self, distance: float) -> float:
        r"""The signed force :math:`f(r)` in newton at a distance in metre.

        Positive repels, negative attracts.

        Args:
            distance (float): Distance of the two particles. An array works
                as well if the law is written with ``numpy`` functions.
        """

    def sample_interactions(self, rng: np.random.Generator, num_systems: int,
                            num_particles: int) -> np.ndarray:
        """Draws who interacts with whom, by default as the paper's springs:
        the number of interacting pairs is uniform, the pairs are random.

        Args:
            rng (numpy.random.Generator): Source of randomness.
            num_systems (int): Number of systems.
            num_particles (int): Number of particles in each system.

        Returns:
            Symmetric adjacency, boolean, without self-interaction, of shape
            ``[num_systems, num_particles, num_particles]``.
        """
        return random_pairs(rng, num_systems, num_particles)


@dataclass(frozen=True)
class Spring(Force):
    r"""Ideal spring of zero length (I-springs of the paper's section
    "Simulations"): :math:`f(r) = -k r`.

    Args:
        stiffness (float): Spring constant :math:`k` in newton per metre.
    """
    stiffness: float = 0.1

    def magnitude(self, distance: float) -> float:
        return -self.stiffness * distance


@dataclass(frozen=True)
class Charge(Force):
    r"""Coulomb's repulsion of two unit charges (charges of the paper's section
    "Simulations"): :math:`f(r) = C / r^2`.

    In each system a random group of one to all particles is charged, and
    every pair within the group interacts.

    Args:
        strength (float): Constant :math:`C` in newton square metre.
    """
    strength: float = 0.2

    def magnitude(self, distance: float) -> float:
        return self.strength / distance**2

    def sample_interactions(self, rng: np.random.Generator, num_systems: int,
                            num_particles: int) -> np.ndarray:
        return pairs_in_random_group(rng, num_systems, num_particles)


@dataclass(frozen=True)
class FiniteSpring(Force):
    r"""Spring of finite length (F-springs of the paper's section
    "Simulations"): :math:`f(r) = -k (r - l)`.

    Args:
        stiffness (float): Spring constant :math:`k` in newton per metre.
        length (float): Length at rest :math:`l` in metre.
    """
    stiffness: float = 0.1
    length: float = 1.0

    def magnitude(self, distance: float) -> float:
        return -self.stiffness * (distance - self.length)


@dataclass(frozen=True)
class SoftCharge(Force):
    r"""Coulomb's force without its pole (Plummer's softening):
    :math:`f(r) = C r / (r^2 + \epsilon^2)^{3/2}`, with the potential energy
    :math:`C / \sqrt{r^2 + \epsilon^2}`.

    Opposite charges that meet would otherwise gain any speed, which no step of
    a fixed length can follow.

    Args:
        strength (float): Constant :math:`C` in newton square metre. Positive
            repels, negative attracts.
        softening (float): Length :math:`\epsilon` in metre, below which the
            force fades. It is 15 % below Coulomb's at three times this
            distance, 1.5 % at ten times.
    """
    strength: float = 1.0
    softening: float = 0.1

    def magnitude(self, distance: float) -> float:
        square = distance**2 + self.softening**2
        return self.strength * distance / (square * np.sqrt(square))
