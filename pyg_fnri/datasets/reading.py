"""Users' tables and arrays, read into systems of equal time steps."""
import hashlib
import operator
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

import numpy as np
import pandas as pd

from pyg_fnri.datasets.stored import Name

Source = Union[str, os.PathLike, pd.DataFrame, np.ndarray]
#: Of a table, the name of a column; of an array, the number of a feature.
Feature = Union[int, str]

TABLES = ('.csv', '.csv.gz', '.parquet')
ARRAYS = ('.npy', '.npz')
#: By how much of a time step times may be off, since files round them.
TOLERANCE = 0.05


@dataclass
class Recording:
    """One system, at equal time steps: its particles' features `x`,
    `[N, T, F]` float64, NaN where one is not there, and masses `[N]`."""
    name: Name
    particles: list[Name]
    x: np.ndarray
    mass: Optional[np.ndarray] = None
    time_step: Optional[float] = None
    num_filled: int = 0  # Frames of particles that were interpolated.

    def where(self, particle: int, frame: int) -> str:
        return (f'frame {frame} of particle {self.particles[particle]!r} in '
                f'system {self.name!r}')


@dataclass(frozen=True)
class Reading:
    """What is where in a table or array, and how much of it may be missing.

    Args:
        system: The column of systems. (default: `'system'` if there is one,
            otherwise all rows are of one system)
        time: The column of times, numbers or dates (`2024-05-31 12:00:00.5`).
        particle: The column of particles.
        position: The columns of positions, of arrays the numbers of features.
            (default: those of `x`, `y` and `z` that are there; of arrays, the
            first half of 4, 6, ... features)
        velocity: The columns of velocities, one for each position; `()` for
            none, and of arrays, without `position`, for all features as they
            are. (default: `vx`, `vy`, ..., or the second half, if they are
            there, otherwise derived from the positions)
        mass: The column of masses, of arrays the number of that feature, the
            same at all times. (default: not known, all particles are alike)
        time_step: From one frame to the next, in seconds where times are dates.
            (default: the most common one; of arrays, 1)
        max_gap: The most missing frames in a row to interpolate over.
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
            value = getattr(self, name)
            if value is not None:
                value = (value, ) if isinstance(value, str) else tuple(value)
                object.__setattr__(self, name, value)
        object.__setattr__(self, 'max_gap', operator.index(self.max_gap))
        if self.velocity and len(self.velocity) != len(self.position or ()):
            raise ValueError(f'Each position needs its velocity, but position '
                             f'is {self.position} and velocity is '
                             f'{self.velocity}.')
        if self.time_step is not None and not 0 < self.time_step < np.inf:
            raise ValueError(f'time_step must be above 0, not '
                             f'{self.time_step}.')

    def read(self, source: Source) -> tuple[list[Recording], bool]:
        """The systems in a source, and whether to derive velocities."""
        read = self._read_arrays if is_array(source) else self._read_table
        recordings, derive = read(source)
        if self.mass is not None:
            recordings = [self._take_mass(r) for r in recordings]
        return [self._fill_gaps(r) for r in recordings], derive

    def _read_arrays(self, source: Source) -> tuple[list[Recording], bool]:
        arrays = load(source)
        if 'x' in arrays:  # The others are left alone.
            arrays = {'x': arrays['x']}
        systems = {as_name(k): as_floats(arrays[k]) for k in arrays}
        if len(systems) == 1:
            array, = systems.values()
            systems = dict(enumerate(array if array.ndim == 4 else [array]))
        sizes = {array.shape[2:] for array in systems.values()}
        if len(sizes) != 1 or len(min(sizes)) != 1:
            raise ValueError(
                f'Trajectories must be one array [S, N, T, F], called x if '
                f'there are others, or one [N, T, F] for each system, but the '
                f'shapes are {[array.shape for array in arrays.values()][:3]}.')

        every = range(*min(sizes))
        # Numbers may be text, as from a command line.
        mass = [] if self.mass is None else [as_name(self.mass)]
        named = [*(self.position or ()), *(self.velocity or ())]
        features: list[Any] = [as_name(name) for name in named]
        if not {*features, *mass} <= {*every}:
            raise ValueError(f'The features of the array are {[*every]}, but '
                             f'position, velocity and mass name '
                             f'{[*features, *mass]}.')
        if self.position is None:
            features = [k for k in every if k not in mass]
            if self.velocity is None and (len(features) == 2
                                          or len(features) % 2):
                raise ValueError(
                    f'Which of the features {features} of the array are '
                    f'velocities is not clear; name position=NUMBERS, from '
                    f'which they are derived, and perhaps velocity=NUMBERS.')
        derive = self.position is not None and self.velocity is None
        time_step = self.time_step or (1. if derive else None)
        return [
            Recording(name, [*range(len(x))], x[:, :, [*features, *mass]],
                      time_step=time_step) for name, x in systems.items()
        ], derive

    def _read_table(self, source: Source) -> tuple[list[Recording], bool]:
        system = self.system or 'system'
        table = load(source, (system, self.particle))
        position: Sequence[Any] = self.position or [
            name for name in ('x', 'y', 'z') if name in table
        ] or ['x']
        velocity: Optional[Sequence[Any]] = self.velocity
        if velocity is None:
            velocity = [f'v{name}' for name in position]
            velocity = velocity if {*velocity} <= {*table.columns} else []
        mass = [] if self.mass is None else [self.mass]
        features = [*position, *velocity, *mass]
        filled = [self.time, self.particle]
        if self.system is not None or system in table:
            filled = [system, *filled]
        check_columns(table, filled, features)

        rows = pd.DataFrame(index=table.index)
        rows['particle'], particles = number_names(table[self.particle])
        rows['system'], systems = 0, [0]
        if system in table:
            rows['system'], systems = number_names(table[system])
        rows['clock'] = _clock(table[self.time])
        rows['frame'], time_step = _frames(rows, self.time_step)
        again = rows.duplicated(['system', 'particle', 'frame'])
        if again.any():
            raise ValueError(
                f'Row {again.idxmax()} is of the same particle and time as a '
                f'row before; remove one of them, or say which column holds '
                f'the systems by system=NAME.')
        cells = np.stack([numbers(table[name]) for name in features], axis=-1)
        recordings = []
        for number, of_system in rows.groupby('system'):
            known, particle = np.unique(of_system.particle, return_inverse=True)
            num_frames = of_system.frame.max() + 1
            if len(known) * num_frames > 100 * len(of_system) + 10_000:
                raise ValueError(  # Memory would not do.
                    f'System {systems[number]!r} has too few rows for '
                    f'{num_frames} times that are {time_step:.6g} apart; mend '
                    f'the times, or name their unit by time_step=STEP.')
            x = np.full((len(known), num_frames, len(features)), np.nan)
            x[particle, of_system.frame] = cells[of_system.index]
            recordings.append(
                Recording(systems[number], [particles[k] for k in known], x,
                          time_step=time_step))
        return recordings, self.velocity is None and not velocity

    def _take_mass(self, recording: Recording) -> Recording:
        values = recording.x[..., -1]
        low, high = np.fmin.reduce(values, 1), np.fmax.reduce(values, 1)
        if (low < high).any():
            particle = int((low < high).argmax())
            raise ValueError(
                f'The feature {self.mass!r} must be the mass of each particle, '
                f'the same at all times, but from '
                f'{recording.where(particle, 0)} on, it is {low[particle]} to '
                f'{high[particle]}.')
        return replace(recording, x=recording.x[..., :-1], mass=low)

    def _fill_gaps(self, recording: Recording) -> Recording:
        """Fills short gaps between a particle's first and last frame."""
        if not np.isnan(recording.x).any():
            return recording
        x, num_filled = np.full_like(recording.x, np.nan), 0
        for particle, track in enumerate(recording.x):
            missing = np.isnan(track).any(-1)
            there = np.flatnonzero(~missing)
            if not there.size:
                continue
            gap = np.diff(there) - 1
            if gap.max(initial=0) > self.max_gap:
                first = recording.where(particle, there[gap.argmax()] + 1)
                raise ValueError(
                    f'{gap.max()} frames in a row are missing, from {first} '
                    f'on; mend the data, interpolate by max_gap={gap.max()}, '
                    f'now {self.max_gap}, or rename the particle after them.')
            inside = slice(there[0], there[-1] + 1)
            x[particle, inside] = pd.DataFrame(track[inside]).interpolate()
            num_filled += int(missing[inside].sum())
        return replace(recording, x=x, num_filled=num_filled)


