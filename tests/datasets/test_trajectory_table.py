import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from parabolas import DT, SIZES, position, table, velocity, weighed
from torch_geometric.data import Batch, Data

from pyg_fnri.data import from_trajectory, fully_connected
from pyg_fnri.datasets import trajectory_table
from pyg_fnri.loader import SystemLoader
from pyg_fnri.nn import FNRI
from pyg_fnri.transforms import NearestNeighbours, SplitTrajectory


def test_systems_keep_the_data_contract(open_table):
    dataset = open_table(table())
    assert len(dataset) == 3
    assert dataset.system_names == ['A', 'B', 'C']
    assert dataset.particle_names == [sorted(of) for of in SIZES.values()]
    assert dataset.time_step == DT
    for number, data in enumerate(dataset):
        size = len(dataset.particle_names[number])
        assert type(data) is Data and data.validate()
        assert sorted(data.keys()) == ['edge_index', 'x']
        assert data.x.shape == (size, 8, 4) and data.x.dtype == torch.float32
        assert torch.equal(data.edge_index, fully_connected(size))
        t = DT * np.arange(8)
        for particle in range(size):
            expected = np.concatenate(
                [position(number, particle, t),
                 velocity(number, particle, t)], axis=-1)
            np.testing.assert_allclose(data.x[particle], expected, atol=1e-6)
    assert dataset.num_node_features == 4


@pytest.mark.parametrize('name', ['birds.csv', 'birds.csv.gz'])
def test_files_give_what_tables_in_memory_give(open_table, tmp_path, name):
    table().to_csv(tmp_path / name, index=False)
    from_file, in_memory = open_table(str(tmp_path / name)), open_table(table())
    assert from_file.name == 'birds' and in_memory.name == 'table'
    for one, other in zip(from_file, in_memory):
        assert torch.equal(one.x, other.x)


def test_interpolation_is_never_silent(open_table):
    frame = table().sort_values(['system', 'particle', 'time'],
                                ignore_index=True).drop(index=[3, 12])
    with pytest.raises(ValueError, match="row 2 .*'A', particle 'a', time 1.0"):
        open_table(frame)
    whole = open_table(table())
    for _ in range(2):  # Made, and found again.
        with pytest.warns(UserWarning, match='Filled 2 of 72 .*2.78%.* 1 of 3'):
            dataset = open_table(frame, max_gap=1)
        assert dataset[0].x[0, 3, 1] == -1
        assert torch.equal(dataset[1].x, whole[1].x)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        open_table(table(), max_gap=1)


def test_names_follow_the_systems(open_table):
    dataset = open_table(table())
    assert dataset[[2, 0]].system_names == ['C', 'A']
    assert dataset[1:].particle_names == [['b', 'c'], ['w', 'x', 'y', 'z']]
    kept = open_table(table(), pre_filter=lambda data: data.num_nodes != 2)
    assert kept.system_names == ['A', 'C'] and len(kept) == 2
    assert kept.particle_names[1] == ['w', 'x', 'y', 'z']


def test_what_has_changed_finds_no_old_data(open_table, tmp_path):
    path = tmp_path / 'a.csv'
    weighed().to_csv(path, index=False)
    first = open_table(path)
    assert open_table(path).processed_dir == first.processed_dir
    changes = [{
        'split': 'train'
    }, {
        'seed': 1
    }, {
        'fractions': (0.5, 0.25, 0.25)
    }, {
        'split_by': 'time'
    }, {
        'window': 4
    }, {
        'window': 4,
        'stride': 2
    }, {
        'position': ['y', 'x']
    }, {
        'velocity': ()
    }, {
        'time_step': DT
    }, {
        'max_gap': 1
    }, {
        'mass': 'm'
    }, {
        'mass': 'm2'
    }, {
        'pre_transform': NearestNeighbours(1)
    }, {
        'edges':
        pd.DataFrame({
            'sender': ['b'],
            'receiver': ['c'],
            'system': ['A']
        })
    }]
    folders = [open_table(path, **change).processed_dir for change in changes]
    assert len({first.processed_dir, *folders}) == len(changes) + 1
    table().assign(x=lambda t: t.x + 1).to_csv(path, index=False)
    changed = open_table(path)
    assert changed.processed_dir != first.processed_dir
    assert torch.allclose(changed[0].x[..., 0], first[0].x[..., 0] + 1)


def test_a_table_is_read_once(open_table, monkeypatch):
    first = open_table(table())
    monkeypatch.setattr(trajectory_table.Reading, 'read', None)
    assert torch.equal(open_table(table()).x, first.x)


