"""Names of systems and particles, as users' data have them."""
from typing import Any, Union

import numpy as np
import pandas as pd

#: Of a system or a particle.
Name = Union[int, str]


def number_names(column: pd.Series) -> tuple[np.ndarray, list[Name]]:
    """Numbers the names in a column, in the order of the names: numbers
    first, then words.

    Raises:
        ValueError: If two names read alike, such as 1 and '1'.
    """
    code, unique = pd.factorize(column)
    names = [as_name(value) for value in unique]
    if len(set(map(str, names))) < len(names):
        raise ValueError(f'Some names in column {column.name!r} read alike, '
                         f"such as 1 and '1'; write all of them in one way.")
    order = sorted(range(len(names)), key=lambda k:
                   (isinstance(names[k], str), names[k]))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return rank[code], [names[k] for k in order]


def as_name(value: Any) -> Name:
    """A name as plain Python has it: a whole number or a word."""
    if isinstance(value, (int, float, np.number)) and float(value).is_integer():
        return int(value)
    return str(value)


def check_none_missing(column: pd.Series, of: str = '') -> None:
    """Makes sure that each row has a name, or a time.

    Args:
        column (Series): The names; its own is said.
        of (str): What the rows are of.

    Raises:
        ValueError: If one has none.
    """
    empty = column.isna().to_numpy().nonzero()[0]
    if empty.size:
        raise ValueError(f'Row {empty[0]}{of} has no {column.name!r}; every '
                         f'row needs one, and in a file, names such as NA, '
                         f'None and null stand for none.')


def plain(value: Any) -> Any:
    """A cell of a table as plain Python has it."""
    return value.item() if isinstance(value, np.generic) else value
