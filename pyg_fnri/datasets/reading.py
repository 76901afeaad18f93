"""Users' tables and arrays, read into systems of equal time steps."""
import gzip
import hashlib
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

import numpy as np
import pandas as pd
from torch_geometric.data import Data

from pyg_fnri.data import axis_order
from pyg_fnri.datasets.options import ReadingOptions
from pyg_fnri.datasets.stored import FORMULA, Name, one_line

Source = Union[str, os.PathLike, pd.DataFrame, np.ndarray, Sequence[Data]]

TABLES = ('.csv', '.csv.gz', '.tsv', '.txt', '.parquet')
ARRAYS = ('.npy', '.npz')
#: By how much of a time step times may be off, since files round them.
TOLERANCE = 0.05
#: Dates that are numbers, by how many digits these have.
DATES = {8: '%Y%m%d', 12: '%Y%m%d%H%M', 14: '%Y%m%d%H%M%S'}
#: Columns of degrees; the radius of the Earth, in m.
LONGITUDE = r'(.*[^a-z])?(longitude|long?|lng)([^a-z].*)?'
LATITUDE = r'(.*[^a-z])?(latitude|lat)([^a-z].*)?'
EARTH = 6_371_009.0


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


class Reading(ReadingOptions):
    """Reads tables and arrays; its arguments are those of
    :class:`~pyg_fnri.datasets.options.ReadingOptions`."""
    def read(self, source: Source) -> tuple[list[Recording], bool]:
        """The systems in a source, and whether to derive velocities."""
        read = self._read_table
        if are_systems(source):
            read = self._read_systems
        elif is_array(source):
            read = self._read_arrays
        recordings, derive = read(source)
        if self.every > 1:
            recordings = [
                replace(r, x=r.x[:, ::self.every], time_step=r.time_step
                        and self.every * r.time_step) for r in recordings
            ]
        if self.mass is not None:
            recordings = [self._take_mass(r) for r in recordings]
        return [self._fill_gaps(r) for r in recordings], derive

    def _read_arrays(self, source: Source) -> tuple[list[Recording], bool]:
        arrays = load(source)
        if 'x' in arrays:  # The others are left alone.
            arrays = {'x': arrays['x']}
        systems = {as_name(k): as_floats(arrays[k]) for k in arrays}
        systems = {
            name: array.transpose(axis_order(array, self.axes))
            for name, array in systems.items()
        }
        if len(systems) == 1:
            array, = systems.values()
            systems = dict(enumerate(array if array.ndim == 4 else [array]))
        return self._choose_features(systems)

    def _read_systems(self, source: Any) -> tuple[list[Recording], bool]:
        systems = {k: as_floats(of.x.numpy()) for k, of in enumerate(source)}
        chosen = self
        if self.position is None and self.velocity is None:
            chosen = replace(self, velocity=())  # All features, as they are.
        recordings, derive = chosen._choose_features(systems)
        for recording, of in zip(recordings, source):
            if 'mass' in of and self.mass is None:
                recording.mass = of.mass.double().numpy()
        return recordings, derive

    def _choose_features(
            self, systems: dict[Any,
                                np.ndarray]) -> tuple[list[Recording], bool]:
        shapes = [array.shape for array in systems.values()]
        sizes = {shape[2:] for shape in shapes}
        if len(sizes) != 1 or len(min(sizes)) != 1:
            raise ValueError(
                f'Trajectories must be one array [S, N, T, F], called x if '
                f'there are others, or one [N, T, F] for each system, but the '
                f'shapes are {shapes[:3]}.')
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
        table = load(source, _columns(system, self.particle))
        for name in (system, self.time, self.particle):
            if not isinstance(name, str):  # Of several columns, one.
                check_columns(table, name)
                table[name] = table[list(name)].astype(str).agg(
                    (' ' if name == self.time else ':').join, axis=1)
        position: Sequence[Any] = self.position or [
            name for name in ('x', 'y', 'z') if name in table
        ] or [
            *[name for name in table if _is(name, LONGITUDE)][:1],
            *[name for name in table if _is(name, LATITUDE)][:1]
        ] or ['x']
        velocity: Optional[Sequence[Any]] = self.velocity
        if velocity is None:
            velocity = [f'v{name}' for name in position]
            velocity = velocity if {*velocity} <= {*table.columns} else []
        mass = [] if self.mass is None else [self.mass]
        if self.mass is None and 'mass' in table:
            # Of tracked spots, it is their brightness.
            warnings.warn(
                'The column mass is not read as masses; if it holds '
                'them, name it by mass=mass.', stacklevel=2)
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
        cells[:, :len(position)] = self._project(cells[:, :len(position)],
                                                 position)
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

    def _project(self, cells: np.ndarray, names: Sequence[Any]) -> np.ndarray:
        """Positions in m, of longitudes and latitudes; others as they are."""
        north = [_is(name, LATITUDE) for name in names]
        east = [_is(name, LONGITUDE) for name in names]
        if self.project is None:
            known = np.array(cells[~np.isnan(cells).any(1), :2])
            looks = len(names) == 2 and len(known) > 0 and bool(
                (abs(known) <= (180, 90)).all() and
                (np.ptp(known, axis=0) < 2).all() and
                (abs(known.mean(0)) > 5 * np.ptp(known, axis=0)).all())
            if any(north) or any(east) or looks:
                raise ValueError(
                    f'The positions {[*names]} look like degrees of longitude '
                    f'and latitude, which are no lengths; project them onto a '
                    f'plane, in m, by project=True, or take them as they are '
                    f'by project=False.')
        if not self.project:
            return cells
        x, y = (east.index(True),
                north.index(True)) if any(north) and any(east) else (0, 1)
        if len(names) < 2:
            raise ValueError('Longitude and latitude are two columns; name '
                             'both by position.')
        first = cells[~np.isnan(cells[:, x])][0, x]
        longitude = (cells[:, x] - first + 180) % 360 - 180  # At most half way.
        middle = np.nanmean(cells[:, y])
        out, unit = cells.copy(), np.radians(EARTH)
        out[:, y] = unit * (cells[:, y] - middle)
        out[:, x] = unit * np.cos(
            np.radians(middle)) * (longitude - np.nanmean(longitude))
        return out

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
        x, num_filled = recording.x.copy(), 0
        for track in x:
            missing = np.isnan(track).any(-1)
            track[missing] = np.nan
            there = np.flatnonzero(~missing)
            for first, last in zip(there, there[1:]):
                if 1 < last - first <= self.max_gap + 1:
                    ends = track[[first, last]]
                    share = np.linspace(0, 1, last - first + 1)[1:-1, None]
                    track[first +
                          1:last] = ends[0] + share * np.diff(ends, axis=0)
                    num_filled += int(last - first - 1)
        return replace(recording, x=x, num_filled=num_filled)


