"""Folders of arrays as the NRI and fNRI research code writes them."""
import os
import os.path as osp
import re
import warnings
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.edge_table import report_left_out, report_one_way
from pyg_fnri.datasets.reading import Name, as_floats, content_digest, load
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
        pre_transform (callable, optional): Applied once, on opening.
        pre_filter (callable, optional): Which systems to keep.
        force_reload (bool): Whether to read them again. (default: `False`)
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
        }, transform, pre_transform, pre_filter, force_reload)
        num_true = self.facts['num_true']
        if num_true:
            left_out = report_left_out(sum(num_true[k] for k in self.numbers()),
                                       int((self._data.edge_label > 0).sum()))
            if left_out:
                warnings.warn(left_out, stacklevel=2)

    @property
    def edge_values(self) -> list[list[float]]:
        """The value in the files that each type of each layer stands for."""
        return self.facts['edge_values']

    @property
    def system_names(self) -> list[Name]:
        """The number of each system in the files, from 0 on."""
        return [*self.numbers()]

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
            raise ValueError(f'Positions and velocities in {self.folder!r} '
                             f'must be of one shape, but they are '
                             f'{position.shape} and {velocity.shape}.')
        x = np.concatenate([position, velocity], axis=-1)
        types, values = None, []
        if self._edge_files:
            edges = {
                split: self._edges(file)
                for split, file in self._edge_files.items()
            }
            values = find_values([*edges.values()])
            types = to_types(edges[self.split], values)
            if len(types) != len(x):
                raise ValueError(f'{self.folder!r} holds interactions of '
                                 f'{len(types)} systems, but trajectories of '
                                 f'{len(x)}.')
        systems = []
        for number, of_system in enumerate(x):
            label = None if types is None else types[number]
            try:
                systems.append(from_trajectory(of_system, label))
            except ValueError as error:
                raise ValueError(f'System {number} in {self.folder!r}: '
                                 f'{error}') from error
        facts = {
            'edge_values': [of_layer.tolist() for of_layer in values],
            'num_edge_types': [max(2, len(of_layer)) for of_layer in values],
            'num_particles': x.shape[1],
            'num_true': [],
            'one_way': '',
        }
        if types is not None:
            facts['num_true'] = [int((of > 0).sum()) for of in types]
            facts['one_way'] = report_one_way([*types], [*range(len(types))])
        return self.collate(systems), facts

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
                f'loc_test.npy, with a suffix or without) in {self.folder!r}; '
                f'read other arrays as a TrajectoryTable.')
        if len(found) > 1:
            raise ValueError(f'{self.folder!r} holds several data sets; name '
                             f'one of them by suffix, which is of {found}.')
        return found[0]

    def _file(self, kind: str, split: str) -> str:
        return osp.join(self.folder, f'{kind}_{FILES[split]}{self.suffix}.npy')

    def _features(self, kind: str) -> np.ndarray:
        """Positions or velocities, `[S, N, T, D]`."""
        file = self._file(kind, self.split)
        array = as_floats(load(file)[''])
        if array.ndim != 4 or 0 in array.shape:
            raise ValueError(f'{file!r} must be [num_systems, num_steps, '
                             f'num_dims, num_particles], but it is '
                             f'{list(array.shape)}.')
        return array.transpose(0, 3, 1, 2)

    def _edges(self, file: str) -> np.ndarray:
        """Interactions, `[S, L, N, N]`."""
        array = as_floats(load(file)[''])
        if array.ndim == 3:
            array = array[:, None]
        if array.ndim != 4 or array.shape[2] != array.shape[3]:
            raise ValueError(f'{file!r} must be [num_systems, num_particles, '
                             f'num_particles], or with num_layers after the '
                             f'first, but it is {list(array.shape)}.')
        return array


def find_values(edges: list[np.ndarray]) -> list[np.ndarray]:
    """The values of each layer of interactions `[S, L, N, N]`, in the order of
    their types; what is on the diagonal plays no part."""
    num_layers = {array.shape[1] for array in edges}
    if len(num_layers) > 1:
        raise ValueError(f'All files of interactions must have as many layers, '
                         f'but they have {sorted(num_layers)}.')
    out = []
    for layer in range(*num_layers):
        values = np.unique(
            np.concatenate([
                array[:, layer, ~np.eye(array.shape[2], dtype=bool)].flatten()
                for array in edges
            ]))
        if len(values) > MOST_VALUES or not np.isfinite(values).all():
            raise ValueError(f'Layer {layer} of the interactions has '
                             f'{len(values)} different values, up to '
                             f'{values[-1]}, which cannot be edge types; group '
                             f'them into a few.')
        # Stable: 0 first, the others stay in order.
        out.append(values[np.argsort(values != 0, kind='stable')])
    return out


def to_types(edges: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    """The type of each interaction `[S, L, N, N]`, 0 on the diagonal."""
    types = np.zeros(edges.shape, dtype=np.int64)
    for layer, of_layer in enumerate(values):
        for number, value in enumerate(of_layer):
            types[:, layer][edges[:, layer] == value] = number
    diagonal = np.arange(edges.shape[2])
    types[:, :, diagonal, diagonal] = 0
    return types
