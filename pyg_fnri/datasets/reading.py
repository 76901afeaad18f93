"""Users' tables and arrays, read into systems of equal time steps."""
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Optional, cast

import numpy as np
import pandas as pd

from pyg_fnri.data import axis_order
from pyg_fnri.datasets.options import ReadingOptions
from pyg_fnri.datasets.tables import (Recording, Source, are_systems, as_floats,
                                      as_name, check_columns, is_array, load,
                                      number_names, numbers)

#: By how much of a time step times may be off, since files round them.
TOLERANCE = 0.05
#: Dates that are numbers, by how many digits these have.
DATES = {8: '%Y%m%d', 12: '%Y%m%d%H%M', 14: '%Y%m%d%H%M%S'}
#: Columns of degrees; the radius of the Earth, in m.
LONGITUDE = r'(.*[^a-z])?(longitude|long?|lng)([^a-z].*)?'
LATITUDE = r'(.*[^a-z])?(latitude|lat)([^a-z].*)?'
EARTH = 6_371_009.0


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
        for of in recordings if self.every > 1 else []:
            of.x = of.x[:, ::self.every]
            of.time_step = of.time_step and self.every * of.time_step
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
        return cast(np.ndarray, out)

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


def _is(name: Any, pattern: str) -> bool:
    return re.fullmatch(pattern, str(name).lower()) is not None


def _columns(*names: Any) -> list[str]:
    return [
        column for name in names
        for column in ([name] if isinstance(name, str) else name)
    ]


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
