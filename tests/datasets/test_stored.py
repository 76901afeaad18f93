import csv
import io
import os
import pickle
import re
import resource
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets import stored
from pyg_fnri.datasets.stored import (StoredSystems, as_folder, check_writable,
                                      loaded, put_in_place, write_table,
                                      write_tensors, write_text,
                                      written_together, written_whole)
from pyg_fnri.datasets.tables import load
from pyg_fnri.transforms import NearestNeighbours

FILES = ['.lock', 'recipe.txt', 'systems.pt']


class Counting(StoredSystems):
    """Systems of as many particles as the recipe says."""
    made = 0

    def __init__(self, root, sizes=(3, 2), name='counting', **kwargs):
        self.sizes = sizes
        super().__init__(root, name, 'all', {'sizes': sizes}, **kwargs)

    def make(self):
        type(self).made += 1
        systems = [
            from_trajectory(torch.full((size, 4, 2), float(size)))
            for size in self.sizes
        ]
        return self.collate(systems), {'sizes': [*self.sizes]}


@pytest.fixture(autouse=True)
def start_at_0():
    Counting.made = 0


def sizes(dataset):
    return [data.num_nodes for data in dataset]


def test_a_directory_is_made_and_left_empty(tmp_path):
    check_writable(str(tmp_path / 'a' / 'b'))
    assert os.listdir(tmp_path / 'a' / 'b') == []
    (tmp_path / 'file').write_text('kept')
    with pytest.raises(OSError, match='Cannot write to'):
        check_writable(str(tmp_path / 'file'))
    assert (tmp_path / 'file').read_text() == 'kept'


def test_files_are_whole_or_as_they_were(tmp_path):
    path = tmp_path / 'result'
    path.write_text('old')
    with pytest.raises(KeyboardInterrupt):
        with written_whole(str(path)) as part:
            with open(part, 'w') as file:
                file.write('new')
            raise KeyboardInterrupt
    assert path.read_text() == 'old'
    with written_whole(str(path)) as part:
        with open(part, 'w') as file:
            file.write('new')
    assert path.read_text() == 'new' and os.listdir(tmp_path) == ['result']


def test_a_kill_leaves_one_result(tmp_path, monkeypatch):
    names, left = ['model', 'a', 'b'], []

    def write(text, *names_written):
        with written_together(str(tmp_path), names) as part:
            for name in names_written:
                with open(os.path.join(part, name), 'w') as file:
                    file.write(text)

    def found():
        return {
            path.name: path.read_text()
            for path in tmp_path.iterdir() if path.is_file()
        }

    def until(done):
        def act(*args, **kwargs):
            left.pop()
            return done(*args, **kwargs)

        return act

    mine = {'mine': 'mine'}
    (tmp_path / 'mine').write_text('mine')
    old, new = ({
        **mine,
        **dict.fromkeys(of, text)
    } for text, of in (('old', names), ('new', ['model', 'b'])))
    for moment in range(6):
        write('old', *names)
        with monkeypatch.context() as patch:
            left[:] = range(moment)
            patch.setattr(os, 'replace', until(os.replace))
            patch.setattr(Path, 'unlink', until(Path.unlink))
            patch.setattr(stored, '_remove', lambda path: None)
            with pytest.raises(IndexError):
                write('new', 'model', 'b')
        there = found().items()
        assert there <= old.items() or there <= new.items()
        put_in_place(str(tmp_path), names)
        assert found() == (new if moment else old)
        assert moment == 0 or os.listdir(tmp_path).count('.whole') == 0
    (tmp_path / 'model').unlink()  # What is left is none.
    write('newer', 'model')
    assert found() == {'model': 'newer', **mine}
    assert len(os.listdir(tmp_path)) == 2


