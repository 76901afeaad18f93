import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.convert import to_pandas
from pyg_fnri.data import from_trajectory, fully_connected
from pyg_fnri.datasets import TrajectoryTable, trajectory_table
from pyg_fnri.loader import SystemLoader
from pyg_fnri.nn import FNRI
from pyg_fnri.transforms import NearestNeighbours, SplitTrajectory

SIZES = {'A': ['a', 'b', 'c'], 'B': ['b', 'c'], 'C': ['x', 'y', 'z', 'w']}
DT = 0.5


def position(number, particle, t):
    """A parabola, whose derivative second-order formulas give exactly."""
    return np.stack([number + t**2, particle * t - 1], axis=-1)


def velocity(number, particle, t):
    return np.stack([2 * t, particle + 0 * t], axis=-1)


def table(num_steps=8, sizes=SIZES):
    rows = []
    for number, (name, particles) in enumerate(sizes.items()):
        for particle, label in enumerate(sorted(particles)):
            for frame in range(num_steps):
                x, y = position(number, particle, DT * frame)
                rows.append((name, label, DT * frame, x, y))
    columns = ['system', 'particle', 'time', 'x', 'y']
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sample(frac=1, random_state=0)


def mass_of(number, particle):
    return 0.5 + number + 10 * particle


def weighed(num_steps=8, sizes=SIZES):
    """The table with masses, in two columns."""
    frame = table(num_steps, sizes)
    names = list(sizes)
    frame['m'] = [
        mass_of(names.index(system),
                sorted(sizes[system]).index(particle))
        for system, particle in zip(frame.system, frame.particle)
    ]
    return frame.assign(m2=2 * frame.m)


@pytest.fixture
def make(tmp_path):
    """Makes data sets of tables."""
    def make(source, *args, **kwargs):
        return TrajectoryTable(tmp_path / 'root', source, *args, **kwargs)

    return make


def test_systems_keep_the_data_contract(make):
    dataset = make(table())
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
def test_files_give_what_tables_in_memory_give(make, tmp_path, name):
    table().to_csv(tmp_path / name, index=False)
    from_file, in_memory = make(str(tmp_path / name)), make(table())
    assert from_file.name == 'birds' and in_memory.name == 'table'
    for one, other in zip(from_file, in_memory):
        assert torch.equal(one.x, other.x)


@pytest.mark.parametrize('name', ['a.npy', 'a.npz'])
def test_arrays_are_taken_as_they_are(make, tmp_path, name):
    x = np.random.rand(4, 3, 6, 4).astype(np.float32)
    path = tmp_path / name
    np.save(path, x) if name == 'a.npy' else np.savez(path, x=x)
    for dataset in (make(path), make(x)):
        assert np.array_equal(dataset[2].x, x[2])
        assert dataset.system_names == [0, 1, 2, 3]
        assert dataset.particle_names[0] == [0, 1, 2]
    # Velocities of positions alone are derived.
    dataset = make(x[..., :2], position=[0, 1], time_step=DT)
    expected = np.gradient(x[1, ..., :2].astype(float), DT, axis=1,
                           edge_order=2)
    np.testing.assert_allclose(dataset[1].x[..., 2:], expected, atol=1e-6)


def test_velocities_that_are_there_are_kept(make):
    frame = table().assign(vx=1.5, vy=lambda t: -t.x)
    data = make(frame)[0]
    assert torch.equal(data.x[..., 3], -data.x[..., 0])
    assert (data.x[..., 2] == 1.5).all()
    assert make(frame, velocity=())[0].x.shape == (3, 8, 2)


def test_every_system_is_in_one_split(make):
    sizes = {f's{k}': ['a', 'b'] for k in range(20)}
    names = [
        make(table(3, sizes), split, seed=1).system_names
        for split in ('train', 'val', 'test')
    ]
    assert [len(of_split) for of_split in names] == [16, 2, 2]
    assert sorted(sum(names, [])) == sorted(sizes)
    assert names[1] != make(table(3, sizes), 'val', seed=2).system_names


