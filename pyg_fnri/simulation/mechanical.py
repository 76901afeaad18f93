"""Particles of 1 kg in a box that obey Newton's equations: the constants that
all such systems share."""

from dataclasses import dataclass
from typing import Optional, Sequence

import numpy as np

from pyg_fnri.simulation.dynamics import simulate
from pyg_fnri.simulation.forces import Force
from pyg_fnri.simulation.system import System


@dataclass(frozen=True, kw_only=True)
class Mechanical(System):
    """Particles that start at random and move under forces, with the constants
    of :func:`~pyg_fnri.simulation.simulate`.

    Frames are at the multiples of ``frame_interval``, neither at the start nor
    at the end. Features are positions in metre, then velocities in metre per
    second.

    Args:
        num_dimensions (int): Number of dimensions :math:`D`: 1, 2 or 3.
        num_steps (int): Number of steps, a multiple of ``sample_every``.
        step_size (float): Length of a step in second.
        sample_every (int): Number of steps from one frame to the next.
        box_half_width (float, optional): Distance of each wall from the origin
            in metre. :obj:`None` means no walls.
        position_std (float): Standard deviation of the initial coordinates in
            metre.
        speed (float): Initial speed of each particle in metre per second.
        max_kick (float): The most that a component of a velocity can change in
            one step, in metre per second.
    """
    num_dimensions: int = 2
    num_steps: int = 10_000
    step_size: float = 1e-3
    sample_every: int = 100
    box_half_width: Optional[float] = 5.0
    position_std: float = 0.5
    speed: float = 0.5
    max_kick: float = 0.1

    @property
    def frame_interval(self) -> float:
        return self.sample_every * self.step_size

    def move(self, forces: Sequence[Force], interactions: np.ndarray, seed: int,
             num_threads: Optional[int], progress: bool,
             **initial: np.ndarray) -> np.ndarray:
        """Moves particles under forces.

        Args:
            forces (sequence of Force): The forces.
            interactions (numpy.ndarray): Who interacts with whom by each of
                them, ``[S, num_forces, N, N]``.
            seed (int): Seed of the initial states.
            num_threads (int, optional): Number of threads.
            progress (bool): Whether to show a progress bar.
            **initial (numpy.ndarray): Initial positions or velocities, where
                they are not to be drawn.

        Returns:
            Positions and velocities, float32, ``[S, N, T, 2 D]``.
        """
        num_systems, _, num_particles, _ = interactions.shape
        trajectories = simulate(
            forces, num_systems, num_particles, seed=seed,
            num_dimensions=self.num_dimensions, num_steps=self.num_steps,
            step_size=self.step_size, sample_every=self.sample_every,
            box_half_width=self.box_half_width, position_std=self.position_std,
            speed=self.speed, max_kick=self.max_kick, interactions=interactions,
            num_threads=num_threads, progress=progress, **initial)
        return np.concatenate([trajectories.position, trajectories.velocity],
                              axis=-1)
