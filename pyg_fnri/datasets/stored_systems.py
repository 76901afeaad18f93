"""What data sets that are kept under a digest have in common."""
import os
import os.path as osp
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from pyg_fnri.datasets.fingerprint import digest

Joined = tuple[Data, Optional[dict[str, Tensor]]]


class StoredSystems(InMemoryDataset, ABC):
    """Systems in a folder named after a digest of their recipe: nothing that
    has changed ever finds old data.

    A subclass says what is stored, and stores it, in :meth:`process`.

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        name (str): The name of this one's folder.
        split (str): The beginning of the name of the folder therein.
        recipe (str): All that the systems depend on, the filter and transform
            below among it.
        transform (callable, optional): Applied to a system on each access.
        pre_transform (callable, optional): Applied once, before saving.
        pre_filter (callable, optional): Which systems to keep.
        force_reload (bool): Whether to make them again. (default: `False`)

    Raises:
        OSError: If `root` cannot be written to, or has no room.
        RuntimeError: If a stored file cannot be loaded.
    """
    #: What `force_reload` does, in words.
    again = 'make it again'

    def __init__(
        self,
        root: str,
        name: str,
        split: str,
        recipe: str,
        transform: Optional[Callable] = None,
        pre_transform: Optional[Callable] = None,
        pre_filter: Optional[Callable] = None,
        force_reload: bool = False,
    ) -> None:
        self.name, self.split, self.recipe = name, split, recipe
        super().__init__(os.fspath(root), transform, pre_transform, pre_filter,
                         force_reload=force_reload)
        try:
            self.read()
        except Exception as error:  # Damage shows in many ways.
            paths = self.processed_paths
            place = paths[0] if len(paths) == 1 else self.processed_dir
            raise RuntimeError(
                f'Cannot load {place!r} ({error}); if it is damaged, delete '
                f'it, or pass force_reload=True to {self.again}.') from error

    @property
    @abstractmethod
    def num_edge_types(self) -> list[int]:
        """The number of edge types in each layer, type 0 among them."""

    @property
    def num_layer_graphs(self) -> int:
        """The number `L` of layers of the true interaction graph, 0 where it
        is not known."""
        return len(self.num_edge_types)

    @property
    def processed_dir(self) -> str:
        return osp.join(self.root, self.name,
                        f'{self.split}-{digest(self.recipe)}')

    def read(self) -> None:
        """Loads what is stored; the systems are the first file."""
        self.load(self.processed_paths[0])

    def prepare(self, systems: Sequence[Data]) -> tuple[Joined, list[int]]:
        """Filters, transforms and joins systems.

        Returns:
            The systems, joined, and the numbers of those that were kept.

        Raises:
            ValueError: If the filter keeps none of them.
        """
        kept = [
            number for number, data in enumerate(systems)
            if self.pre_filter is None or self.pre_filter(data)
        ]
        if not kept:
            raise ValueError('pre_filter keeps none of the systems; keep at '
                             'least one.')
        out = [systems[number] for number in kept]
        if self.pre_transform is not None:
            out = [self.pre_transform(data) for data in out]
        return self.collate(out), kept

    def _process(self) -> None:
        # PyG would store the representations of `pre_transform` and
        # `pre_filter` as well, outside the lock; the digest holds them.
        if self.force_reload or not osp.exists(self.processed_paths[0]):
            self.process()


def save_text(text: str, path: str) -> None:
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def save_systems(joined: Joined, path: str) -> None:
    """Saves systems for `InMemoryDataset.load`.

    Raises:
        OSError: If they cannot be written.
    """
    data, slices = joined
    try:
        with open(path, 'wb') as file:
            torch.save((data.to_dict(), slices, type(data)), file)
    except RuntimeError as error:  # How torch reports a failed write.
        raise OSError(str(error)) from error