def test_splits_of_one_recording_share_no_frame(make):
    frame = table(100, {'A': ['a', 'b']}).drop(columns='system')
    seen = {}
    for split in ('train', 'val', 'test'):
        dataset = make(frame, split, window=8, stride=3)
        positions = dataset.x[..., 0].flatten()  # No two frames are alike.
        seen[split] = set(positions.tolist())
        assert dataset[0].x.shape == (2, 8, 4)
        assert dataset.system_names[0] == {
            'train': '0/0',
            'val': '0/80',
            'test': '0/90'
        }[split]
    assert not seen['train'] & seen['val'] and not seen['val'] & seen['test']
    assert max(seen['train']) < min(seen['val']) < min(seen['test'])


def test_velocities_of_a_split_see_no_frame_of_another(make):
    before = table(100, {'A': ['a', 'b']})
    after = before.copy()
    after.loc[after.time >= 80 * DT, ['x', 'y']] = 1e3  # Not to train on.
    one, other = (make(frame, 'train', window=10) for frame in (before, after))
    assert torch.equal(one.x, other.x)


def test_windows_are_systems_of_equal_length(make):
    frame = pd.concat(
        [table(9, {'A': ['a', 'b']}),
         table(20, {'B': ['a', 'b']})])
    dataset = make(frame, window=8)
    assert dataset.system_names == ['A/0', 'B/0', 'B/8']
    np.testing.assert_allclose(dataset[2].x[0, :, 0],
                               (DT * np.arange(8, 16))**2, rtol=1e-6)
    with pytest.raises(ValueError, match="'A' has 9 frames.*'B' has 20"):
        make(frame)
    with pytest.raises(ValueError, match="'A' is too short"):
        make(frame, window=10)


def test_interpolation_is_never_silent(make):
    frame = table().sort_values(['system', 'particle', 'time'],
                                ignore_index=True).drop(index=[3, 12])
    with pytest.raises(ValueError, match="row 2 .*'A', particle 'a', time 1.0"):
        make(frame)
    whole = make(table())
    for _ in range(2):  # Made, and found again.
        with pytest.warns(UserWarning, match='Filled 2 of 72 .*2.78%.* 1 of 3'):
            dataset = make(frame, max_gap=1)
        assert dataset[0].x[0, 3, 1] == -1
        assert torch.equal(dataset[1].x, whole[1].x)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        make(table(), max_gap=1)


def test_too_short_systems_are_named(make):
    frame = table()
    of_b = (frame.system == 'B') & (frame.time > DT)
    with pytest.raises(ValueError, match="'B' has 2 frames and system 'A' has"):
        make(frame[~of_b])
    with pytest.raises(ValueError, match="'B' is too short: 2 of its .* 'all'"):
        make(frame[~of_b], window=5)
    with pytest.raises(ValueError, match="'A' is too short: velocities take"):
        make(table(2))
    assert make(table(2), velocity=())[0].x.shape == (3, 2, 2)


def test_own_edges_are_the_candidates(make):
    edges = pd.DataFrame({
        'system': ['A', 'A', 'C'],
        'sender': ['c', 'a', 'w'],
        'receiver': ['a', 'b', 'z'],
    })
    dataset = make(table(), edges=edges)
    assert dataset[0].edge_index.tolist() == [[2, 0], [0, 1]]
    assert dataset[1].edge_index.shape == (2, 0)
    assert dataset[2].edge_index.tolist() == [[0], [3]]


def test_truth_comes_from_the_tables_that_are_written(make, tmp_path):
    dataset = make(table())
    batch = Batch.from_data_list(list(dataset))
    edge_type = torch.randint(3, (batch.num_edges, 2))
    edge_type[0] = 2
    truth = to_pandas(batch, edge_type, ['charge', 'spring'],
                      systems=dataset.system_names,
                      particles=dataset.particle_names)
    truth.to_csv(tmp_path / 'truth.csv', index=False)
    for interactions in (tmp_path / 'truth.csv', truth[truth.type > 0]):
        labelled = make(table(), interactions=interactions)
        assert labelled.names == ['charge', 'spring']
        assert labelled.num_edge_types == [3, 3]
        assert labelled.num_layer_graphs == 2
        assert torch.equal(labelled.edge_label, edge_type)
        assert labelled[1].validate()


