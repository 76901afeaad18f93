"""How a user's table or array is read into recordings."""
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

import numpy as np

from .array_systems import array_recordings
from .long_table import Columns, read_recordings
from .recording import Recording, fill_gaps
from .sources import Source, is_array, read_arrays, read_table
from .whole_numbers import check_whole

#: A feature: of a table, the name of its column; of an array, its number.
Feature = Union[int, str]


@dataclass(frozen=True)
class Reading:
    """What is where in a table or array, and how much of it may be missing.

    Args:
        system: The column of systems; by default `'system'` if there is one,
            otherwise all rows are of one system.
        time: The column of times.
        particle: The column of particles.
        position: The features that are positions; by default the columns
            `x`, `y` and `z` that are there, and of arrays the first half of
            4, 6, ... features.
        velocity: The features that are velocities, or `()` for none; by
            default the columns called as positions with a `v` before, or, if
            no position is named, the other half of an array's features;
            derived if there are none. With `()` and no position, an array's
            features are taken as they are, whatever they mean.
        time_step: From one frame to the next; by default the most common
            one, and 1 for arrays.
        max_gap: The most missing frames in a row to interpolate over.

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If a number is out of range or features do not fit.
    """
    system: Optional[str] = None
    time: str = 'time'
    particle: str = 'particle'
    position: Optional[Sequence[Feature]] = None
    velocity: Optional[Sequence[Feature]] = None
    time_step: Optional[float] = None
    max_gap: int = 0

    def __post_init__(self) -> None:
        for name in ('position', 'velocity'):
            features = getattr(self, name)
            if isinstance(features, str):
                raise TypeError(f'{name} must be a sequence of columns such '
                                f'as [{features!r}], not {features!r}.')
            if features is not None:
                object.__setattr__(self, name, tuple(features))
        if self.position == ():
            raise ValueError('position is empty; name at least one feature.')
        if self.velocity:
            if self.position is None:
                raise ValueError('velocity names features; name those of the '
                                 'position too.')
            if len(self.velocity) != len(self.position):
                raise ValueError(
                    f'Each position needs its velocity, but position is '
                    f'{list(self.position)} and velocity is '
                    f'{list(self.velocity)}.')
        check_whole('max_gap', self.max_gap, 0)
        if self.time_step is not None and not 0 < self.time_step < np.inf:
            raise ValueError(f'time_step must be above 0, not '
                             f'{self.time_step}.')

    def read(self, source: Source) -> tuple[list[Recording], bool]:
        """Reads a table or array, or a file that holds one.

        Returns:
            The systems, with positions and, where there are any, velocities;
            and whether velocities are to be derived.

        Raises:
            FileNotFoundError: If there is no such file.
            ImportError: If a Parquet file is to be read without pyarrow.
            TypeError: If an array does not hold floating point numbers.
            ValueError: If the data are wrong.
        """
        read = self._read_arrays if is_array(source) else self._read_table
        recordings, derive = read(source)
        return [fill_gaps(r, self.max_gap) for r in recordings], derive

    def _read_arrays(self, source: Source) -> tuple[list[Recording], bool]:
        recordings = array_recordings(read_arrays(source), self.time_step or 1.)
        num_features = recordings[0].x.shape[2]
        if self.position is None:
            if self.velocity is None:
                _check_halves(num_features)
            return recordings, False
        features: list[Any] = [*self.position, *(self.velocity or ())]
        if not set(features) <= set(range(num_features)):
            raise ValueError(
                f'The features of an array are numbered 0 to '
                f'{num_features - 1}, but position and velocity name '
                f'{features}.')
        return [replace(r, x=r.x[:, :, features])
                for r in recordings], self.velocity is None

    def _read_table(self, source: Source) -> tuple[list[Recording], bool]:
        table = read_table(source)
        there = set(table.columns)
        system = self.system
        if system is None and 'system' in there:
            system = 'system'
        position: Sequence[Any] = self.position or [
            name for name in ('x', 'y', 'z') if name in there
        ]
        if not position:
            raise ValueError(f'The table has none of the columns x, y and z, '
                             f'but {[*table.columns]}; name those of the '
                             f'positions by position=NAMES, or separate '
                             f'columns by commas if they are not.')
        velocity: Sequence[Any] = self.velocity or ()
        if self.velocity is None:
            velocity = [f'v{name}' for name in position]
            found = [name for name in velocity if name in there]
            if 0 < len(found) < len(velocity):
                raise ValueError(
                    f'The table has the columns {found} but not all of '
                    f'{velocity}; name the velocities by velocity=NAMES, or '
                    f'remove these columns to have them derived from the '
                    f'positions.')
            velocity = found
        columns = Columns(system, self.time, self.particle,
                          [*position, *velocity])
        recordings = read_recordings(table, columns, self.time_step,
                                     self.max_gap)
        return recordings, self.velocity is None and not velocity


def _check_halves(num_features: int) -> None:
    """Makes sure that an array's features can be taken for positions, then as
    many velocities, and for nothing else.

    Raises:
        ValueError: If they cannot.
    """
    if num_features == 2:
        raise ValueError(
            'The array has 2 features, which may be positions in the plane, '
            'or position and velocity on a line. Say which: position=[0, 1], '
            'and velocities are derived; or position=[0] and velocity=[1].')
    if num_features % 2:
        raise ValueError(
            f'The array has an odd number of features, {num_features}, which '
            f'cannot be positions, then as many velocities. Say which are '
            f'positions, e.g. position={[*range(num_features)]}; velocities '
            f'are derived unless velocity=NUMBERS tells which they are.')
