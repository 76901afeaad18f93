"""Tables of edges: the user's own candidate graph, and the truth if known.

Their columns are named as in the tables that
:func:`~pyg_fnri.convert.to_pandas` makes: `system`, `sender`, `receiver`,
`layer` and `type`. Each row is one direction of a pair; without a column
`system`, the rows hold for all systems.
"""
from collections.abc import Sequence

import numpy as np
import pandas as pd

from pyg_fnri.datasets.reading import (
    Name,
    Recording,
    Source,
    check_columns,
    load,
    number_names,
    numbers,
)


def candidate_edges(source: Source,
                    recordings: Sequence[Recording]) -> list[np.ndarray]:
    """Whether each pair is a candidate edge, `[N, N]` bool of each system, row
    = receiver, column = sender."""
    table = load(source, ('system', 'sender', 'receiver'))
    out = [np.zeros((len(r.particles), ) * 2, dtype=bool) for r in recordings]
    for edges, (_, *pairs) in zip(out, _pairs(table, recordings)):
        edges[tuple(pairs)] = True
    return out


def true_types(
    source: Source,
    recordings: Sequence[Recording],
) -> tuple[list[np.ndarray], list[Name], list[int]]:
    """True types `[L, N, N]` of each system, row = receiver, column = sender;
    0, no interaction, where the table has no row. With the names of the layers
    and the number of types of each, at least 2, over all systems."""
    table = load(source, ('system', 'sender', 'receiver', 'layer'))
    check_columns(table, 'type', ['type'])
    kind = numbers(table['type'])
    wrong = ~((kind >= 0) & (kind == np.floor(kind)))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f'Row {row} of the interactions has the type '
                         f'{kind[row]}, but types are whole numbers from 0, '
                         f'none, on.')
    layer = np.zeros(len(table), dtype=np.int64)
    layers: list[Name] = [0]
    if 'layer' in table:
        layer, layers = number_names(table['layer'])
    num_types = [
        max(2,
            int(kind[layer == number].max(initial=0)) + 1)
        for number in range(len(layers))
    ]
    out = []
    for recording, (rows, receiver, sender) in zip(recordings,
                                                   _pairs(table, recordings)):
        size = len(recording.particles)
        types = np.full((len(layers), size, size), -1, dtype=np.int64)
        for place, row in zip(zip(layer[rows], receiver, sender), rows):
            if types[place] not in (-1, kind[row]):
                raise ValueError(f'Row {row} of the interactions gives a pair '
                                 f'another type than a row before; remove one '
                                 f'of them.')
            types[place] = kind[row]
        out.append(types.clip(0))
    return out, layers, num_types


def report_one_way(types: Sequence[np.ndarray], systems: Sequence[Name]) -> str:
    """Which true types `[L, N, N]` of systems depend on the direction, in a
    sentence; empty if none do."""
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
    table: pd.DataFrame,
    recordings: Sequence[Recording],
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, receivers and senders of each system, as numbers."""
    check_columns(table, 'sender and receiver', ['sender', 'receiver'])
    ends = []
    for end in ('receiver', 'sender'):
        number, names = number_names(table[end])
        ends.append([names[k] for k in number])
    every = np.arange(len(table))
    rows_of = {recording.name: every for recording in recordings}
    if 'system' in table:
        number, systems = number_names(table['system'])
        unknown = [name for name in systems if name not in rows_of]
        if unknown:
            raise ValueError(f'The table of edges names a system '
                             f'{unknown[0]!r}, which is none of the '
                             f'{len(recordings)} systems.')
        groups = pd.Series(number).groupby(number).indices
        rows_of = {systems[k]: rows for k, rows in groups.items()}
    out = []
    for recording in recordings:
        number_of = {name: k for k, name in enumerate(recording.particles)}
        rows = rows_of.get(recording.name, every[:0])
        try:
            receiver, sender = (np.array([number_of[end[row]]
                                          for row in rows], dtype=np.int64)
                                for end in ends)
        except KeyError as error:
            raise ValueError(f'The table of edges names a particle '
                             f'{error.args[0]!r}, which is none of system '
                             f'{recording.name!r}.') from None
        out.append((rows, receiver, sender))
    return out