def test_truth_of_one_split_is_numbered_as_that_of_all(make):
    sizes = {f's{k}': ['a', 'b'] for k in range(5)}
    truth = pd.DataFrame({
        'system': ['s0', 's1'],
        'sender': 'a',
        'receiver': 'b',
        'type': [1, 3],
    })
    for split in ('train', 'val', 'test'):
        dataset = make(table(3, sizes), split, interactions=truth)
        assert dataset.num_edge_types == [4]
        for name, data in zip(dataset.system_names, dataset):
            expected = {'s0': 1, 's1': 3}.get(name, 0)
            assert data.edge_label.tolist() == [[0], [expected]]


def test_names_follow_the_systems(make):
    dataset = make(table())
    assert dataset[[2, 0]].system_names == ['C', 'A']
    assert dataset[1:].particle_names == [['b', 'c'], ['w', 'x', 'y', 'z']]
    kept = make(table(), pre_filter=lambda data: data.num_nodes != 2)
    assert kept.system_names == ['A', 'C'] and len(kept) == 2
    assert kept.particle_names[1] == ['w', 'x', 'y', 'z']


def test_what_has_changed_finds_no_old_data(make, tmp_path):
    path = tmp_path / 'a.csv'
    weighed().to_csv(path, index=False)
    first = make(path)
    assert make(path).processed_dir == first.processed_dir
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
    folders = [make(path, **change).processed_dir for change in changes]
    assert len({first.processed_dir, *folders}) == len(changes) + 1
    table().assign(x=lambda t: t.x + 1).to_csv(path, index=False)
    changed = make(path)
    assert changed.processed_dir != first.processed_dir
    assert torch.allclose(changed[0].x[..., 0], first[0].x[..., 0] + 1)


def test_a_table_is_read_once(make, monkeypatch):
    first = make(table())
    monkeypatch.setattr(trajectory_table.Reading, 'read', None)
    assert torch.equal(make(table()).x, first.x)


def test_data_sets_are_small_when_pickled(make):
    # Workers of a loader get them so.
    frame = table().assign(comment='long' * 1000)
    assert len(pickle.dumps(make(frame))) < 50_000


@pytest.mark.parametrize('transform', [None, SplitTrajectory(4)])
def test_loaders_batch_systems_of_many_sizes(make, transform):
    dataset = make(table(), transform=transform)
    batch, = SystemLoader(dataset, batch_size=3)
    expected = Batch.from_data_list(list(dataset))
    for key in expected.keys():
        assert torch.equal(batch[key], expected[key]), key


def test_a_model_of_other_sizes_infers_from_it(make):
    dataset = make(table(), pre_transform=NearestNeighbours(2))
    model = FNRI(4, 8, [2, 2], hidden_channels=8).eval()
    model.scaling.fit(dataset.x)
    batch, = SystemLoader(dataset, batch_size=3)
    assert model.predict(batch).shape == (batch.num_edges, 2)
    assert batch.num_edges == 3 * 2 + 2 * 1 + 4 * 2


def test_names_that_are_numbers_are_numbers(make):
    frame = table(3, {10: [3, 20], 9: [1, 2]})
    dataset = make(frame)
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
def test_wrong_arguments_are_refused(make, kwargs, error, message):
    with pytest.raises(error, match=message):
        make(table(), **kwargs)


def test_positions_and_trajectories_agree_with_from_trajectory(make):
    x = np.random.rand(1, 3, 5, 4)
    data = make(x)[0]
    expected = from_trajectory(x[0])
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.edge_index, expected.edge_index)


def test_representation(make):
    assert repr(
        make(table(), 'val',
             name='birds')) == ("TrajectoryTable(1, name='birds', split='val')")


def test_positions_alone_have_to_be_said(make):
    x = np.random.rand(2, 3, 6, 2)
    with pytest.raises(ValueError, match='2 features'):
        make(x)
    assert make(x, position=[0, 1])[0].x.shape == (3, 6, 4)
    assert make(x, velocity=())[0].x.shape == (3, 6, 2)


