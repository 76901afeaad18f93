"""Folders of arrays as the NRI and fNRI research code writes them."""
import os
import os.path as osp
import re
import warnings
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.cached_systems import CachedSystems
from pyg_fnri.datasets.edge_table import report_left_out, report_one_way
from pyg_fnri.datasets.edge_values import find_values, to_types
from pyg_fnri.datasets.joined import join
from pyg_fnri.datasets.names import Name
from pyg_fnri.datasets.recording import Recording
from pyg_fnri.datasets.sources import content_digest, folder_name, read_arrays
from pyg_fnri.datasets.splits import SPLITS
from pyg_fnri.datasets.stored_systems import Joined

#: A part of every digest. Raise it whenever other systems are made of the same
#: folder.
VERSION = 2


class NRIFolder(CachedSystems):
    r"""The data sets that the research code of NRI and fNRI writes: for each
    of `train`, `valid` and `test`,

    - `loc_train.npy` and `vel_train.npy`: positions and velocities,
      `[S, T, D, N]`,
    - `edges_train.npy`: interactions, `[S, N, N]` (NRI) or `[S, L, N, N]`
      (fNRI), row = receiver and column = sender; may be left out where they
      are not known,

    with a suffix before `.npy` that NRI adds, such as `_springs5`.

    .. code-block:: python

        train = NRIFolder('datasets', 'data/springcharge_5', split='train',
                          transform=SplitTrajectory(49))

    **Edge types** are consecutive integers, and each value in the files has
    its own, in each layer by itself: 0, if it occurs, is type 0, no
    interaction, and the others are types 1, 2, ... in ascending order. So
    {0, 0.5, 1} and {0, 1, 2} both become {0, 1, 2}. Where 0 does not occur,
    as in NRI's charged particles with {-1, 1}, the lowest value is type 0, as
    in the research code; no type then means that there is no interaction. All
    splits in the folder are looked at together, so that a value has one type
    in all of them. :obj:`edge_values` tells which value a type was. Values on
    the diagonal are left out.

    A system is a plain :class:`~torch_geometric.data.Data` with

    - `x`: positions, then velocities, in the units of the files, `[N, T, 2D]`
      float32,
    - `edge_index`: all ordered pairs, sorted by receiver, `[2, E]`,
    - `edge_label`: types, where they are known, `[E, L]`.

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        folder (str): The folder with the arrays, which are only read.
        split (str): `'train'`, `'val'` (the files' `valid`) or `'test'`.
            (default: `'train'`)
        suffix (str, optional): What comes before `.npy` in the names of all
            files, such as `'_springs5'`. (default: whatever there is, if it
            is one)
        name (str, optional): The name of the data set's folder.
            (default: that of `folder`, and the suffix)
        transform (callable, optional): Applied to a system on each access.
        pre_transform (callable, optional): Applied once, before saving.
        pre_filter (callable, optional): Which systems to keep.
        force_reload (bool): Whether to read them again. (default: `False`)

    Raises:
        FileNotFoundError: If the folder or one of its files is missing.
        ValueError: If an argument is unknown, or an array does not fit.
        OSError: If `root` cannot be written to, or has no room.
        RuntimeError: If a stored file cannot be loaded.
    """
    def __init__(
        self,
        root: str,
        folder: str,
        split: str = 'train',
        suffix: Optional[str] = None,
        name: Optional[str] = None,
        transform: Optional[Callable] = None,
        pre_transform: Optional[Callable] = None,
        pre_filter: Optional[Callable] = None,
        force_reload: bool = False,
    ) -> None:
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}, but must be 'train', 'val' "
                             f"or 'test'.")
        self.folder = os.fspath(folder)
        if not osp.isdir(self.folder):
            raise FileNotFoundError(f'There is no folder {self.folder!r}.')
        self.suffix = self._find_suffix() if suffix is None else suffix
        files = [self._file(kind, split) for kind in ('loc', 'vel')]
        if name is None:
            name = osp.basename(osp.abspath(self.folder)) + self.suffix
            name = re.sub(r'[^\w+-]', '_', name)
        name = folder_name(name, files[0])
        for file in files:
            if not osp.isfile(file):
                raise FileNotFoundError(
                    f'There is no file {file!r}. Expected positions (loc_*) '
                    f'and velocities (vel_*); name the suffix, or read other '
                    f'arrays as a TrajectoryTable.')
        # Types depend on the interactions of all splits.
        edge_files = self._edge_files()
        own = self._file('edges', split)
        if edge_files and own not in edge_files:
            raise FileNotFoundError(f'There is no file {own!r}, but other '
                                    f'splits have theirs; add it, or move '
                                    f'them away.')
        recipe = {
            'version': VERSION,
            'split': split,
            **{
                osp.basename(file): content_digest(file)
                for file in files + edge_files
            },
        }
        super().__init__(root, name, split, recipe, transform, pre_transform,
                         pre_filter, force_reload)
        if self.facts['left_out']:
            warnings.warn(self.facts['left_out'], stacklevel=2)

    @property
    def edge_values(self) -> list[list[float]]:
        """The value in the files that each type of each layer stands for."""
        return self.facts['edge_values']

    @property
    def system_names(self) -> list[Name]:
        """The number of each system in the files, from 0 on."""
        return [self.facts['systems'][i] for i in self.indices()]

    @property
    def particle_names(self) -> list[list[Name]]:
        """The numbers of each system's particles, in the order of `x`."""
        return [[*range(self.facts['num_particles'])] for _ in self.indices()]

    @property
    def one_way(self) -> str:
        """Which types of the split depend on the direction, in a sentence;
        empty if none do."""
        return self.facts['one_way']

    def make(self) -> tuple[Joined, dict[str, Any]]:
        position, velocity = (self._features(kind) for kind in ('loc', 'vel'))
        if position.shape != velocity.shape:
            raise ValueError(
                f'Positions and velocities must be of one shape, but they are '
                f'{list(position.shape)} and {list(velocity.shape)} in '
                f'{self.folder!r}.')
        edges = {file: self._edges(file) for file in self._edge_files()}
        values = find_values(edges)
        types = None
        if edges:
            types = self._types(edges, values, position)
        facts: dict[str, Any] = {
            'edge_values': [of_layer.tolist() for of_layer in values],
            'num_edge_types': [max(2, len(of_layer)) for of_layer in values],
            'systems': [*range(len(position))],
            'num_particles': position.shape[1],
            'left_out': '',
            'one_way': '',
        }
        x = np.concatenate([position, velocity], axis=-1)
        if types is not None and (types != types.swapaxes(2, 3)).any():
            facts['one_way'] = report_one_way(list(types), [
                Recording(s, range(x.shape[1]), x[s], 1.) for s in range(len(x))
            ])
        if (types is None or self.pre_filter is not None
                or self.pre_transform is not None):
            systems: list[Data] = [
                from_trajectory(x[s], None if types is None else types[s])
                for s in range(len(x))
            ]
            joined, facts['systems'] = self.prepare(systems)
            if types is not None:
                facts['left_out'] = report_left_out(
                    int((types[facts['systems']] > 0).sum()),
                    int((joined[0].edge_label > 0).sum()))
            return joined, facts
        # The same, for all at once.
        return join(x, types), facts

    def _find_suffix(self) -> str:
        pattern = re.compile(r'loc_(?:train|valid|test)(.*)\.npy')
        found = sorted({
            match[1]
            for match in map(pattern.fullmatch, os.listdir(self.folder))
            if match
        })
        if not found:
            raise FileNotFoundError(
                f'There are no positions (loc_train.npy, loc_valid.npy or '
                f'loc_test.npy, with a suffix or without) in '
                f'{self.folder!r}.')
        if len(found) > 1:
            raise ValueError(f'{self.folder!r} holds several data sets, with '
                             f'the suffixes {found}; name one of them.')
        return found[0]

    def _file(self, kind: str, split: str) -> str:
        split = 'valid' if split == 'val' else split
        return osp.join(self.folder, f'{kind}_{split}{self.suffix}.npy')

    def _edge_files(self) -> list[str]:
        files = [self._file('edges', split) for split in SPLITS]
        return [file for file in files if osp.isfile(file)]

    def _features(self, kind: str) -> np.ndarray:
        """Positions or velocities, `[S, N, T, D]` float32."""
        file = self._file(kind, self.split)
        array = read_arrays(file)['']
        if array.ndim != 4 or 0 in array.shape or array.dtype.kind != 'f':
            raise ValueError(
                f'{file!r} must hold floating point numbers [num_systems, '
                f'num_steps, num_dims, num_particles], but it is '
                f'{list(array.shape)} {array.dtype}.')
        if array.shape[3] < 2:
            raise ValueError(f'{file!r} holds systems of '
                             f'{array.shape[3]} particle, but a graph of '
                             f'interactions needs at least 2.')
        with np.errstate(over='ignore'):  # Found below.
            array = array.astype(np.float32)
        if not np.isfinite(array).all():
            system, step, dim, particle = np.argwhere(
                ~np.isfinite(array))[0].tolist()
            raise ValueError(
                f'{file!r} must hold finite float32 numbers, but the one of '
                f'system {system}, step {step}, dimension {dim}, particle '
                f'{particle} is {array[system, step, dim, particle]}.')
        return np.ascontiguousarray(array.transpose(0, 3, 1, 2))

    def _edges(self, file: str) -> np.ndarray:
        """Interactions, `[S, L, N, N]`, 0 on the diagonal."""
        array = read_arrays(file)['']
        if array.ndim == 3:
            array = array[:, None]
        if (array.ndim != 4 or array.shape[2] != array.shape[3]
                or array.dtype.kind not in 'biuf'
                or not np.isfinite(array).all()):
            raise ValueError(
                f'{file!r} must hold finite numbers [num_systems, '
                f'num_particles, num_particles] or [num_systems, num_layers, '
                f'num_particles, num_particles], but it is '
                f'{list(array.shape)} {array.dtype}.')
        return array

    def _types(self, edges: dict[str, np.ndarray], values: list[np.ndarray],
               position: np.ndarray) -> np.ndarray:
        """Types `[S, L, N, N]` int64 of the split's interactions."""
        file = self._file('edges', self.split)
        num_systems, num_particles = position.shape[:2]
        shape = edges[file].shape
        if (shape[0], shape[2]) != (num_systems, num_particles):
            raise ValueError(
                f'{file!r} must hold the interactions of {num_systems} systems '
                f'of {num_particles} particles, but its shape is '
                f'{list(shape)}.')
        return to_types(edges[file], values)
