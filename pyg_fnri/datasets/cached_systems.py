"""Data sets of systems that are made once and kept under a digest."""
import functools
import json
import os
import os.path as osp
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from .fingerprint import describe, digest
from .storage import save_once

Joined = tuple[Data, Optional[dict[str, Tensor]]]


class CachedSystems(InMemoryDataset, ABC):
    """Systems that are made of something, once, and kept in a folder named
    after a digest of all that they were made of: nothing that has changed ever
    finds old data.

    A subclass says what its systems are made of and makes them, in
    :meth:`make`. Next to the systems, it can keep facts about them.

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        name (str): The name of this one's folder.
        split (str): The beginning of the name of the folder therein.
        recipe (mapping): All that the systems depend on besides the filter
            and transform below: the content of files, and arguments.
        transform (callable, optional): Applied to a system on each access.
        pre_transform (callable, optional): Applied once, before saving.
        pre_filter (callable, optional): Which systems to keep.
        force_reload (bool): Whether to make them again. (default: `False`)

    Raises:
        OSError: If `root` cannot be written to, or has no room.
        RuntimeError: If a stored file cannot be loaded.
    """
    #: What is known of the systems, in words and numbers.
    facts: dict[str, Any]

    def __init__(
        self,
        root: str,
        name: str,
        split: str,
        recipe: Mapping[str, Any],
        transform: Optional[Callable] = None,
        pre_transform: Optional[Callable] = None,
        pre_filter: Optional[Callable] = None,
        force_reload: bool = False,
    ) -> None:
        self.name = name
        self.split = split
        self.recipe = ''.join(
            f'{key}: {value}\n' for key, value in {
                'class': type(self).__name__,
                **recipe,
                'pre_transform': describe(pre_transform),
                'pre_filter': describe(pre_filter),
            }.items())
        super().__init__(os.fspath(root), transform, pre_transform, pre_filter,
                         force_reload=force_reload)
        systems, facts, _ = self.processed_paths
        try:
            self.load(systems)
            with open(facts, encoding='utf-8') as file:
                self.facts = json.load(file)
        except Exception as error:  # Damage shows in many ways.
            raise RuntimeError(
                f'Cannot load {self.processed_dir!r} ({error}); if it is '
                f'damaged, delete it, or pass force_reload=True to make it '
                f'again.') from error

    @abstractmethod
    def make(self) -> tuple[Joined, dict[str, Any]]:
        """The systems, joined as `InMemoryDataset.collate` does, and facts
        that JSON can hold."""

    @property
    def names(self) -> list[str]:
        """The name of each layer of the true interaction graph, where it is
        known."""
        return [str(name) for name in self.facts.get('layers', [])]

    @property
    def num_edge_types(self) -> list[int]:
        """The number of true edge types in each layer; none, where the truth
        is not known."""
        return list(self.facts.get('num_edge_types', []))

    @property
    def num_layer_graphs(self) -> int:
        """The number of layers of the true interaction graph, or 0."""
        return len(self.num_edge_types)

    @property
    def processed_dir(self) -> str:
        return osp.join(self.root, self.name,
                        f'{self.split}-{digest(self.recipe)}')

    @property
    def processed_file_names(self) -> list[str]:
        return ['systems.pt', 'facts.json', 'recipe.txt']

    def process(self) -> None:
        """Makes the systems, unless another process has just done so."""
        systems, facts, recipe = self.processed_paths
        make = functools.cache(self.make)
        # The systems come last: where they are, the others are too.
        for path, save in [
            (recipe, lambda path: _save_text(self.recipe, path)),
            (facts, lambda path: _save_text(json.dumps(make()[1]), path)),
            (systems, lambda path: _save_systems(make()[0], path)),
        ]:
            save_once(path, save, overwrite=self.force_reload)

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

    def __repr__(self) -> str:
        return (f'{self.__class__.__name__}({len(self)}, name={self.name!r}, '
                f'split={self.split!r})')

    def _process(self) -> None:
        # PyG would store the representations of `pre_transform` and
        # `pre_filter` as well, outside the lock; the digest holds them.
        if self.force_reload or not osp.exists(self.processed_paths[0]):
            self.process()


def _save_text(text: str, path: str) -> None:
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def _save_systems(joined: Joined, path: str) -> None:
    data, slices = joined
    try:
        with open(path, 'wb') as file:
            torch.save((data.to_dict(), slices, type(data)), file)
    except RuntimeError as error:  # How torch reports a failed write.
        raise OSError(str(error)) from error
