"""Masses of particles, which users' data have at each instant."""
from dataclasses import replace
from typing import Union

import numpy as np

from pyg_fnri.datasets.recording import Recording


def take_masses(recording: Recording, name: Union[int, str]) -> Recording:
    """Takes the last feature of a recording for the masses of its particles.

    Frames of which nothing is there need not tell.

    Args:
        recording (Recording): A system, its masses the last feature.
        name (int or str): What this feature is called, for messages.

    Returns:
        The system with masses, and without this feature.

    Raises:
        ValueError: If a particle has no mass at some time, one that is not
            above 0, or several. The message names system, particle, time and
            row.
    """
    values = recording.x[..., -1]  # [N, T]
    there = ~np.isnan(recording.x).all(-1)
    with np.errstate(over='ignore'):  # Found below.
        stored = values.astype(np.float32)
    wrong = there & ~(np.isfinite(stored) & (stored > 0))
    if wrong.any():
        particle, frame = np.argwhere(wrong)[0]
        value = values[particle, frame]
        found = 'none' if np.isnan(value) else value
        raise ValueError(
            f'The feature {name!r} must be the mass of each particle at all '
            f'times, a finite float32 number above 0, but it is {found} of '
            f'{recording.where(particle, frame)}. Leave the particle out, or '
            f'the masses.')
    # Of a particle without frames it stays NaN; filling of gaps refuses it.
    first = there.argmax(axis=1)
    mass = values[np.arange(len(values)), first]
    other = there & (values != mass[:, None])
    if other.any():
        particle, frame = np.argwhere(other)[0]
        raise ValueError(
            f'The feature {name!r} must be the mass of each particle, the '
            f'same at all times, but it is {mass[particle]} of '
            f'{recording.where(particle, first[particle])}, and '
            f'{values[particle, frame]} of {recording.where(particle, frame)}.')
    return replace(recording, x=recording.x[..., :-1], mass=mass)
