"""The user's own trajectories, from tables and arrays."""
import operator
import os
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np
from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.edge_table import (
    candidate_edges,
    report_left_out,
    report_one_way,
    true_types,
)
from pyg_fnri.datasets.reading import (
    Name,
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
    particle and time:

    .. code-block:: text

        system,time,particle,x,y
        A,0.0,1,0.53,-0.21
        A,0.0,2,1.02,0.44
        A,0.1,1,0.55,-0.20

    .. code-block:: python

        train = TrajectoryTable('datasets', 'my.csv', split='train',
                                transform=SplitTrajectory(49))

    Rows may be in any order, and systems of different sizes. With only one
    system, its column can be left out. Names are read as they are written, and
    sorted, numbers before words.

    An **array**, `[S, N, T, F]` in memory, `.npy` or `.npz`, has positions
    first, then velocities, and NaN (or a mask) where there is no value. A file
    of several arrays has one called `x`, or one `[N, T, F]` for each system.

    **Velocities** that are not there are derived from positions: by
    :math:`(x_{t+1} - x_{t-1}) / 2 \Delta t`, and at the two ends by the
    one-sided formula of the same, second, order.

    **Splits** are made by system, at random by `seed`. One long recording is
    cut in time instead: its first part is to train on, then validation, and
    the last part to test on. Each is cut into windows of its own, with
    velocities of its own, so that no frame is in two splits; only where a gap
    is filled in right between two of them, both have a part in it.

    **Particles that come and go** take `window`: each window holds the
    particles that are there throughout, and a warning says how many were left
    out. Linear interpolation over `max_gap` missing frames is never silent,
    either.

    A system is a plain :class:`~torch_geometric.data.Data` with

    - `x`: positions, then velocities, as in the table, `[N, T, F]` float32,
    - `edge_index`: all ordered pairs, or the `edges` given, `[2, E]`,
    - `edge_label`: the true types, if `interactions` are given, `[E, L]`,
    - `mass`: the masses of the particles, if `mass` is given, `[N]` float32.

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        table (DataFrame, ndarray or str): The trajectories, or a file that
            ends in `.csv`, `.csv.gz`, `.parquet`, `.npy` or `.npz`.
        split (str): `'train'`, `'val'`, `'test'`, or `'all'` systems.
            (default: `'all'`)
        window (int, optional): Cut recordings into windows of so many frames,
            each of which becomes a system. (default: whole recordings)
        stride (int, optional): Frames from the start of one window to the
            next. (default: `window`, without overlap)
        fractions (sequence of float): Of training, validation and test.
            (default: 0.8, 0.1 and 0.1)
        split_by (str, optional): `'system'` or `'time'`.
            (default: by system, and by time if there is only one)
        seed (int): Seed of the split by system. (default: 0)
        edges (DataFrame or str, optional): The candidate edges, a table with
            the columns `sender` and `receiver`, and `system` unless they are
            those of all systems; one row for each direction.
            (default: all ordered pairs)
        interactions (DataFrame or str, optional): The truth where it is
            known, a table with the columns `sender`, `receiver` and `type`,
            and `system` and `layer` where there are several, as
            :func:`~pyg_fnri.convert.to_pandas` writes it; one row for each
            direction. What it does not list is of type 0, no interaction.
            Nothing is trained on it. Interactions without a candidate edge
            are left out, and a warning says how many.
        name (str, optional): The name of the data set's folder.
            (default: that of the file, or `'table'` or `'array'`)
        transform (callable, optional): Applied to a system on each access.
        pre_transform (callable, optional): Applied once, on opening, such as
            :class:`~pyg_fnri.transforms.NearestNeighbours`.
        pre_filter (callable, optional): Which systems to keep.
        force_reload (bool): Whether to read it again. (default: `False`)
        **reading: How the table is read, by any argument of
            :class:`~pyg_fnri.datasets.reading.Reading`: `system`, `time`,
            `particle`, `position`, `velocity`, `mass`, `time_step`, `max_gap`.
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
        transform: Optional[Callable] = None,
        pre_transform: Optional[Callable] = None,
        pre_filter: Optional[Callable] = None,
        force_reload: bool = False,
        **reading: Any,
    ) -> None:
        if split not in (*SPLITS, 'all'):
            raise ValueError(f"split is {split!r}, but must be 'train', 'val', "
                             f"'test' or 'all'.")
        if split_by not in (None, 'system', 'time'):
            raise ValueError(f"split_by is {split_by!r}, but must be 'system' "
                             f"or 'time'.")
        if stride is not None and window is None:
            raise ValueError('stride says how far apart windows are; name '
                             'their length by window=NUMBER too.')
        self._reading = Reading(**reading)
        train, val, test = map(float, fractions)
        self._fractions, self._split_by = (train, val, test), split_by
        self._seed = operator.index(seed)
        self._window = None if window is None else operator.index(window)
        self._stride = self._window if stride is None else operator.index(
            stride)
        sources = {'table': table, 'edges': edges, 'interactions': interactions}
        self._sources = {k: v for k, v in sources.items() if v is not None}
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
        super().__init__(root, name, split, recipe, transform, pre_transform,
                         pre_filter, force_reload)
        del self._sources  # Tables are large, and data sets are pickled.
        sentences = list(self.facts['warnings'])
        if 'num_true' in self.facts:
            sentences.append(
                report_left_out(
                    sum(self.facts['num_true'][k] for k in self.numbers()),
                    int((self._data.edge_label > 0).sum())))
        for sentence in filter(None, sentences):
            warnings.warn(sentence, stacklevel=2)

    @property
    def system_names(self) -> list[Name]:
        """The name of each system; of a window, `NAME/START` with the number
        of its first frame in the recording."""
        return [self.facts['system_names'][k] for k in self.numbers()]

    @property
    def particle_names(self) -> list[list[Name]]:
        """The names of each system's particles, in the order of `x`."""
        return [self.facts['particle_names'][k] for k in self.numbers()]

    @property
    def one_way(self) -> str:
        """Which true types depend on the direction, in a sentence; empty if
        none do. Of all splits."""
        return self.facts['one_way']

    @property
    def time_step(self) -> Optional[float]:
        """The time from one frame to the next, in seconds where the table
        holds dates; none of arrays, unless it was given or used."""
        return self.facts['time_step']

    def make(self) -> tuple[Joined, dict[str, Any]]:
        recordings, derive = self._reading.read(self._sources['table'])
        facts: dict[str, Any] = {
            'time_step': recordings[0].time_step,
            'warnings': [_report_filled(recordings)],
            'one_way': '',
            'system_names': [],
            'particle_names': [],
        }
        edges: Optional[list[np.ndarray]] = None
        if 'edges' in self._sources:
            edges = candidate_edges(self._sources['edges'], recordings)
        types: Optional[list[np.ndarray]] = None
        if 'interactions' in self._sources:
            types, facts['layers'], facts['num_edge_types'] = true_types(
                self._sources['interactions'], recordings)
            facts['one_way'] = report_one_way(types,
                                              [r.name for r in recordings])
            facts['num_true'] = []

        systems: list[Data] = []
        num_absent = num_empty = 0
        for number, block in self._blocks(recordings).items():
            recording = recordings[number]
            x = recording.x[:, block.start:block.stop]
            if derive:
                x = _with_velocity(x, recording, block)
            for start in self._starts(recording.name, len(block)):
                part = x[:, start:][:, :self._window]
                there = ~np.isnan(part).any((1, 2))
                if self._window is None and not there.all():
                    raise ValueError(_report_absent(part, recording))
                num_absent += int((~there & ~np.isnan(part).all((1, 2))).sum())
                if self._window is not None and there.sum() < 2:
                    num_empty += 1
                    continue
                of_pairs = np.ix_(there, there)
                edge_index = None
                if edges is not None:
                    receiver, sender = edges[number][of_pairs].nonzero()
                    edge_index = np.stack([sender, receiver])
                label = None
                if types is not None:
                    label = np.stack([of[of_pairs] for of in types[number]])
                    facts['num_true'].append(int((label > 0).sum()))
                mass = recording.mass
                try:
                    systems.append(
                        from_trajectory(part[there], label, edge_index,
                                        None if mass is None else mass[there]))
                except ValueError as error:
                    raise ValueError(
                        f'System {recording.name!r}: {error}') from error
                name = recording.name
                if self._window is not None:
                    name = f'{name}/{block.start + start}'
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

    def _blocks(self, recordings: Sequence[Recording]) -> dict[int, range]:
        """Recordings that are in the split, and their frames that are."""
        num = len(recordings)
        lengths = [recording.x.shape[1] for recording in recordings]
        if self.split == 'all':
            return {k: range(lengths[k]) for k in range(num)}
        train, val, test = self._fractions
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
            parts = np.split(order, [num_train, num_train + num_val])
            return {
                k: range(lengths[k])
                for k in sorted(parts[SPLITS.index(self.split)].tolist())
            }
        if self._window is None:
            raise ValueError(f'A recording that is split by time is cut into '
                             f'windows; name the number of frames of each, '
                             f'e.g. by window={max(2, min(lengths) // 10)}.')
        out = {}
        for k, length in enumerate(lengths):
            cuts = [
                0,
                round(train * length),
                round((train + val) * length), length
            ]
            number = SPLITS.index(self.split)
            if cuts[number] < cuts[number + 1]:
                out[k] = range(cuts[number], cuts[number + 1])
        return out

    def _starts(self, name: Name, num_frames: int) -> range:
        """The first frame of each system that is made of a block of frames."""
        if self._window is None or self._stride is None:
            return range(1)
        starts = range(0, num_frames - self._window + 1, self._stride)
        if not starts or self._window < 1:
            raise ValueError(
                f'System {name!r} is too short: {num_frames} of its frames are '
                f'for the split {self.split!r}, and a window takes '
                f'{self._window}. Take shorter windows, or leave it out.')
        return starts


