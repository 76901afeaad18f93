"""The user's own trajectories, from tables and arrays."""
import operator
import os
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Optional

import numpy as np
from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.edge_table import (
    candidate_edges,
    report_one_way,
    true_types,
)
from pyg_fnri.datasets.reading import (
    Reading,
    Recording,
    Source,
    content_digest,
    is_array,
)
from pyg_fnri.datasets.stored import SPLITS, Joined, StoredSystems


class TrajectoryTable(StoredSystems):
    r"""Trajectories of your own, from a table or an array, with or without
    known interactions.

    A **table** (DataFrame, CSV or Parquet file) has one row per system,
    particle and time, in any order; with only one system, its column can be
    left out:

    .. code-block:: text

        system,time,particle,x,y
        A,0.0,1,0.53,-0.21
        A,0.0,2,1.02,0.44
        A,0.1,1,0.55,-0.20

    An **array**, `[S, N, T, F]` in memory, `.npy` or `.npz`, has positions
    first, then velocities, and NaN (or a mask) where there is no value. A file
    of several arrays has one called `x`, or one `[N, T, F]` for each system.

    **Velocities** that are not there are derived from positions: by
    :math:`(x_{t+1} - x_{t-1}) / 2 \Delta t`, and at the two ends by the
    one-sided formula of the same, second, order.

    **Splits** are made by system, at random by `seed`. One long recording is
    cut in time instead, training first and test last, then into windows, with
    velocities of their own: no frame is in two splits, only a gap that is
    filled in right between two of them has a part of both.

    **Particles that come and go** take `window`: each window holds the
    particles that are there throughout. A warning says how many were left out,
    and how many frames were interpolated by `max_gap`.

    A system is a plain :class:`~torch_geometric.data.Data` with

    - `x`: positions, then velocities, as in the table, `[N, T, F]` float32,
    - `edge_index`: all ordered pairs, or the `edges` given, `[2, E]`,
    - `edge_label`: the true types, if `interactions` are given, `[E, L]`,
    - `mass`: the masses of the particles, if `mass` is given, `[N]` float32.

    Particles and systems are sorted by name, numbers before words.

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        table (DataFrame, ndarray or str): The trajectories, or a file that
            ends in `.csv`, `.csv.gz`, `.parquet`, `.npy` or `.npz`.
        split (str): `'train'`, `'val'`, `'test'`, or `'all'` systems.
        window (int, optional): Cut recordings into windows of so many frames,
            each of which becomes a system. (default: whole recordings)
        stride (int, optional): Frames from the start of one window to the
            next. (default: `window`, without overlap)
        fractions (sequence of float): Of training, validation and test.
        split_by (str, optional): `'system'` or `'time'`.
            (default: by system, and by time if there is only one)
        seed (int): Seed of the split by system.
        edges (DataFrame or str, optional): The candidate edges: a row with
            `sender` and `receiver` for each direction, and `system` unless
            they are those of all systems. (default: all ordered pairs)
        interactions (DataFrame or str, optional): The truth where it is
            known: as `edges`, with `type` (0, none, is what is not listed),
            and `layer` where there are several. Nothing is trained on it.
        name (str, optional): The name of the data set's folder.
            (default: that of the file, or `'table'` or `'array'`)
        **options: How the table is read, by any argument of
            :class:`~pyg_fnri.datasets.reading.Reading`: `system`, `time`,
            `particle`, `position`, `velocity`, `mass`, `time_step`, `max_gap`;
            and `transform`, `pre_transform`, `pre_filter`, `force_reload`, as
            for :class:`~pyg_fnri.datasets.stored.StoredSystems`.
    """
    def __init__(
        self,
        root: str,
        table: Source,
        split: str = 'all',
        *,
        window: Optional[int] = None,
        stride: Optional[int] = None,
        fractions: Sequence[float] = (0.8, 0.1, 0.1),
        split_by: Optional[str] = None,
        seed: int = 0,
        edges: Optional[Source] = None,
        interactions: Optional[Source] = None,
        name: Optional[str] = None,
        **options: Any,
    ) -> None:
        if split not in (*SPLITS, 'all'):
            raise ValueError(f"split is {split!r}, but must be 'train', 'val', "
                             f"'test' or 'all'.")
        if split_by not in (None, 'system', 'time'):
            raise ValueError(f"split_by is {split_by!r}, but must be 'system' "
                             f"or 'time'.")
        self._reading = Reading(
            **{
                field.name: options.pop(field.name)
                for field in fields(Reading) if field.name in options
            })
        train, val, test = map(float, fractions)
        self._fractions, self._split_by = (train, val, test), split_by
        self._seed = operator.index(seed)
        self._window = None if window is None else operator.index(window)
        self._stride = self._window if stride is None else operator.index(
            stride)
        for number in (self._window, self._stride):
            if number is not None and (number < 1 or window is None):
                raise ValueError(f'window and stride are numbers of frames '
                                 f'from 1 on, and stride takes a window, but '
                                 f'they are {window} and {stride}.')
        self._sources = {'table': table}
        for key, source in (('edges', edges), ('interactions', interactions)):
            if source is not None:
                self._sources[key] = source
        recipe = {
            'reading': self._reading,
            'split': (split, self._fractions, split_by, self._seed),
            'windows': (self._window, self._stride),
            # How a file is read depends on the end of its name.
            **{
                key: f'array={is_array(source)} {content_digest(source)}'
                for key, source in self._sources.items()
            },
        }
        if name is None:
            name = 'array' if is_array(table) else 'table'
            if isinstance(table, (str, os.PathLike)):
                stem = os.path.basename(table).partition('.')[0]
                name = re.sub(r'[^\w+-]', '_', stem)
        super().__init__(root, name, split, recipe, **options)
        del self._sources  # Tables are large, and data sets are pickled.

    @property
    def time_step(self) -> Optional[float]:
        """The time from one frame to the next, in seconds where the table
        holds dates; none of arrays, unless it was given or used."""
        return self.facts['time_step']

    def make(self) -> tuple[Joined, dict[str, Any]]:
        recordings, derive = self._reading.read(self._sources['table'])
        facts: dict[str, Any] = {
            'time_step': recordings[0].time_step,
            'warnings': _report_filled(recordings),
            'system_names': [],
            'particle_names': [],
        }
        edges, types = None, None
        if 'edges' in self._sources:
            edges = candidate_edges(self._sources['edges'], recordings)
        if 'interactions' in self._sources:
            types, facts['layers'], facts['num_edge_types'] = true_types(
                self._sources['interactions'], recordings)
            facts['one_way'] = report_one_way(types,
                                              [r.name for r in recordings])
            facts['num_true'] = []

        systems: list[Data] = []
        num_absent = num_empty = 0
        for number, block in self._blocks(recordings):
            recording = recordings[number]
            name, mass = recording.name, recording.mass
            x = recording.x[:, block.start:block.stop]
            if derive:
                x = _with_velocity(x, recording.time_step)
            for start in self._starts(recording, len(block)):
                part = x[:, start:][:, :self._window]
                there = ~np.isnan(part).any((1, 2))
                if self._window is not None:
                    name = f'{recording.name}/{block.start + start}'
                    num_absent += int((~there & ~np.isnan(part).all(
                        (1, 2))).sum())
                    if there.sum() < 2:
                        num_empty += 1
                        continue
                elif not there.all():
                    first = np.argwhere(np.isnan(part).any(-1))[0]
                    raise ValueError(
                        f'A particle is not there at the beginning or the end '
                        f'of its system, or for less than the 3 frames that '
                        f'velocities take: {recording.where(*first)}. Leave '
                        f'the particle or these times out, or cut windows, '
                        f'of those that are there throughout, by '
                        f'window=NUMBER.')
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
                                        None if mass is None else mass[there]))
                except ValueError as error:
                    raise ValueError(f'System {name!r}: {error}') from error
                facts['system_names'].append(name)
                facts['particle_names'].append(
                    [recording.particles[k] for k in np.flatnonzero(there)])
        if not systems:
            raise ValueError(f'No system is in the split {self.split!r}.')
        lengths = [data.x.size(1) for data in systems]
        if min(lengths) < max(lengths):
            raise ValueError(
                f'System {facts["system_names"][np.argmin(lengths)]!r} has '
                f'{min(lengths)} frames, but others have {max(lengths)}; cut '
                f'windows of equal length, e.g. by window={min(lengths)}.')
        if num_absent:
            facts['warnings'].append(
                f'Particles that are in a part of a window only are left out '
                f'of it: {num_absent} in {len(systems) + num_empty} windows, '
                f'{num_empty} of which then hold fewer than 2 particles and '
                f'are left out.')
        return self.collate(systems), facts

    def _blocks(self,
                recordings: Sequence[Recording]) -> list[tuple[int, range]]:
        """Recordings that are in the split, and their frames that are."""
        frames = [range(recording.x.shape[1]) for recording in recordings]
        if self.split == 'all':
            return [*enumerate(frames)]
        num, (train, val, test) = len(recordings), self._fractions
        part = SPLITS.index(self.split)
        if self._split_by == 'system' or (self._split_by is None and num > 1):
            # At least one system each, unless the fraction is 0.
            num_val, num_test = (max(round(fraction * num), int(fraction > 0))
                                 for fraction in (val, test))
            num_train = num - num_val - num_test
            if num_train < 1:
                raise ValueError(
                    f'{num} systems are too few to split by the fractions '
                    f'{list(self._fractions)}; take other fractions, or split '
                    f"by time: split_by='time', with a window.")
            order = np.random.default_rng(self._seed).permutation(num)
            dealt = np.split(order, [num_train, num_train + num_val])[part]
            return [(k, frames[k]) for k in sorted(dealt.tolist())]
        if self._window is None:
            raise ValueError('A recording that is split by time is cut into '
                             'windows; name the number of frames of each by '
                             'window=NUMBER.')
        out = []
        for k, every in enumerate(frames):
            cuts = [round(share * len(every)) for share in (train, train + val)]
            block = np.split(every, cuts)[part]
            if len(block):
                out.append((k, range(block[0], block[-1] + 1)))
        return out

    def _starts(self, recording: Recording, num_frames: int) -> range:
        """The first frame of each system that is made of a block of frames."""
        if self._window is None or self._stride is None:
            return range(1)
        starts = range(0, num_frames - self._window + 1, self._stride)
        if not starts:
            raise ValueError(
                f'System {recording.name!r} is too short: {num_frames} of its '
                f'frames are for the split {self.split!r}, and a window takes '
                f'{self._window}. Take shorter windows, or leave it out.')
        return starts


def _with_velocity(x: np.ndarray, time_step: Optional[float]) -> np.ndarray:
    """Positions `[N, T, D]` and the velocities that are derived from them,
    `[N, T, 2D]`; NaN of particles that are there for less than 3 frames."""
    velocity = np.full_like(x, np.nan)
    for position, out in zip(x, velocity):
        there = np.flatnonzero(~np.isnan(position).any(-1))
        if len(there) >= 3:
            track = slice(there[0], there[-1] + 1)
            out[track] = np.gradient(position[track], time_step or 1, axis=0,
                                     edge_order=2)
    return np.concatenate([x, velocity], axis=-1)


def _report_filled(recordings: Sequence[Recording]) -> list[str]:
    """What was interpolated, in a sentence, if anything was."""
    filled = [recording.num_filled for recording in recordings]
    if not any(filled):
        return []
    total = sum(r.x.shape[0] * r.x.shape[1] for r in recordings)
    return [
        f'Filled {sum(filled)} of {total} frames of particles '
        f'({sum(filled) / total:.2%}), in {np.count_nonzero(filled)} of '
        f'{len(recordings)} systems, by linear interpolation.'
    ]
