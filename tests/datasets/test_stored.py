import os

import pytest

from pyg_fnri.datasets.stored import check_writable, written_whole


def test_a_directory_is_made_and_left_empty(tmp_path):
    check_writable(str(tmp_path / 'a' / 'b'))
    assert os.listdir(tmp_path / 'a' / 'b') == []


def test_a_file_is_no_directory_to_write_to(tmp_path):
    (tmp_path / 'file').write_text('kept')
    with pytest.raises(OSError, match="Cannot write to '.*file'.*--out"):
        check_writable(str(tmp_path / 'file'))
    assert (tmp_path / 'file').read_text() == 'kept'


def test_a_file_is_replaced_at_the_end(tmp_path):
    path = tmp_path / 'result'
    path.write_text('old')
    with written_whole(str(path)) as part:
        with open(part, 'w') as file:
            file.write('new')
        assert path.read_text() == 'old'
    assert path.read_text() == 'new'
    assert os.listdir(tmp_path) == ['result']


def test_what_fails_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / 'result'
    path.write_text('old')
    with pytest.raises(RuntimeError, match='full'):
        with written_whole(str(path)) as part:
            with open(part, 'w') as file:
                file.write('ne')
            raise RuntimeError('full')
    assert path.read_text() == 'old'
    assert os.listdir(tmp_path) == ['result']
