"""Data sets as a checkpoint describes them, by a plain dictionary of the
arguments of a simulated data set, or of a user's own files."""
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from glob import glob
from typing import Any, NamedTuple, Optional, Union, cast

from torch_geometric.data import Data, Dataset

from pyg_fnri.datasets.nri_folder import NRIFolder
from pyg_fnri.datasets.options import SourceOptions
from pyg_fnri.datasets.particle_systems import ParticleSystems
from pyg_fnri.datasets.stored import check_choice
from pyg_fnri.datasets.tables import content_digest, is_array
from pyg_fnri.datasets.trajectory_table import TrajectoryTable, table_of_xarray
from pyg_fnri.simulation import Newtonian
from pyg_fnri.transforms import NearestNeighbours, WithinRadius

Systems = Union[ParticleSystems, TrajectoryTable, NRIFolder]
#: The unit of what the user's own data hold, which they do not tell.
OWN_UNIT = 'unit of the data'
#: The frames that are observed of long systems, if nothing else is said.
MOST_OBSERVED = 49


def describe_files(data: Any, *, num_observed: Optional[int] = None,
                   directed: bool = False, seed: int = 0,
                   **options: Any) -> dict[str, Any]:
    """Describes a user's own trajectories, by place and content of the files.

    Args:
        data: A file or other source for
            :class:`~pyg_fnri.datasets.TrajectoryTable`, or a folder for
            :class:`~pyg_fnri.datasets.NRIFolder`.
        num_observed (int, optional): The frames that candidate edges may depend
            on. (default: all)
        directed (bool): Whether a neighbour may be one in one direction only.
        **options: `split_by`, as for a table, and those of
            :class:`~pyg_fnri.datasets.options.SourceOptions`; of a folder,
            `neighbours`, `radius` and `time_step` alone.
    """
    known = [of.name for of in fields(SourceOptions)] + ['split_by']
    for name in options:
        check_choice('an option', name, known)
    options = {k: value for k, value in options.items() if value is not None}
    neighbours, radius = (options.pop(k, None)
                          for k in ('neighbours', 'radius'))
    if neighbours is not None and radius is not None:
        raise ValueError('Candidate edges are chosen by neighbours or by '
                         'radius, but both were given; leave one of them out.')
    given = not isinstance(data, (str, os.PathLike))
    folder = not given and os.path.isdir(data)
    unused = {k: v for k, v in options.items() if k != 'time_step'}
    if folder and unused:
        raise ValueError(f"'{data}' is a folder, whose arrays tell systems and "
                         f"interactions by themselves; leave {unused} out, or "
                         f"name a file.")
    paths = {} if given else {'folder' if folder else 'table': data}
    paths |= {
        k: options.pop(k)
        for k in ('edges', 'interactions') if k in options
    }
    files = {kind: os.path.abspath(path) for kind, path in paths.items()}
    cuts = {k: options.pop(k, None) for k in ('window', 'stride', 'split_by')}
    return dict(files=files, digests={k: _digest(files[k])
                                      for k in files}, **cuts,
                num_observed=num_observed, neighbours=neighbours, radius=radius,
                directed=directed, seed=seed, reading=options)


def open_dataset(description: Mapping[str, Any], root: str, split: str,
                 transform: Optional[Callable[..., Any]] = None,
                 data: Any = None) -> Systems:
    """Opens, and if need be makes, what :func:`describe_files` or arguments of
    :class:`~pyg_fnri.datasets.ParticleSystems` describe; `data` is where
    trajectories, and files beside them, were moved, or what was described if
    that is no file."""
    if 'files' not in description:
        if 'num_systems' not in description:
            raise ValueError('The checkpoint does not tell which data set it '
                             'was trained on; open the data from Python.')
        return ParticleSystems(root, split=split, transform=transform,
                               **description)
    files: dict[str, Any] = {}
    for kind, path in description['files'].items():
        if data is not None and kind in ('table', 'folder'):
            path = data
        elif isinstance(data, str) and not os.path.exists(path):
            path = os.path.join(os.path.dirname(data), os.path.basename(path))
        files[kind] = path
        if not os.path.exists(path):
            raise FileNotFoundError(f"There is no '{path}'; if the data were "
                                    f"moved, name their place by data=PATH.")
        if _digest(path) != description['digests'][kind]:
            raise ValueError(
                f"'{path}' has changed since the model was trained: its "
                f"splits may be others now. Restore the file, train again, or "
                f"infer graphs of all systems, which needs no splits.")
    if not {'table', 'folder'} & files.keys():
        if data is None:
            raise ValueError('The trajectories were given in Python, by no '
                             'file; write them to one, and name it by '
                             'data=PATH.')
        files['table'] = data
    num_observed, candidates = description['num_observed'], None
    if description['neighbours'] is not None:
        candidates = NearestNeighbours(
            description['neighbours'], num_observed,
            force_undirected=not description['directed'])
    elif description['radius'] is not None:
        candidates = WithinRadius(description['radius'], num_observed)
    if 'folder' in files:
        return NRIFolder(root, files['folder'], split, transform=transform,
                         pre_transform=candidates)
    cuts = {k: description[k] for k in ('window', 'stride', 'split_by', 'seed')}
    return TrajectoryTable(root, split=split, transform=transform,
                           pre_transform=candidates, **files, **cuts,
                           **description['reading'])


