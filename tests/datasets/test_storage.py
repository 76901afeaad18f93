import os
import signal
import subprocess
import sys

import pytest

from pyg_fnri.datasets import storage
from pyg_fnri.datasets.storage import save_once

# Loads the file by itself, which takes a fraction of a second.
PROGRAM = '''
import importlib.util, os, signal, sys, time
spec = importlib.util.spec_from_file_location('storage', sys.argv[1])
storage = importlib.util.module_from_spec(spec)
spec.loader.exec_module(storage)

def save(path):
    with open(path, 'w') as file:
        file.write('half')
        file.flush()
        if sys.argv[3] == 'die':
            os.kill(os.getpid(), signal.SIGKILL)
        print('saving', flush=True)
        time.sleep(0.5)
        file.write(' and half')

storage.save_once(sys.argv[2], save)
print(open(sys.argv[2]).read(), flush=True)
'''


def start(path, how):
    return subprocess.Popen(
        [sys.executable, '-c', PROGRAM, storage.__file__,
         str(path), how], stdout=subprocess.PIPE, text=True)


def writer(text):
    def save(path):
        with open(path, 'w') as file:
            file.write(text)

    return save


def test_file_is_made_once(tmp_path):
    path = tmp_path / 'new' / 'folder' / 'file'
    save_once(str(path), writer('first'))
    save_once(str(path), writer('second'))
    assert path.read_text() == 'first'
    save_once(str(path), writer('third'), overwrite=True)
    assert path.read_text() == 'third'
    assert sorted(os.listdir(path.parent)) == ['.lock', 'file']


def test_two_processes_make_one_file(tmp_path):
    path = tmp_path / 'file'
    processes = [start(path, 'live') for _ in range(2)]
    lines = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(lines) == ['half and half\n', 'saving\nhalf and half\n']


@pytest.mark.skipif(not hasattr(signal, 'SIGKILL'), reason='needs SIGKILL')
def test_a_killed_process_leaves_no_file_and_no_lock(tmp_path):
    path = tmp_path / 'file'
    process = start(path, 'die')
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert not path.exists()

    save_once(str(path), writer('whole'))
    assert path.read_text() == 'whole'
    assert sorted(os.listdir(tmp_path)) == ['.lock', 'file']


@pytest.mark.parametrize('error', [ValueError, KeyboardInterrupt, OSError])
def test_a_failure_keeps_the_old_file(tmp_path, error):
    def fail(path):
        writer('half')(path)
        raise error('no')

    path = tmp_path / 'file'
    save_once(str(path), writer('old'))
    with pytest.raises(error, match='no'):
        save_once(str(path), fail, overwrite=True)
    assert path.read_text() == 'old'
    assert sorted(os.listdir(tmp_path)) == ['.lock', 'file']


def test_a_full_disk_is_found_before_the_work(tmp_path):
    path = tmp_path / 'file'
    with pytest.raises(OSError, match='it takes 1000000000000 MB, and '):
        save_once(str(path), writer('never'), num_bytes=10**18)
    assert not path.exists()


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / 'file').write_text('not a folder')
    path = str(tmp_path / 'file' / 'new')
    with pytest.raises(OSError, match='Cannot write .*choose another place'):
        save_once(path, writer('never'))
