"""How to read a table or array, as a command line says it too."""
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional, Union

#: Of a table, the name of a column; of an array, the number of a feature.
Feature = Union[int, str]
#: Columns that are one name or time together, as chain and residue.
Columns = Union[str, Sequence[str]]


@dataclass(frozen=True)
class ReadingOptions:
    """What is where in a table or array, and how much of it may be missing.

    Args:
        system: The column of systems. (default: `'system'` if there is one,
            otherwise all rows are of one system)
        time: The column of times, numbers or dates (`2024-05-31 12:00:00.5`);
            or two, of dates and times.
        particle: The column of particles; or several that name one together,
            as `('chain', 'residue')`.
        position: The columns of positions, of arrays the numbers of features.
            (default: those of `x`, `y` and `z` that are there, or longitude and
            latitude; of arrays, the first half of 4, 6, ... features)
        velocity: The columns of velocities, one for each position; `()` for
            none, and of arrays, without `position`, for all features as they
            are. (default: `vx`, `vy`, ..., or the second half, if they are
            there, otherwise derived from the positions)
        mass: The column of masses, of arrays the number of that feature, the
            same at all times. (default: not known, all particles are alike)
        axes: Of arrays: systems S, particles N, times T and features F, as
            `'TNF'`. (default: `'SNTF'` or `'NTF'`)
        time_step: From one frame to the next, in seconds where times are dates
            or whole numbers that count frames. (default: the most common one;
            of arrays, 1)
        every: Keep one of so many frames.
        max_gap: The most missing frames in a row to interpolate over.
        min_particles: The fewest particles of a window that is kept.
        project: Whether positions are longitude and latitude in degrees, to be
            projected onto a plane, in m around their mean.
    """
    system: Optional[Columns] = None
    time: Columns = 'time'
    particle: Columns = 'particle'
    position: Optional[Sequence[Feature]] = None
    velocity: Optional[Sequence[Feature]] = None
    mass: Optional[Feature] = None
    axes: Optional[str] = None
    time_step: Optional[float] = None
    every: int = 1
    max_gap: int = 0
    min_particles: int = 2
    project: Optional[bool] = None

    def __post_init__(self) -> None:
        for name in ('system', 'time', 'particle'):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                value = value[0] if len(value) == 1 else tuple(value)
                object.__setattr__(self, name, value)
        for name in ('position', 'velocity'):
            value = getattr(self, name)
            if value is not None:
                value = (value, ) if isinstance(value, str) else tuple(value)
                object.__setattr__(self, name, value)
        for name, least in (('every', 1), ('max_gap', 0), ('min_particles', 2)):
            number = operator.index(getattr(self, name))
            object.__setattr__(self, name, number)
            if number < least:
                raise ValueError(f'{name} must be at least {least}, not '
                                 f'{number}.')
        if self.velocity and len(self.velocity) != len(self.position or ()):
            raise ValueError(f'Each position needs its velocity, but position '
                             f'is {self.position} and velocity is '
                             f'{self.velocity}.')
        if self.time_step is not None and not 0 < self.time_step < math.inf:
            raise ValueError(f'time_step must be above 0, not '
                             f'{self.time_step}.')


@dataclass(frozen=True)
class SourceOptions(ReadingOptions):
    """Which windows, candidate edges and truth there are.

    Args:
        edges: Table of candidates: sender, receiver, perhaps system; or all.
        interactions: The truth, to measure by, a row for each direction:
            sender, receiver, type and perhaps system and layer.
        window: Cut recordings into windows of so many frames.
        stride: Frames from one window to the next, a window by default.
        neighbours: Only a particle and so many closest to it may interact.
        radius: Only pairs that come so close may interact.
    """
    edges: Optional[str] = None
    interactions: Optional[str] = None
    window: Optional[int] = None
    stride: Optional[int] = None
    neighbours: Optional[int] = None
    radius: Optional[float] = None