def are_systems(source: Any) -> bool:
    """Whether this is a list of PyG's Data."""
    return isinstance(source, (list, tuple)) and all(
        isinstance(of, Data) for of in source)


def is_array(source: Any) -> bool:
    """Whether this is an array, or a file of arrays, rather than a table."""
    if isinstance(source, (pd.DataFrame, np.ndarray)) or are_systems(source):
        return isinstance(source, np.ndarray)
    name = str(os.fspath(source)).lower()
    if not name.endswith(TABLES + ARRAYS):
        raise ValueError(f'{name!r} is of an unknown kind; the name must end '
                         f'in one of {", ".join(TABLES + ARRAYS)}.')
    return name.endswith(ARRAYS)


def load(source: Any, names: Sequence[str] = ()) -> Any:
    """A table, the columns `names` as text, or arrays, never unpickled."""
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    if isinstance(source, np.ndarray):
        return {'': source}
    path = str(os.fspath(source))
    try:
        if path.lower().endswith('.parquet'):
            return pd.read_parquet(path)
        if path.lower().endswith(TABLES):
            return _read_text(path, names)
        loaded: Any = np.load(path, allow_pickle=False)
        return {'': loaded} if isinstance(loaded, np.ndarray) else {**loaded}
    except (FileNotFoundError, ImportError):
        raise
    except Exception as error:  # Parsers fail in many ways.
        raise ValueError(f'Cannot read {path!r}; mend it, or write it anew '
                         f'({one_line(error)}).') from error


def _read_text(path: str, names: Sequence[str]) -> pd.DataFrame:
    """Cells between commas, semicolons or tabs; decimal commas beside the
    latter; and rows of DeepLabCut. Names are numbers, if they look like it."""
    opened = gzip.open if path.lower().endswith('.gz') else open
    with opened(path, 'rt', encoding='utf-8', errors='replace') as file:
        lines = [next(file, '') for _ in range(5)]
    sep = max('\t;,', key=lines[0].count)
    if lines[0].startswith('scorer,'):
        table = _read_deeplabcut(path,
                                 [line.partition(',')[0]
                                  for line in lines].index('coords'))
    else:
        cells = ' '.join(lines[1:]).replace(sep, ' ').split()
        decimal = ',' if sep != ',' and any(
            re.fullmatch(r'-?\d+,\d+', cell) for cell in cells) else '.'
        table = pd.read_csv(path, sep=sep, decimal=decimal, low_memory=False,
                            dtype=dict.fromkeys(names, str))
    for name in {*names} & {*table}:
        texts = table[name].dropna().unique()
        plain = [
            t[1:] if t[0] == "'" and FORMULA.match(t) else t for t in texts
        ]
        table[name] = table[name].map(dict(zip(texts, map(as_name, plain))))
    return table


