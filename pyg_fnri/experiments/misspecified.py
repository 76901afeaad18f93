"""Systems outside what force laws take for granted, one assumption each."""
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

import numpy as np

from pyg_fnri.simulation import (
    Force,
    Newtonian,
    SoftCharge,
    Spring,
    check_edge_types,
)
from pyg_fnri.simulation.sampling import (
    draw_positions,
    draw_velocities,
    in_streams,
)

#: Systems that numpy moves side by side: as many as the cache holds.
NUM_TOGETHER = 64


class Moment(NamedTuple):
    """Where everything is.

    Args:
        force: What the pairwise forces add up to, :obj:`[S, N, D]`.
        interacts: Who interacts with whom, :obj:`[S, L, N, N]`.
        position: :obj:`[S, N, D]`.
        velocity: :obj:`[S, N, D]`.
        trait: A number of each particle, uniform on [0, 1), :obj:`[S, N]`.
    """
    force: np.ndarray
    interacts: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    trait: np.ndarray


@dataclass(frozen=True)
class Misspecified(Newtonian):
    """Springs and charges, and something else that no law of a distance can
    be. A new one is one method, :meth:`further_force`.

    Moved by numpy, in steps of 4 ms; charges are softened for that. There are
    no walls, and forces are not clamped.

    Args:
        forces (sequence of Force): As in :class:`Newtonian`; their laws take
            arrays.
        **constants: Likewise, by name.

    Raises:
        ValueError: If walls are asked for.
    """
    forces: tuple[Force, ...] = (Spring(), SoftCharge(0.2, 0.2))
    step_size: float = 4e-3
    sample_every: int = 25
    num_steps: int = 2_500
    box_half_width: Optional[float] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.box_half_width is not None:
            raise ValueError(f'box_half_width is {self.box_half_width}, but '
                             f'{type(self).__name__} has no walls: leave it '
                             f'out')

    @abstractmethod
    def further_force(self, now: Moment) -> np.ndarray:
        """The accelerations that come on top, :obj:`[S, N, D]`."""

    def simulate(self, edge_types: np.ndarray, seed: int,
                 num_threads: Optional[int] = None,
                 progress: bool = False) -> np.ndarray:
        graphs = check_edge_types('edge_types', edge_types, self.num_edge_types)
        num_systems, _, num_particles, _ = graphs.shape
        shape = (num_systems, num_particles, self.num_dimensions)
        position = draw_positions(seed, shape, self.position_std, np.inf)
        velocity = draw_velocities(seed, shape, self.speed)
        trait = in_streams(lambda rng, size: rng.random((size, num_particles)),
                           seed, 100, num_systems)
        parts = []
        for first in range(0, num_systems, NUM_TOGETHER):
            some = slice(first, first + NUM_TOGETHER)
            parts.append(
                self._move(graphs[some], position[some], velocity[some],
                           trait[some]))
        return np.concatenate(parts)

    def _move(self, interacts: np.ndarray, position: np.ndarray,
              velocity: np.ndarray, trait: np.ndarray) -> np.ndarray:
        def acceleration() -> np.ndarray:
            force = self._pairwise(interacts, position)
            now = Moment(force, interacts, position, velocity, trait)
            return force + self.further_force(now)

        step, frames = self.step_size, []
        kick = step * acceleration()
        for number in range(1, self.num_steps):
            # Velocities are half a step behind, except in frames.
            velocity = velocity + kick
            position = position + step * velocity
            kick = step * acceleration()
            if number % self.sample_every == 0:
                now = velocity + kick / 2
                frames.append(np.concatenate([position, now], axis=-1))
        return np.stack(frames, axis=2).astype(np.float32)

    def _pairwise(self, interacts: np.ndarray,
                  position: np.ndarray) -> np.ndarray:
        offset, distance = pair_offsets(position)
        magnitude = np.zeros_like(distance)
        for layer, force in enumerate(self.forces):
            # As an array: laws are written with numpy.
            law: Any = force.magnitude
            magnitude += interacts[:, layer] * law(distance)
        return np.einsum('sij,sijd->sid', magnitude / distance, offset)


def pair_offsets(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From each particle j to each i, :obj:`[S, N, N, D]`, and how far it is,
    1 from a particle to itself."""
    offset = position[:, :, None] - position[:, None]
    square = np.einsum('sijd,sijd->sij', offset, offset)
    return offset, np.sqrt(square + np.eye(position.shape[1]))


@dataclass(frozen=True)
class Lawful(Misspecified):
    """Nothing on top: what must not be suspected."""
    def further_force(self, now: Moment) -> np.ndarray:
        return np.zeros_like(now.position)


@dataclass(frozen=True)
class Friction(Misspecified):
    """Particles are slowed down, in proportion to their velocity.

    Args:
        rate (float): In proportion to mass, 1/s.
        **constants: Those of :class:`Misspecified`.
    """
    rate: float = 0.2

    def further_force(self, now: Moment) -> np.ndarray:
        return -self.rate * now.velocity


@dataclass(frozen=True)
class Magnetic(Misspecified):
    """A magnetic field turns velocities round.

    Args:
        rate (float): How fast, in rad/s.
        **constants: Those of :class:`Misspecified`.
    """
    rate: float = 0.2

    def further_force(self, now: Moment) -> np.ndarray:
        return self.rate * turned(now.velocity)


@dataclass(frozen=True)
class Transverse(Misspecified):
    """Pairs with a spring also push each other to the left of the line
    between them, as strongly as the spring pulls at 1 m.

    Args:
        strength (float): In N.
        **constants: Those of :class:`Misspecified`.
    """
    strength: float = 0.1

    def further_force(self, now: Moment) -> np.ndarray:
        offset, distance = pair_offsets(now.position)
        spring = now.interacts[:, 0]
        return self.strength * turned(
            np.einsum('sij,sijd->sid', spring / distance, offset))


@dataclass(frozen=True)
class Trap(Misspecified):
    """A spring pulls each particle to the origin.

    Args:
        stiffness (float): In N/m.
        **constants: Those of :class:`Misspecified`.
    """
    stiffness: float = 0.05

    def further_force(self, now: Moment) -> np.ndarray:
        return -self.stiffness * now.position


@dataclass(frozen=True)
class UnequalMasses(Misspecified):
    """Masses between 0.5 and 2 kg, the same force on each.

    Args:
        **constants: Those of :class:`Misspecified`.
    """
    def further_force(self, now: Moment) -> np.ndarray:
        mass = 0.5 * 4**now.trait
        return (1 / mass[..., None] - 1) * now.force


@dataclass(frozen=True)
class OneWay(Misspecified):
    """Of two particles with a spring, the one of the greater trait feels it
    alone, as a pursuer does. Labels name both directions all the same.

    Args:
        **constants: Those of :class:`Misspecified`.
    """
    def further_force(self, now: Moment) -> np.ndarray:
        pursued = now.trait[:, :, None] < now.trait[:, None]
        return -self._pairwise(
            now.interacts * [[[[1]], [[0]]]] * pursued[:, None], now.position)


def turned(vector: np.ndarray) -> np.ndarray:
    """Vectors :obj:`[*, 2]` by a quarter turn to the left."""
    return np.stack([-vector[..., 1], vector[..., 0]], axis=-1)
