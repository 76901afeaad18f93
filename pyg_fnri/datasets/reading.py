"""Users' tables and arrays, read into systems of equal time steps."""
import hashlib
import operator
import os
import re
from collections.abc import Callable, Sequence
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
    """One system, at equal time steps.

    Args:
        name: Which system it is.
        particles: The name of each particle.
        x: Features, `[N, T, F]` float64; NaN where a particle is not there.
        mass: Masses of the particles, `[N]`, where they are known.
        time_step: From one frame to the next, where it is known.
        start: When the first frame was taken; a number or a date.
        num_filled: How many frames of particles were interpolated.
    """
    name: Name
    particles: list[Name]
    x: np.ndarray
    mass: Optional[np.ndarray] = None
    time_step: Optional[float] = None
    start: Any = 0.
    num_filled: int = 0

    def where(self, particle: int, frame: int) -> str:
        """A frame of a particle, for messages."""
        elapsed: Any = frame * (self.time_step or 1.)
        if isinstance(self.start, (pd.Timestamp, pd.Timedelta)):
            time = str(self.start + pd.to_timedelta(elapsed, unit='s'))
        else:
            time = f'{self.start + elapsed:.10g}'
        return (f'system {self.name!r}, particle {self.particles[particle]!r}, '
                f'time {time}')