def _read_deeplabcut(path: str, last: int) -> pd.DataFrame:
    """A row for each frame and body part; of several animals, for each animal,
    in the middle of its parts."""
    table = pd.read_csv(path, header=[*range(last + 1)], index_col=0)
    table.columns = table.columns.droplevel(0)
    levels = [name for name in table.columns.names if name != 'coords']
    rows = table.stack(levels, future_stack=True).reset_index()
    rows = rows.rename(columns={rows.columns[0]: 'time', levels[0]: 'particle'})
    return rows.groupby(['time', 'particle'], sort=False,
                        as_index=False)[['x', 'y']].mean()


def _is(name: Any, pattern: str) -> bool:
    return re.fullmatch(pattern, str(name).lower()) is not None


def _columns(*names: Any) -> list[str]:
    return [
        column for name in names
        for column in ([name] if isinstance(name, str) else name)
    ]


def content_digest(source: Any) -> str:
    if isinstance(source, pd.DataFrame):
        text = repr([*source.columns, *source.dtypes])
        # The index is no part of the content: rows count from 0.
        content = pd.util.hash_pandas_object(source, index=False).to_numpy()
    elif isinstance(source, np.ndarray):
        content = as_floats(source)
        text = repr(content.shape)
    elif are_systems(source):
        tensors = [value for of in source for _, value in sorted(of)]
        text = repr([(list(of), of.x.shape) for of in source])
        content = np.concatenate(
            [as_floats(of.numpy()).ravel() for of in tensors])
    else:
        with open(source, 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest()
    return hashlib.sha256(text.encode() + content.tobytes()).hexdigest()


def as_floats(array: np.ndarray) -> np.ndarray:
    return np.ma.filled(array.astype(np.float64, casting='same_kind'), np.nan)


def number_names(column: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Numbers the names in a column: whole numbers first, then words. Text
    alone stays as it is; among numbers, it may be one, as pandas reads them."""
    code, unique = pd.factorize(column)
    names = [*unique]
    if not all(isinstance(name, str) for name in names):
        names = [as_name(name) for name in names]

    def place(name: Name) -> tuple[bool, Name, Name]:
        return isinstance(as_name(name), str), as_name(name), name

    order = sorted({*names}, key=place)
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
        try:
            times = pd.to_datetime(times.astype(str), format='ISO8601',
                                   utc=True)
        except ValueError as error:
            raise ValueError(
                f'Column {times.name!r} must hold numbers, or '
                f'dates such as 2024-05-31 12:00:00.5 ({error}).') from error
    if times.dtype.kind == 'M':
        times = times - times.min()
    if times.dtype.kind == 'm':
        times = times.dt.total_seconds()
    clock = numbers(times)
    texts = pd.Series(clock).drop_duplicates().map('{:.0f}'.format)
    form = DATES.get(max(map(len, texts), default=0))
    if form and pd.to_datetime(texts, format=form,
                               errors='coerce').notna().all():
        raise ValueError(f'Times such as {texts[0]} look like dates, and '
                         f'months are no number; write them as 2024-05-31 '
                         f'12:00:00, or count from 0.')
    return clock


def _frames(rows: pd.DataFrame,
            time_step: Optional[float]) -> tuple[pd.Series, float]:
    tracks = rows.sort_values(['system', 'particle', 'clock'])
    step = tracks.groupby(['system', 'particle']).clock.diff()
    # One that occurs, not the mean of two that do.
    usual = float(step[step > 0].quantile(0.5, interpolation='lower'))
    if np.isnan(usual):
        raise ValueError('No particle has rows at two times; name the '
                         'columns by system, time and particle.')
    unit = time_step or usual
    if usual == 1 and bool((rows.clock % 1 == 0).all()):
        unit = 1.0  # The numbers of frames.
    rows = rows.sort_values(['system', 'clock'])
    # From each time to the next, so that rounding does not add up.
    elapsed = rows.groupby('system').clock.diff().fillna(0) / unit
    count = elapsed.round()
    # Nor so many that whole numbers have gaps.
    off = ~((elapsed - count).abs() <= TOLERANCE) | (count > 2**53)
    if off.any():
        row = off.idxmax()
        raise ValueError(
            f'Time steps must be equal, but that to row {row} is '
            f'{elapsed[row] * unit:.6g}, and {unit:.6g} elsewhere; '
            f'resample the trajectories, or name the step by time_step=STEP.')
    frame = count.groupby(rows.system).cumsum().astype(np.int64)
    return frame, time_step or usual
