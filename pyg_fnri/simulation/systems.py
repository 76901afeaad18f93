"""Kinds of systems: their layers, their random graphs, their motion."""
import math
import re
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, List, Mapping, Optional, Tuple, cast

import numpy as np

from pyg_fnri.simulation.dynamics import (NO_DISTANCE, check_forces, compiled,
                                          in_threads, simulate)
from pyg_fnri.simulation.forces import (Charge, Force, SoftCharge, Spring,
                                        draw_interactions, draw_positions,
                                        draw_velocities, in_streams)

SYSTEMS_PER_CALL = 64  # Oscillators that a thread takes at once.


class System(ABC):
    """A kind of system of interacting particles. A new one is a frozen
    dataclass of its constants with its ``layers`` and :meth:`simulate`:

    .. code-block:: python

        @dataclass(frozen=True)
        class Walkers(System):
            pull: float = 0.1
            layers = {'friendship': 2}

            def simulate(self, edge_types, seed, progress=False):
                friends = edge_types[:, 0]  # [S, N, N], zeros and ones
                ...  # float32 [S, N, 99, 4]: positions, then velocities"""
    @property
    @abstractmethod
    def layers(self) -> Mapping[str, int]:
        """Edge types (0 is no interaction) of each layer, by its name."""

    @property
    def num_edge_types(self) -> List[int]:
        return list(self.layers.values())

    @property
    def frame_interval(self) -> float:
        """Seconds from one frame to the next."""
        return 0.1

    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        """Draws edge types, int64 ``[S, L, N, N]``: row the receiver, column
        the sender, zero on the diagonal; the first of many graphs must be those
        that fewer would be. By default all types are equally likely."""
        receiver, sender = np.tril_indices(num_particles, -1)
        graphs = np.zeros(
            (num_systems, len(self.layers), num_particles, num_particles),
            np.int64)
        for layer, num_types in enumerate(self.num_edge_types):
            types = in_streams(
                lambda rng, size: rng.integers(0, num_types,
                                               (size, len(receiver))), seed,
                2 + layer, num_systems)
            graphs[:, layer, receiver, sender] = types
            graphs[:, layer, sender, receiver] = types
        return graphs

    @abstractmethod
    def simulate(self, edge_types: np.ndarray, seed: int,
                 progress: bool = False) -> np.ndarray:
        """Simulates one system on each graph ``[S, L, N, N]``: float32
        ``[S, N, T, F]``, position then velocity, or what takes their places.
        Models scale each half as one quantity."""


@dataclass(frozen=True)
class Newtonian(System):
    """Particles of 1 kg under any mix of forces in a box (section
    "Simulations" of the paper). Each force is a layer of two types. Features
    are positions in metre, then velocities in metre per second, half a step
    behind. Constants are those of :func:`~pyg_fnri.simulation.simulate`."""
    forces: Tuple[Force, ...]
    _: KW_ONLY
    num_dimensions: int = 2
    num_steps: int = 10_000
    step_size: float = 1e-3
    sample_every: int = 100
    box_half_width: Optional[float] = 5.0
    position_std: float = 0.5
    speed: float = 0.5
    max_kick: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, 'forces', tuple(self.forces))
        check_forces(self.forces)

    @property
    def layers(self) -> Mapping[str, int]:
        """Named after the forces: ``{'spring': 2, 'charge': 2}``."""
        names = [
            re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_',
                   type(force).__name__).lower() for force in self.forces
        ]
        layers = {}
        for layer, name in enumerate(names):
            number = names[:layer].count(name) + 1
            layers[f'{name}_{number}' if names.count(name) > 1 else name] = 2
        return layers

    @property
    def frame_interval(self) -> float:
        return self.sample_every * self.step_size

    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        return draw_interactions(seed, self.forces, num_systems,
                                 num_particles).astype(np.int64)

    def simulate(self, edge_types: np.ndarray, seed: int,
                 progress: bool = False) -> np.ndarray:
        return self._move(edge_types, seed, progress)

    def _move(self, interactions: np.ndarray, seed: int, progress: bool,
              **initial: Any) -> np.ndarray:
        constants = {f.name: getattr(self, f.name) for f in fields(Newtonian)}
        run = simulate(num_systems=len(interactions),
                       num_particles=interactions.shape[-1], seed=seed,
                       interactions=interactions, progress=progress,
                       **constants, **initial)
        return np.concatenate([run.position, run.velocity], axis=-1)


@dataclass(frozen=True)
class NRISprings(Newtonian):
    """NRI's springs (Kipf et al. 2018, appendix B; constants of their code):
    each pair is connected with probability 1/2, by a spring of 0.1 N/m."""
    forces: Tuple[Force, ...] = (Spring(0.1), )

    draw_edge_types = System.draw_edge_types