@dataclass(frozen=True)
class Reading:
    """What is where in a table or array, and how much of it may be missing.

    Args:
        system: The column of systems. (default: `'system'` if there is one,
            otherwise all rows are of one system)
        time: The column of times, numbers or dates; in text, dates such as
            `2024-05-31 12:00:00.5`.
        particle: The column of particles.
        position: The columns of positions, or of other features; of arrays,
            the numbers of the features. (default: those of `x`, `y` and `z`
            that are there; of arrays, the first half of 4, 6, ... features)
        velocity: The columns of velocities, one for each position; `()` for
            none at all, and of arrays, without `position`, for all features as
            they are. (default: `vx`, `vy`, ..., after the positions, if they
            are there; of arrays, without `position`, the second half; derived
            from the positions otherwise)
        mass: The column of the particles' masses, each of them the same at all
            times; of arrays, the number of that feature. They are no feature
            of `x`, but what :func:`~pyg_fnri.nn.known_masses` gives to forces.
            (default: not known, all particles are alike)
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
        """Reads a table or array, or a file that holds one.

        Returns:
            The systems, with positions and, where there are any, velocities;
            and whether velocities are to be derived.
        """
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
        shapes = [array.shape for array in systems.values()]
        if (not shapes or any(len(s) != 3 or 0 in s for s in shapes)
                or len({shape[2]
                        for shape in shapes}) > 1):
            raise ValueError(
                f'Trajectories must be one array [num_systems, num_particles, '
                f'num_steps, num_features], called x if there are others, or '
                f'one [num_particles, num_steps, num_features] for each, but '
                f'the shapes of systems are {shapes[:3]}.')

        every = range(shapes[0][2])
        # Numbers may be text, as from a command line.
        mass = [] if self.mass is None else [as_name(self.mass)]
        named = [*(self.position or ()), *(self.velocity or ())]
        features: list[Any] = [as_name(feature) for feature in named]
        if not {*features, *mass} <= {*every}:
            raise ValueError(f'The features of the array are {[*every]}, but '
                             f'position, velocity and mass name '
                             f'{[*features, *mass]}.')
        if self.position is None:
            features = [k for k in every if k not in mass]
            if self.velocity is None and (len(features) == 2
                                          or len(features) % 2):
                raise ValueError(
                    f'Whether the features {features} of the array are '
                    f'positions alone or also velocities is not clear; say it, '
                    f'as by position={features}, from which velocities are '
                    f'derived, or with velocity=NUMBERS too.')
        derive = self.position is not None and self.velocity is None
        time_step = self.time_step or (1. if derive else None)
        return [
            Recording(name, [*range(len(x))], x[:, :, [*features, *mass]],
                      time_step=time_step) for name, x in systems.items()
        ], derive

    def _read_table(self, source: Source) -> tuple[list[Recording], bool]:
        system = self.system or 'system'
        table = load(source, (system, self.particle))
        there = {*table.columns}
        position: Sequence[Any] = self.position or [
            name for name in ('x', 'y', 'z') if name in there
        ]
        velocity: Optional[Sequence[Any]] = self.velocity
        if velocity is None:
            velocity = [f'v{name}' for name in position]
            velocity = velocity if {*velocity} <= there else []
        mass = [] if self.mass is None else [self.mass]
        features = [*position, *velocity, *mass]
        for argument, names in [
            ('time', [self.time]), ('particle', [self.particle]),
            ('system', [self.system] if self.system else []),
            ('position', position or ['x']), ('velocity', velocity),
            ('mass', mass)
        ]:  # yapf: disable
            check_columns(table, argument, names)
        if table.empty:
            raise ValueError('The table has no rows.')

        rows = pd.DataFrame(index=table.index)
        rows['particle'], particles = number_names(table[self.particle])
        rows['system'], systems = 0, [0]
        if system in there:
            rows['system'], systems = number_names(table[system])
        times = _times(table[self.time])
        rows['clock'] = _clock(times)
        cells = np.stack([numbers(table[name]) for name in features], axis=-1)

        def where(row: Any) -> str:
            return (f'row {row} (system {systems[rows.system[row]]!r}, '
                    f'particle {particles[rows.particle[row]]!r}, time '
                    f'{times[row]})')

        time_step = self.time_step or _usual_step(rows)
        rows['frame'] = _frames(rows, time_step, where)
        again = rows.duplicated(['system', 'particle', 'frame'])
        if again.any():
            raise ValueError(
                f'Two rows are of one particle and time, the second one is '
                f'{where(again.idxmax())}; remove one of them, or say which '
                f'column holds the systems by system=NAME.')

        recordings = []
        for number, of_system in rows.groupby('system'):
            known, particle = np.unique(of_system.particle, return_inverse=True)
            shape = (len(known), of_system.frame.max() + 1)
            if shape[0] * shape[1] > 100 * len(of_system) + 10_000:
                raise ValueError(
                    f'System {systems[number]!r} has too few rows for '
                    f'{shape[0]} particles at {shape[1]} times that are '
                    f'{time_step:.6g} apart; mend the times, or name their '
                    f'unit by time_step=STEP.')
            x = np.full((*shape, len(features)), np.nan)
            x[particle, of_system.frame] = cells[of_system.index]
            recordings.append(
                Recording(systems[number], [particles[k] for k in known], x,
                          time_step=time_step,
                          start=times[of_system.clock.idxmin()]))
        return recordings, self.velocity is None and not velocity

    def _take_mass(self, recording: Recording) -> Recording:
        """The last feature of each particle is its mass."""
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
        """Fills short gaps by linear interpolation, but nothing before the
        first frame of a particle and after its last one."""
        if not np.isnan(recording.x).any():
            return recording
        x, num_filled = recording.x.copy(), 0
        frames = np.arange(x.shape[1])
        for particle, track in enumerate(x):  # A view, [T, F].
            missing = np.isnan(track).any(-1)
            there = np.flatnonzero(~missing)
            gap = np.diff(there) - 1
            if gap.max(initial=0) > self.max_gap:
                first = recording.where(particle, there[gap.argmax()] + 1)
                raise ValueError(
                    f'{gap.max()} frames in a row of a particle are missing, '
                    f'the first one of {first}; mend the data, interpolate '
                    f'over the gap by max_gap={gap.max()}, now {self.max_gap}, '
                    f'or give the particle another name after it.')
            for feature in track.T:
                known = ~np.isnan(feature)
                if known.any():
                    feature[~known] = np.interp(frames[~known], frames[known],
                                                feature[known])
            outside = (frames < there.min(
                initial=len(frames))) | (frames > there.max(initial=-1))
            track[outside] = np.nan
            num_filled += int((missing & ~outside).sum())
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
    """A table, its rows numbered from 0; or arrays by name. Nothing here
    executes what a file says: arrays are never unpickled.

    Args:
        source: A table or array, or a file that holds one.
        names: The columns of a table that hold names, which are text: `01` is
            not `1`.
    """
    if isinstance(source, pd.DataFrame):
        return _native(source.reset_index(drop=True))
    if isinstance(source, np.ndarray):
        return {'': source}
    path = str(os.fspath(source))
    try:
        if path.lower().endswith('.parquet'):
            return pd.read_parquet(path)
        if path.lower().endswith(TABLES):
            return pd.read_csv(path, dtype={name: str
                                            for name in names},
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
        table = _native(source)
        text = repr([*table.columns, *table.dtypes])
        # The index is no part of the content: rows count from 0.
        content = pd.util.hash_pandas_object(table, index=False).to_numpy()
    elif isinstance(source, np.ndarray):
        content = as_floats(source)
        text = repr(content.shape)
    else:
        with open(source, 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest()
    return hashlib.sha256(text.encode() + content.tobytes()).hexdigest()


def as_floats(array: np.ndarray) -> np.ndarray:
    """Numbers of any kind as float64, NaN where they are masked."""
    if array.dtype.kind not in 'biuf':
        raise TypeError(f'An array must hold real numbers, but its dtype is '
                        f'{array.dtype}.')
    return np.ma.filled(array.astype(np.float64), np.nan)


def number_names(column: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Numbers the names in a column, in the order of the names: whole numbers
    first, then words."""
    _check_present(column)
    code, unique = pd.factorize(column)
    names = [as_name(value) for value in unique]
    order = sorted({*names}, key=lambda name: (isinstance(name, str), name))
    rank = {name: number for number, name in enumerate(order)}
    return np.array([rank[name] for name in names], dtype=np.int64)[code], order


