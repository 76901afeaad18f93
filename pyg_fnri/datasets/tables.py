"""Tables and arrays as users have them, the names in them, and tables of edges:
candidates, and the truth if known.

The latter have the columns of :func:`~pyg_fnri.convert.to_pandas`: `system`,
`sender`, `receiver`, `layer`, `type`. Without a `system`, rows hold for all.
"""
import gzip
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union, cast

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from pyg_fnri.convert import to_adjacency
from pyg_fnri.data import fully_connected
from pyg_fnri.datasets.stored import FORMULA, Name, one_line

Source = Union[str, os.PathLike[str], pd.DataFrame, np.ndarray, Sequence[Data]]

TABLES = ('.csv', '.csv.gz', '.tsv', '.txt', '.parquet')
ARRAYS = ('.npy', '.npz')


@dataclass
class Recording:
    """One system, at equal time steps: its particles' features `x`,
    `[N, T, F]` float64, NaN where one is not there, and masses `[N]`."""
    name: Name
    particles: list[Name]
    x: np.ndarray
    mass: Optional[np.ndarray] = None
    time_step: Optional[float] = None
    num_filled: int = 0  # Frames of particles that were interpolated.

    def where(self, particle: int, frame: int) -> str:
        return (f'frame {frame} of particle {self.particles[particle]!r} in '
                f'system {self.name!r}')


def are_systems(source: Any) -> bool:
    """Whether this is a list of PyG's Data."""
    return isinstance(source, (list, tuple)) and all(
        isinstance(of, Data) for of in source)


def is_array(source: Any) -> bool:
    """Whether this is an array, or a file of arrays, rather than a table."""
    if isinstance(source, (pd.DataFrame, np.ndarray)) or are_systems(source):
        return isinstance(source, np.ndarray)
    name = str(os.fspath(source)).lower()
    if not name.endswith(TABLES + ARRAYS):
        raise ValueError(f'{name!r} is of an unknown kind; the name must end '
                         f'in one of {", ".join(TABLES + ARRAYS)}.')
    return name.endswith(ARRAYS)


def load(source: Any, names: Sequence[str] = ()) -> Any:
    """A table, the columns `names` as text, or arrays, never unpickled."""
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    if isinstance(source, np.ndarray):
        return {'': source}
    path = str(os.fspath(source))
    try:
        if path.lower().endswith('.parquet'):
            return pd.read_parquet(path)
        if path.lower().endswith(TABLES):
            return _read_text(path, names)
        loaded: Any = np.load(path, allow_pickle=False)
        return {'': loaded} if isinstance(loaded, np.ndarray) else {**loaded}
    except (FileNotFoundError, ImportError):
        raise
    except Exception as error:  # Parsers fail in many ways.
        raise ValueError(f'Cannot read {path!r}; mend it, or write it anew '
                         f'({one_line(error)}).') from error


def _read_text(path: str, names: Sequence[str]) -> pd.DataFrame:
    """Cells between commas, semicolons or tabs; decimal commas beside the
    latter; and rows of DeepLabCut. Names are numbers, if they look like it."""
    opened = gzip.open if path.lower().endswith('.gz') else open
    with opened(path, 'rt', encoding='utf-8', errors='replace') as file:
        lines = [next(file, '') for _ in range(5)]
    sep = max('\t;,', key=lines[0].count)
    if lines[0].startswith('scorer,'):
        table = _read_deeplabcut(path,
                                 [line.partition(',')[0]
                                  for line in lines].index('coords'))
    else:
        cells = ' '.join(lines[1:]).replace(sep, ' ').split()
        decimal = ',' if sep != ',' and any(
            re.fullmatch(r'-?\d+,\d+', cell) for cell in cells) else '.'
        table = pd.read_csv(path, sep=sep, decimal=decimal, low_memory=False,
                            dtype=dict.fromkeys(names, str))
    for name in {*names} & {*table}:
        texts = table[name].dropna().unique()
        plain = [
            t[1:] if t[0] == "'" and FORMULA.match(t) else t for t in texts
        ]
        table[name] = table[name].map(dict(zip(texts, map(as_name, plain))))
    return table


