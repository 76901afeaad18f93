"""How a user's table or array is read into recordings."""
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

import numpy as np

from pyg_fnri.datasets.array_systems import array_recordings
from pyg_fnri.datasets.columns import Columns
from pyg_fnri.datasets.long_table import read_recordings
from pyg_fnri.datasets.masses import take_masses
from pyg_fnri.datasets.recording import Recording, fill_gaps
from pyg_fnri.datasets.sources import Source, is_array, read_arrays, read_table
from pyg_fnri.datasets.whole_numbers import whole

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
        mass: The feature that is the mass of each particle, the same at all
            times; by default masses are not known.
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
    mass: Optional[Feature] = None
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
        if self.mass is not None and (isinstance(self.mass, bool)
                                      or not isinstance(self.mass, (int, str))):
            raise TypeError(f'mass must name one feature, not {self.mass!r}.')
        whole('max_gap', self.max_gap, 0)
        if self.time_step is not None and not 0 < self.time_step < np.inf:
            raise ValueError(f'time_step must be above 0, not '
                             f'{self.time_step}.')

    def read(self, source: Source) -> tuple[list[Recording], bool]:
        """Reads a table or array, or a file that holds one.

        Returns:
            The systems, with positions and, where there are any, velocities,
            and masses, if they are named; and whether velocities are to be
            derived.

        Raises:
            FileNotFoundError: If there is no such file.
            ImportError: If a Parquet file is to be read without pyarrow.
            TypeError: If an array does not hold floating point numbers.
            ValueError: If the data are wrong.
        """
        read = self._read_arrays if is_array(source) else self._read_table
        recordings, derive = read(source)
        if self.mass is not None:
            recordings = [take_masses(r, self.mass) for r in recordings]
        return [fill_gaps(r, self.max_gap) for r in recordings], derive

    def _read_arrays(self, source: Source) -> tuple[list[Recording], bool]:
        recordings = array_recordings(read_arrays(source), self.time_step or 1.)
        num_features = recordings[0].x.shape[2]
        mass: list[Any] = [] if self.mass is None else [self.mass]
        features: list[Any] = [*(self.position or ()), *(self.velocity or ())]
        if not {*features, *mass} <= set(range(num_features)):
            raise ValueError(
                f'The features of an array are numbered 0 to '
                f'{num_features - 1}, but position, velocity and mass name '
                f'{[*features, *mass]}.')
        if self.position is None:
            features = [k for k in range(num_features) if k not in mass]
            if self.velocity is None:
                _check_halves(features)
        self._check_mass(features)
        derive = self.position is not None and self.velocity is None
        return [
            replace(r, x=r.x[:, :, [*features, *mass]]) for r in recordings
        ], derive

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
        self._check_mass([*position, *velocity])
        mass: Any = self.mass
        columns = Columns(system, self.time, self.particle,
                          [*position, *velocity], mass)
        recordings = read_recordings(table, columns, self.time_step,
                                     self.max_gap)
        return recordings, self.velocity is None and not velocity

    def _check_mass(self, features: Sequence[Any]) -> None:
        """Makes sure that the mass is none of the other features.

        Raises:
            ValueError: If it is.
        """
        if self.mass in features:
            raise ValueError(f'mass names {self.mass!r}, which is a position '
                             f'or a velocity already; name the feature that '
                             f'holds masses, or leave mass out.')


def _check_halves(features: Sequence[int]) -> None:
    """Makes sure that an array's features, but for masses, can be taken for
    positions, then as many velocities, and for nothing else.

    Raises:
        ValueError: If they cannot.
    """
    if len(features) == 2:
        raise ValueError(
            f'Of the array, 2 features, {features}, may be positions in the '
            f'plane, or position and velocity on a line. Say which: '
            f'position={features}, and velocities are derived; or '
            f'position={features[:1]} and velocity={features[1:]}.')
    if len(features) % 2:
        raise ValueError(
            f'Of the array, an odd number of features, {len(features)}, cannot '
            f'be positions, then as many velocities. Say which are positions, '
            f'e.g. position={features}; velocities are derived unless '
            f'velocity=NUMBERS tells which they are.')
