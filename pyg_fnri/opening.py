"""Data sets as a checkpoint describes them, to be opened again.

A description is a plain dictionary, which :class:`~pyg_fnri.training.Config`
keeps: the arguments of a simulated data set, or of a user's own files.
"""
import os
from collections.abc import Callable, Mapping
from typing import Any, Optional, Union

from pyg_fnri.datasets import ParticleSystems, TrajectoryTable
from pyg_fnri.datasets.sources import content_digest, is_array
from pyg_fnri.transforms import NearestNeighbours, WithinRadius

Systems = Union[ParticleSystems, TrajectoryTable]


def describe_files(
    table: str,
    edges: Optional[str] = None,
    interactions: Optional[str] = None,
    *,
    num_observed: int,
    window: Optional[int] = None,
    neighbours: Optional[int] = None,
    radius: Optional[float] = None,
    directed: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Describes a user's own trajectories. Their files are known by place and
    content, so that other trajectories of the same name are told apart.

    Args:
        table (str): The trajectories, as for
            :class:`~pyg_fnri.datasets.TrajectoryTable`.
        edges (str, optional): The candidate edges. (default: all pairs)
        interactions (str, optional): The truth, where it is known.
        num_observed (int): The frames that the encoder sees; candidate edges
            depend on no others.
        window (int, optional): The frames of a system.
            (default: whole recordings)
        neighbours (int, optional): Keep only the candidate edges from so many
            nearest neighbours.
        radius (float, optional): Keep only those between particles that come
            so close.
        directed (bool): Whether a near neighbour is one in one direction
            only. (default: `False`)
        seed (int): Seed of the split by system. (default: 0)

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If both, neighbours and a radius, are given.
    """
    if neighbours is not None and radius is not None:
        raise ValueError('Candidate edges are chosen by neighbours or by '
                         'radius, but both were given; leave one of them out.')
    files = {
        kind: os.path.abspath(path)
        for kind, path in (('table', table), ('edges', edges),
                           ('interactions', interactions)) if path is not None
    }
    return {
        'files': files,
        'digests': {
            kind: content_digest(f)
            for kind, f in files.items()
        },
        'num_observed': num_observed,
        'window': window,
        'neighbours': neighbours,
        'radius': radius,
        'directed': directed,
        'seed': seed,
    }


def open_dataset(
    description: Mapping[str, Any],
    root: str,
    split: str,
    transform: Optional[Callable] = None,
) -> Systems:
    """Opens a data set, and makes it first if need be.

    Args:
        description (mapping): What :func:`describe_files` gives; or the
            arguments `name`, `num_particles`, `num_systems`, `seed` and
            `split_by` of :class:`~pyg_fnri.datasets.ParticleSystems`.
        root (str): Where data sets are kept.
        split (str): `'train'`, `'val'` or `'test'`; of files also `'all'`.
        transform (callable, optional): Applied to a system on each access.

    Raises:
        FileNotFoundError: If a file is no longer there.
        ValueError: If the description is none, a file has changed since, or
            the data are wrong.
        OSError: If `root` cannot be written to, or has no room.
        RuntimeError: If a stored file cannot be loaded.
    """
    if 'files' in description:
        return _open_files(description, root, split, transform)
    if 'num_systems' not in description:
        raise ValueError('The checkpoint does not tell which data set it was '
                         'trained on; expected one that scripts/train.py has '
                         'written. From Python, any data set can be used: '
                         'pyg_fnri.evaluation.evaluate, '
                         'pyg_fnri.inference.fit_force_laws.')
    arguments = dict(description)
    arguments['num_systems'] = tuple(arguments['num_systems'])
    return ParticleSystems(root, split=split, transform=transform, **arguments)


def frame_interval(
    description: Mapping[str, Any],
    dataset: Systems,
) -> Optional[float]:
    """The time from one frame to the next, in seconds or the unit of a
    table's times; None of arrays, which do not tell."""
    if isinstance(dataset, ParticleSystems):
        return dataset.frame_interval
    if is_array(description['files']['table']):
        return None
    return dataset.time_step


def _open_files(
    description: Mapping[str, Any],
    root: str,
    split: str,
    transform: Optional[Callable],
) -> TrajectoryTable:
    files = description['files']
    for kind, path in files.items():
        if content_digest(path) != description['digests'][kind]:
            raise ValueError(
                f"'{path}' has changed since the model was trained: its "
                f"splits may be others now. Restore the file, train again, or "
                f"use scripts/infer.py, which needs no splits.")
    return TrajectoryTable(root, files['table'], split,
                           window=description['window'],
                           seed=description['seed'], edges=files.get('edges'),
                           interactions=files.get('interactions'),
                           transform=transform,
                           pre_transform=_candidates(description))


def _candidates(description: Mapping[str, Any]) -> Optional[Callable]:
    """What leaves out candidate edges, if anything."""
    num_observed = description['num_observed']
    if description['neighbours'] is not None:
        return NearestNeighbours(description['neighbours'], num_observed,
                                 force_undirected=not description['directed'])
    if description['radius'] is not None:
        return WithinRadius(description['radius'], num_observed)
    return None
