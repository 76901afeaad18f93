"""Data sets as a checkpoint describes them, to be opened again.

A description is a plain dictionary, which :class:`~pyg_fnri.training.Config`
keeps: the arguments of a simulated data set, or of a user's own files.
"""
import glob
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Optional, Union

from pyg_fnri.datasets.nri_folder import NRIFolder
from pyg_fnri.datasets.particle_systems import ParticleSystems
from pyg_fnri.datasets.reading import content_digest, is_array
from pyg_fnri.datasets.trajectory_table import TrajectoryTable
from pyg_fnri.transforms import NearestNeighbours, WithinRadius

Systems = Union[ParticleSystems, TrajectoryTable, NRIFolder]
#: The unit of what the user's own data hold, which they do not tell.
OWN_UNIT = 'unit of the data'


def describe_files(
    data: str,
    edges: Optional[str] = None,
    interactions: Optional[str] = None,
    *,
    num_observed: int,
    window: Optional[int] = None,
    stride: Optional[int] = None,
    neighbours: Optional[int] = None,
    radius: Optional[float] = None,
    directed: bool = False,
    seed: int = 0,
    reading: Optional[Mapping[str, Any]] = None,
) -> dict[str, Any]:
    """Describes a user's own trajectories. Their files are known by place and
    content, so that other trajectories of the same name are told apart.

    Args:
        data (str): The trajectories, as for
            :class:`~pyg_fnri.datasets.TrajectoryTable`; or a folder, as for
            :class:`~pyg_fnri.datasets.NRIFolder`, which has splits and, where
            it is known, the truth of its own.
        edges (str, optional): The candidate edges. (default: all pairs)
        interactions (str, optional): The truth, where it is known.
        num_observed (int): The frames that the encoder sees; candidate edges
            depend on no others.
        window, stride, seed: As for
            :class:`~pyg_fnri.datasets.TrajectoryTable`.
        neighbours (int, optional): Keep only the candidate edges from so many
            nearest neighbours.
        radius (float, optional): Keep only those between particles that come
            so close.
        directed (bool): Whether a near neighbour is one in one direction
            only. (default: `False`)
        reading (mapping, optional): How the trajectories are read: arguments
            of :class:`~pyg_fnri.datasets.reading.Reading`; of a folder,
            `time_step` alone.
    """
    if neighbours is not None and radius is not None:
        raise ValueError('Candidate edges are chosen by neighbours or by '
                         'radius, but both were given; leave one of them out.')
    folder = os.path.isdir(data)
    own = {
        'edges': edges,
        'interactions': interactions,
        'window': window,
        'stride': stride,
        **(reading or {})
    }
    for name, value in own.items():
        if folder and value is not None and name != 'time_step':
            raise ValueError(
                f"'{data}' is a folder, whose arrays tell systems, "
                f"features and interactions by themselves; leave "
                f"out {name}={value}, or name a file.")
    files = {
        kind: os.path.abspath(path)
        for kind, path in (('folder' if folder else 'table', data),
                           ('edges', edges), ('interactions', interactions))
        if path is not None
    }
    return {
        'files': files,
        'digests': {
            kind: _digest(path)
            for kind, path in files.items()
        },
        'num_observed': num_observed,
        'window': window,
        'stride': stride,
        'neighbours': neighbours,
        'radius': radius,
        'directed': directed,
        'seed': seed,
        'reading': dict(reading or {}),
    }


