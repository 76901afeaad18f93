"""Files that were damaged, or made to harm: noticed, or read as before."""
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from small_training import assert_same_state, make_config

from pyg_fnri import load
from pyg_fnri.datasets import NRIFolder, TrajectoryTable
from pyg_fnri.nn.reference import from_reference_checkpoint
from pyg_fnri.training import build_module, load_checkpoint, save_checkpoint
from pyg_fnri.training.trainer import WholeFiles

#: Bits that are flipped in a file, and how many files of a kind are mutated.
NUM_FLIPS, NUM_MUTATED = 300, 150
#: What a command ends with in one line.
SENTENCES = (ImportError, OSError, RuntimeError, TypeError, ValueError)
X = np.random.default_rng(0).normal(size=(3, 12, 4)).cumsum(1)
SPICE = [
    b'nan', b'-', b'1e308', b',', b'\n', b'"', b'\xff', b'\0', b'inf', b';',
    b'99999999999999999999', b'\xe2\x80\x8b', b'"\n"'
]
FRAME = pd.DataFrame({
    'time': np.tile(np.arange(12), 3),
    'particle': np.repeat(['a', 'b', '1'], 12),
    'x': X[..., 0].ravel(),
    'y': X[..., 1].ravel()
})


def open_systems(path):
    """The data set that is stored in a file, which is not made anew."""
    return TrajectoryTable(Path(path).parents[2], X, name='x')


def open_own(path):
    return TrajectoryTable(
        Path(path).parent / 'root', path,
        position=(0, 1) if path.suffix[:3] == '.np' else ('x', 'y'))


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """A stored data set, and a checkpoint."""
    root = tmp_path_factory.mktemp('files')
    systems, = TrajectoryTable(root, X, name='x').processed_paths
    save_checkpoint(build_module(make_config()), str(root / 'a.ckpt'))
    return {'systems': Path(systems), 'checkpoint': root / 'a.ckpt'}


@pytest.mark.slow
@pytest.mark.parametrize('kind', ['systems', 'checkpoint'])
def test_flipped_bits_are_noticed_or_change_nothing(files, kind):
    path = files[kind]
    whole, noticed, rng = path.read_bytes(), 0, np.random.default_rng(1)
    opened = {'systems': open_systems, 'checkpoint': load_checkpoint}[kind]
    first = opened(str(path))
    for number in range(NUM_FLIPS):
        # Half of them where tensors are the least: in the directory.
        start = 0 if number % 2 else len(whole) - 4_000
        place = rng.integers(start, len(whole))
        part = bytearray(whole)
        part[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(part)
        try:
            again = opened(str(path))
        except ValueError as error:
            assert str(path) in str(error) and '\n' not in str(error)
            noticed += 1
            continue
        if kind == 'systems':
            assert again.facts == first.facts
            assert_same_state(again._data.to_dict(), first._data.to_dict())
        else:
            assert again.config == first.config
            assert_same_state(again.state_dict(), first.state_dict())
    path.write_bytes(whole)
    print(f'\n{kind}: of {NUM_FLIPS} bits flipped, {noticed} were noticed, '
          f'{NUM_FLIPS - noticed} change nothing')


class Touch:
    """Unpickling makes a file."""
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, 'w')


def write_pickle(code, path):
    Path(path).write_bytes(pickle.dumps(code, protocol=2))


def write_legacy(code, path):
    torch.save(code, path, _use_new_zipfile_serialization=False)


def write_array(code, path):
    """One of two lines, so that it has a mask, too."""
    with open(path, 'wb') as file:
        save = np.savez if path.suffix == '.npz' else np.save
        save(file, np.array([code, 1], dtype=object))


def open_result(path):
    save_checkpoint(build_module(make_config()),
                    str(path.parent / 'model.ckpt'))
    return load(path.parent)


def open_folder(path):
    np.save(path.parent / 'vel_train.npy', np.zeros((1, 2, 2, 2)))
    return NRIFolder(path.parent / 'root', path.parent)


def open_reference(path):
    return from_reference_checkpoint(path, path, [2], 'nri')


CODE = [('systems.pt', torch.save, open_systems),
        ('systems.pt', write_legacy, open_systems),
        ('systems.pt', write_pickle, open_systems),
        ('a.ckpt', torch.save, load_checkpoint),
        ('a.ckpt', write_legacy, load_checkpoint),
        ('a.ckpt', write_pickle, load_checkpoint),
        ('last.ckpt', torch.save, WholeFiles().load_checkpoint),
        ('systems.pt', torch.save, open_result),
        ('encoder.pt', torch.save, open_reference),
        ('encoder.pt', write_legacy, open_reference),
        ('x.npy', write_array, open_own), ('x.npz', write_array, open_own),
        ('loc_train.npy', write_array, open_folder)]


def test_no_code_in_files_is_run(files, tmp_path):
    touched = tmp_path / 'touched'
    pickle.loads(pickle.dumps(Touch(str(touched)))).close()
    touched.unlink()  # It would have been run.
    with open(tmp_path / 'kept', 'wb') as file:
        file.write(files['systems'].read_bytes())
    for number, (name, write, opened) in enumerate(CODE):
        path = tmp_path / str(number) / name
        if opened is open_systems:
            path = files['systems']
        path.parent.mkdir(exist_ok=True)
        write({'systems': Touch(str(touched)), 'config': 1}, path)
        with pytest.raises((ValueError, pickle.UnpicklingError)):
            opened(path)
        assert not touched.exists(), (name, write)
    files['systems'].write_bytes((tmp_path / 'kept').read_bytes())
    print(f'\nof {len(CODE)} kinds of code in files, 0 were run')


@pytest.mark.slow
@pytest.mark.parametrize('name', ['x.csv', 'x.csv.gz', 'x.npy', 'x.npz'])
def test_mutated_files_are_read_or_refused(tmp_path, name):
    path, counts = tmp_path / name, {'read': 0, 'refused': 0}
    if path.suffix in ('.npy', '.npz'):
        (np.save if path.suffix == '.npy' else np.savez)(path, X)
    else:
        FRAME.to_csv(path, index=False)
    whole, rng = path.read_bytes(), np.random.default_rng(2)
    for _ in range(NUM_MUTATED):
        part = bytearray(whole)
        for place in rng.integers(len(part), size=rng.integers(1, 4)):
            how = rng.integers(4)
            if how == 0:
                part[place % len(part)] = rng.integers(256)
            elif how == 1:
                del part[place:place + rng.integers(1, 9)]
            elif how == 2:
                part[place:place] = rng.choice(SPICE)
            else:
                part[place:place] = part[:place][-20:]
        path.write_bytes(part)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            try:
                found = open_own(path)
            except SENTENCES as error:
                counts['refused'] += 1
                assert str(error) and '\n' not in str(error), part
                continue
        assert bool(found._data.x.isfinite().all()), part
        counts['read'] += 1
    print(f'\n{name}: of {NUM_MUTATED} mutated files, {counts}')
