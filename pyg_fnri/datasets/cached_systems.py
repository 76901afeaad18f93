"""Data sets of systems that are made once and kept under a digest."""
import functools
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Optional

from pyg_fnri.datasets.fingerprint import describe
from pyg_fnri.datasets.storage import save_once
from pyg_fnri.datasets.stored_systems import (
    Joined,
    StoredSystems,
    save_systems,
    save_text,
)


class CachedSystems(StoredSystems):
    """Systems that are made of something, once, and kept in a folder named
    after a digest of all that they were made of.

    A subclass says what its systems are made of and makes them, in
    :meth:`make`. Next to the systems, it can keep facts about them.

    Args:
        recipe (mapping): All that the systems depend on besides the filter
            and transform: the content of files, and arguments.

    The others, and what is raised, as for :class:`StoredSystems`.
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
        lines = {
            'class': type(self).__name__,
            **recipe,
            'pre_transform': describe(pre_transform),
            'pre_filter': describe(pre_filter),
        }
        super().__init__(
            root, name, split,
            ''.join(f'{key}: {value}\n' for key, value in lines.items()),
            transform, pre_transform, pre_filter, force_reload)

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
    def processed_file_names(self) -> list[str]:
        return ['systems.pt', 'facts.json', 'recipe.txt']

    def read(self) -> None:
        super().read()
        with open(self.processed_paths[1], encoding='utf-8') as file:
            self.facts = json.load(file)

    def process(self) -> None:
        """Makes the systems, unless another process has just done so."""
        systems, facts, recipe = self.processed_paths
        make = functools.cache(self.make)
        # The systems come last: where they are, the others are too.
        for path, save in [
            (recipe, lambda path: save_text(self.recipe, path)),
            (facts, lambda path: save_text(json.dumps(make()[1]), path)),
            (systems, lambda path: save_systems(make()[0], path)),
        ]:
            save_once(path, save, overwrite=self.force_reload)

    def __repr__(self) -> str:
        return (f'{self.__class__.__name__}({len(self)}, name={self.name!r}, '
                f'split={self.split!r})')
