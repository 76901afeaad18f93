import json

import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets import NRIFolder, TrajectoryTable
from pyg_fnri.datasets.spec import (OWN_UNIT, UserData, box_half_width,
                                    check_directions, describe_files,
                                    frame_interval, length_unit, open_dataset,
                                    remembered_reading)
from pyg_fnri.simulation import Kuramoto
from pyg_fnri.transforms import SplitTrajectory

SIZES = [3, 4, 3, 5, 4, 3, 3, 4, 5, 3]
DT = 0.25


@pytest.fixture
def table(tmp_path):
    """Particles on a line, each 1 further; the last one comes close to the
    first after 6 frames."""
    rows = [(system, DT * frame, particle,
             0.1 if particle == size - 1 and frame >= 6 else particle, 0.)
            for system, size in enumerate(SIZES) for particle in range(size)
            for frame in range(12)]
    path = tmp_path / 'mine.csv'
    pd.DataFrame(rows, columns=['system', 'time', 'particle', 'x',
                                'y']).to_csv(path, index=False)
    return path


@pytest.fixture
def reopen(tmp_path):
    """Opens what has been through a file, as descriptions are."""
    def reopen(description, split='train', **kwargs):
        description = json.loads(json.dumps(description))
        return open_dataset(description, tmp_path / 'root', split, **kwargs)

    return reopen


def pairs(data):
    return set(zip(*data.edge_index.tolist()))


def test_all_arguments_of_simulated_systems_are_kept(reopen,
                                                     uncompiled_kuramoto):
    description = dict(name='kuramoto', num_particles=4, seed=3,
                       num_systems=[5, 3, 2], split_by='graph')
    dataset = reopen(description, 'test')
    assert dataset.system == Kuramoto() and dataset.split_by == 'graph'
    assert dataset[1].x.shape == (4, 99, 4) and len(dataset) == 2
    assert frame_interval({}, dataset) == 0.1


def test_windows_and_transform(reopen, table):
    description = describe_files(str(table), num_observed=2, window=4, stride=2,
                                 position=['y', 'x'])
    dataset = reopen(description, 'all', transform=SplitTrajectory(2))
    assert len(dataset) == 5 * len(SIZES)
    assert dataset[0].x[:, 0, 1].tolist() == [0, 1, 2]
    other = reopen({**description, 'seed': 1}, 'test')
    assert other.system_names != reopen(description, 'test').system_names
    assert dataset[0].x.shape == dataset[0].y.shape == (3, 2, 4)
    assert frame_interval(description, dataset) == DT


def test_candidates_depend_on_observed_frames_only(reopen, table):
    first = pairs(
        reopen(describe_files(str(table), num_observed=6, radius=1.5),
               'all')[1])
    assert first == {(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)}
    later = pairs(
        reopen(describe_files(str(table), num_observed=7, radius=1.5),
               'all')[1])
    assert later == first | {(0, 3), (3, 0), (1, 3), (3, 1)}


def test_data_may_be_moved(reopen, table, tmp_path):
    edges = tmp_path / 'edges.csv'
    edges.write_text('sender,receiver\n0,1\n')
    description = describe_files(str(table), edges=str(edges), num_observed=6)
    before = reopen(description, 'test')
    (tmp_path / 'laptop').mkdir()
    for path in (table, edges):
        path.rename(tmp_path / 'laptop' / path.name)
    with pytest.raises(FileNotFoundError, match='mine.csv.*data=PATH'):
        reopen(description)
    moved = str(tmp_path / 'laptop' / table.name)
    after = reopen(description, 'test', data=moved)
    assert after.processed_dir == before.processed_dir
    (tmp_path / 'laptop' / table.name).write_text('something else')
    with pytest.raises(ValueError, match='has changed since'):
        reopen(description, data=moved)


def test_wrong_descriptions_are_refused(reopen, table):
    with pytest.raises(ValueError, match='does not tell which data set'):
        reopen({})
    with pytest.raises(ValueError, match='is a folder'):
        describe_files(str(table.parent), num_observed=6, window=3)
    with pytest.raises(ValueError, match='by neighbours or by radius'):
        describe_files(str(table), num_observed=6, neighbours=1, radius=1.)
    with pytest.raises(FileNotFoundError, match='none.csv'):
        describe_files('none.csv', num_observed=6)


