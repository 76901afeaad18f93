"""How particle systems get to a disk, and what can go wrong on the way."""
import os
import os.path as osp
import threading

import pytest
import torch
from few_systems import assert_equal, systems


def test_threads_that_ask_at_once_get_one_data_set(tmp_path, calls):
    threads = [
        threading.Thread(target=systems, args=(tmp_path, )) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_an_interrupted_generation_leaves_nothing(tmp_path, calls, monkeypatch):
    def interrupted(obj, file):
        file.write(b'half')
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(torch, 'save', interrupted)
        with pytest.raises(KeyboardInterrupt):
            systems(tmp_path)
    assert not list(tmp_path.rglob('systems.pt*'))
    assert len(systems(tmp_path)) == 7 and len(calls) == 2


def test_force_reload_simulates_again(tmp_path, calls):
    dataset = systems(tmp_path)
    assert_equal(systems(tmp_path, force_reload=True), dataset)
    assert len(calls) == 2


def test_a_damaged_file_is_named(tmp_path, calls):
    dataset = systems(tmp_path)
    path, = dataset.processed_paths
    for damage in (b'', b'not a data set', open(path, 'rb').read()[:-5000]):
        with open(path, 'wb') as file:
            file.write(damage)
        with pytest.raises(RuntimeError, match='force_reload=True'):
            systems(tmp_path)
        assert_equal(systems(tmp_path, force_reload=True), dataset)


@pytest.mark.skipif(not osp.exists('/dev/full'), reason='needs /dev/full')
def test_a_disk_that_fills_up(tmp_path, calls):
    dataset = systems(tmp_path / 'elsewhere')
    folder = osp.join(
        tmp_path, osp.relpath(dataset.processed_dir, tmp_path / 'elsewhere'))
    os.makedirs(folder)
    os.symlink('/dev/full', osp.join(folder, 'systems.pt.part'))
    with pytest.raises(OSError, match='No space left.*make room'):
        systems(tmp_path)
    assert 'systems.pt' not in os.listdir(folder)


def test_a_failed_write_that_torch_reports_in_its_own_way(
        tmp_path, calls, monkeypatch):
    def failing(obj, file):
        raise RuntimeError('unexpected pos 64 vs 0')

    monkeypatch.setattr(torch, 'save', failing)
    with pytest.raises(OSError, match='Cannot write .* vs 0'):
        systems(tmp_path)


def test_too_little_room_is_found_before_the_simulation(tmp_path, calls):
    with pytest.raises(OSError, match='MB are free'):
        systems(tmp_path, num_systems=(10**12, 1, 1))
    assert not calls


def test_a_root_that_cannot_be_written_to(tmp_path, calls):
    (tmp_path / 'file').write_text('not a folder')
    with pytest.raises(OSError, match='Cannot write .*another place'):
        systems(tmp_path / 'file')
