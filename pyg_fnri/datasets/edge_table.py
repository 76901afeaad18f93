"""Tables of edges: the user's own candidate graph, and the truth if known.

Their columns are named as in the tables that
:func:`~pyg_fnri.convert.to_pandas` makes: `system`, `sender`, `receiver`,
`layer` and `type`. Each row is one direction of a pair.
"""
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pyg_fnri.datasets.names import (
    Name,
    as_name,
    check_none_missing,
    number_names,
    plain,
)
from pyg_fnri.datasets.recording import Recording


def candidate_edges(
    table: pd.DataFrame,
    recordings: Sequence[Recording],
) -> list[Tensor]:
    """Candidate edges of each system, sorted by receiver, then by sender.

    Args:
        table (DataFrame): One row per edge, columns `sender` and `receiver`.
            With a column `system`, the edges of that system; without, those
            of all systems.
        recordings (sequence of Recording): The systems.

    Returns:
        `edge_index` `[2, E]` of each system.

    Raises:
        ValueError: If a column is missing, or a row names an unknown system
            or particle, joins a particle to itself or is there twice.
    """
    out = []
    for rows, sender, receiver in _pairs(table, recordings, 'edges'):
        order = np.lexsort((sender, receiver))
        edges = np.stack([sender, receiver])[:, order]
        again = (np.diff(edges) == 0).all(0)
        if again.any():
            row = rows[order[1:][again][0]]
            raise ValueError(f'Row {row} of the edges is there twice; remove '
                             f'one of them.')
        out.append(torch.from_numpy(edges))
    return out


def true_types(
    table: pd.DataFrame,
    recordings: Sequence[Recording],
) -> tuple[list[np.ndarray], list[Name], list[int]]:
    """The true type of each pair of particles, in each layer.

    Args:
        table (DataFrame): One row per edge, with columns `sender`, `receiver`
            and `type` (0, 1, ...), and, where there are several, `layer` and
            `system`; without a column `system`, the rows hold for all systems.
            What has no row is of type 0, no interaction.
        recordings (sequence of Recording): The systems.

    Returns:
        Types `[L, N, N]` of each system, row = receiver, column = sender;
        the names of the layers; and the number of types of each layer, at
        least 2, whichever systems they occur in.

    Raises:
        ValueError: If a column is missing, a type is no whole number or
            negative, or a row is wrong as with :func:`candidate_edges`.
    """
    _check_columns(table, ['type'], 'interactions')
    kind = pd.to_numeric(table['type'],
                         errors='coerce').to_numpy(dtype=np.float64,
                                                   na_value=np.nan)
    wrong = ~((kind >= 0) & (kind == np.floor(kind)) & (kind < 2**15))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f'Row {row} of the interactions has the type '
            f'{plain(table["type"].iloc[row])!r}, but types are whole '
            f'numbers, 0 for none.')
    kinds = kind.astype(np.int64)
    layer = np.zeros(len(table), dtype=np.int64)
    layers: list[Name] = [0]
    if 'layer' in table:
        _check_columns(table, ['layer'], 'interactions')
        layer, layers = number_names(table['layer'])
    num_types = [
        max(2,
            int(kinds[layer == number].max(initial=0)) + 1)
        for number in range(len(layers))
    ]
    out = []
    for recording, (rows, sender,
                    receiver) in zip(recordings,
                                     _pairs(table, recordings, 'interactions')):
        size = len(recording.particles)
        place = (layer[rows], receiver, sender)
        count = np.zeros((len(layers), size, size), dtype=np.int64)
        np.add.at(count, place, 1)
        if (count > 1).any():
            number, i, j = np.argwhere(count > 1)[0]
            raise ValueError(
                f'The interactions have two rows for layer '
                f'{layers[number]!r} of system {recording.name!r}, from '
                f'particle {recording.particles[j]!r} to '
                f'{recording.particles[i]!r}; remove one of them.')
        types = np.zeros_like(count)
        types[place] = kinds[rows]
        out.append(types)
    return out, layers, num_types


