"""Data sets as a checkpoint describes them, by a plain dictionary of the
arguments of a simulated data set, or of a user's own files."""
import os
from collections.abc import Callable, Mapping
from glob import glob
from typing import Any, Optional, Union

from pyg_fnri.datasets.nri_folder import NRIFolder
from pyg_fnri.datasets.particle_systems import ParticleSystems
from pyg_fnri.datasets.reading import content_digest, is_array
from pyg_fnri.datasets.trajectory_table import TrajectoryTable
from pyg_fnri.simulation import Newtonian
from pyg_fnri.transforms import NearestNeighbours, WithinRadius

Systems = Union[ParticleSystems, TrajectoryTable, NRIFolder]
#: The unit of what the user's own data hold, which they do not tell.
OWN_UNIT = 'unit of the data'
#: The frames that are observed of long systems, if nothing else is said.
MOST_OBSERVED = 49


def describe_files(
        data: Any, edges: Optional[str] = None,
        interactions: Optional[str] = None, *,
        num_observed: Optional[int] = None, window: Optional[int] = None,
        stride: Optional[int] = None, split_by: Optional[str] = None,
        neighbours: Optional[int] = None, radius: Optional[float] = None,
        directed: bool = False, seed: int = 0,
        reading: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:
    """Describes a user's own trajectories, by place and content of the files.

    Args:
        data: A file or other source for
            :class:`~pyg_fnri.datasets.TrajectoryTable`, or a folder for
            :class:`~pyg_fnri.datasets.NRIFolder`.
        num_observed (int, optional): The frames that candidate edges may depend
            on. (default: all)
        neighbours (int, optional): Keep only edges from the nearest so many.
        radius (float, optional): Keep only edges of pairs that come so close.
        directed (bool): Whether a neighbour may be one in one direction only.
        reading (mapping, optional): Arguments of
            :class:`~pyg_fnri.datasets.reading.Reading`; of a folder,
            `time_step` alone.
    """
    if neighbours is not None and radius is not None:
        raise ValueError('Candidate edges are chosen by neighbours or by '
                         'radius, but both were given; leave one of them out.')
    given = not isinstance(data, (str, os.PathLike))
    folder = not given and os.path.isdir(data)
    paths = dict(edges=edges, interactions=interactions)
    settings = dict(window=window, stride=stride, split_by=split_by)
    unused = {**paths, **settings, **(reading or {}), 'time_step': None}
    unused = {k: value for k, value in unused.items() if value is not None}
    if folder and unused:
        raise ValueError(f"'{data}' is a folder, whose arrays tell systems and "
                         f"interactions by themselves; leave {unused} out, or "
                         f"name a file.")
    files = {
        kind: os.path.abspath(path)
        for kind, path in (('folder' if folder else 'table',
                            None if given else data), *paths.items())
        if path is not None
    }
    digests = {kind: _digest(path) for kind, path in files.items()}
    return dict(files=files, digests=digests, **settings,
                num_observed=num_observed, neighbours=neighbours, radius=radius,
                directed=directed, seed=seed, reading=dict(reading or {}))


def open_dataset(description: Mapping[str, Any], root: str, split: str,
                 transform: Optional[Callable] = None,
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
    kept = {
        name: description[name]
        for name in ('window', 'stride', 'split_by', 'seed')
    }
    return TrajectoryTable(root, split=split, transform=transform,
                           pre_transform=candidates, **files, **kept,
                           **description['reading'])


def frame_interval(description: Mapping[str, Any],
                   dataset: Systems) -> Optional[float]:
    """The time from one frame to the next, in seconds or a table's unit."""
    if isinstance(dataset, ParticleSystems):
        return dataset.frame_interval
    if isinstance(dataset, NRIFolder):
        return description['reading'].get('time_step')
    return dataset.time_step


def first_half(dataset: Systems) -> int:
    """How many frames are observed, if nothing else is said."""
    return min(MOST_OBSERVED, dataset._data.x.size(1) // 2)


def length_unit(dataset: Any) -> str:
    system = getattr(dataset, 'system', None)  # Oscillators have no metre.
    return 'm' if isinstance(system, Newtonian) else OWN_UNIT


def box_half_width(dataset: Systems) -> Optional[float]:
    """Metres from the origin to each wall; None if not known."""
    system = getattr(dataset, 'system', None)
    return getattr(system, 'box_half_width', None)


def remembered_reading(description: Mapping[str, Any],
                       data: Any) -> dict[str, Any]:
    """How to read other trajectories, if both are tables or both arrays."""
    table = description.get('files', {}).get('table')
    folder = isinstance(data, (str, os.PathLike)) and os.path.isdir(data)
    if table and not folder and is_array(table) == is_array(data):
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
