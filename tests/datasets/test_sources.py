import builtins
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets.sources import (
    content_digest,
    folder_name,
    is_array,
    read_arrays,
    read_table,
)

TABLE = pd.DataFrame({'particle': ['a', 'b'], 'x': [0.1, 1 / 3]})


def test_what_is_an_array_and_what_a_table():
    assert is_array(np.zeros(3)) and is_array('a.npy') and is_array('A.NPZ')
    for table in (TABLE, 'a.csv', 'a.csv.gz', Path('a.parquet')):
        assert not is_array(table)


@pytest.mark.parametrize('source, error, message', [
    ('a.xlsx', ValueError, 'unknown kind.*csv'),
    ('a', ValueError, 'unknown kind'),
    ([[1]], TypeError, 'not list'),
])
def test_other_things_are_refused(source, error, message):
    with pytest.raises(error, match=message):
        is_array(source)


@pytest.mark.parametrize('name', ['t.csv', 't.csv.gz'])
def test_tables_come_back_from_files(name, tmp_path):
    TABLE.to_csv(tmp_path / name, index=False)
    back = read_table(tmp_path / name)
    pd.testing.assert_frame_equal(back, TABLE, check_exact=True)


def test_parquet_comes_back_where_pyarrow_is(tmp_path):
    pytest.importorskip('pyarrow')
    TABLE.to_parquet(tmp_path / 't.parquet')
    pd.testing.assert_frame_equal(read_table(tmp_path / 't.parquet'), TABLE)


def test_parquet_without_pyarrow_is_an_error_that_says_so(
        tmp_path, monkeypatch):
    (tmp_path / 't.parquet').write_bytes(b'PAR1')
    real_import = builtins.__import__

    def fail(name, *args, **kwargs):
        if name.partition('.')[0] == 'pyarrow':
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, '__import__', fail)
    with pytest.raises(ImportError, match='pip install pyarrow.*as CSV'):
        read_table(tmp_path / 't.parquet')


def test_rows_of_a_table_in_memory_are_numbered_from_0():
    back = read_table(TABLE.set_index(pd.Index([7, 7])))
    assert list(back.index) == [0, 1]


@pytest.mark.parametrize('content', [b'', b'\xff\xfe\x00', b'a,b\n1,2,3\n"'])
def test_files_that_are_no_tables_are_refused(content, tmp_path):
    (tmp_path / 't.csv').write_bytes(content)
    with pytest.raises(ValueError, match="t.csv' as a table"):
        read_table(tmp_path / 't.csv')
    with pytest.raises(ValueError, match='not a ndarray'):
        read_table(np.zeros(3))


def test_arrays_come_back_from_files(tmp_path):
    one, other = np.random.rand(3, 4), np.arange(3)
    np.save(tmp_path / 'a.npy', one)
    np.savez(tmp_path / 'a.npz', one=one, other=other)
    assert np.array_equal(read_arrays(tmp_path / 'a.npy')[''], one)
    both = read_arrays(tmp_path / 'a.npz')
    assert list(both) == ['one', 'other']
    assert np.array_equal(both['other'], other)
    assert read_arrays(one)[''] is one


class Dangerous:
    def __reduce__(self):
        return os.mkdir, ('executed', )


@pytest.mark.parametrize('name', ['a.npy', 'a.npz'])
def test_arrays_are_never_unpickled(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array = np.array([Dangerous()], dtype=object)
    (np.save if name == 'a.npy' else np.savez)(name, array)
    with pytest.raises(ValueError, match='never loaded'):
        read_arrays(name)
    with open(name, 'wb') as file:
        pickle.dump(Dangerous(), file)
    with pytest.raises(ValueError, match='never loaded'):
        read_arrays(name)
    with open(name, 'wb') as file:
        file.write(b'PK\x03\x04')
    with pytest.raises(ValueError, match='Cannot read'):
        read_arrays(name)
    assert not os.path.exists('executed')


@pytest.mark.parametrize('read', [read_table, content_digest])
def test_missing_files_are_said(read):
    with pytest.raises(FileNotFoundError, match="no file 'no/where.csv'"):
        read('no/where.csv')


def test_digest_is_of_the_content(tmp_path):
    digests = [
        content_digest(source) for source in (
            TABLE,
            TABLE.assign(x=[0.1, 0.3]),
            TABLE.rename(columns={'x': 'y'}),
            TABLE.astype({'x': 'float32'}),
            TABLE[::-1],
            np.zeros((2, 3)),
            np.zeros((3, 2)),
            np.zeros((2, 3), np.float32),
            np.ones((2, 3)),
        )
    ]
    assert len(set(digests)) == len(digests)
    assert content_digest(TABLE.copy()) == digests[0]
    assert content_digest(np.ones((3, 2)).T) == digests[-1]
    # The same file under another name is the same.
    for name in ('a.csv', 'b.csv'):
        TABLE.to_csv(tmp_path / name, index=False)
    assert content_digest(tmp_path / 'a.csv') == content_digest(tmp_path /
                                                                'b.csv')


def test_folders_are_called_as_files():
    assert folder_name(None, 'data/my birds.v2.csv.gz') == 'my_birds'
    assert folder_name(None, TABLE) == 'table'
    assert folder_name(None, np.zeros(3)) == 'array'
    assert folder_name('mine', 'a.csv') == 'mine'
    for name in ('../a', '', 'a/b', 3):
        with pytest.raises(ValueError, match='name a folder'):
            folder_name(name, 'a.csv')
