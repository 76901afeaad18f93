import numpy as np
import pandas as pd
import pytest
import torch
from parabolas import DT, SIZES, masses, position, table, velocity, weighed
from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory, fully_connected
from pyg_fnri.datasets.reading import Reading
from pyg_fnri.simulation import Kuramoto
from pyg_fnri.transforms import NearestNeighbours

EDGES = ['system', 'sender', 'receiver', 'type']


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


def test_files_give_what_tables_in_memory_give(open_table, tmp_path):
    name = 'my birds.v2.csv.gz'
    table().to_csv(tmp_path / name, index=False)
    from_file, in_memory = open_table(str(tmp_path / name)), open_table(table())
    assert from_file.name == 'my_birds' and in_memory.name == 'table'
    for one, other in zip(from_file, in_memory):
        assert torch.equal(one.x, other.x)


def test_arrays_agree_with_from_trajectory(open_table):
    x = np.random.rand(4, 3, 6, 4)
    dataset = open_table(x)
    assert dataset.system_names == [0, 1, 2, 3] and dataset.name == 'array'
    for of_system, data in zip(x, dataset):
        assert torch.equal(data.x, from_trajectory(of_system).x)
    assert dataset.time_step is None
    with pytest.raises(ValueError, match='System 2: x .* finite'):
        x[2, 0, 3] = np.inf
        open_table(x)


def test_interpolation_is_never_silent(open_table):
    frame = table().sort_values(['system', 'particle', 'time'],
                                ignore_index=True).drop(index=[3, 12])
    with pytest.raises(ValueError, match="frame 3 of particle 'a'"):
        open_table(frame)
    whole = open_table(table())
    for _ in range(2):  # Made, and found again.
        with pytest.warns(UserWarning, match='Filled 2 of 72 .*2.78%'):
            dataset = open_table(frame, max_gap=1)
        assert dataset[0].x[0, 3, 1] == -1
        assert torch.equal(dataset[1].x, whole[1].x)


def test_particles_come_and_go_between_windows(open_table):
    frame = weighed(12, dict(A='abc', B='ab'))
    frame = frame.query("particle != 'c' or 4 <= time / @DT <= 10")
    with pytest.raises(ValueError, match="'c' in system 'A'.*window="):
        open_table(frame)
    truth = pd.DataFrame([('A', 'c', 'a', 1), ('A', 'a', 'b', 2)],
                         columns=EDGES)
    with pytest.warns(UserWarning) as told:
        dataset = open_table(frame, window=4, mass='m', interactions=truth,
                             edges=truth)
    assert ('6 windows hold those that are there throughout, 2.2 in the mean; '
            '0 of 5 tracks are in none, and 0 windows') in str(told[0].message)
    assert dataset.facts['tracks']['windows'] == 6
    assert dataset.system_names == [
        f'{name}/{start}' for name in 'AB' for start in (0, 4, 8)
    ]
    assert [len(of) for of in dataset.particle_names] == [2, 3, 2, 2, 2, 2]
    assert dataset[0].edge_index.tolist() == [[0], [1]]
    assert dataset[0].edge_label.tolist() == [[2]]
    assert dataset[1].edge_index.tolist() == [[2, 0], [0, 1]]
    assert dataset[1].edge_label.tolist() == [[1], [2]]
    # What is derived of a particle is of its own frames.
    t = DT * np.arange(4, 8)
    np.testing.assert_allclose(dataset[1].x[2, :, 2:], velocity(0, 2, t),
                               atol=1e-6)
    assert dataset[1].mass.tolist() == masses(0, 3)
    assert dataset[2].mass.tolist() == masses(0, 2)
    # Windows of fewer than two particles are left out.
    alone = frame[(frame.system == 'A') & (frame.particle != 'b')]
    with pytest.warns(UserWarning,
                      match='0 of 2 tracks are in none, and 2 windows'):
        assert open_table(alone, window=4).system_names == ['A/4']
    # In arrays, such frames are NaN.
    x = np.random.rand(1, 3, 8, 4)
    x[0, 2, 5:] = np.nan
    with pytest.warns(UserWarning):
        assert [d.num_nodes for d in open_table(x, window=4)] == [3, 2]