@dataclass(frozen=True)
class SignedCharges(Newtonian):
    """NRI's charged particles (Kipf et al. 2018, section 5.1 and appendix B;
    constants of their code), made stable: each has the charge +1 or -1, with
    probability 1/2. Types are 0 (none, never drawn), 1 (repulsion) and 2
    (attraction), which ``forces`` are.

    NRI's clamped forces change the energy at each close encounter. Here, they
    are softened (:class:`~pyg_fnri.simulation.SoftCharge`) and not clamped,
    steps are half as long, and velocities are those of the frame."""
    forces: Tuple[Force, ...] = (SoftCharge(), SoftCharge(-1.0))
    num_steps: int = 20_000
    step_size: float = 5e-4
    sample_every: int = 200
    position_std: float = 1.0
    max_kick: float = math.inf

    layers = {'charge': 3}

    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        sign = in_streams(
            lambda rng, size: rng.integers(0, 2, (size, num_particles)), seed,
            2, num_systems)
        types: np.ndarray = 1 + (sign[:, :, None] != sign[:, None, :])
        types[:, np.arange(num_particles), np.arange(num_particles)] = 0
        return types[:, None]

    def simulate(self, edge_types: np.ndarray, seed: int,
                 progress: bool = False) -> np.ndarray:
        types = only_layer(edge_types, 3)
        graphs = np.stack([types == 1, types == 2], axis=1)
        shape = (len(types), types.shape[-1], self.num_dimensions)
        position = draw_positions(seed, shape, self.position_std,
                                  self.box_half_width or math.inf)
        velocity = draw_velocities(seed, shape, self.speed)
        # The time loop takes and gives velocities half a step behind.
        half = self.step_size / 2
        velocity -= half * self._force(graphs, position)
        x = self._move(graphs, seed, progress, initial_position=position,
                       initial_velocity=velocity)
        position, velocity = np.split(x, 2, axis=-1)
        for frame in range(x.shape[2]):
            velocity[:, :, frame] += half * self._force(
                graphs, position[:, :, frame].astype(np.float64))
        return x

    def _force(self, graphs: np.ndarray, position: np.ndarray) -> np.ndarray:
        difference = position[:, :, None] - position[:, None]
        distance = np.sqrt((difference**2).sum(-1))
        magnitude = sum(
            graph * force.magnitude(distance)
            for graph, force in zip(graphs.swapaxes(0, 1), self.forces))
        # Zero at zero distance, where there is no direction.
        slope = magnitude / np.maximum(distance, NO_DISTANCE)
        return cast(np.ndarray, np.einsum('sij,sijd->sid', slope, difference))


@dataclass(frozen=True)
class NRICharged(SignedCharges):
    """NRI's charged particles as their code has them: each component of the
    force on a particle is clamped at 100 N, which changes the energy at each
    close encounter, and velocities are half a step behind."""
    forces: Tuple[Force, ...] = (Charge(1.0), Charge(-1.0))
    num_steps: int = 10_000
    step_size: float = 1e-3
    sample_every: int = 100
    max_kick: float = 0.1

    def simulate(self, edge_types: np.ndarray, seed: int,
                 progress: bool = False) -> np.ndarray:
        types = only_layer(edge_types, 3)
        graphs = np.stack([types == 1, types == 2], axis=1)
        return self._move(graphs, seed, progress)


@dataclass(frozen=True)
class LinearNetwork(System):
    r"""A directed network of first order and of one feature,

    .. math::
        \dot{x}_i = \sum_j w \, a_{ij} x_j - x_i,

    as NetSims of the structural-inference benchmark (Wang et al. 2024). Initial
    values are normal.

    Args:
        strength (float): Constant :math:`w` in 1/s.
        num_inputs (float): How many particles act on one in the mean.
    """
    strength: float = 0.4
    num_inputs: float = 2.0
    num_frames: int = 99

    layers = {'influence': 2}

    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        share = self.num_inputs / (num_particles - 1)
        acts = in_streams(
            lambda rng, size: rng.random(
                (size, num_particles, num_particles)) < share, seed, 2,
            num_systems)
        return (acts & ~np.eye(num_particles, dtype=bool))[:, None].astype(
            np.int64)

    def simulate(self, edge_types: np.ndarray, seed: int,
                 progress: bool = False) -> np.ndarray:
        acts = only_layer(edge_types, 2)
        num_systems, num_particles, _ = acts.shape
        state = in_streams(
            lambda rng, size: rng.standard_normal((size, num_particles)), seed,
            0, num_systems)
        rate = self.strength * acts - np.eye(num_particles)
        # Ten steps of the Runge-Kutta method of fourth order, as one matrix.
        eye, step = np.eye(num_particles), rate * self.frame_interval / 10
        step = eye + step @ (eye +
                             step / 2 @ (eye + step / 3 @ (eye + step / 4)))
        step, frames = np.linalg.matrix_power(step, 10), []
        for _ in range(self.num_frames):
            frames.append(state)
            state = np.einsum('sij,sj->si', step, state)
        return np.stack(frames, axis=2)[..., None].astype(np.float32)


