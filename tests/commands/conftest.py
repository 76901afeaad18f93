"""The commands as modules, and what a tiny run of them leaves."""
from importlib import import_module
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

SCRIPTS = Path(__file__).parents[2] / 'scripts'


@pytest.fixture(scope='module', autouse=True)
def quick(laws_sought_briefly):
    """How good laws are is said in tests/laws."""


@pytest.fixture(scope='session')
def load_script():
    """Imports a command, or a script such as `examples/compare_graphs`, by its
    name; `script.main([...])` then runs it."""
    def load(name):
        if '/' not in name:
            return import_module(f'pyg_fnri.commands.{name}')
        return SimpleNamespace(**run_path(str(SCRIPTS / f'{name}.py')))

    return load


@pytest.fixture(scope='session')
def tiny_arguments(tiny_root):
    """Arguments of a training run of 3 steps, each of them validated."""
    return [
        '--option', f'root={tiny_root}', '--option', 'num_systems=64,32,32',
        '--hidden-channels', '8', '--batch-size', '16', '--max-steps', '3',
        '--option', 'val_every=1', '--option', 'accelerator=cpu'
    ]


@pytest.fixture(scope='session')
def tiny_run(load_script, tiny_arguments, tmp_path_factory):
    """The directory of such a run, not to be changed."""
    out = tmp_path_factory.mktemp('runs') / 'tiny'
    load_script('train').main([*tiny_arguments, '--out', str(out)])
    return out


@pytest.fixture(scope='session')
def write_table():
    """Writes a table of random smooth trajectories in the plane, without
    velocities, of systems of given sizes."""
    def write(path, sizes, num_steps=20, time_step=0.1):
        generator = np.random.default_rng(0)
        rows = []
        for system, num_particles in enumerate(sizes):
            for particle in range(num_particles):
                start, speed, wave = generator.normal(size=(3, 2))
                for frame in range(num_steps):
                    t = time_step * frame
                    x, y = start + speed * t + wave * np.sin(3 * t)
                    rows.append((f's{system}', t, f'p{particle}', x, y))
        columns = ['system', 'time', 'particle', 'x', 'y']
        pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
        return str(path)

    return write


@pytest.fixture(scope='session')
def own_table(write_table, tmp_path_factory):
    """A user's table: 20 systems of 3 to 5 particles."""
    path = tmp_path_factory.mktemp('own') / 'mine.csv'
    return write_table(path, [3 + k % 3 for k in range(20)])


@pytest.fixture(scope='session')
def own_root(tmp_path_factory):
    """Where data sets of such tables are kept."""
    return str(tmp_path_factory.mktemp('own_root'))


@pytest.fixture(scope='session')
def own_arguments(own_root, own_table):
    """Arguments of 3 steps of training on it, without truth."""
    return [
        '--option', f'root={own_root}', '--data', own_table, '--num-edge-types',
        '2', '2', '--num-observed', '8', '--hidden-channels', '8',
        '--batch-size', '8', '--max-steps', '3', '--option', 'val_every=1',
        '--option', 'accelerator=cpu'
    ]


@pytest.fixture(scope='session')
def own_run(load_script, own_arguments, tmp_path_factory):
    """The directory of such a run, not to be changed."""
    out = tmp_path_factory.mktemp('runs') / 'own'
    load_script('train').main([*own_arguments, '--out', str(out)])
    return out