def is_array(source: Source) -> bool:
    """Whether this is an array, or a file of arrays, rather than a table."""
    if isinstance(source, (pd.DataFrame, np.ndarray)):
        return isinstance(source, np.ndarray)
    name = str(os.fspath(source)).lower()
    if not name.endswith(TABLES + ARRAYS):
        raise ValueError(f'{name!r} is of an unknown kind; the name must end '
                         f'in one of {", ".join(TABLES + ARRAYS)}.')
    return name.endswith(ARRAYS)


def load(source: Source, names: Sequence[str] = ()) -> Any:
    """A table, its rows numbered from 0, or arrays by name, never unpickled.
    The columns `names` of a table are text: `01` is not `1`."""
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    if isinstance(source, np.ndarray):
        return {'': source}
    path = str(os.fspath(source))
    try:
        if path.lower().endswith('.parquet'):
            return pd.read_parquet(path)
        if path.lower().endswith(TABLES):
            return pd.read_csv(path, dtype=dict.fromkeys(names, str),
                               low_memory=False)
        loaded: Any = np.load(path, allow_pickle=False)
        return {'': loaded} if isinstance(loaded, np.ndarray) else {**loaded}
    except (FileNotFoundError, ImportError):
        raise
    except Exception as error:  # Parsers fail in many ways.
        raise ValueError(f'Cannot read {path!r} ({error}).') from error