def only_layer(edge_types: np.ndarray, num_types: int) -> np.ndarray:
    types, = np.swapaxes(edge_types, 0, 1)
    if not np.isin(types, range(num_types)).all() or types.diagonal(
            axis1=1, axis2=2).any():
        raise ValueError(f'edge_types must be from 0 to {num_types - 1}, and 0 '
                         f'on the diagonal')
    return cast(np.ndarray, types)


@dataclass(frozen=True)
class Kuramoto(System):
    r"""NRI's phase-coupled oscillators (Kipf et al. 2018, section 5.1),

    .. math::
        \frac{d\theta_i}{dt} = \omega_i
            + \kappa \sum_j a_{ij} \sin(\theta_j - \theta_i).

    Each pair is coupled, :math:`a_{ij} = 1`, with probability 1/2; initial
    phases are uniform. The sign is that of the simulator NRI used (D. Laszuk's
    ``kuramoto.py``); NRI's text has the other one, ``coupling=-1``.

    Features are :math:`\cos\theta_i, \sin\theta_i` in place of a position, and
    :math:`d\theta_i / dt, \omega_i` in radian per second.

    Args:
        coupling (float): Constant :math:`\kappa` in radian per second.
        min_frequency, max_frequency (float): Range of :math:`\omega`, uniform.
        step_size (float): Second of a Runge-Kutta step of fourth order.
        sample_every (int): Number of steps from one frame to the next.
    """
    coupling: float = 1.0
    min_frequency: float = 1.0
    max_frequency: float = 10.0
    num_frames: int = 99
    step_size: float = 0.01
    sample_every: int = 10

    layers = {'coupling': 2}

    @property
    def frame_interval(self) -> float:
        return self.sample_every * self.step_size

    def simulate(self, edge_types: np.ndarray, seed: int,
                 progress: bool = False) -> np.ndarray:
        coupled = only_layer(edge_types, 2)
        num_systems, num_particles, _ = coupled.shape
        phase, frequency = (in_streams(
            lambda rng, size: rng.random((size, num_particles)), seed, quantity,
            num_systems) for quantity in (0, 1))
        phase *= 2 * np.pi
        frequency *= self.max_frequency - self.min_frequency
        frequency += self.min_frequency
        x = np.empty((num_systems, num_particles, self.num_frames, 4),
                     np.float32)

        def run(first: int) -> None:
            systems = slice(first, first + SYSTEMS_PER_CALL)
            _oscillate(phase[systems], frequency[systems],
                       self.coupling * coupled[systems], self.step_size,
                       self.sample_every, x[systems])

        in_threads(run, range(0, num_systems, SYSTEMS_PER_CALL), progress)
        return x


@compiled
def _set_rate(phase: Any, shift: float, slope: Any, frequency: Any,
              coupling: Any, cos: Any, sin: Any, rate: Any) -> None:
    num_particles = len(phase)
    for i in range(num_particles):
        shifted = phase[i] + shift * slope[i]
        cos[i] = np.cos(shifted)
        sin[i] = np.sin(shifted)
    for i in range(num_particles):
        # The sine of a difference, spread out: more pairs than particles.
        pull = 0.0
        for j in range(num_particles):
            pull += coupling[i, j] * (sin[j] * cos[i] - cos[j] * sin[i])
        rate[i] = frequency[i] + pull


@compiled
def _oscillate(
        start: Any,  # [S, N]
        frequency: Any,  # [S, N]
        coupling: Any,  # [S, N, N], row the receiver
        step: float,
        sample_every: int,
        x: Any  # [S, N, T, 4], to be filled
) -> None:
    num_systems, num_particles, num_frames, _ = x.shape
    phase, cos, sin, k1, k2, k3, k4 = np.empty((7, num_particles))
    for s in range(num_systems):
        constants = (frequency[s], coupling[s], cos, sin)
        phase[:] = start[s]
        _set_rate(phase, 0.0, phase, *constants, k1)
        for frame in range(num_frames):
            for _ in range(sample_every):
                _set_rate(phase, step / 2, k1, *constants, k2)
                _set_rate(phase, step / 2, k2, *constants, k3)
                _set_rate(phase, step, k3, *constants, k4)
                for i in range(num_particles):
                    slope = k1[i] + 2 * (k2[i] + k3[i]) + k4[i]
                    phase[i] += step / 6 * slope
                _set_rate(phase, 0.0, phase, *constants, k1)
            x[s, :, frame, 0] = cos
            x[s, :, frame, 1] = sin
            x[s, :, frame, 2] = k1
            x[s, :, frame, 3] = frequency[s]