def _with_velocity(x: np.ndarray, recording: Recording,
                   block: range) -> np.ndarray:
    """Positions `[N, T, D]` and the velocities that are derived from them,
    `[N, T, 2D]`; NaN of particles that are there for less than 3 frames."""
    if len(block) < 3:
        raise ValueError(
            f'System {recording.name!r} is too short: {len(block)} '
            f'of its frames are for the split, but velocities '
            f'take 3 to derive from positions. Leave it out.')
    velocity = np.full_like(x, np.nan)
    for position, out in zip(x, velocity):
        there = np.flatnonzero(~np.isnan(position).any(-1))
        if len(there) >= 3:
            track = slice(there[0], there[-1] + 1)
            out[track] = np.gradient(position[track], recording.time_step,
                                     axis=0, edge_order=2)
    return np.concatenate([x, velocity], axis=-1)


def _report_filled(recordings: Sequence[Recording]) -> str:
    """What was interpolated, in a sentence; empty if nothing was."""
    filled = [recording.num_filled for recording in recordings]
    if not any(filled):
        return ''
    total = sum(r.x.shape[0] * r.x.shape[1] for r in recordings)
    return (f'Filled {sum(filled)} of {total} frames of particles '
            f'({sum(filled) / total:.2%}), in {np.count_nonzero(filled)} of '
            f'{len(recordings)} systems, by linear interpolation.')


def _report_absent(x: np.ndarray, recording: Recording) -> str:
    """Where a particle is not there at the beginning or the end."""
    particle, frame = np.argwhere(np.isnan(x).any(-1))[0]
    return (f'A particle is not there at the beginning or the end of its '
            f'system: {recording.where(particle, frame)}. Cut the system to '
            f'the times that all of its particles have, leave the particle '
            f'out, or cut windows, of those that are there throughout, by '
            f'window=NUMBER.')