def _read_deeplabcut(path: str, last: int) -> pd.DataFrame:
    """A row for each frame and body part; of several animals, for each animal,
    in the middle of its parts."""
    table = pd.read_csv(path, header=[*range(last + 1)], index_col=0)
    table.columns = table.columns.droplevel(0)
    levels = [name for name in table.columns.names if name != 'coords']
    rows = table.stack(levels, future_stack=True).reset_index()
    rows = rows.rename(columns={rows.columns[0]: 'time', levels[0]: 'particle'})
    return rows.groupby(['time', 'particle'], sort=False,
                        as_index=False)[['x', 'y']].mean()


#: What is read of PyG's Data.
READ = ('x', 'edge_index', 'edge_label', 'mass')


def content_digest(source: Any) -> str:
    if isinstance(source, pd.DataFrame):
        text = repr([*source.columns, *source.dtypes])
        # The index is no part of the content: rows count from 0.
        content = pd.util.hash_pandas_object(source, index=False).to_numpy()
    elif isinstance(source, np.ndarray):
        content = as_floats(source)
        text = repr(content.shape)
    elif are_systems(source):
        read = [[key for key in READ if of.get(key) is not None]
                for of in source]
        tensors = [of[key] for of, keys in zip(source, read) for key in keys]
        text = repr([(keys, of.x.shape) for of, keys in zip(source, read)])
        content = np.concatenate(
            [as_floats(of.numpy()).ravel() for of in tensors])
    else:
        with open(source, 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest()
    return hashlib.sha256(text.encode() + content.tobytes()).hexdigest()


def as_floats(array: np.ndarray) -> np.ndarray:
    return np.ma.filled(array.astype(np.float64, casting='same_kind'), np.nan)


def number_names(column: pd.Series) -> tuple[np.ndarray, list[Any]]:
    """Numbers the names in a column: whole numbers first, then words. Text
    alone stays as it is; among numbers, it may be one, as pandas reads them."""
    code, unique = pd.factorize(column)
    names = [*unique]
    if not all(isinstance(name, str) for name in names):
        names = [as_name(name) for name in names]

    def place(name: Name) -> tuple[bool, Name, Name]:
        return isinstance(as_name(name), str), as_name(name), name

    order = sorted({*names}, key=place)
    rank = {name: number for number, name in enumerate(order)}
    return np.array([rank[name] for name in names], dtype=np.int64)[code], order


def as_name(value: Any) -> Name:
    """1, 1.0 and '1' are a whole number; '01' and 'a' are words."""
    text = str(value)
    if re.fullmatch(r'(0|-?[1-9]\d*)(\.0+)?', text):
        return int(text.partition('.')[0])
    return text


def check_columns(table: pd.DataFrame, filled: Sequence[Any],
                  others: Sequence[Any] = ()) -> None:
    for name in (*filled, *others):
        if list(table.columns).count(name) != 1:
            raise ValueError(f'The table must have one column {name!r}, but '
                             f'its columns are {[*table.columns]}; name those '
                             f'to read, as by time=NAME.')
    for name in filled:
        empty = table[name].isna()
        if empty.any():
            raise ValueError(f'Row {empty.idxmax()} has no {name!r}; in a '
                             f'file, NA and None stand for none.')


def numbers(cells: pd.Series) -> np.ndarray:
    try:
        if not pd.api.types.is_numeric_dtype(cells):  # Dates are no numbers.
            cells = pd.to_numeric(cells.astype(object))
    except (TypeError, ValueError) as error:
        raise ValueError(f'Column {cells.name!r} must hold numbers: '
                         f'{error}.') from error
    return cast(np.ndarray, cells.to_numpy(np.float64, na_value=np.nan))


def candidate_edges(source: Source,
                    recordings: Sequence[Recording]) -> list[np.ndarray]:
    """Candidate edges of each system, bool `[N, N]`, row = receiver."""
    table = load(source, ('system', 'sender', 'receiver'))
    out = [np.zeros((len(r.particles), ) * 2, dtype=bool) for r in recordings]
    for edges, (_, *pairs) in zip(out, _pairs(table, recordings)):
        edges[tuple(pairs)] = True
    return out


def true_types(
        source: Source,
        recordings: Sequence[Recording]) -> tuple[list[np.ndarray], list[Name]]:
    """True types of each system, `[L, N, N]`, row = receiver, 0 where not
    listed; and names of the layers."""
    table = load(source, ('system', 'sender', 'receiver', 'layer'))
    if 'layer' not in table:
        table['layer'] = 0
    check_columns(table, ['layer', 'type'])
    layer, layers = number_names(table['layer'])
    kind = numbers(table['type'])
    wrong = (kind < 0) | (kind % 1 != 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f'Row {row} of the interactions has the type '
                         f'{kind[row]}, but types are whole numbers from 0, '
                         f'none, on.')
    out = []
    for recording, (rows, receiver, sender) in zip(recordings,
                                                   _pairs(table, recordings)):
        size = len(recording.particles)
        types = np.zeros((len(layers), size, size), dtype=np.int64)
        places = (layer[rows], receiver, sender)
        types[places] = kind[rows]
        if (types[places] != kind[rows]).any():
            row = rows[(types[places] != kind[rows]).argmax()]
            raise ValueError(f'Row {row} of the interactions gives a pair '
                             f'another type than a row below; remove one of '
                             f'them.')
        out.append(types)
    return out, layers


def edges_of_systems(
    systems: Sequence[Data]
) -> tuple[list[np.ndarray], Optional[list[np.ndarray]]]:
    """Candidate edges of each system, bool `[N, N]`, and their true types,
    `[L, N, N]`, if they know them; row = receiver."""
    known = [of.get('edge_label') is not None for of in systems]
    if len({*known}) > 1:
        raise ValueError(f'System {known.index(False)} has no edge_label, but '
                         f'system {known.index(True)} has; give it to all, or '
                         f'to none.')
    candidates, types = list[np.ndarray](), list[np.ndarray]()
    for of in systems:
        edges = of.get('edge_index')
        edges = fully_connected(of.num_nodes) if edges is None else edges
        joined = torch.ones(edges.size(1), 1, dtype=torch.bool)
        candidates.append(to_adjacency(edges, joined, of.num_nodes)[0].numpy())
        if known[0]:
            types.append(
                to_adjacency(edges, of.edge_label, of.num_nodes).numpy())
    return candidates, types or None


def count_types(types: Sequence[np.ndarray]) -> list[int]:
    """The number of types in each layer of `[L, N, N]`, at least 2."""
    most = np.stack([of.max((1, 2), initial=1) for of in types]).max(0)
    return [int(number) + 1 for number in most]


def report_one_way(types: Sequence[np.ndarray], systems: Sequence[Name]) -> str:
    """Which types `[L, N, N]` depend on the direction; empty if none do."""
    differ = [int(np.triu(of != of.swapaxes(-1, -2)).sum()) for of in types]
    if not any(differ):
        return ''
    total = sum(
        np.triu((of > 0) | (of.swapaxes(-1, -2) > 0)).sum() for of in types)
    first = systems[int(np.flatnonzero(differ)[0])]
    return (f'The two directions of a pair are of different true types in '
            f'{sum(differ)} of {total} interactions, first in system '
            f'{first!r}.')


def _pairs(
    table: pd.DataFrame, recordings: Sequence[Recording]
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    keys = ['sender', 'receiver', *{'system'} & {*table.columns}]
    check_columns(table, keys)
    named = {key: number_names(table[key]) for key in keys}
    every = np.arange(len(table))
    rows_of = dict.fromkeys(range(len(recordings)), every)
    if 'system' in named:
        code, names = named['system']
        number = _find(names, [recording.name for recording in recordings])
        if (number < 0).any():
            raise ValueError(f'The table of edges names a system '
                             f'{names[number.argmin()]!r}, which is none of '
                             f'the {len(recordings)} systems.')
        rows_of = pd.Series(every).groupby(number[code]).indices
    for k, recording in enumerate(recordings):
        rows, ends = rows_of.get(k, every[:0]), []
        for code, names in (named['receiver'], named['sender']):
            used, place = np.unique(code[rows], return_inverse=True)
            found = _find([names[n] for n in used], recording.particles)
            ends.append(found[place])
        receiver, sender = ends
        unknown = (receiver < 0) | (sender < 0)
        if unknown.any():
            raise ValueError(f'Row {rows[unknown.argmax()]} of the table of '
                             f'edges names a particle that is none of system '
                             f'{recording.name!r}.')
        yield rows, receiver, sender


def _find(names: Sequence[Name], known: Sequence[Name]) -> np.ndarray:
    """Where names are among known ones, or else numbers alike; or -1."""
    place = {as_name(name): k for k, name in enumerate(known)}
    place |= {name: k for k, name in enumerate(known)}
    found = [place.get(name, place.get(as_name(name), -1)) for name in names]
    return np.array(found, dtype=np.int64)
