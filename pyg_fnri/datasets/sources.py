"""What users bring: tables and arrays, in memory or in files.

Nothing here executes what a file says: arrays are never unpickled.
"""
import hashlib
import os
import re
import zipfile
from typing import Any, Optional, Union

import numpy as np
import pandas as pd

Source = Union[str, os.PathLike, pd.DataFrame, np.ndarray]

TABLES = ('.csv', '.csv.gz', '.parquet')
ARRAYS = ('.npy', '.npz')


def is_array(source: Source) -> bool:
    """Whether this is an array, or a file of arrays, rather than a table.

    Raises:
        TypeError: If it is neither array, nor table, nor the name of a file.
        ValueError: If the name of the file ends in none of the known ways.
    """
    if isinstance(source, (pd.DataFrame, np.ndarray)):
        return isinstance(source, np.ndarray)
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f'Expected a DataFrame, a numpy array or the name of '
                        f'a file, not {type(source).__name__}.')
    name = str(os.fspath(source))
    if not name.lower().endswith(TABLES + ARRAYS):
        raise ValueError(f'{name!r} is of an unknown kind; the name must end '
                         f'in one of {", ".join(TABLES + ARRAYS)}.')
    return name.lower().endswith(ARRAYS)


def content_digest(source: Source) -> str:
    """A digest that changes whenever the content of a source does.

    Raises:
        FileNotFoundError: If there is no such file.
        TypeError: If a cell of the table holds a list or the like.
    """
    sha = hashlib.sha256()
    if isinstance(source, pd.DataFrame):
        sha.update(repr([*source.columns, *source.dtypes]).encode())
        # The index is no part of the content: rows count from 0.
        sha.update(
            pd.util.hash_pandas_object(source, index=False).to_numpy().data)
    elif isinstance(source, np.ndarray):
        sha.update(f'{source.dtype} {source.shape}'.encode())
        sha.update(np.ascontiguousarray(source).data)
    else:
        _check_exists(source)
        with open(source, 'rb') as file:
            while block := file.read(1 << 20):
                sha.update(block)
    return sha.hexdigest()


def read_table(source: Source) -> pd.DataFrame:
    """Reads a table, `.csv`, `.csv.gz` or `.parquet`; a DataFrame is given
    back with its rows numbered from 0.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If the file is a Parquet file and pyarrow is missing.
        ValueError: If the file cannot be read as a table.
    """
    if is_array(source):
        raise ValueError(f'Expected a table, in a file that ends in one of '
                         f'{", ".join(TABLES)}, not {_describe(source)}.')
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True)
    _check_exists(source)
    try:
        if str(source).lower().endswith('.parquet'):
            return pd.read_parquet(source, engine='pyarrow')
        return pd.read_csv(source)
    except ImportError as error:
        raise ImportError(
            f'Reading {_describe(source)} needs the package pyarrow; install '
            f'it (pip install pyarrow), or save the table as CSV.') from error
    except Exception as error:  # Parsers fail in many ways.
        raise ValueError(f'Cannot read {_describe(source)} as a table '
                         f'({error}).') from error


def read_arrays(source: Source) -> dict[str, np.ndarray]:
    """Reads the arrays of a file by name, `.npz`, or the one array of a
    `.npy` file or in memory, whose name is empty.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file holds Python objects or is damaged.
    """
    if isinstance(source, np.ndarray):
        return {'': source}
    _check_exists(source)
    try:
        loaded: Any = np.load(source, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {'': loaded}
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f'Cannot read {_describe(source)} ({error}); expected plain '
            f'numbers as numpy.save or numpy.savez writes them. Python '
            f'objects are never loaded.') from error


def folder_name(name: Optional[str], source: Source) -> str:
    """The name of a data set's folder: the one given, that of the file, or
    that of what the source is.

    Raises:
        ValueError: If the name given cannot name a folder.
    """
    if name is None:
        if isinstance(source, (pd.DataFrame, np.ndarray)):
            return 'array' if is_array(source) else 'table'
        stem = os.path.basename(os.fspath(source)).partition('.')[0]
        return re.sub(r'[^\w+-]', '_', stem) or 'table'
    if not isinstance(name, str) or not re.fullmatch(r'\w[\w.+-]*', name):
        raise ValueError(f'name is {name!r}, but it is to name a folder; use '
                         f'letters, digits, "_", "-", "+" and "." only.')
    return name


def _check_exists(source: Any) -> None:
    if not os.path.isfile(source):
        raise FileNotFoundError(f'There is no file {_describe(source)}.')


def _describe(source: Any) -> str:
    if isinstance(source, (str, os.PathLike)):
        return repr(os.fspath(source))
    return f'a {type(source).__name__}'
