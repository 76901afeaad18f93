"""The user's own trajectories, from tables and arrays."""
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Optional

from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.cached_systems import CachedSystems
from pyg_fnri.datasets.cut import Cut
from pyg_fnri.datasets.edge_table import (
    candidate_edges,
    report_left_out,
    report_one_way,
    true_types,
)
from pyg_fnri.datasets.names import Name
from pyg_fnri.datasets.reading import Feature, Reading
from pyg_fnri.datasets.recording import report_filled
from pyg_fnri.datasets.sources import (
    Source,
    content_digest,
    folder_name,
    is_array,
    read_table,
)
from pyg_fnri.datasets.stored_systems import Joined

#: A part of every digest. Raise it whenever other systems are made of the same
#: table.
VERSION = 2


class TrajectoryTable(CachedSystems):
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
    system, its column can be left out. Particles and systems are sorted by
    name; :obj:`particle_names` and :obj:`system_names` tell which is which.

    An **array**, `[S, N, T, F]` in memory, `.npy` or `.npz`, has positions
    first, then velocities. With 2 features, or an odd number of them, that is
    not clear, and `position` has to tell, such as `[0, 1]` for positions in
    the plane alone. A file of several arrays has one called `x`, or one
    `[N, T, F]` for each system, which is called as its array.

    **Velocities** that are not there are derived from positions: by
    :math:`(x_{t+1} - x_{t-1}) / 2 \Delta t`, and at the two ends by the
    one-sided formula of the same, second, order.

    **What is missing or wrong** is an error that names system, particle, time
    and row (the first is row 0): missing rows, rows that are there twice, time
    steps that differ by more than 5 %, cells that hold no number, systems
    that are too short. Linear interpolation over short gaps can be asked for
    by `max_gap`; a warning then says how much was filled in.

    **Splits** are made by system, at random by `seed`. One long recording is
    cut in time instead: its first part is to train on, then validation, and
    the last part to test on. Each is cut into windows of its own, with
    velocities of its own, so that no frame is in two splits; only where a gap
    is filled in right between two of them, both have a part in it.

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
        system (str, optional): The column of systems.
            (default: `'system'` if there is one, otherwise one system)
        time (str): The column of times, numbers or dates; in CSV files
            such as `2024-05-31 12:00:00.5`. (default: `'time'`)
        particle (str): The column of particles. (default: `'particle'`)
        position (sequence of str or int, optional): The columns of positions,
            or of other features; of arrays, the numbers of the features.
            (default: those of `x`, `y` and `z` that are there; of arrays,
            the first half of 4, 6, ... features)
        velocity (sequence of str or int, optional): The columns of
            velocities, one for each position; `()` for none at all, and of
            arrays, without `position`, for all features as they are.
            (default: `vx`, `vy`, ..., after the positions, if they are there;
            of arrays, without `position`, the second half; derived otherwise)
        mass (str or int, optional): The column of the particles' masses,
            each of them the same at all times; of arrays, the number of that
            feature. They are no feature of `x`, but what accelerations are
            made of forces with, :func:`~pyg_fnri.nn.known_masses`.
            (default: not known, all particles are alike)
        time_step (float, optional): The time from one frame to the next.
            (default: the most common one; of arrays, 1)
        max_gap (int): The most missing frames in a row to interpolate over.
            (default: 0)
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
            Layers are sorted by name. Interactions that have no candidate
            edge are left out, and a warning says how many. Nothing is trained
            on it.
        name (str, optional): The name of the data set's folder.
            (default: that of the file, or `'table'`)
        transform (callable, optional): Applied to a system on each access.
        pre_transform (callable, optional): Applied once, before saving, such
            as :class:`~pyg_fnri.transforms.NearestNeighbours`.
        pre_filter (callable, optional): Which systems to keep.
        force_reload (bool): Whether to read it again. (default: `False`)

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If a Parquet file is to be read without pyarrow.
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument is out of range, or the data are wrong.
        OSError: If `root` cannot be written to, or has no room.
        RuntimeError: If a stored file cannot be loaded.
    """
    def __init__(
        self,
        root: str,
        table: Source,
        split: str = 'all',
        *,
        system: Optional[str] = None,
        time: str = 'time',
        particle: str = 'particle',
        position: Optional[Sequence[Feature]] = None,
        velocity: Optional[Sequence[Feature]] = None,
        mass: Optional[Feature] = None,
        time_step: Optional[float] = None,
        max_gap: int = 0,
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
    ) -> None:
        self._reading = Reading(system, time, particle, position, velocity,
                                mass, time_step, max_gap)
        self._cut = Cut(split, fractions, split_by, seed, window, stride)
        self._sources: dict[str, Source] = {
            key: source
            for key, source in (('table', table), ('edges', edges),
                                ('interactions', interactions))
            if source is not None
        }
        recipe = {
            'version': VERSION,
            'reading': self._reading,
            'cut': self._cut,
            **{
                # How a file is read depends on the end of its name.
                key: f'array={is_array(source)} {content_digest(source)}'
                for key, source in self._sources.items()
            },
        }
        super().__init__(root, folder_name(name, table), split, recipe,
                         transform, pre_transform, pre_filter, force_reload)
        del self._sources  # Tables are large, and data sets are pickled.
        for fact in ('filled', 'left_out'):
            if self.facts[fact]:
                warnings.warn(self.facts[fact], stacklevel=2)

    @property
    def system_names(self) -> list[Name]:
        """The name of each system; of a window, `NAME/START` with the number
        of its first frame in the recording."""
        return [self.facts['system_names'][i] for i in self.indices()]

    @property
    def particle_names(self) -> list[list[Name]]:
        """The names of each system's particles, in the order of `x`."""
        return [self.facts['particle_names'][i] for i in self.indices()]

    @property
    def one_way(self) -> str:
        """Which true types depend on the direction, in a sentence; empty if
        none do. Of all splits."""
        return self.facts['one_way']

    @property
    def time_step(self) -> float:
        """The time from one frame to the next, in seconds where the table
        holds dates."""
        return self.facts['time_step']

    def make(self) -> tuple[Joined, dict[str, Any]]:
        recordings, derive = self._reading.read(self._sources['table'])
        facts: dict[str, Any] = {
            'time_step': recordings[0].time_step,
            'filled': report_filled(recordings),
            'left_out': '',
            'one_way': '',
        }
        edge_index: Sequence[Any] = [None] * len(recordings)
        if 'edges' in self._sources:
            edge_index = candidate_edges(read_table(self._sources['edges']),
                                         recordings)
        labels: Sequence[Any] = [None] * len(recordings)
        if 'interactions' in self._sources:
            labels, facts['layers'], facts['num_edge_types'] = true_types(
                read_table(self._sources['interactions']), recordings)
            facts['one_way'] = report_one_way(labels, recordings)

        systems: list[Data] = []
        names: list[tuple[Name, list[Name]]] = []
        num_true: list[int] = []
        for number, block, parts in self._cut.parts(recordings):
            recording = recordings[number]
            if derive:
                recording = self._cut.with_velocity(recording, block)
            for part in parts:
                systems.append(
                    from_trajectory(recording.x[:, part.start:part.stop],
                                    labels[number], edge_index[number],
                                    recording.mass))
                name = recording.name if self._cut.window is None else (
                    f'{recording.name}/{part.start}')
                names.append((name, list(recording.particles)))
                if 'interactions' in self._sources:
                    num_true.append(int((labels[number] > 0).sum()))
        joined, kept = self.prepare(systems)
        if num_true:
            facts['left_out'] = report_left_out(
                sum(num_true[k] for k in kept),
                int((joined[0].edge_label > 0).sum()))
        facts['system_names'] = [names[k][0] for k in kept]
        facts['particle_names'] = [names[k][1] for k in kept]
        return joined, facts