@pytest.fixture
def folder(tmp_path):
    """Arrays as the research code writes them."""
    path, rng = tmp_path / 'theirs', np.random.default_rng(0)
    path.mkdir()
    for split, size in (('train', 4), ('valid', 3), ('test', 2)):
        for kind in ('loc', 'vel'):
            np.save(path / f'{kind}_{split}.npy', rng.random((size, 6, 2, 3)))
        edges = rng.integers(0, 2, (size, 3, 3))
        np.save(path / f'edges_{split}.npy', edges)
    return path


def test_arrays_tell_the_time_that_velocities_are_derived_by(reopen, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / 'x.npy', rng.normal(size=(10, 3, 8, 4)))
    path = str(tmp_path / 'x.npy')
    for reading, expected in [
        ({}, None), ({'time_step': 0.5}, 0.5), ({'position': [0, 1]}, 1.0),
        ({'position': [0, 1], 'velocity': [2, 3]}, None)
    ]:  # yapf: disable
        description = describe_files(path, num_observed=4, **reading)
        assert frame_interval(description, reopen(description)) == expected


def test_other_data_of_the_same_kind_are_read_as_in_training(table, tmp_path):
    reading = {'position': ['y'], 'max_gap': 2}
    description = describe_files(str(table), num_observed=6, **reading)
    assert remembered_reading(description, 'new.csv') == reading
    assert remembered_reading(description, 'new.npy') == {}
    assert remembered_reading(description, str(tmp_path)) == {}
    assert remembered_reading({'name': 'kuramoto'}, 'new.csv') == {}


def test_folders_have_splits_and_truth_of_their_own(reopen, folder):
    description = describe_files(str(folder), num_observed=3)
    sizes = [len(reopen(description, s)) for s in ('train', 'val', 'test')]
    assert sizes == [4, 3, 2]
    dataset = reopen(description, transform=SplitTrajectory(3))
    assert isinstance(dataset, NRIFolder) and dataset.num_edge_types == [2]
    assert dataset[0].x.shape == dataset[0].y.shape == (3, 3, 4)
    assert frame_interval(description, dataset) is None
    timed = describe_files(str(folder), num_observed=3, time_step=0.1)
    assert frame_interval(timed, reopen(timed)) == 0.1
    with pytest.warns(UserWarning, match='candidate edge'):
        reopen(describe_files(str(folder), num_observed=3, radius=1e-3))


def test_undirected_models_are_not_measured_by_a_directed_truth(
        reopen, table, tiny_systems, tmp_path):
    truth = pd.DataFrame({'sender': [0, 1], 'receiver': [1, 0], 'type': 1})
    paths = [str(tmp_path / name) for name in ('both.csv', 'one.csv')]
    truth.to_csv(paths[0], index=False)
    truth[:1].to_csv(paths[1], index=False)
    both, one = (reopen(
        describe_files(str(table), interactions=path, num_observed=6))
                 for path in paths)
    for dataset in (both, one, tiny_systems('val')):
        check_directions(dataset, undirected=False)
    for dataset in (both, tiny_systems('val')):
        check_directions(dataset, undirected=True)
    with pytest.raises(ValueError, match='in 10 of 10 .*directed'):
        check_directions(one, undirected=True)


def test_walls_and_units_are_those_of_a_simulation(tiny_systems, tmp_path):
    assert box_half_width(tiny_systems('test')) == 5
    assert length_unit(tiny_systems('test')) == 'm'
    own = TrajectoryTable(str(tmp_path), np.random.randn(4, 3, 12, 4))
    assert box_half_width(own) is None
    assert length_unit(own) == OWN_UNIT


def test_systems_of_pyg_may_hold_more_and_keep_their_time_step(
        table, tmp_path, make_system):
    systems = [make_system(5), make_system(4)]
    plain = UserData.of(systems, str(tmp_path / 'a'), False, 0, {})
    for of in systems:
        of.name, of.num_nodes = 'fish', of.x.size(0)
    more = UserData.of(systems, str(tmp_path / 'a'), False, 0, {})
    assert more.description['files'] == plain.description['files']
    opened = TrajectoryTable(str(tmp_path), str(table))
    again = UserData.of(opened, str(tmp_path / 'b'), False, 0, {})
    assert again.open("all").time_step == opened.time_step