def report_one_way(types: Sequence[np.ndarray],
                   recordings: Sequence[Recording]) -> str:
    """Which true types depend on the direction, in a sentence; empty if none
    do.

    Args:
        types (sequence of ndarray): Those of :func:`true_types`, `[L, N, N]`
            of each system.
        recordings (sequence of Recording): The systems.
    """
    number, total, first = 0, 0, ''
    for recording, of_system in zip(recordings, types):
        back = of_system.swapaxes(1, 2)
        total += int((np.triu(np.maximum(of_system, back)) > 0).sum())
        differ = np.argwhere(np.triu(of_system != back))
        number += len(differ)
        if len(differ) and not first:
            layer, i, j = differ[0]
            one, other = recording.particles[i], recording.particles[j]
            first = (f'from particle {other!r} to {one!r} of system '
                     f'{recording.name!r} it is {of_system[layer, i, j]}, '
                     f'back {of_system[layer, j, i]}')
    if not number:
        return ''
    return (f'The two directions of a pair are of different true types in '
            f'{number} of {total} interactions, e.g. {first}.')


def report_left_out(num_true: int, num_kept: int) -> str:
    """How many interactions are not measured, in a sentence; empty if all
    are.

    Args:
        num_true (int): How many there are, of each direction and layer.
        num_kept (int): How many of them have a candidate edge.
    """
    if num_kept == num_true:
        return ''
    return (f'{num_true - num_kept} of {num_true} true interactions join '
            f'particles that no candidate edge joins. No model can find them, '
            f'and they count in no figure: accuracies are those of the '
            f'candidate edges.')


def _pairs(
    table: pd.DataFrame,
    recordings: Sequence[Recording],
    what: str,
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, senders and receivers of each system, as numbers."""
    _check_columns(table, ['sender', 'receiver'], what)
    sender = np.array(_names(table['sender']), dtype=object)
    receiver = np.array(_names(table['receiver']), dtype=object)
    every = np.arange(len(table))
    rows_of: dict[str, np.ndarray] = {}
    if 'system' in table:
        _check_columns(table, ['system'], what)
        names = pd.Series(_names(table['system']), dtype=object)
        groups = names.groupby(names).indices
        rows_of = {str(name): rows for name, rows in groups.items()}
        known = {str(recording.name) for recording in recordings}
        for name in sorted(rows_of.keys() - known)[:1]:
            raise ValueError(f'Row {rows_of[name][0]} of the {what} is of a '
                             f'system {name!r}, which is none of the '
                             f'{len(known)} systems.')
    out = []
    for recording in recordings:
        rows = every
        if 'system' in table:
            rows = rows_of.get(str(recording.name), every[:0])
        number = {str(name): k for k, name in enumerate(recording.particles)}
        ends = []
        for end in (sender, receiver):
            for row in rows:
                if end[row] not in number:
                    raise ValueError(
                        f'Row {row} of the {what} is of a particle '
                        f'{end[row]!r}, which is none of the '
                        f'{len(number)} particles of system '
                        f'{recording.name!r}.')
            ends.append(
                np.array([number[name] for name in end[rows]], dtype=np.int64))
        loop = (ends[0] == ends[1]).nonzero()[0]
        if loop.size:
            raise ValueError(
                f'Row {rows[loop[0]]} of the {what} joins particle '
                f'{sender[rows[loop[0]]]!r} to itself; remove '
                f'it.')
        out.append((rows, ends[0], ends[1]))
    return out


def _names(column: pd.Series) -> list[str]:
    return [str(as_name(value)) for value in column]


def _check_columns(table: pd.DataFrame, names: Sequence[str],
                   what: str) -> None:
    for name in names:
        if list(table.columns).count(name) != 1:
            raise ValueError(f'A table of {what} must have one column '
                             f'{name!r}, but its columns are '
                             f'{[*table.columns]}.')
        check_none_missing(table[name], f' of the {what}')
