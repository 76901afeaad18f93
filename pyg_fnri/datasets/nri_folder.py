"""Folders of arrays as the NRI and fNRI research code writes them."""
import os
import os.path as osp
import re
from typing import Any, Optional

import numpy as np

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.edge_table import report_one_way
from pyg_fnri.datasets.reading import as_floats, content_digest, load
from pyg_fnri.datasets.stored import Joined, StoredSystems

#: The files' name of each split.
FILES = {'train': 'train', 'val': 'valid', 'test': 'test'}
#: More values than that are no types.
MOST_VALUES = 100


class NRIFolder(StoredSystems):
    r"""The data sets that the research code of NRI and fNRI writes: for each
    of `train`, `valid` and `test`,

    - `loc_train.npy` and `vel_train.npy`: positions and velocities,
      `[S, T, D, N]`,
    - `edges_train.npy`: interactions, `[S, N, N]` (NRI) or `[S, L, N, N]`
      (fNRI), row = receiver and column = sender; may be left out where they
      are not known,

    with a suffix before `.npy` that NRI adds, such as `_springs5`.

    **Edge types** number the values in the files of all splits, in each layer
    by itself: 0, if it occurs, is type 0, no interaction, and the others are
    types 1, 2, ... in ascending order. So {0, 0.5, 1} becomes {0, 1, 2}. Where
    0 does not occur, as in NRI's charged particles with {-1, 1}, the lowest
    value is type 0, as in the research code; no type then means that there is
    no interaction. :obj:`edge_values` tells which value a type was. Values on
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
        suffix (str, optional): What comes before `.npy` in the names of all
            files, such as `'_springs5'`. (default: whatever there is, if it
            is one)
        name (str, optional): The name of the data set's folder.
            (default: that of `folder`, and the suffix)
        **options: `transform`, `pre_transform`, `pre_filter`, `force_reload`,
            as for :class:`~pyg_fnri.datasets.stored.StoredSystems`.
    """
    def __init__(
        self,
        root: str,
        folder: str,
        split: str = 'train',
        suffix: Optional[str] = None,
        name: Optional[str] = None,
        **options: Any,
    ) -> None:
        if split not in FILES:
            raise ValueError(f"split is {split!r}, but must be 'train', 'val' "
                             f"or 'test'.")
        self.folder = os.fspath(folder)
        self.suffix = self._find_suffix() if suffix is None else suffix
        # Types depend on the interactions of all splits.
        self._edge_files = {
            other: self._file('edges', other)
            for other in FILES if osp.isfile(self._file('edges', other))
        }
        if self._edge_files and split not in self._edge_files:
            raise FileNotFoundError(
                f'There is no file {self._file("edges", split)!r}, but other '
                f'splits have theirs; add it, or move them away.')
        files = [self._file(kind, split) for kind in ('loc', 'vel')]
        files += self._edge_files.values()
        recipe = {osp.basename(file): content_digest(file) for file in files}
        if name is None:
            name = osp.basename(osp.abspath(self.folder)) + self.suffix
            name = re.sub(r'[^\w+-]', '_', name)
        super().__init__(root, name, split, {
            'split': split,
            **recipe
        }, **options)

    @property
    def edge_values(self) -> list[list[float]]:
        """The value in the files that each type of each layer stands for."""
        return self.facts['edge_values']

    def make(self) -> tuple[Joined, dict[str, Any]]:
        position, velocity = (self._load(kind, self.split)
                              for kind in ('loc', 'vel'))  # [S, T, D, N]
        x = np.stack([position, velocity], axis=2)  # [S, T, 2, D, N]
        x = x.reshape(*x.shape[:2], -1, x.shape[-1]).transpose(0, 3, 1, 2)
        types: Optional[np.ndarray] = None
        values: list[list[float]] = []
        if self._edge_files:
            types, values = edge_types(
                {
                    split: self._load('edges', split)
                    for split in self._edge_files
                }, self.split)
            if len(types) != len(x):
                raise ValueError(f'{self.folder!r} holds interactions of '
                                 f'{len(types)} systems, but trajectories of '
                                 f'{len(x)}.')
        systems = []
        for number in range(len(x)):
            try:
                systems.append(
                    from_trajectory(x[number],
                                    None if types is None else types[number]))
            except ValueError as error:
                raise ValueError(f'System {number} in {self.folder!r}: '
                                 f'{error}') from error
        facts: dict[str, Any] = {
            'edge_values': values,
            'num_edge_types': [max(2, len(of_layer)) for of_layer in values],
            'system_names': [*range(len(x))],
            'particle_names': [[*range(x.shape[1])]] * len(x),
        }
        if types is not None:
            facts['num_true'] = [int((of > 0).sum()) for of in types]
            facts['one_way'] = report_one_way([*types], facts['system_names'])
        return self.collate(systems), facts

    def _find_suffix(self) -> str:
        found = sorted({
            match[1]
            for match in map(
                re.compile(r'loc_(?:train|valid|test)(.*)\.npy').fullmatch,
                os.listdir(self.folder)) if match
        })
        if len(found) != 1:
            raise FileNotFoundError(
                f'{self.folder!r} must hold positions, loc_train.npy and so '
                f'on, with one suffix before .npy; but there are {found}. Name '
                f'the suffix, or read other arrays as a TrajectoryTable.')
        return found[0]

    def _file(self, kind: str, split: str) -> str:
        return osp.join(self.folder, f'{kind}_{FILES[split]}{self.suffix}.npy')

    def _load(self, kind: str, split: str) -> np.ndarray:
        """An array of four dimensions; interactions are `[S, L, N, N]`."""
        file = self._file(kind, split)
        array = as_floats(load(file)[''])
        if kind == 'edges' and array.ndim == 3:
            array = array[:, None]
        if array.ndim != 4 or 0 in array.shape:
            raise ValueError(f'{file!r} must be an array [num_systems, '
                             f'num_steps, num_dims, num_particles], or '
                             f'[num_systems, num_layers, num_particles, '
                             f'num_particles] of interactions, but it is '
                             f'{list(array.shape)}.')
        return array


def edge_types(edges: dict[str, np.ndarray],
               split: str) -> tuple[np.ndarray, list[list[float]]]:
    """The types of a split's interactions, and the value of each type in each
    layer, by the interactions `[S, L, N, N]` of all splits."""
    if len({array.shape[1:] for array in edges.values()}) > 1:
        raise ValueError('The files of interactions must be of as many layers '
                         'and particles in all splits.')
    types: np.ndarray = np.zeros(edges[split].shape, dtype=np.int64)
    out = []
    for layer in range(types.shape[1]):
        found = np.unique(
            np.concatenate([
                array[:, layer, ~np.eye(array.shape[2], dtype=bool)].flatten()
                for array in edges.values()
            ]))
        if len(found) > MOST_VALUES or not np.isfinite(found).all():
            raise ValueError(f'Layer {layer} of the interactions has '
                             f'{len(found)} different values, up to '
                             f'{found[-1]}, which cannot be edge types; group '
                             f'them into a few.')
        # 0 first, the others in order.
        values = sorted(found.tolist(), key=lambda value: (value != 0, value))
        for number, value in enumerate(values):
            types[:, layer][edges[split][:, layer] == value] = number
        out.append(values)
    diagonal = np.arange(types.shape[2])
    types[:, :, diagonal, diagonal] = 0
    return types, out