def test_interactions_without_a_candidate_edge_are_never_silent(make):
    truth = pd.DataFrame({
        'system': ['A', 'A', 'C'],
        'sender': ['a', 'b', 'x'],
        'receiver': ['b', 'a', 'y'],
        'type': 1
    })
    edges = truth[:1]
    for _ in range(2):  # Made, and found again.
        with pytest.warns(UserWarning, match='2 of 3 true interactions'):
            dataset = make(table(), interactions=truth, edges=edges)
        assert dataset.edge_label.tolist() == [[1]]
    # Each window counts, and what a transform leaves out counts too.
    near = NearestNeighbours(1)
    whole = make(table(), interactions=truth, window=4)
    kept = int(
        make(table(), velocity=(), window=4, interactions=truth,
             pre_transform=near).edge_label.sum())
    assert kept < int(whole.edge_label.sum()) == 6
    with pytest.warns(UserWarning, match=f'{6 - kept} of 6 true'):
        make(table(), interactions=truth, window=4, velocity=(),
             pre_transform=near)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        make(table(), interactions=truth)


def test_truth_may_depend_on_the_direction(make):
    truth = pd.DataFrame({
        'system': 'A',
        'sender': ['a', 'b'],
        'receiver': ['b', 'a'],
        'type': [1, 1]
    })
    assert make(table(), interactions=truth).one_way == ''
    assert make(table()).one_way == ''
    one = make(table(), interactions=truth[:1]).one_way
    assert 'in 1 of 1 interactions' in one and "system 'A'" in one


def masses(number, size):
    return [mass_of(number, particle) for particle in range(size)]


def test_masses_belong_to_particles(make):
    dataset, plain = make(weighed(), mass='m'), make(weighed())
    assert dataset.num_node_features == 4 and 'mass' not in plain[0]
    for number, data in enumerate(dataset):
        assert data.mass.tolist() == masses(number, data.num_nodes)
        assert data.mass.dtype == torch.float32 and data.is_node_attr('mass')
        assert torch.equal(data.x, plain[number].x) and data.validate()
    assert make(weighed(), mass='m2')[0].mass.equal(2 * dataset[0].mass)
    batch, = SystemLoader(dataset, batch_size=3)
    assert batch.mass.equal(torch.cat([data.mass for data in dataset]))
    again = make(weighed(), mass='m')  # As it was kept.
    assert again[2].mass.equal(dataset[2].mass)


@pytest.mark.parametrize('transform', [None, SplitTrajectory(2)])
def test_masses_are_those_of_each_window(make, transform):
    near = NearestNeighbours(1)
    dataset = make(weighed(), mass='m', window=4, stride=2, transform=transform,
                   pre_transform=near)
    assert dataset.system_names[3:6] == ['B/0', 'B/2', 'B/4']
    for i, data in enumerate(dataset):
        assert data.mass.tolist() == masses(i // 3, data.num_nodes)
        assert near(data).mass.equal(data.mass)
    batch = next(iter(SystemLoader(dataset, batch_size=9)))
    assert batch.mass.equal(torch.cat([data.mass for data in dataset]))


def test_masses_follow_their_systems_into_splits(make):
    sizes = {f's{k:02}': 'abcd'[:2 + k % 3] for k in range(20)}
    frame = weighed(3, sizes)
    for split in ('train', 'val', 'test'):
        dataset = make(frame, split, seed=1, mass='m')
        for name, data in zip(dataset.system_names, dataset):
            assert data.mass.tolist() == masses(int(name[1:]), data.num_nodes)
    one = weighed(60, {'A': 'abc'}).drop(columns='system')
    for split in ('train', 'val', 'test'):
        for data in make(one, split, window=6, mass='m'):
            assert data.mass.tolist() == masses(0, 3)


def test_masses_of_arrays(make, tmp_path):
    x = np.random.rand(3, 2, 5, 5)
    x[..., 4] = np.arange(1.0, 7.0).reshape(3, 2, 1)
    assert make(x, mass=4)[1].mass.tolist() == [3, 4]
    np.savez(tmp_path / 'a.npz', one=x[0], two=x[1])
    dataset = make(tmp_path / 'a.npz', mass=4)
    assert dataset[1].mass.tolist() == [3, 4]
    assert dataset[1].x.shape == (2, 5, 4)


def test_masses_that_change_are_refused(make):
    frame = weighed().sort_values(['system', 'particle', 'time'],
                                  ignore_index=True)
    frame.loc[29, 'm'] = 5.0
    with pytest.raises(
            ValueError, match="is 1.5 of system 'B', particle 'b', "
            "time 0, row 24, and 5.0 of .* time 2.5, row 29"):
        make(frame, mass='m')
    assert len(make(frame)) == 3  # Nobody asks for them.