def content_digest(source: Source) -> str:
    """A digest that changes whenever the content of a source does."""
    if isinstance(source, pd.DataFrame):
        text = repr([*source.columns, *source.dtypes])
        # The index is no part of the content: rows count from 0.
        content = pd.util.hash_pandas_object(source, index=False).to_numpy()
    elif isinstance(source, np.ndarray):
        content = as_floats(source)
        text = repr(content.shape)
    else:
        with open(source, 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest()
    return hashlib.sha256(text.encode() + content.tobytes()).hexdigest()


def as_floats(array: np.ndarray) -> np.ndarray:
    return np.ma.filled(array.astype(np.float64, casting='same_kind'), np.nan)


def number_names(column: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Numbers the names in a column: whole numbers first, then words."""
    code, unique = pd.factorize(column)
    names = [as_name(value) for value in unique]
    order = sorted({*names}, key=lambda name: (isinstance(name, str), name))
    rank = {name: number for number, name in enumerate(order)}
    return np.array([rank[name] for name in names], dtype=np.int64)[code], order


def as_name(value: Any) -> Name:
    """1, 1.0 and '1' are a whole number; '01' and 'a' are words."""
    text = str(value)
    if re.fullmatch(r'(0|-?[1-9]\d*)(\.0+)?', text):
        return int(text.partition('.')[0])
    return text


def check_columns(table: pd.DataFrame, filled: Sequence[Any],
                  others: Sequence[Any] = ()) -> None:
    """Makes sure that a table has each column once, and those filled full."""
    for name in (*filled, *others):
        if list(table.columns).count(name) != 1:
            raise ValueError(f'The table must have one column {name!r}, but '
                             f'its columns are {[*table.columns]}; name those '
                             f'to read, as by time=NAME.')
    for name in filled:
        empty = table[name].isna()
        if empty.any():
            raise ValueError(f'Row {empty.idxmax()} has no {name!r}; in a '
                             f'file, NA and None stand for none.')


def numbers(cells: pd.Series) -> np.ndarray:
    try:
        if not pd.api.types.is_numeric_dtype(cells):  # Dates are no numbers.
            cells = pd.to_numeric(cells.astype(object))
    except (TypeError, ValueError) as error:
        raise ValueError(f'Column {cells.name!r} must hold numbers: '
                         f'{error}.') from error
    return cells.to_numpy(dtype=np.float64, na_value=np.nan)


def _clock(times: pd.Series) -> np.ndarray:
    """Times as numbers; of dates, seconds from the first."""
    if times.dtype.kind not in 'biufmM':
        if pd.to_numeric(times.astype(str), errors='coerce').notna().any():
            return numbers(times)
        times = pd.to_datetime(times.astype(str), format='ISO8601', utc=True)
    if times.dtype.kind == 'M':
        times = times - times.min()
    if times.dtype.kind == 'm':
        times = times.dt.total_seconds()
    return numbers(times)


def _frames(rows: pd.DataFrame,
            time_step: Optional[float]) -> tuple[pd.Series, float]:
    """The frame of each row, and the time step."""
    if time_step is None:
        tracks = rows.sort_values(['system', 'particle', 'clock'])
        step = tracks.groupby(['system', 'particle']).clock.diff()
        # One that occurs, not the mean of two that do.
        time_step = float(step[step > 0].quantile(0.5, interpolation='lower'))
        if np.isnan(time_step):
            raise ValueError('No particle has rows at two times; name the '
                             'columns by system, time and particle.')
    rows = rows.sort_values(['system', 'clock'])
    # From each time to the next, so that rounding does not add up.
    elapsed = rows.groupby('system').clock.diff().fillna(0) / time_step
    count = elapsed.round()
    off = (elapsed - count).abs() > TOLERANCE
    if off.any():
        row = off.idxmax()
        raise ValueError(
            f'Time steps must be equal, but that to row {row} is '
            f'{elapsed[row] * time_step:.6g}, and {time_step:.6g} elsewhere; '
            f'resample the trajectories, or name the step by time_step=STEP.')
    return count.groupby(rows.system).cumsum().astype(np.int64), time_step
