"""Files that were damaged, or made to harm: noticed, or read as before."""
import csv
import gzip
import pickle
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from fault_table import record
from pyarrow.parquet import read_table as read_parquet
from small_training import assert_same_state, make_config

from pyg_fnri import load
from pyg_fnri.datasets import NRIFolder, TrajectoryTable
from pyg_fnri.datasets.tables import as_name
from pyg_fnri.nn.reference import from_reference_checkpoint
from pyg_fnri.training import build_module, load_checkpoint, save_checkpoint
from pyg_fnri.training.trainer import WholeFiles

#: Bits that are flipped in a file; files that are mutated, of each kind.
NUM_FLIPS, NUM_BINARIES, NUM_CELLS = 300, 100, 250
TABLES = {
    'x.csv': 250,
    'x.csv.gz': 50,
    'x.parquet': 250,
    'x.npy': NUM_BINARIES,
    'x.npz': NUM_BINARIES
}
#: What a command ends with in one line.
SENTENCES = (ImportError, OSError, RuntimeError, TypeError, ValueError)
X = np.random.default_rng(0).normal(size=(3, 12, 4)).cumsum(1)
SPICE = [
    b'nan', b'-', b'1e308', b',', b'\n', b'"', b'\xff', b'\0', b'inf', b';',
    b'99999999999999999999', b'\xe2\x80\x8b', b'"\n"'
]
CELLS = [
    None, np.nan, np.inf, -1e308, 1e39, True, '', 'nan', 'a', '1.0', '1,5',
    '2024-05-31', ' 1', 10**30, '0x1f', '1e3', '\u0661', 'b\n', '-0', 7
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


def flip(whole, number, rng):
    """One bit; half of them where tensors are the least: in the directory."""
    part = bytearray(whole)
    place = rng.integers(0 if number % 2 else len(whole) - 4_000, len(whole))
    part[place] ^= 1 << int(rng.integers(8))
    return part


def mutate(whole, number, rng):
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
    return part


def tried(fault, number, path, write, opened, is_right):
    """Opens a file that was damaged in a number of ways: it is right, as far as
    it tells, or refused in one sentence."""
    counts = dict(wrong=0, tracebacks=0, noticed=0, equal=0)
    for k in range(number):
        write(k)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            try:
                found = opened(path)
                came = 'equal' if is_right(found) else 'wrong'
            except SENTENCES as error:
                one = str(error) and '\n' not in str(error)
                came = 'noticed' if one else 'tracebacks'
            except Exception as error:
                came = 'tracebacks'
                print(f'{path}, {k}: {error!r}')
        counts[came] += 1
    record(fault, number=number, **counts)
    assert counts['wrong'] == counts['tracebacks'] == 0


@pytest.mark.slow
@pytest.mark.parametrize('how, damage, number',
                         [('bit flipped', flip, NUM_FLIPS),
                          ('bytes mutated', mutate, NUM_BINARIES)])
@pytest.mark.parametrize('kind', ['systems', 'checkpoint'])
def test_damage_is_noticed_or_changes_nothing(files, kind, how, damage, number):
    path, rng = files[kind], np.random.default_rng(1)
    whole = path.read_bytes()
    opened = {'systems': open_systems, 'checkpoint': load_checkpoint}[kind]
    state = {
        'systems': lambda found: (found.facts, found._data.to_dict()),
        'checkpoint': lambda found: (found.config, found.state_dict())
    }[kind]
    facts, tensors = state(opened(path))

    def is_right(found):
        assert_same_state(state(found)[1], tensors)
        return state(found)[0] == facts

    try:
        tried(f'{how}, {path.name}', number, path,
              lambda k: path.write_bytes(damage(whole, k, rng)), opened,
              is_right)
    finally:
        path.write_bytes(whole)


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
    record('code in files', number=len(CODE), wrong=0, noticed=len(CODE))


def rows_of(path):
    """The rows of a table, as others read them."""
    if path.suffix == '.parquet':
        return read_parquet(path).to_pylist()
    with {
            '.gz': gzip.open
    }.get(path.suffix, open)(path, 'rt', encoding='utf-8', errors='replace',
                             newline='') as file:
        return [*csv.DictReader(file)]


def is_table(path, found):
    """Whether positions and times are those of the rows."""
    tracks = {}
    for row in rows_of(path):
        tracks.setdefault(as_name(row['particle']), []).append(
            [float(row[key]) for key in ('time', 'x', 'y')])
    names, = found.particle_names
    rows = np.array([sorted(tracks[as_name(name)]) for name in names])
    x = found._data.x.double().numpy()
    return len(tracks) == len(names) and np.allclose(
        rows[..., 1:], x[..., :2], 1e-6, 1e-30) and np.allclose(
            np.diff(rows[..., 0]), found.time_step, 0.12)


def is_array(path, found):
    with open(path, 'rb') as file:
        arrays = np.load(file)
        array = arrays if path.suffix == '.npy' else arrays[arrays.files[0]]
    x = found._data.x.double().numpy()[..., :2]
    return np.allclose(array[..., :2].reshape(x.shape), x, 1e-6, 1e-30)


@pytest.mark.slow
@pytest.mark.parametrize('name', TABLES)
def test_mutated_files_are_read_as_they_are_or_refused(tmp_path, name):
    path, rng = tmp_path / name, np.random.default_rng(2)
    if path.suffix in ('.npy', '.npz'):
        (np.save if path.suffix == '.npy' else np.savez)(path, X)
        is_right = is_array
    else:
        is_right = is_table
        (FRAME.to_parquet if path.suffix == '.parquet' else FRAME.to_csv)(
            path, index=False)
    whole = path.read_bytes()
    tried(f'bytes mutated, {name}', TABLES[name], path,
          lambda k: path.write_bytes(mutate(whole, k, rng)), open_own,
          partial(is_right, path))


@pytest.mark.slow
@pytest.mark.parametrize('suffix', ['.csv', '.parquet'])
def test_mutated_cells_are_read_as_they_are_or_refused(tmp_path, suffix):
    path, rng = tmp_path / f'x{suffix}', np.random.default_rng(3)

    def write(number):
        table = FRAME.copy()
        for _ in range(rng.integers(1, 3)):
            row, name = rng.integers(len(table)), rng.choice([*FRAME])
            how = rng.integers(6)
            if how == 0:
                table = table.astype({name: object})
                table.loc[row, name] = CELLS[rng.integers(len(CELLS))]
            elif how == 1:
                table = table.drop(index=row).reset_index(drop=True)
            elif how == 2:
                table = table.iloc[[*range(len(table)), row]]
                table = table.reset_index(drop=True)
            elif how == 3:
                table[name] = table[name].astype(
                    rng.choice(['str', 'category', 'string']))
            elif how == 4:
                table = table.sample(frac=1, random_state=int(row))
                table = table.reset_index(drop=True)
            else:
                other = rng.choice([*FRAME])
                table = table.rename(columns={name: other, other: name})
        if suffix == '.csv':
            return table.to_csv(path, index=False)
        try:
            table.to_parquet(path, index=False)
        except (TypeError, ValueError):  # Columns of several types.
            table.astype(str).to_parquet(path, index=False)

    tried(f'cells mutated, {path.name}', NUM_CELLS, path, write, open_own,
          partial(is_table, path))
