"""Long tables: one row per system, particle and time; read and checked."""
from typing import Any, Optional

import numpy as np
import pandas as pd

from pyg_fnri.datasets.columns import Columns
from pyg_fnri.datasets.names import Name, number_names, plain
from pyg_fnri.datasets.recording import Recording, describe_time

#: By how much of a time step the times may be off, since files round them.
TOLERANCE = 0.05


def read_recordings(
    table: pd.DataFrame,
    columns: Columns,
    time_step: Optional[float] = None,
    max_gap: int = 0,
) -> list[Recording]:
    """Sorts the rows of a long table into systems of equal time steps.

    Systems and particles are sorted by name, numbers before words. Rows may be
    in any order. Times may be off by up to 5 % of a step. Empty cells, and
    missing rows of up to `max_gap` in a row, become NaN. Masses become the last
    feature, :func:`~pyg_fnri.datasets.masses.take_masses`.

    Args:
        table (DataFrame): The table, its rows numbered from 0.
        columns (Columns): What its columns hold.
        time_step (float, optional): The time from one frame to the next.
            (default: the most common one, by the median)
        max_gap (int): How many rows of a particle may be missing in a row.

    Raises:
        ValueError: If a column is missing, a cell holds no number, a name or
            time is missing, a row is there twice, time steps are unequal, or
            rows are missing. The message names system, particle, time and row.
    """
    return _Reader(table, columns).read(time_step, max_gap)