def open_dataset(
    description: Mapping[str, Any],
    root: str,
    split: str,
    transform: Optional[Callable] = None,
    data: Optional[str] = None,
) -> Systems:
    """Opens a data set, and makes it first if need be.

    Args:
        description (mapping): What :func:`describe_files` gives; or the
            arguments `name`, `num_particles`, `num_systems`, `seed` and
            `split_by` of :class:`~pyg_fnri.datasets.ParticleSystems`.
        root (str): Where data sets are kept.
        split (str): `'train'`, `'val'` or `'test'`; of files, but not of
            folders, also `'all'`.
        transform (callable, optional): Applied to a system on each access.
        data (str, optional): Where the file or folder of the trajectories is
            now, if it was moved; other files that are not in their place are
            looked for beside it.
    """
    if 'files' not in description:
        if 'num_systems' not in description:
            raise ValueError('The checkpoint does not tell which data set it '
                             'was trained on, as those of the command line do; '
                             'open the data yourself, from Python.')
        return ParticleSystems(root, split=split, transform=transform,
                               **description)
    files = _find(description['files'], data)
    for kind, path in files.items():
        if _digest(path) != description['digests'][kind]:
            raise ValueError(
                f"'{path}' has changed since the model was trained: its "
                f"splits may be others now. Restore the file, train again, or "
                f"infer graphs of all systems, which needs no splits.")
    candidates = _candidates(description)
    if 'folder' in files:
        return NRIFolder(root, files['folder'], split, transform=transform,
                         pre_transform=candidates)
    return TrajectoryTable(root, files['table'], split,
                           window=description['window'],
                           stride=description.get('stride'),
                           seed=description['seed'], edges=files.get('edges'),
                           interactions=files.get('interactions'),
                           transform=transform, pre_transform=candidates,
                           **description.get('reading', {}))


def frame_interval(
    description: Mapping[str, Any],
    dataset: Systems,
) -> Optional[float]:
    """The time from one frame to the next, in seconds or the unit of a
    table's times; None of arrays, which do not tell, unless it was given or
    their velocities are derived by it."""
    if isinstance(dataset, ParticleSystems):
        return dataset.frame_interval
    if isinstance(dataset, NRIFolder):
        return description.get('reading', {}).get('time_step')
    return dataset.time_step


def length_unit(dataset: Systems) -> str:
    """The unit of positions, as axes of pictures have it; data of the
    user's own may be in any."""
    return 'm' if isinstance(dataset, ParticleSystems) else OWN_UNIT


def box_half_width(dataset: Systems) -> Optional[float]:
    """Metres from the origin to each wall; None where there is none, and of
    the user's own data, which do not tell."""
    system = getattr(dataset, 'system', None)
    return getattr(system, 'box_half_width', None)


def remembered_reading(description: Mapping[str, Any],
                       data: str) -> dict[str, Any]:
    """How other trajectories are read as those described were: the `reading`
    of :func:`describe_files`. It says nothing if one is a table and the other
    an array, as features then have no names in common."""
    table = description.get('files', {}).get('table')
    if (table is None or os.path.isdir(data)
            or is_array(table) != is_array(data)):
        return {}
    return dict(description.get('reading', {}))


def check_directions(dataset: Systems, undirected: bool) -> None:
    """Makes sure that a model of undirected graphs is not measured by a truth
    that it cannot give.

    Args:
        dataset: With the truth, where it is known.
        undirected (bool): Whether the model infers one type for both
            directions of a pair.
    """
    one_way = getattr(dataset, 'one_way', '')
    if undirected and one_way:
        raise ValueError(
            f'{one_way} The model infers one type for both directions. Make '
            f'it directed, with a type of each; or, if interactions have no '
            f'direction, list both in the truth.')


def _find(files: Mapping[str, str], data: Optional[str]) -> dict[str, str]:
    """Where the files of a description are now."""
    out = dict(files)
    if data is not None:
        beside = os.path.dirname(os.path.abspath(data))
        for kind, path in files.items():
            if kind in ('table', 'folder'):
                out[kind] = data
            elif not os.path.exists(path):
                out[kind] = os.path.join(beside, os.path.basename(path))
    for path in out.values():
        if not os.path.exists(path):
            raise FileNotFoundError(f"There is no '{path}'; if the data were "
                                    f"moved, name their place by data=PATH.")
    return out


def _candidates(description: Mapping[str, Any]) -> Optional[Callable]:
    """What leaves out candidate edges, if anything."""
    num_observed = description['num_observed']
    if description['neighbours'] is not None:
        return NearestNeighbours(description['neighbours'], num_observed,
                                 force_undirected=not description['directed'])
    if description['radius'] is not None:
        return WithinRadius(description['radius'], num_observed)
    return None


def _digest(path: str) -> str:
    """That of a file's content, or of a folder's arrays."""
    if not os.path.isdir(path):
        return content_digest(path)
    names = sorted(name for kind in ('loc', 'vel', 'edges')
                   for name in glob.glob(f'{kind}_*.npy', root_dir=path))
    text = ''.join(f'{name}: {content_digest(os.path.join(path, name))}\n'
                   for name in names)
    return hashlib.sha256(text.encode()).hexdigest()
