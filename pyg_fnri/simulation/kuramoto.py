"""Phase-coupled oscillators."""
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyg_fnri.simulation.sampling import in_streams
from pyg_fnri.simulation.systems import System, only_layer
from pyg_fnri.simulation.time_loop import compiled, in_threads

SYSTEMS_PER_CALL = 64  # That a thread takes at once.


@dataclass(frozen=True)
class Kuramoto(System):
    r"""NRI's phase-coupled oscillators (Kipf et al. 2018, section 5.1),

    .. math::
        \frac{d\theta_i}{dt} = \omega_i
            + \kappa \sum_j a_{ij} \sin(\theta_j - \theta_i).

    Each pair is coupled, :math:`a_{ij} = 1`, with probability 1/2; intrinsic
    frequencies are uniform on :math:`[1, 10)`, initial phases on
    :math:`[0, 2 \pi)`. The sign is that of the simulator NRI used (D. Laszuk's
    ``kuramoto.py``): coupled oscillators synchronise. NRI's text has the other
    one, which is ``coupling=-1``.

    Features are :math:`\cos\theta_i, \sin\theta_i` in place of a position, and
    :math:`d\theta_i / dt, \omega_i` in radian per second. NRI has no cosine,
    and scales each trajectory by itself.

    Args:
        coupling (float): Constant :math:`\kappa` in radian per second.
        min_frequency, max_frequency (float): Range of :math:`\omega`.
        num_frames (int): Number of frames.
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
