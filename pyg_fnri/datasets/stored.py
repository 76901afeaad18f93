"""Files that are whole or not there, and data sets that are kept in them."""
import hashlib
import os
import os.path as osp
import re
import shutil
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Optional, Union
from zipfile import BadZipFile, ZipFile

import pandas as pd
import torch
from filelock import FileLock
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

#: In every digest: raise it when the same arguments make or store others.
FORMAT_VERSION = 3

SPLITS = ('train', 'val', 'test')
#: What a spreadsheet would run, or would without apostrophes before it.
FORMULA = re.compile(r"'*\s*([=@]|[+-](?![\d.]+$))")
Name = Union[int, str]  # Of a system or a particle.
Joined = tuple[Data, Optional[dict[str, Tensor]]]


def check_choice(argument: str, value: Any, choices: Sequence[Any]) -> None:
    if value not in choices:
        raise ValueError(f'{argument} is {value!r}, but must be one of '
                         f'{choices}.')


def as_folder(path: str) -> str:
    return re.sub(r'^[+-]|[^\w+-]', '_', osp.basename(path)) or '_'


def check_writable(directory: str) -> None:
    """Makes a directory, and sure that files can be put there."""
    try:
        os.makedirs(directory, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        raise OSError(f"Cannot write to '{directory}' ({error.strerror}); "
                      f"choose another directory.") from error


@contextmanager
def written_whole(path: str) -> Iterator[str]:
    """Gives another name to write to, which becomes `path` only in the end."""
    part = f'{path}.part'
    with _writing(path, part):
        yield part
        _flush(part)
        os.replace(part, path)


@contextmanager
def written_together(path: str, names: Sequence[str]) -> Iterator[str]:
    """Gives a folder, whose files replace those of these `names` in the folder
    `path` only in the end. One renaming decides; :func:`put_in_place` does the
    rest, where a process was killed after that, too."""
    part = osp.join(path, '.part')
    with _writing(path, part):
        os.mkdir(part)
        yield part
        for name in os.listdir(part):
            _flush(osp.join(part, name))
        put_in_place(path, names)  # What was written before.
        if not osp.exists(osp.join(path, names[0])):
            _remove_all(path, names)
        os.replace(part, osp.join(path, '.whole'))
        put_in_place(path, names)


def put_in_place(path: str, names: Sequence[str]) -> None:
    """Removes the old files, the first one last, then moves the new ones, the
    first one last, too: at no time are files of both there."""
    whole = osp.join(path, '.whole')
    if osp.exists(osp.join(whole, names[0])):
        if osp.exists(osp.join(path, names[0])):
            _remove_all(path, names)
        for name in sorted(os.listdir(whole), key=names.index, reverse=True):
            os.replace(osp.join(whole, name), osp.join(path, name))
    _remove(whole)


def _remove_all(path: str, names: Sequence[str]) -> None:
    for name in reversed(names):
        Path(path, name).unlink(missing_ok=True)


@contextmanager
def _writing(path: str, part: str) -> Iterator[None]:
    """Leaves no part of a file, and says in one sentence what the system did
    in several errors."""
    try:
        _remove(part)  # Of a process that was killed.
        yield
    except Exception as error:
        cause: Any = error
        while isinstance(cause, RuntimeError):  # Of a full disk, by torch.
            cause = cause.__context__
        if not isinstance(cause, OSError) or cause.errno is None:
            raise
        raise OSError(f"Cannot write '{path}' ({cause.strerror}); make room, "
                      f"or choose another directory.") from error
    finally:
        _remove(part)


def _remove(path: str) -> None:
    with suppress(OSError):
        shutil.rmtree(path) if osp.isdir(path) else os.remove(path)


def _flush(path: str) -> None:
    """Makes sure that a file is on the disk."""
    with open(path, 'rb+') as file:
        os.fsync(file.fileno())


def write_text(path: str, text: str) -> None:
    with written_whole(path) as part:  # Names of files may be no text.
        Path(part).write_text(text, encoding='utf-8', errors='replace')


def write_table(path: str, table: pd.DataFrame) -> None:
    """Writes CSV. No spreadsheet takes a name for a formula: one like `=A1` has
    an apostrophe before it, which reading takes away."""
    table = table.rename(columns=_tame)
    for name in table.select_dtypes(exclude='number'):
        tame = {value: _tame(value) for value in table[name].unique()}
        table[name] = table[name].map(tame)
    with written_whole(path) as part:
        table.to_csv(part, index=False, encoding='utf-8', errors='replace')


def _tame(value: Any) -> Any:
    tame = not isinstance(value, str) or not FORMULA.match(value)
    return value if tame else f"'{value}"


def write_picture(path: str, figure: Any) -> None:
    with written_whole(path) as part:
        figure.savefig(part, format='png')


def write_tensors(path: str, tensors: Mapping[str, Any]) -> None:
    """Writes what :func:`loaded` reads."""
    with written_whole(path) as part, open(part, 'wb') as file:
        torch.save(tensors, file)


@contextmanager
def loaded(path: str, remedy: str) -> Iterator[dict[str, Any]]:
    """What is in a file, on the CPU. No code in it is run, and a bit that has
    changed is noticed: what fails here is said in one sentence."""
    try:
        with ZipFile(path) as file:
            # Torch compares no checksums, and reads folders as no numbers.
            odd = [of.filename for of in file.infolist() if of.external_attr]
            if name := file.testzip() or ', '.join(odd):
                raise BadZipFile(f'{name} has changed')
        yield torch.load(path, map_location='cpu', weights_only=True)
    except Exception as error:  # Damage shows in many ways.
        raise ValueError(f"Cannot load '{path}'; it is damaged, or no such "
                         f"file of this pyg_fnri: {remedy} "
                         f"({one_line(error)}).") from error


def one_line(error: Exception) -> str:
    return ' '.join(f'{type(error).__name__}: {error}'.split())[:200]


class StoredSystems(InMemoryDataset, ABC):
    """Systems that are made once, by :meth:`make`, and kept in
    `root/name/split-digest`, by a digest of the `recipe` of all they depend on,
    a `pre_transform` of this library included. Other functions, and
    `pre_filter`, are applied on each opening."""
    def __init__(self, root: str, name: str, split: str, recipe: Mapping[str,
                                                                         Any],
                 transform: Optional[Callable[..., Any]] = None,
                 pre_transform: Optional[Callable[..., Any]] = None,
                 pre_filter: Optional[Callable[..., Any]] = None,
                 force_reload: bool = False) -> None:
        if not re.fullmatch(r'\w[\w.+-]*', name):
            raise ValueError(f'name is {name!r}, but it is to name a folder; '
                             f'use letters, digits, "_", "-", "+" and ".".')
        self.name, self.split = name, split
        recipe = {'class': type(self), 'version': FORMAT_VERSION, **recipe}
        self._stores_transformed = pre_filter is None and is_ours(pre_transform)
        if self._stores_transformed:
            recipe['pre_transform'] = pre_transform
        self.recipe = ''.join(f'{key}: {recipe[key]}\n' for key in recipe)
        super().__init__(os.fspath(root), transform, pre_transform, pre_filter,
                         force_reload=force_reload)
        with loaded(self.processed_paths[0],
                    'delete it, or pass force_reload=True') as stored:
            self.data = Data.from_dict(stored['systems'])
            self.slices, self.facts = stored['slices'], stored['facts']
        self._kept = [*range(self.len())]
        given = pre_filter is not None or pre_transform is not None
        if given and not self._stores_transformed:
            self._prepare()
        self._warn()

    @abstractmethod
    def make(self) -> tuple[Joined, dict[str, Any]]:
        """The systems, joined as by `collate`, and facts, such as below."""

    @property
    def system_names(self) -> list[Name]:
        """The name of each system; of a window, `NAME/FIRST_FRAME`."""
        return [self.facts['system_names'][k] for k in self._numbers()]

    @property
    def particle_names(self) -> list[list[Name]]:
        return [self.facts['particle_names'][k] for k in self._numbers()]

    @property
    def names(self) -> list[str]:
        """The name of each layer of the true graph, where it is known."""
        return [str(name) for name in self.facts.get('layers', [])]

    @property
    def num_edge_types(self) -> list[int]:
        """The number of types in each layer of the true graph."""
        return list(self.facts.get('num_edge_types', []))

    @property
    def one_way(self) -> str:
        """A sentence on true types that depend on the direction, or empty."""
        return str(self.facts.get('one_way', ''))

    @property
    def processed_dir(self) -> str:
        digest = hashlib.sha256(self.recipe.encode()).hexdigest()[:12]
        return osp.join(self.root, self.name, f'{self.split}-{digest}')

    @property
    def processed_file_names(self) -> str:
        return 'systems.pt'

    def process(self) -> None:
        """Makes the systems, unless another process has just done so."""
        path = self.processed_paths[0]
        check_writable(self.processed_dir)
        with FileLock(osp.join(self.processed_dir, '.lock')):
            if osp.exists(path) and not self.force_reload:
                return
            (self.data, self.slices), facts = self.make()
            if self._stores_transformed:
                self._prepare()
            write_text(osp.join(self.processed_dir, 'recipe.txt'), self.recipe)
            stored = {'slices': self.slices, 'facts': facts}
            write_tensors(path, {'systems': self._data.to_dict(), **stored})

    def _process(self) -> None:
        # PyG would compare representations of filter and transform.
        if self.force_reload or not osp.exists(self.processed_paths[0]):
            self.process()

    def _prepare(self) -> None:
        systems = {number: self.get(number) for number in range(self.len())}
        if self.pre_filter is not None:
            systems = {k: s for k, s in systems.items() if self.pre_filter(s)}
        if not systems:
            raise ValueError('pre_filter keeps none of the systems.')
        self._kept = [*systems]
        if self.pre_transform is not None:
            systems = {k: self.pre_transform(s) for k, s in systems.items()}
        self.data, self.slices = self.collate([*systems.values()])

    def _warn(self) -> None:
        sentences = [*self.facts.get('warnings', [])]
        if 'num_true' in self.facts:
            num_true = sum(self.facts['num_true'][k] for k in self._kept)
            left_out = num_true - int((self._data.edge_label > 0).sum())
            if left_out:
                sentences.append(
                    f'{left_out} of {num_true} true interactions join '
                    f'particles that no candidate edge joins. No model can '
                    f'find them, and accuracies are those of the candidate '
                    f'edges.')
        for sentence in sentences:
            warnings.warn(sentence, stacklevel=4)

    def _numbers(self) -> list[int]:
        return [self._kept[i] for i in self.indices()]

    def __repr__(self) -> str:
        return (f'{type(self).__name__}({len(self)}, name={self.name!r}, '
                f'split={self.split!r})')


def is_ours(part: Any) -> bool:
    """Whether the representation of an object tells all that it does."""
    return type(part).__module__.startswith('pyg_fnri.')
