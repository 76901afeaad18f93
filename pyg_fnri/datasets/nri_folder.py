"""Folders of arrays as the NRI and fNRI research code writes them."""
import os
import os.path as osp
import re
from glob import glob
from typing import Any, Optional, cast

import numpy as np

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.stored import (SPLITS, Joined, StoredSystems, as_folder,
                                      check_choice)
from pyg_fnri.datasets.tables import (as_floats, content_digest, load,
                                      report_one_way)

MOST_VALUES = 100  # More are no types.


class NRIFolder(StoredSystems):
    """The data sets that the research code of NRI and fNRI writes: for each
    of `train`, `valid` and `test`, with a suffix of NRI such as `_springs5`,

    - `loc_train.npy` and `vel_train.npy`: `[S, T, D, N]`,
    - `edges_train.npy`, if known: interactions, `[S, N, N]` (NRI) or
      `[S, L, N, N]` (fNRI), row = receiver and column = sender.

    **Edge types** number the values off the diagonal of each layer, over all
    splits: 0 is type 0, no interaction, and the others follow in ascending
    order. Where 0 does not occur, as in NRI's charged particles (-1, 1), the
    lowest value is type 0, and all pairs interact.

    A system has `x` `[N, T, 2D]` in the units of the files, all ordered pairs
    as `edge_index`, and `edge_label` `[E, L]` if known.

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        folder (str): The folder with the arrays, which are only read.
        split (str): `'train'`, `'val'` (the files' `valid`) or `'test'`.
        suffix (str, optional): Before `.npy`. (default: the only one there is)
        name (str, optional): Of the folder. (default: `folder` and suffix)
        **options: `transform`, `pre_transform`, `pre_filter`, `force_reload`.
    """
    def __init__(self, root: str, folder: str, split: str = 'train',
                 suffix: Optional[str] = None, name: Optional[str] = None,
                 **options: Any) -> None:
        check_choice('split', split, SPLITS)
        self.folder, self.split = os.fspath(folder), split
        if suffix is None:
            found = {
                re.sub('^loc_(train|valid|test)|.npy$', '', path)
                for path in glob('loc_*.npy', root_dir=self.folder)
            }
            if len(found) != 1:
                raise FileNotFoundError(
                    f'{self.folder!r} must hold positions, loc_train.npy and '
                    f'so on, with one suffix before .npy, but there are '
                    f'{sorted(found)}; name the suffix.')
            suffix, = found
        self.suffix = suffix
        # Types depend on the interactions of all splits.
        self._labelled = [
            other for other in SPLITS if osp.isfile(self._file('edges', other))
        ]
        files = [self._file(kind, split) for kind in ('loc', 'vel')]
        if self._labelled:  # Then those of this split must be there, too.
            others = dict.fromkeys([*self._labelled, split])
            files += [self._file('edges', other) for other in others]
        recipe = {osp.basename(file): content_digest(file) for file in files}
        if name is None:
            name = as_folder(osp.abspath(self.folder) + self.suffix)
        super().__init__(root, name, split, recipe, **options)

    @property
    def edge_values(self) -> list[list[float]]:
        """The value in the files of each type of each layer."""
        return cast(list[list[float]], self.facts['edge_values'])

    def make(self) -> tuple[Joined, dict[str, Any]]:
        position, velocity = (self._load(kind, self.split)
                              for kind in ('loc', 'vel'))  # [S, T, D, N]
        x = np.stack([position, velocity], axis=2)  # [S, T, 2, D, N]
        x = x.reshape(*x.shape[:2], -1, x.shape[-1]).transpose(0, 3, 1, 2)
        names = [*range(len(x))]
        facts = dict[str, Any](edge_values=[], system_names=names,
                               particle_names=[[*range(x.shape[1])]] * len(x))
        types: Any = [None] * len(x)
        if self._labelled:
            types, facts['edge_values'] = edge_types(
                {other: self._load('edges', other)
                 for other in self._labelled}, self.split)
            facts['num_true'] = [int((of > 0).sum()) for of in types]
            facts['one_way'] = report_one_way([*types], names)
        facts['num_edge_types'] = [
            max(2, len(of_layer)) for of_layer in facts['edge_values']
        ]
        systems = []
        for number, system in enumerate(zip(x, types, strict=True)):
            try:
                systems.append(from_trajectory(*system, axes='NTF'))
            except ValueError as error:
                raise ValueError(f'System {number} in {self.folder!r}: '
                                 f'{error}') from error
        return self.collate(systems), facts

    def _file(self, kind: str, split: str) -> str:
        split = 'valid' if split == 'val' else split
        return osp.join(self.folder, f'{kind}_{split}{self.suffix}.npy')

    def _load(self, kind: str, split: str) -> np.ndarray:
        file = self._file(kind, split)
        array = as_floats(load(file)[''])
        if kind == 'edges' and array.ndim == 3:
            array = array[:, None]
        if array.ndim != 4 or 0 in array.shape:
            raise ValueError(f'{file!r} must be an array [S, T, D, N], or '
                             f'[S, L, N, N] of interactions, but it is '
                             f'{list(array.shape)}.')
        return array


def edge_types(edges: dict[str, np.ndarray],
               split: str) -> tuple[np.ndarray, list[list[float]]]:
    """A split's types `[S, L, N, N]`, and the value of each, by layer."""
    joined = np.concatenate([*edges.values()])
    off_diagonal = ~np.eye(joined.shape[2], dtype=bool)
    types: np.ndarray = np.zeros(edges[split].shape, dtype=np.int64)
    out = []
    for layer in range(types.shape[1]):
        found = np.unique(joined[:, layer, off_diagonal])
        if len(found) > MOST_VALUES or not np.isfinite(found).all():
            raise ValueError(f'Layer {layer} of the interactions has '
                             f'{len(found)} values, up to {found[-1]}; group '
                             f'them into a few edge types.')
        # 0 first, the others in order.
        values = sorted(found.tolist(), key=lambda value: (value != 0, value))
        for number, value in enumerate(values):
            types[:, layer][edges[split][:, layer] == value] = number
        out.append(values)
    return types * off_diagonal, out
