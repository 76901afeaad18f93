"""Tables of edges: the user's own candidate graph, and the truth if known.

Columns are those of :func:`~pyg_fnri.convert.to_pandas`: `system`, `sender`,
`receiver`, `layer`, `type`. Without a `system`, rows hold for all systems.
"""
from collections.abc import Iterator, Sequence
from typing import Optional

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from pyg_fnri.convert import to_adjacency
from pyg_fnri.data import fully_connected
from pyg_fnri.datasets.reading import (Name, Recording, Source, as_name,
                                       check_columns, load, number_names,
                                       numbers)


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
    found = []
    for of in systems:
        edges = of.get('edge_index')
        edges = fully_connected(of.num_nodes) if edges is None else edges
        candidate = torch.ones(edges.size(1), 1, dtype=torch.long)
        label = candidate if of.get('edge_label') is None else of.edge_label
        found.append([
            to_adjacency(edges, types, of.num_nodes).numpy()
            for types in (candidate, label)
        ])
    edges, types = map(list, zip(*found))
    known = [of.get('edge_label') is not None for of in systems]
    if len({*known}) > 1:
        raise ValueError(f'System {known.index(False)} has no edge_label, but '
                         f'system {known.index(True)} has; give it to all, or '
                         f'to none.')
    return [matrix[0] > 0 for matrix in edges], types if known[0] else None


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
