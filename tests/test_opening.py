import json
import os

import numpy as np
import pandas as pd
import pytest

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.opening import describe_files, frame_interval, open_dataset
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


def test_simulated_systems_are_the_same_again(tiny_root, tiny_systems):
    again = open_dataset(
        {
            'name': 'springs_charges',
            'num_particles': 5,
            'num_systems': [64, 32, 32],
            'seed': 0
        }, tiny_root, 'val', SplitTrajectory(49))
    assert isinstance(again, ParticleSystems)
    assert again[3].y.equal(tiny_systems('val')[3].y)
    assert frame_interval({}, again) == 0.1


def test_all_arguments_of_simulated_systems_are_kept(reopen):
    dataset = reopen(
        {
            'name': 'kuramoto',
            'num_particles': 4,
            'num_systems': [5, 3, 2],
            'seed': 3,
            'split_by': 'graph'
        }, 'test')
    assert dataset.system == Kuramoto() and dataset.split_by == 'graph'
    assert dataset[1].x.shape == (4, 99, 4) and len(dataset) == 2
    assert frame_interval({}, dataset) == 0.1


def test_the_time_between_frames_is_the_systems(tmp_path):
    system = Kuramoto(sample_every=5, num_frames=3)
    dataset = ParticleSystems(tmp_path, system=system, num_systems=(2, 1, 1))
    assert frame_interval({}, dataset) == 0.05


def test_splits_of_files_share_no_system(reopen, table):
    description = describe_files(str(table), num_observed=6, seed=1)
    names = [
        reopen(description, split).system_names
        for split in ('train', 'val', 'test')
    ]
    assert [len(of) for of in names] == [8, 1, 1]
    assert sorted(sum(names, [])) == reopen(description, 'all').system_names
    other = describe_files(str(table), num_observed=6, seed=2)
    assert reopen(other, 'test').system_names != names[2]


def test_paths_do_not_depend_on_where_one_is(reopen, table, monkeypatch):
    monkeypatch.chdir(table.parent)
    description = describe_files('mine.csv', num_observed=6)
    monkeypatch.chdir(os.sep)
    assert len(reopen(description, 'all')) == len(SIZES)


def test_windows_and_transform(reopen, table):
    description = describe_files(str(table), num_observed=2, window=4)
    dataset = reopen(description, 'all', transform=SplitTrajectory(2))
    assert len(dataset) == 3 * len(SIZES)
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


def test_neighbours_in_one_direction_or_both(reopen, table):
    directed = pairs(
        reopen(
            describe_files(str(table), num_observed=6, neighbours=1,
                           directed=True), 'all')[1])
    assert directed == {(1, 0), (0, 1), (1, 2), (2, 3)}
    both = pairs(
        reopen(describe_files(str(table), num_observed=6, neighbours=1),
               'all')[1])
    assert both == directed | {(b, a) for a, b in directed}


def test_edges_and_truth_come_from_files(reopen, table, tmp_path):
    edges = pd.DataFrame({'sender': [0, 1], 'receiver': [1, 2], 'type': [1, 0]})
    edges.to_csv(tmp_path / 'edges.csv', index=False)
    path = str(tmp_path / 'edges.csv')
    dataset = reopen(describe_files(str(table), path, path, num_observed=6),
                     'all')
    assert pairs(dataset[0]) == {(0, 1), (1, 2)}
    assert dataset[0].edge_label.tolist() == [[1], [0]]
    assert dataset.num_edge_types == [2]


def test_arrays_do_not_tell_the_time(reopen, tmp_path):
    np.save(tmp_path / 'x.npy',
            np.random.default_rng(0).normal(size=(10, 3, 8, 4)))
    description = describe_files(str(tmp_path / 'x.npy'), num_observed=4)
    assert frame_interval(description, reopen(description)) is None


def test_changed_file_is_not_taken_for_the_same(reopen, table):
    description = describe_files(str(table), num_observed=6)
    reopen(description)
    table.write_text(table.read_text().replace('0.25', '0.26'))
    with pytest.raises(ValueError, match='mine.csv. has changed since'):
        reopen(description)
    table.unlink()
    with pytest.raises(FileNotFoundError, match='no file .*mine.csv'):
        reopen(description)


def test_wrong_descriptions_are_refused(reopen, table):
    with pytest.raises(ValueError, match='does not tell which data set'):
        reopen({})
    with pytest.raises(ValueError, match='by neighbours or by radius'):
        describe_files(str(table), num_observed=6, neighbours=1, radius=1.)
    with pytest.raises(FileNotFoundError, match='no file .*none.csv'):
        describe_files('none.csv', num_observed=6)