def test_data_sets_are_small_when_pickled(open_table):
    # Workers of a loader get them so.
    frame = table().assign(comment='long' * 1000)
    assert len(pickle.dumps(open_table(frame))) < 50_000


@pytest.mark.parametrize('transform', [None, SplitTrajectory(4)])
def test_loaders_batch_systems_of_many_sizes(open_table, transform):
    dataset = open_table(table(), transform=transform)
    batch, = SystemLoader(dataset, batch_size=3)
    expected = Batch.from_data_list(list(dataset))
    for key in expected.keys():
        assert torch.equal(batch[key], expected[key]), key


def test_a_model_of_other_sizes_infers_from_it(open_table):
    dataset = open_table(table(), pre_transform=NearestNeighbours(2))
    model = FNRI(4, 8, [2, 2], hidden_channels=8).eval()
    model.scaling.fit(dataset.x)
    batch, = SystemLoader(dataset, batch_size=3)
    assert model.predict(batch).shape == (batch.num_edges, 2)
    assert batch.num_edges == 3 * 2 + 2 * 1 + 4 * 2


def test_names_that_are_numbers_are_numbers(open_table):
    frame = table(3, {10: [3, 20], 9: [1, 2]})
    dataset = open_table(frame)
    assert dataset.system_names == [9, 10]
    assert dataset.particle_names == [[1, 2], [3, 20]]


@pytest.mark.parametrize('kwargs, error, message', [
    ({
        'split': 'valid'
    }, ValueError, "split is 'valid'"),
    ({
        'position': 'x'
    }, TypeError, 'sequence of columns'),
    ({
        'max_gap': 0.5
    }, TypeError, 'max_gap'),
    ({
        'name': '../x'
    }, ValueError, 'name a folder'),
    ({
        'particle': 'id'
    }, ValueError, "one column 'id'"),
    ({
        'edges': 'no.csv'
    }, FileNotFoundError, 'no.csv'),
    ({
        'interactions': 3
    }, TypeError, 'not int'),
])
def test_wrong_arguments_are_refused(open_table, kwargs, error, message):
    with pytest.raises(error, match=message):
        open_table(table(), **kwargs)


def test_positions_and_trajectories_agree_with_from_trajectory(open_table):
    x = np.random.rand(1, 3, 5, 4)
    data = open_table(x)[0]
    expected = from_trajectory(x[0])
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.edge_index, expected.edge_index)


def test_representation(open_table):
    assert repr(open_table(
        table(), 'val',
        name='birds')) == ("TrajectoryTable(1, name='birds', split='val')")


def test_positions_alone_have_to_be_said(open_table):
    x = np.random.rand(2, 3, 6, 2)
    with pytest.raises(ValueError, match='2 features'):
        open_table(x)
    assert open_table(x, position=[0, 1])[0].x.shape == (3, 6, 4)
    assert open_table(x, velocity=())[0].x.shape == (3, 6, 2)


def test_interactions_without_a_candidate_edge_are_never_silent(open_table):
    truth = pd.DataFrame({
        'system': ['A', 'A', 'C'],
        'sender': ['a', 'b', 'x'],
        'receiver': ['b', 'a', 'y'],
        'type': 1
    })
    edges = truth[:1]
    for _ in range(2):  # Made, and found again.
        with pytest.warns(UserWarning, match='2 of 3 true interactions'):
            dataset = open_table(table(), interactions=truth, edges=edges)
        assert dataset.edge_label.tolist() == [[1]]
    # Each window counts, and what a transform leaves out counts too.
    near = NearestNeighbours(1)
    whole = open_table(table(), interactions=truth, window=4)
    kept = int(
        open_table(table(), velocity=(), window=4, interactions=truth,
                   pre_transform=near).edge_label.sum())
    assert kept < int(whole.edge_label.sum()) == 6
    with pytest.warns(UserWarning, match=f'{6 - kept} of 6 true'):
        open_table(table(), interactions=truth, window=4, velocity=(),
                   pre_transform=near)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        open_table(table(), interactions=truth)


def test_truth_may_depend_on_the_direction(open_table):
    truth = pd.DataFrame({
        'system': 'A',
        'sender': ['a', 'b'],
        'receiver': ['b', 'a'],
        'type': [1, 1]
    })
    assert open_table(table(), interactions=truth).one_way == ''
    assert open_table(table()).one_way == ''
    one = open_table(table(), interactions=truth[:1]).one_way
    assert 'in 1 of 1 interactions' in one and "system 'A'" in one