@pytest.fixture
def full_disk():
    """No file can be longer than 10,000 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_one_sentence(tmp_path, full_disk):
    (tmp_path / 'a').write_text('old')
    for write, big in ((write_tensors, {
            'x': torch.zeros(9_000)
    }), (write_text, 'x' * 20_000), (write_table,
                                     pd.DataFrame({'x': [0.1] * 9_000}))):
        with pytest.raises(OSError, match="Cannot write '.*/a' .File too l"):
            write(str(tmp_path / 'a'), big)
        assert os.listdir(tmp_path) == ['a']
        assert (tmp_path / 'a').read_text() == 'old'


def test_what_was_written_is_loaded(tmp_path):
    path = str(tmp_path / 'a')
    for name in ('Ω', '\udcff'):  # Of a file, of no encoding.
        write_tensors(path, {'name': name})
        with loaded(path, '') as found:
            assert found == {'name': name}
        write_text(path, name)
    assert [as_folder(name)
            for name in ('-a b', '', 'Ω.x')] == ['_a_b', '_', 'Ω_x']


def test_spreadsheets_find_no_formula(tmp_path):
    names = ['=1+1', '+a', '-a', '@a', "'=a", '\t=a', ' =a', '-1.5', "'a", 'Ω']
    table = pd.DataFrame({'name': names + [-3], '=x': -0.5})
    write_table(str(tmp_path / 'a.csv'), table)
    text = (tmp_path / 'a.csv').read_text(encoding='utf-8')
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    run = [cell for cell in cells if re.match(r'\s*[=+@-]', cell)]
    assert {*map(float, run)} == {-0.5, -1.5, -3.0}
    again = load(tmp_path / 'a.csv', ['name'])
    assert [*again['name']] == [*table['name']]


def test_systems_are_made_once(tmp_path):
    for _ in range(2):
        dataset = Counting(tmp_path)
        assert sizes(dataset) == [3, 2] and dataset.facts == {'sizes': [3, 2]}
        assert type(dataset[0]) is Data and dataset[1].validate()
    assert Counting.made == 1
    assert sorted(os.listdir(dataset.processed_dir)) == FILES
    assert sizes(Counting(tmp_path, (2, 4))) == [2, 4]
    assert Counting(tmp_path, force_reload=True) and Counting.made == 3
    assert sizes(Counting(tmp_path, (5, ))) == [5]  # A single one.
    assert repr(dataset) == "Counting(2, name='counting', split='all')"


def test_opening_looks_at_no_system(tmp_path, monkeypatch):
    Counting(tmp_path)
    monkeypatch.setattr(Counting, 'get', None)
    assert len(Counting(tmp_path)) == 2


def test_filters_and_transforms_are_never_those_of_before(tmp_path):
    # Two on one line, whose sources are one.
    few, many = (Counting(tmp_path, pre_filter=keep)
                 for keep in (lambda data: data.num_nodes == 2,
                              lambda data: data.num_nodes == 3))
    assert (sizes(few), few._numbers()) == ([2], [1])
    assert (sizes(many), many._numbers()) == ([3], [0])
    with pytest.raises(ValueError, match='none of the systems'):
        Counting(tmp_path, pre_filter=lambda data: False)
    for factor in (1., 10., 1.):

        def scale(data):
            data.x = factor * data.x
            return data

        dataset = Counting(tmp_path, pre_transform=scale)
        assert dataset[0].x.max() == 3 * factor
        assert Counting(tmp_path, transform=scale)[1].x.max() == 2 * factor
    assert Counting.made == 1


def test_own_transforms_are_applied_before_storing(tmp_path, monkeypatch):
    found = [
        Counting(tmp_path, pre_transform=NearestNeighbours(k)).edge_index
        for k in (1, 2)
    ]
    assert [edges.size(1) for edges in found] == [5, 8]
    with monkeypatch.context() as patch:
        patch.setattr(NearestNeighbours, 'forward', None)
        again = Counting(tmp_path, pre_transform=NearestNeighbours(1))
        assert torch.equal(again.edge_index, found[0])
    assert Counting(tmp_path).edge_index.size(1) == 8 and Counting.made == 3
    few = Counting(tmp_path, pre_transform=NearestNeighbours(1),
                   pre_filter=lambda data: data.num_nodes == 3)
    assert few.edge_index.size(1) == 3


PROGRAM = '''
import os, signal, sys, time
import numpy as np
from pyg_fnri.datasets import TrajectoryTable, trajectory_table
made = trajectory_table.from_trajectory

def slow(*args, **kwargs):
    print('made', flush=True)
    if sys.argv[2] == 'die':
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    return made(*args, **kwargs)

trajectory_table.from_trajectory = slow
print(len(TrajectoryTable(sys.argv[1], np.ones((1, 2, 3, 4)))))
'''


@pytest.mark.slow
@pytest.mark.parametrize('how', ['live', 'die'])
def test_processes_make_one_file(tmp_path, how):
    processes = [
        subprocess.Popen([sys.executable, '-c', PROGRAM,
                          str(tmp_path), how], stdout=subprocess.PIPE,
                         text=True) for _ in range(2)
    ]
    out = sorted(process.communicate(timeout=60)[0] for process in processes)
    if how == 'live':
        assert out == ['1\n', 'made\n1\n']
    else:  # The lock of a killed process is let go of, and no file is there.
        assert out == ['made\n', 'made\n']
        assert not list(tmp_path.rglob('systems.pt*'))


@pytest.mark.parametrize('error', [KeyboardInterrupt, RuntimeError])
def test_a_failed_write_leaves_no_file(tmp_path, monkeypatch, error):
    def fail(obj, file):
        file.write(b'half')
        raise error('full')

    with monkeypatch.context() as patch:
        patch.setattr(torch, 'save', fail)
        with pytest.raises(error, match='full'):
            Counting(tmp_path)
    assert not list(tmp_path.rglob('systems.pt*'))
    assert sizes(Counting(tmp_path)) == [3, 2]


def test_damage_is_said_and_can_be_mended(tmp_path):
    path, = Counting(tmp_path).processed_paths
    whole = open(path, 'rb').read()
    for damage in (b'', pickle.dumps(subprocess.run), whole[:-500]):
        with open(path, 'wb') as file:
            file.write(damage)
        with pytest.raises(ValueError, match='force_reload=True'):
            Counting(tmp_path)
        assert sizes(Counting(tmp_path, force_reload=True)) == [3, 2]


def test_names_are_folders_in_root(tmp_path):
    for name in ('../a', '', 'a/b'):
        with pytest.raises(ValueError, match='name a folder'):
            Counting(tmp_path, name=name)