class _Reader:
    """A long table by numbers: of systems, particles and frames."""
    def __init__(self, table: pd.DataFrame, columns: Columns) -> None:
        columns.check(table)
        self.table, self.columns = _read_dates(table, columns.time), columns
        self.particle, self.particle_names = number_names(
            table[columns.particle])
        if columns.system is None:
            self.system = np.zeros(len(table), dtype=np.int64)
            self.system_names: list[Name] = [0]
        else:
            self.system, self.system_names = number_names(table[columns.system])
        self.clock = self._clock()
        self.frame = np.zeros(len(table), dtype=np.int64)

    def read(self, time_step: Optional[float], max_gap: int) -> list[Recording]:
        features = np.stack(
            [self._numbers(name) for name in self.columns.numbers], axis=-1)
        if time_step is None:
            time_step = self._time_step()
        self.frame = self._frames(time_step, max_gap)
        order = np.lexsort((self.frame, self.particle, self.system))
        self._check_rows(order, time_step, max_gap)

        recordings = []
        starts = np.searchsorted(self.system[order],
                                 np.arange(len(self.system_names) + 1))
        for number, name in enumerate(self.system_names):
            rows = order[starts[number]:starts[number + 1]]
            particles, row_particle = np.unique(self.particle[rows],
                                                return_inverse=True)
            if len(particles) < 2:
                only = self.particle_names[particles[0]]
                raise ValueError(
                    f'System {name!r} has one particle, {only!r}; a graph of '
                    f'interactions needs at least 2. Leave the system out.')
            frames = self.frame[rows]
            shape = (len(particles), frames.max() + 1)
            x = np.full((*shape, features.shape[1]), np.nan)
            x[row_particle, frames] = features[rows]
            row_of = np.full(shape, -1, dtype=np.int64)
            row_of[row_particle, frames] = rows
            recordings.append(
                Recording(name, [self.particle_names[p] for p in particles], x,
                          time_step, self._start(rows), row_of))
        return recordings

    def where(self, row: int) -> str:
        """Which row this is, for messages."""
        return (f'row {row} (system '
                f'{self.system_names[self.system[row]]!r}, particle '
                f'{self.particle_names[self.particle[row]]!r}, time '
                f'{self.table[self.columns.time].iloc[row]})')

    def _clock(self) -> np.ndarray:
        """The times, as numbers; of dates, seconds from the first."""
        times = self.table[self.columns.time]
        if pd.api.types.is_datetime64_any_dtype(times):
            times = times - times.min()
        if pd.api.types.is_timedelta64_dtype(times):
            return times.dt.total_seconds().to_numpy(dtype=np.float64)
        return self._numbers(self.columns.time)

    def _start(self, rows: np.ndarray) -> Any:
        first = rows[self.clock[rows].argmin()]
        start = self.table[self.columns.time].iloc[first]
        if isinstance(start, (pd.Timestamp, pd.Timedelta)):
            return start
        return float(self.clock[first])

    def _numbers(self, name: str) -> np.ndarray:
        """A column of numbers, NaN where a cell is empty."""
        cells = self.table[name]
        if pd.api.types.is_datetime64_any_dtype(cells):
            raise ValueError(f'Column {name!r} must hold finite numbers, but '
                             f'it holds dates.')
        numbers = pd.to_numeric(cells, errors='coerce')
        out = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = (np.isnan(out) & ~cells.isna().to_numpy()) | np.isinf(out)
        if wrong.any():
            row = int(wrong.argmax())
            # The time may be what is wrong.
            where = f'row {row}' if name == self.columns.time else self.where(
                row)
            raise ValueError(f'Column {name!r} must hold finite numbers, but '
                             f'{where} has {plain(cells.iloc[row])!r}.')
        return out

    def _time_step(self) -> float:
        order = np.lexsort((self.clock, self.particle, self.system))
        step = np.diff(self.clock[order])
        step = step[(np.diff(self.particle[order]) == 0)
                    & (np.diff(self.system[order]) == 0) & (step > 0)]
        if step.size == 0:
            raise ValueError('No particle has rows at two times, so there are '
                             'no trajectories; check which columns hold '
                             'system, particle and time.')
        # One that occurs, not the mean of two that do.
        return float(np.quantile(step, 0.5, method='lower'))

    def _frames(self, time_step: float, max_gap: int) -> np.ndarray:
        """Which frame of its system each row belongs to, from 0 on."""
        order = np.lexsort((self.clock, self.system))
        elapsed = np.diff(self.clock[order], prepend=0) / time_step
        is_first = np.diff(self.system[order], prepend=-1) != 0
        elapsed[is_first] = 0
        # From each time to the next, so that rounding does not add up.
        count = np.rint(elapsed)
        wrong = np.abs(elapsed - count) > TOLERANCE
        if wrong.any():
            k = int(wrong.argmax())
            raise ValueError(
                f'Time steps must be equal, but from {self.where(order[k-1])} '
                f'to {self.where(order[k])} it is '
                f'{elapsed[k] * time_step:.6g}, and {time_step:.6g} '
                f'elsewhere. Resample the trajectories to equal steps.')
        steps = count[count > 0]
        usual = np.quantile(steps, 0.5, method='lower') if steps.size else 1
        if usual - 1 > max_gap:  # Of nearly all frames: no gaps, another unit.
            raise ValueError(
                f'The time step is said to be {time_step:.6g}, but from one '
                f'time to the next it is {usual * time_step:.6g} in most of '
                f'the table. Leave the time step out, or write times in its '
                f'unit.')
        wrong = count - 1 > max_gap
        if wrong.any():
            k = int(wrong.argmax())
            raise ValueError(
                f'Between {self.where(order[k-1])} and '
                f'{self.where(order[k])} no particle of the system has a row, '
                f'which leaves out frames: {count[k] - 1:.0f}, the time step '
                f'being {time_step:.6g}. Mend the table, or interpolate over '
                f'the gap by max_gap={count[k] - 1:.0f}, now {max_gap}.')
        total = np.cumsum(count).astype(np.int64)
        start = total[is_first.nonzero()[0]]
        frame = np.empty_like(total)
        frame[order] = total - start[self.system[order]]
        return frame

    def _check_rows(self, order: np.ndarray, time_step: float,
                    max_gap: int) -> None:
        """That each particle has one row per frame, but for short gaps."""
        system, frame = self.system[order], self.frame[order]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = ((np.diff(self.particle[order]) != 0)
                        | (np.diff(system) != 0))
        step = np.diff(frame, prepend=0)
        again = ~is_first & (step == 0)
        if again.any():
            k = int(again.argmax())
            raise ValueError(
                f'There are two rows of one particle and time, '
                f'{self.where(order[k])} and row {order[k-1]}; remove one of '
                f'them, or say which column holds the system by system=NAME '
                f'if there are several.')
        length = np.zeros(len(self.system_names), dtype=np.int64)
        np.maximum.at(length, system, frame + 1)
        late = is_first & (frame > 0)
        is_last = np.append(is_first[1:], True)
        early = is_last & (frame + 1 < length[system])
        for wrong, what, when in ((late, 'first', 'before'), (early, 'last',
                                                              'after')):
            if wrong.any():
                k = int(wrong.argmax())
                missing = (frame[k] if what == 'first' else length[system[k]] -
                           1 - frame[k])
                raise ValueError(
                    f'The {what} row of a particle is {self.where(order[k])}, '
                    f'but its system has times {when} that: {missing}. Cut '
                    f'the system to the times that all of its particles have, '
                    f'or leave the particle out.')
        gap = ~is_first & (step - 1 > max_gap)
        if gap.any():
            k = int(gap.argmax())
            start = self._start(order[[k - 1]])
            raise ValueError(
                f'Rows of a particle that are missing after '
                f'{self.where(order[k - 1])}: {step[k] - 1}, the first one '
                f'for {describe_time(start, 1, time_step)}; the next there '
                f'is row {order[k]}. Mend the table, or interpolate over the '
                f'gap by max_gap={step[k] - 1}, now {max_gap}.')


def _read_dates(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The table with its times as dates, if they are texts of dates, as files
    have them.

    Raises:
        ValueError: If only some are.
    """
    times = table[name]
    if pd.api.types.is_numeric_dtype(times) or pd.to_numeric(
            times, errors='coerce').notna().any():
        return table
    dates = pd.to_datetime(times, errors='coerce', format='ISO8601', utc=True)
    wrong = dates.isna().to_numpy()
    if wrong.all():
        return table  # Neither; this is said where numbers are read.
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f'Column {name!r} holds dates, but row {row} has '
                         f'{plain(times.iloc[row])!r}; expected dates such as '
                         f'2024-05-31 12:00:00.5 throughout.')
    return table.assign(**{name: dates.dt.tz_localize(None)})