class UserData(NamedTuple):
    """Trajectories that a user names, and how to open splits of them."""
    name: str
    root: str
    description: dict[str, Any]
    data: Any = None  # Unless it is a file.

    @classmethod
    def of(cls, data: Any, root: str, directed: bool, seed: int,
           options: Mapping[str, Any]) -> 'UserData':
        options, name, given = dict(options), type(data).__name__, data
        if hasattr(data, 'data_vars'):
            given = table_of_xarray(data, options.pop('keypoint', None))
            options = {'particle': 'individuals', **options}
        elif isinstance(data, Data):
            given = [data]
        elif isinstance(data, Dataset):
            interval = getattr(data, 'frame_interval', None) or getattr(
                data, 'time_step', None)
            options = {'time_step': interval, **options}
            given = list(data)
        elif isinstance(data, (str, os.PathLike)):
            name, given = os.path.basename(os.fspath(data)), None
        if isinstance(given, (list, tuple)) and not given:
            raise ValueError('There are no systems in these data.')
        description = describe_files(data if given is None else given,
                                     directed=directed, seed=seed, **options)
        return cls(name, root, description, given)

    def open(self, split: str, **changes: Any) -> Systems:
        return open_dataset(dict(self.description, **changes), self.root, split,
                            data=self.data)

    def open_whole(self, window: int) -> Systems:
        """All systems, as they are; in windows where particles come and go."""
        split = 'test' if 'folder' in self.description['files'] else 'all'
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # They were heard before.
            try:
                return self.open(split)
            except ValueError:
                if self.description['window'] is not None:
                    raise
            return self.open(split, window=window)


def frame_interval(description: Mapping[str, Any],
                   dataset: Systems) -> Optional[float]:
    """The time from one frame to the next, in seconds or a table's unit."""
    if isinstance(dataset, ParticleSystems):
        return dataset.frame_interval
    if isinstance(dataset, NRIFolder):
        reading = description.get('reading', {})
        return cast(Optional[float], reading.get('time_step'))
    return dataset.time_step


def first_half(dataset: Systems) -> int:
    """How many frames are observed, if nothing else is said."""
    return min(MOST_OBSERVED, int(dataset._data.x.size(1) // 2))


def length_unit(dataset: Any) -> str:
    system = getattr(dataset, 'system', None)  # Oscillators have no metre.
    return 'm' if isinstance(system, Newtonian) else OWN_UNIT


def box_half_width(dataset: Systems) -> Optional[float]:
    """Metres from the origin to each wall; None if not known."""
    system = getattr(dataset, 'system', None)
    return getattr(system, 'box_half_width', None)


def remembered_reading(description: Mapping[str, Any],
                       path: str) -> dict[str, Any]:
    """How to read another file, if both are tables or both arrays."""
    table = description.get('files', {}).get('table')
    if table and not os.path.isdir(path) and is_array(table) == is_array(path):
        return dict(description['reading'])
    return {}


def check_directions(dataset: Systems, undirected: bool) -> None:
    """Makes sure that no truth of two directions measures undirected models."""
    if undirected and dataset.one_way:
        raise ValueError(
            f'{dataset.one_way} The model infers one type for both directions. '
            f'Make it directed, with a type of each; or, if interactions have '
            f'no direction, list both in the truth.')


def _digest(path: str) -> str:
    if not os.path.isdir(path):
        return content_digest(path)
    names = sorted(name for kind in ('loc', 'vel', 'edges')
                   for name in glob(f'{kind}_*.npy', root_dir=path))
    return ' '.join(f'{name}={content_digest(os.path.join(path, name))}'
                    for name in names)
