"""The user's own trajectories, from tables and arrays."""
import operator
import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Optional, cast

import numpy as np
from pandas import DataFrame
from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.reading import Reading
from pyg_fnri.datasets.stored import (SPLITS, Joined, StoredSystems, as_folder,
                                      check_choice)
from pyg_fnri.datasets.tables import (Recording, Source, are_systems,
                                      candidate_edges, content_digest,
                                      count_types, edges_of_systems, is_array,
                                      report_one_way, true_types)

#: The most frames of a window, if nothing else is said, and windows that are no
#: longer few; shares of training, validation and test, and where they are few.
MOST_FRAMES, MANY = 100, 50
USUAL, FEW_SYSTEMS = (0.8, 0.1, 0.1), (0.6, 0.2, 0.2)
#: How far velocities may be from those of positions, and the fewest that tell.
MAX_SLIP, FEW = 0.1, 20
#: The most of a motion that velocities may leave where they tell a time step.
MOST_LEFT = 0.2
#: How far the radius of a circle may be from 1.
ROUNDNESS = 1e-3


class TrajectoryTable(StoredSystems):
    r"""Trajectories of your own, from a table or an array.

    A **table** has one row per system, particle and time, in any order, with
    columns `system` (unless there is only one), `time`, `particle`, `x`, `y`
    and so on. An **array**, `[S, N, T, F]`, has positions first, then
    velocities, and NaN (or a mask) where there is no value; a file of several
    has one called `x`, or one `[N, T, F]` for each system.

    **Velocities** that are not there are derived from positions: by
    :math:`(x_{t+1} - x_{t-1}) / 2 \Delta t`, one-sided at the two ends.

    **Splits** are made by system, at random by `seed`. One long recording is
    cut in time instead, training first and test last, then into windows. A
    window holds the particles that are there throughout, and is left out where
    those are fewer than `min_particles`; without one, none may come or go.

    A system has `x` `[N, T, F]`, `edge_index`, and `edge_label` and `mass` if
    known. Particles and systems are sorted by name, numbers before words.

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        table (DataFrame, ndarray, list of Data or str): The trajectories, or a
            file that ends in `.csv`, `.csv.gz`, `.tsv`, `.txt`, `.parquet`,
            `.npy` or `.npz`; text may be DeepLabCut's. Of PyG's `Data`, edges,
            sorted by receiver, and `edge_label` and `mass` are kept.
        split (str): `'train'`, `'val'`, `'test'`, or `'all'` systems.
        window, stride, edges, interactions (optional): As those of
            :class:`~pyg_fnri.datasets.options.SourceOptions`. (default window:
            of a recording split by time, a tenth of its frames, at most 100)
        fractions (sequence of float, optional): Of training, validation and
            test. (default: 0.8, 0.1, 0.1; of less than 20 systems, or 50
            windows by time, 0.6, 0.2, 0.2)
        split_by (str, optional): `'system'` or `'time'`. (default: by system,
            if there are several)
        name (str, optional): Of the folder. (default: that of the file)
        **options: Those of :class:`~pyg_fnri.datasets.reading.Reading`, and
            `transform`, `pre_transform`, `pre_filter`, `force_reload`.
    """
    def __init__(self, root: str, table: Source, split: str = 'all', *,
                 window: Optional[int] = None, stride: Optional[int] = None,
                 fractions: Optional[Sequence[float]] = None,
                 split_by: Optional[str] = None, seed: int = 0,
                 edges: Optional[Source] = None,
                 interactions: Optional[Source] = None,
                 name: Optional[str] = None, **options: Any) -> None:
        check_choice('split', split, (*SPLITS, 'all'))
        check_choice('split_by', split_by, (None, 'system', 'time'))
        self._reading = Reading(
            **{
                field.name: options.pop(field.name)
                for field in fields(Reading) if field.name in options
            })
        self._split_by = split_by
        self._fractions = fractions and tuple(map(float, fractions))
        self._seed = operator.index(seed)
        for number in (window, stride):
            if number is not None and (window is None
                                       or operator.index(number) < 1):
                raise ValueError(f'window and stride are numbers of frames '
                                 f'from 1 on, and stride takes a window, but '
                                 f'they are {window} and {stride}.')
        self._window = window
        self._stride = window if stride is None else stride
        sources = {'table': table, 'edges': edges, 'interactions': interactions}
        self._sources: Any = {k: v for k, v in sources.items() if v is not None}
        recipe = dict(reading=self._reading,
                      split=(split, self._fractions, split_by, self._seed),
                      windows=(self._window, self._stride))
        for key, source in self._sources.items():
            # How a file is read depends on the end of its name.
            recipe[key] = f'array={is_array(source)} {content_digest(source)}'
        if name is None:
            name = 'array' if is_array(table) else 'table'
            if isinstance(table, (str, os.PathLike)):
                name = as_folder(os.path.basename(table).partition('.')[0])
        super().__init__(root, name, split, recipe, **options)
        del self._sources  # Tables are large, and data sets are pickled.

    @classmethod
    def from_xarray(cls, root: str, dataset: Any, split: str = 'all',
                    keypoint: Optional[str] = None,
                    **options: Any) -> 'TrajectoryTable':
        """Of an `xarray` data set with a `position` over `time`, `individuals`,
        `space` and perhaps `keypoints`, as the package `movement` makes them;
        the latter's mean, or one :obj:`keypoint`, is followed."""
        table = table_of_xarray(dataset, keypoint)
        options = {'particle': 'individuals', **options}
        return cls(root, table, split, **options)

    @property
    def time_step(self) -> Optional[float]:
        """Between frames, in seconds of dates; of arrays, unless given, that in
        which particles with their velocities move so far, or None."""
        return cast(Optional[float], self.facts['time_step'])

    def make(self) -> tuple[Joined, dict[str, Any]]:
        recordings, derive = self._reading.read(self._sources['table'])
        facts = dict[str, Any](time_step=recordings[0].time_step, warnings=[],
                               system_names=[], particle_names=[])
        num_filled = sum(recording.num_filled for recording in recordings)
        if num_filled:
            total = sum(r.x.shape[0] * r.x.shape[1] for r in recordings)
            facts['warnings'].append(
                f'Filled {num_filled} of {total} frames of particles '
                f'({num_filled / total:.2%}) by linear interpolation.')
        edges = types = None
        if are_systems(self._sources['table']):
            edges, types = edges_of_systems(self._sources['table'])
        if 'edges' in self._sources:
            edges = candidate_edges(self._sources['edges'], recordings)
        if 'interactions' in self._sources:
            types, facts['layers'] = true_types(self._sources['interactions'],
                                                recordings)
        if types is not None:
            facts['num_edge_types'] = count_types(types)
            facts['one_way'] = report_one_way(types,
                                              [r.name for r in recordings])
            facts['num_true'] = []
        given = not derive and self._reading.velocity != ()
        if given and recordings[0].x.shape[2] % 2 == 0:
            if recordings[0].time_step is None:
                step, left = _time_of_velocities(recordings)
                if step > 0 and left < MOST_LEFT:
                    facts['time_step'] = float(f'{step:.3g}')
            elif not are_systems(self._sources['table']):
                facts['warnings'] += _compare_velocities(recordings)
        systems: list[Data] = []
        num_tracks = num_empty = 0
        incomplete = False
        used = set[tuple[int, int]]()
        for number, first, x in self._blocks(recordings):
            recording = recordings[number]
            if derive:
                x = _with_velocity(x, recording.time_step)
            window = self._window
            if window is None and self._by_time(recordings):
                window = min(MOST_FRAMES, max(3, recording.x.shape[1] // 10))
            length = window or x.shape[1]
            starts = range(0, x.shape[1] - length + 1, self._stride or length)
            if not starts:
                raise ValueError(
                    f'System {recording.name!r} is too short: {x.shape[1]} of '
                    f'its frames are for the split {self.split!r}, and a '
                    f'window takes {length}; leave it out.')
            num_tracks += int((~np.isnan(x).all((1, 2))).sum())
            incomplete |= bool(np.isnan(x).any())
            for start in starts:
                part = x[:, start:start + length]
                there = ~np.isnan(part).any((1, 2))
                name, mass = recording.name, recording.mass
                if window is not None:
                    name = f'{name}/{first + start}'
                    if there.sum() < self._reading.min_particles:
                        num_empty += 1
                        continue
                elif not there.all():
                    where = np.argwhere(np.isnan(part).any(-1))[0]
                    seen = np.flatnonzero(~np.isnan(part[where[0]]).any(-1))
                    gap = np.diff(seen).max(initial=1) - 1
                    raise ValueError(
                        f'A particle is not there throughout, or for less than '
                        f'the 3 frames that velocities take: '
                        f'{recording.where(*where)}. Leave it or these times '
                        f'out, interpolate by max_gap={gap or "NUMBER"}, now '
                        f'{self._reading.max_gap}, or cut windows by '
                        f'window=NUMBER.')
                used |= {(number, int(k)) for k in np.flatnonzero(there)}
                edge_index, label = None, None
                if edges is not None:
                    receiver, sender = edges[number][there][:, there].nonzero()
                    edge_index = np.stack([sender, receiver])
                if types is not None:
                    label = types[number][:, there][:, :, there]
                    facts['num_true'].append(int((label > 0).sum()))
                try:
                    systems.append(
                        from_trajectory(part[there], label, edge_index,
                                        None if mass is None else mass[there],
                                        axes='NTF'))
                except ValueError as error:
                    raise ValueError(f'System {name!r}: {error}') from error
                facts['system_names'].append(name)
                facts['particle_names'].append(
                    [recording.particles[k] for k in np.flatnonzero(there)])
        if not systems:
            raise ValueError(
                f'No system is in the split {self.split!r}: {num_empty} '
                f'windows hold fewer than {self._reading.min_particles} '
                f'particles that are there throughout; take shorter ones.')
        lengths = {data.x.size(1) for data in systems}
        if len(lengths) > 1:
            raise ValueError(
                f'Systems have from {min(lengths)} to {max(lengths)} frames; '
                f'cut windows of equal length, by window={min(lengths)}.')
        facts['windows'] = window is not None
        facts['tracks'] = dict(tracks=num_tracks,
                               tracks_left_out=num_tracks - len(used),
                               windows=len(systems), windows_left_out=num_empty)
        if incomplete:
            num_used = sum(len(data.x) for data in systems)
            facts['warnings'].append(
                f'Particles come and go: {len(systems)} windows hold those '
                f'that are there throughout, {num_used / len(systems):.1f} in '
                f'the mean; {num_tracks - len(used)} of {num_tracks} tracks '
                f'are in none, and {num_empty} windows with fewer than '
                f'{self._reading.min_particles} particles are left out.')
        return self.collate(systems), facts

    def _by_time(self, recordings: Sequence[Recording]) -> bool:
        return self.split != 'all' and (self._split_by == 'time'
                                        or self._split_by is None
                                        and len(recordings) == 1)

    def _blocks(
            self, recordings: Sequence[Recording]
    ) -> list[tuple[int, int, np.ndarray]]:
        if self.split == 'all':
            return [(k, 0, of.x) for k, of in enumerate(recordings)]
        num, part = len(recordings), SPLITS.index(self.split)
        longest = max(recording.x.shape[1] for recording in recordings)
        few = num < FEW
        if self._by_time(recordings):
            few = self._window is None or longest < MANY * self._window
        train, val, test = self._fractions or (FEW_SYSTEMS if few else USUAL)
        if not self._by_time(recordings):
            # At least one system each, unless the fraction is 0.
            num_val, num_test = (max(round(fraction * num), int(fraction > 0))
                                 for fraction in (val, test))
            num_train = num - num_val - num_test
            if num_train < 1:
                raise ValueError(
                    f'{num} systems are too few for the fractions '
                    f"{(train, val, test)}; split by time: split_by='time'.")
            order = np.random.default_rng(self._seed).permutation(num)
            dealt = np.split(order, [num_train, num_train + num_val])[part]
            return [(k, 0, recordings[k].x) for k in sorted(dealt.tolist())]
        out = []
        for k, recording in enumerate(recordings):
            size = recording.x.shape[1]
            cuts = [0, *(round(f * size) for f in (train, train + val)), size]
            first, last = cuts[part:part + 2]
            if first < last:
                out.append((k, first, recording.x[:, first:last]))
        return out


def table_of_xarray(dataset: Any, keypoint: Optional[str] = None) -> DataFrame:
    """What :meth:`TrajectoryTable.from_xarray` reads, a row for each individual
    and time."""
    position = dataset['position']
    if keypoint is not None:
        position = position.sel(keypoints=keypoint, drop=True)
    elif 'keypoints' in position.dims:
        position = position.mean('keypoints')
    if 'individuals' not in position.dims:
        raise ValueError(f'position must be over time, individuals and '
                         f'space, but is over {[*position.dims]}.')
    table = position.to_series().unstack('space').reset_index()
    return table.dropna()


def _with_velocity(x: np.ndarray, time_step: Optional[float]) -> np.ndarray:
    """Appends velocities; NaN of particles there for less than 3 frames."""
    velocity = np.full_like(x, np.nan)
    for position, out in zip(x, velocity):
        there = np.flatnonzero(~np.isnan(position).any(-1))
        for track in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1):
            if len(track) >= 3:
                out[track] = np.gradient(position[track], time_step or 1,
                                         axis=0, edge_order=2)
    return np.concatenate([x, velocity], axis=-1)


def _time_of_velocities(recordings: Sequence[Recording]) -> tuple[float, float]:
    """The time in which velocities lead from frame to frame, in the weighted
    median, and the share of the motion that they leave; NaN of too few."""
    moved, speed = [], []
    for recording in recordings:
        x, v = np.split(recording.x, 2, axis=-1)
        if abs((x**2).sum(-1) - 1).max() < ROUNDNESS and x.shape[-1] == 2:
            x = np.unwrap(np.arctan2(x[..., 1:], x[..., :1]), axis=1)
            v = v[..., :1]  # Of the angle, and constants.
        if x.shape[1] > 3:  # The change of position, by Hermite's formula.
            turned = v[:, 3:] - v[:, 2:-1] - v[:, 1:-2] + v[:, :-3]
            moved.append((x[:, 2:-1] - x[:, 1:-2]).ravel())
            speed.append(((v[:, 2:-1] + v[:, 1:-2]) / 2 - turned / 24).ravel())
    change, expected = (np.concatenate([[], *of]) for of in (moved, speed))
    known = np.isfinite(change) & np.isfinite(expected) & (expected != 0)
    change, expected = change[known], expected[known]
    if len(change) < FEW or not change.any():
        return np.nan, np.nan
    ratio = change / expected
    order = ratio.argsort()
    weight = abs(expected[order]).cumsum()
    step = ratio[order][weight.searchsorted(weight[-1] / 2)]
    left = abs(change - step * expected).sum() / abs(change).sum()
    return float(step), float(left)


def _compare_velocities(recordings: Sequence[Recording]) -> list[str]:
    """A sentence if velocities given are not those of positions."""
    step = recordings[0].time_step or 1.0
    slope = _time_of_velocities(recordings)[0] / step
    if not abs(slope - 1) > MAX_SLIP:
        return []
    velocities = [np.split(of.x, 2, axis=-1)[1] for of in recordings]
    if not any((np.diff(of, axis=1) != 0).any() for of in velocities):
        raise ValueError(f'The velocities given never change, and positions '
                         f'move at {slope:.3g} times them; name the columns of '
                         f'velocities, or have them derived by velocity=().')
    as_if = ''
    if slope > MAX_SLIP:
        as_if = (f', as if the time step were {slope * step:.3g} instead of '
                 f'{step:.3g}')
    return [
        f'Positions move at {slope:.3g} times the velocities given{as_if}; '
        f'check time_step and the units, or have velocities derived from '
        f'positions.'
    ]