def as_name(value: Any) -> Name:
    """A name as plain Python has it, however it is written: 1, 1.0 and '1' are
    a whole number; '01' and 'a' are words."""
    text = str(value)
    if re.fullmatch(r'(0|-?[1-9]\d*)(\.0+)?', text):
        return int(text.partition('.')[0])
    return text


def check_columns(table: pd.DataFrame, argument: str,
                  names: Sequence[Any]) -> None:
    """Makes sure that a table has each column once that an argument names."""
    for name in names:
        if list(table.columns).count(name) != 1:
            raise ValueError(f'The table must have one column {name!r}, but '
                             f'its columns are {[*table.columns]}; say which '
                             f'to read by {argument}=NAME, and separate '
                             f'columns by commas.')


def numbers(cells: pd.Series) -> np.ndarray:
    """A column of finite numbers, NaN where a cell is empty."""
    plain = cells
    if not pd.api.types.is_numeric_dtype(cells):  # Dates are no numbers.
        plain = pd.to_numeric(cells.astype(object), errors='coerce')
    out = plain.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = (np.isnan(out) & ~cells.isna().to_numpy()) | np.isinf(out)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f'Column {cells.name!r} must hold finite numbers, but '
                         f'row {row} has {str(cells[row])!r}.')
    return out


def _check_present(column: pd.Series) -> None:
    if column.isna().any():
        raise ValueError(f'Row {column.isna().idxmax()} has no '
                         f'{column.name!r}; every row needs one, and in a '
                         f'file, words such as NA and None stand for none.')


def _native(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose numbers are in this machine's order of bytes."""
    return table.astype({
        name: dtype.newbyteorder('=')
        for name, dtype in table.dtypes.items()
        if isinstance(dtype, np.dtype) and not dtype.isnative
    })


def _times(column: pd.Series) -> pd.Series:
    """Times as numbers or dates, of which text is made."""
    _check_present(column)
    if column.dtype.kind in 'biufmM':
        return column
    text = column.astype(str)
    if pd.to_numeric(text, errors='coerce').notna().any():
        return pd.Series(numbers(column))
    dates = pd.to_datetime(text, errors='coerce', format='ISO8601', utc=True)
    if dates.isna().any():
        row = dates.isna().idxmax()
        raise ValueError(f'Column {column.name!r} must hold numbers, or dates '
                         f'such as 2024-05-31 12:00:00.5, but row {row} has '
                         f'{text[row]!r}.')
    return dates.dt.tz_localize(None)


def _clock(times: pd.Series) -> np.ndarray:
    """Times as numbers; of dates, seconds from the first."""
    if times.dtype.kind == 'M':
        times = times - times.min()
    if times.dtype.kind == 'm':
        return times.dt.total_seconds().to_numpy(dtype=np.float64)
    return numbers(times)


def _usual_step(rows: pd.DataFrame) -> float:
    """The most common time from one row of a particle to the next."""
    tracks = rows.sort_values(['system', 'particle', 'clock'])
    step = tracks.groupby(['system', 'particle']).clock.diff()
    step = step[step > 0]
    if step.empty:
        raise ValueError('No particle has rows at two times, so there are no '
                         'trajectories; name the columns by system=NAME, '
                         'time=NAME and particle=NAME.')
    # One that occurs, not the mean of two that do.
    return float(step.quantile(0.5, interpolation='lower'))


def _frames(rows: pd.DataFrame, time_step: float,
            where: Callable[[Any], str]) -> pd.Series:
    """The frame of its system that each row belongs to, from 0 on."""
    rows = rows.sort_values(['system', 'clock'])
    # From each time to the next, so that rounding does not add up.
    elapsed = rows.groupby('system').clock.diff().fillna(0) / time_step
    count = elapsed.round()
    off = (elapsed - count).abs() > TOLERANCE
    if off.any():
        row = off.idxmax()
        raise ValueError(
            f'Time steps must be equal, but to {where(row)} it is '
            f'{elapsed[row] * time_step:.6g}, and {time_step:.6g} elsewhere; '
            f'resample the trajectories, or name the step by time_step=STEP.')
    return count.groupby(rows.system).cumsum().astype(np.int64)