def test_what_has_changed_finds_no_old_data(open_table, tmp_path, monkeypatch):
    path = tmp_path / 'a.csv'
    weighed().to_csv(path, index=False)
    first = open_table(path)
    edges = pd.DataFrame([('A', 'b', 'c')], columns=EDGES[:3])
    changes = [
        {'split': 'train'}, {'seed': 1}, {'fractions': (0.5, 0.25, 0.25)},
        {'split_by': 'time'}, {'window': 4}, {'window': 4, 'stride': 2},
        {'position': ['y', 'x']}, {'velocity': ()}, {'time_step': DT},
        {'max_gap': 1}, {'mass': 'm'}, {'mass': 'm2'}, {'edges': edges}
    ]  # yapf: disable
    folders = [open_table(path, **change).processed_dir for change in changes]
    assert len({first.processed_dir, *folders}) == len(changes) + 1
    with monkeypatch.context() as patch:
        patch.setattr(Reading, 'read', None)  # Read once.
        assert torch.equal(open_table(path).x, first.x)
    table().assign(x=lambda t: t.x + 1).to_csv(path, index=False)
    changed = open_table(path)
    assert torch.allclose(changed[0].x[..., 0], first[0].x[..., 0] + 1)
    # Masks are a part of the content.
    x = np.ma.masked_array(np.random.rand(1, 2, 5, 4), False)
    open_table(x)
    x[0, 0, 2] = np.ma.masked
    with pytest.raises(ValueError, match='max_gap=1'):
        open_table(x)


@pytest.mark.parametrize('kwargs', [
    {'split_by': 'graph'}, {'stride': 2}, {'window': 3, 'stride': 0},
    {'split': 'test', 'fractions': (0.5, 0.5, 0)},
    {'split': 'train', 'fractions': (0.1, 0.5, 0.4)}
])  # yapf: disable
def test_wrong_arguments_are_refused(open_table, kwargs):
    with pytest.raises(ValueError):
        open_table(table(), **kwargs)


def test_interactions_without_a_candidate_edge_are_never_silent(open_table):
    truth = pd.DataFrame([('A', 'a', 'b', 1), ('A', 'b', 'a', 1),
                          ('C', 'x', 'y', 1)], columns=EDGES)
    for _ in range(2):  # Made, and found again.
        with pytest.warns(UserWarning, match='2 of 3 true interactions'):
            dataset = open_table(table(), interactions=truth, edges=truth[:1])
        assert dataset.edge_label.tolist() == [[1]]
    # Each window counts, and what a transform leaves out counts too.
    with pytest.warns(UserWarning, match='of 6 true'):
        open_table(table(), interactions=truth, window=4,
                   pre_transform=NearestNeighbours(1))
    both = open_table(table(), interactions=truth[:2])
    assert both.one_way == open_table(table()).one_way == ''
    assert 'in 1 of 2' in open_table(table(), interactions=truth).one_way


def test_every_system_is_in_one_split(open_table):
    sizes = {f's{k:02}': 'abcd'[:2 + k % 3] for k in range(20)}
    found = []
    for split in ('train', 'val', 'test'):
        dataset = open_table(weighed(3, sizes), split, seed=1, mass='m')
        for name, data in zip(dataset.system_names, dataset):
            assert data.mass.tolist() == masses(int(name[1:]), data.num_nodes)
        found.append(dataset.system_names)
    assert [len(of_split) for of_split in found] == [16, 2, 2]
    assert sorted(sum(found, [])) == sorted(sizes)
    assert found[1] != open_table(table(3, sizes), 'val', seed=2).system_names


def test_splits_by_time_share_no_frame(open_table):
    frame = table(100, {'A': ['a', 'b']})
    seen = {}
    for split, start in (('train', 0), ('val', 60), ('test', 80)):
        dataset = open_table(frame, split, window=8, stride=3)
        assert dataset.system_names[0] == f'A/{start}'
        assert dataset[0].x.shape == (2, 8, 4)
        seen[split] = dataset.x[..., 0].flatten()
    assert max(seen['train']) < min(seen['val'])  # No two frames are alike.
    assert max(seen['val']) < min(seen['test'])
    # Velocities see no frame of another split, either.
    after = frame.copy()
    after.loc[after.time >= 60 * DT, ['x', 'y']] = 1e3
    one, other = (open_table(of, 'train', window=10, split_by='time')
                  for of in (frame, after))
    assert torch.equal(one.x, other.x)


def test_windows_are_systems_of_equal_length(open_table):
    frame = pd.concat(
        [table(9, {'A': ['a', 'b']}),
         table(20, {'B': ['a', 'b']})])
    dataset = open_table(frame, window=8)
    assert dataset.system_names == ['A/0', 'B/0', 'B/8']
    np.testing.assert_allclose(dataset[2].x[0, :, 0],
                               (DT * np.arange(8, 16))**2 + 0, rtol=1e-6)
    with pytest.raises(ValueError, match='window=9'):
        open_table(frame)
    with pytest.raises(ValueError, match="'A' is too short"):
        open_table(frame, window=10)
    with pytest.raises(ValueError, match="velocities.*'A'"):
        open_table(table(2))
    assert open_table(table(2), velocity=())[0].x.shape == (3, 2, 2)


def test_oscillators_tell_the_time_step(open_table, uncompiled_kuramoto):
    system = Kuramoto(num_frames=20)
    x = system.simulate(system.draw_edge_types(0, 4, 3), 0)
    dataset = open_table([from_trajectory(of) for of in x])
    assert dataset.time_step == system.frame_interval
