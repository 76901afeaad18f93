"""One system as it was recorded, and how its trajectories are made whole."""
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

import numpy as np
import pandas as pd

from pyg_fnri.datasets.names import Name


@dataclass(frozen=True, eq=False)
class Recording:
    """One system, at equal time steps.

    Args:
        name: Which system it is.
        particles: The name of each particle.
        x: Features, `[N, T, F]` float64, NaN where there is none.
        time_step: From one frame to the next, in the unit of the times.
        start: When the first frame was taken; a number or a date.
        rows: Which row of the table each frame of each particle is from,
            `[N, T]`, -1 where there is none; :obj:`None` without a table.
        num_filled: How many frames of its particles have been filled in.
        mass: Masses of its particles, `[N]` float64; :obj:`None` where they
            are not known.
    """
    name: Name
    particles: Sequence[Name]
    x: np.ndarray
    time_step: float
    start: Any = 0
    rows: Optional[np.ndarray] = None
    num_filled: int = 0
    mass: Optional[np.ndarray] = None

    def where(self, particle: int, frame: int) -> str:
        """Where in the user's data a frame is, for messages."""
        text = (f'system {self.name!r}, particle '
                f'{self.particles[particle]!r}, '
                f'{describe_time(self.start, frame, self.time_step)}')
        if self.rows is not None:
            row = self.rows[particle, frame]
            text += ', which has no row' if row < 0 else f', row {row}'
        return text


def describe_time(start: Any, frame: int, time_step: float) -> str:
    """The instant of a frame, as the user's table has it."""
    elapsed = frame * time_step
    if isinstance(start, (pd.Timestamp, pd.Timedelta)):
        return f'time {start + pd.to_timedelta(elapsed, unit="s")}'
    return f'time {start + elapsed:.10g}'


def fill_gaps(recording: Recording, max_gap: int) -> Recording:
    """Fills short gaps within trajectories by linear interpolation.

    Nothing is made up before a particle's first frame or after its last one.

    Args:
        recording (Recording): The system.
        max_gap (int): The most frames in a row to fill; 0 to fill none.

    Returns:
        The system without gaps.

    Raises:
        ValueError: If a gap is longer, or is at an end of the recording.
    """
    missing = np.isnan(recording.x).any(-1)  # [N, T]
    if not missing.any():
        return recording
    for particle, first, length in _runs(missing):
        where = recording.where(particle, first)
        if length == 1:
            gap = f'A frame of a particle is missing: {where}'
        else:
            gap = (f'{length} frames of a particle in a row are missing, the '
                   f'first one: {where}')
        if first == 0 or first + length == missing.shape[1]:
            raise ValueError(
                f'{gap}. Nothing can be put at the beginning or the end; cut '
                f'the recording to the times that all of its particles have, '
                f'or leave the particle out.')
        if length > max_gap:
            raise ValueError(
                f'{gap}. Mend the data, or interpolate between the frames '
                f'before and after by max_gap={length}, now {max_gap}.')
    x = recording.x.copy()
    frame = np.arange(x.shape[1])
    for particle in missing.any(1).nonzero()[0]:
        for feature in x[particle].T:  # A view.
            known = ~np.isnan(feature)
            feature[~known] = np.interp(frame[~known], frame[known],
                                        feature[known])
    return replace(recording, x=x, num_filled=int(missing.sum()))


def report_filled(recordings: Sequence[Recording]) -> str:
    """What was filled in, in a sentence; empty if nothing was."""
    filled = [r.num_filled for r in recordings]
    if not any(filled):
        return ''
    total = sum(r.x.shape[0] * r.x.shape[1] for r in recordings)
    systems = sum(number > 0 for number in filled)
    return (f'Filled {sum(filled)} of {total} frames of particles '
            f'({sum(filled) / total:.2%}), in {systems} of {len(recordings)} '
            f'systems, by linear interpolation.')


def derive_velocity(position: np.ndarray, time_step: float) -> np.ndarray:
    """Velocities from positions, both `[N, T, D]`, to second order in the
    time step: `(x[t + 1] - x[t - 1]) / (2 dt)`, and at the two ends
    `(-3 x[0] + 4 x[1] - x[2]) / (2 dt)` and its mirror image.

    Raises:
        ValueError: If there are fewer than 3 frames.
    """
    if position.shape[1] < 3:
        raise ValueError(f'Velocities take at least 3 frames to derive from '
                         f'positions, but there are {position.shape[1]}.')
    return np.gradient(position, time_step, axis=1, edge_order=2)


def _runs(missing: np.ndarray) -> list[tuple[int, int, int]]:
    """Particle, first frame and length of each run of missing frames."""
    padded = np.pad(missing.astype(np.int8), ((0, 0), (1, 1)))
    change = np.diff(padded, axis=1)
    particle, first = (change == 1).nonzero()
    _, end = (change == -1).nonzero()
    return list(zip(particle.tolist(), first.tolist(), (end - first).tolist()))
