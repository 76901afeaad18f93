import copy
import os
import os.path as osp
import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from few_systems import SIZES, assert_equal, systems
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from pyg_fnri.data import fully_connected
from pyg_fnri.datasets import ParticleSystems, particle_systems
from pyg_fnri.loader import SystemLoader
from pyg_fnri.simulation import (
    Charge,
    FiniteSpring,
    Force,
    Kuramoto,
    Newtonian,
    NRISprings,
    SignedCharges,
    Spring,
    System,
    graph_keys,
    simulate,
)
from pyg_fnri.transforms import SplitTrajectory


@dataclass(frozen=True)
class LinearRepulsion(Force):
    strength: float = 0.1

    def magnitude(self, distance):
        return self.strength * distance


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    return str(tmp_path_factory.mktemp('datasets'))


@pytest.mark.parametrize('split, size', [('train', 7), ('val', 4), ('test', 3)])
def test_systems_keep_the_data_contract(root, split, size):
    dataset = systems(root, split)
    assert len(dataset) == size
    for data in dataset:
        assert type(data) is Data and data.validate()
        assert sorted(data.keys()) == ['edge_index', 'edge_label', 'x']
        assert data.x.shape == (5, 99, 4) and data.x.dtype == torch.float32
        assert torch.equal(data.edge_index, fully_connected(5))
        assert data.edge_label.shape == (20, 2)
        assert data.edge_label.dtype == torch.int64
        assert set(data.edge_label.unique().tolist()) <= {0, 1}
    assert dataset.num_node_features == 4
    # Positions change by about velocity times 0.1 s, and stay in the box.
    x = dataset.x
    drift = (x[:, 1:, :2] - x[:, :-1, :2]) - 0.1 * x[:, 1:, 2:]
    assert drift.abs().median() < 1e-2
    assert x[..., :2].abs().max() <= 5


def test_labels_are_the_simulated_interactions(root):
    forces = (Spring(), Charge())
    dataset = systems(root)
    seed = int(
        np.random.SeedSequence(0, spawn_key=(0, )).generate_state(1,
                                                                  np.uint64)[0])
    simulated = simulate(forces, SIZES[0], seed=seed)
    for s, data in enumerate(dataset):
        for (j, i), label in zip(data.edge_index.t(), data.edge_label):
            interacts = simulated.interactions[s, :, i, j]
            assert label.tolist() == interacts.tolist()
        assert np.array_equal(data.x[..., :2], simulated.position[s])
        assert np.array_equal(data.x[..., 2:], simulated.velocity[s])


def test_joined_systems_are_stored_as_pyg_collates_them(root, tmp_path):
    at_once = systems(root)
    one_by_one = systems(tmp_path, pre_filter=lambda data: True)
    assert one_by_one.processed_dir != at_once.processed_dir
    assert_equal(at_once, one_by_one)
    assert at_once.slices.keys() == one_by_one.slices.keys()
    for key, value in at_once.slices.items():
        assert torch.equal(value, one_by_one.slices[key])
        assert value.dtype == one_by_one.slices[key].dtype
        assert torch.equal(at_once._data[key], one_by_one._data[key])


def test_only_the_split_that_is_asked_for_is_made(tmp_path, calls):
    dataset = systems(tmp_path, 'val')
    assert len(calls) == 1
    assert os.listdir(tmp_path) == ['springs_charges']
    folder, = os.listdir(tmp_path / 'springs_charges')
    assert folder.startswith('val-')
    assert sorted(os.listdir(
        dataset.processed_dir)) == ['.lock', 'recipe.txt', 'systems.pt']
    systems(tmp_path, 'val')
    assert len(calls) == 1


def test_splits_are_separate_streams(root, tmp_path, calls):
    for seed in (0, 1):
        for split in ('train', 'val', 'test'):
            systems(tmp_path, split, seed=seed)
    assert len(set(calls)) == 6


def test_other_splits_do_not_change_one(root, tmp_path):
    test = systems(root, 'test')
    assert systems(root, 'test',
                   num_systems=(1, 2, 3)).processed_dir == (test.processed_dir)
    assert_equal(systems(tmp_path, 'test', num_systems=(1, 1, 2)), test[:2])


def test_every_argument_changes_the_cache(tmp_path, calls):
    def limit(value):
        return lambda data: data.x.max() > value

    variants = [
        {},
        {
            'split': 'val',
            'num_systems': (4, 7, 3)
        },
        {
            'name': 'springs_charges_fsprings'
        },
        {
            'num_particles': 4
        },
        {
            'num_systems': (8, 4, 3)
        },
        {
            'seed': 1
        },
        {
            'forces': [Spring(), Charge(0.21)]
        },
        {
            'forces': [Charge(), Spring()]
        },
        {
            'forces': [Spring(), LinearRepulsion()]
        },
        {
            'system': Newtonian([Spring(), Charge()], speed=0.6)
        },
        {
            'system': NRISprings()
        },
        {
            'split_by': 'graph'
        },
        {
            'pre_filter': limit(-100)
        },
        {
            'pre_filter': limit(-101)
        },
        {
            'pre_transform': SplitTrajectory(3)
        },
        {
            'pre_transform': SplitTrajectory(4)
        },
    ]
    folders = [systems(tmp_path, **kw).processed_dir for kw in variants]
    assert len(set(folders)) == len(calls) == len(variants)
    again = [systems(tmp_path, **kw).processed_dir for kw in variants]
    assert again == folders and len(calls) == len(variants)

    # What is applied on access is no part of it.
    systems(tmp_path, transform=SplitTrajectory(3))
    assert len(calls) == len(variants)


def test_a_force_that_gives_other_values_changes_the_cache(
        tmp_path, calls, monkeypatch):
    forces = [Spring(), LinearRepulsion()]
    before = systems(tmp_path, forces=forces).processed_dir
    # As an edited constant outside of the class would.
    monkeypatch.setattr(LinearRepulsion, 'magnitude',
                        lambda self, distance: 0.1 * distance + 1e-6)
    assert systems(tmp_path, forces=forces).processed_dir != before


def test_constants_of_the_simulation_change_the_cache(tmp_path, calls,
                                                      monkeypatch):
    before = systems(tmp_path).processed_dir
    monkeypatch.setattr(particle_systems, 'VERSION', -1)
    assert systems(tmp_path).processed_dir != before

    dataset = systems(tmp_path)
    with open(osp.join(dataset.processed_dir, 'recipe.txt')) as file:
        recipe = file.read()
    # Data that exist are found by it.
    assert 'split_by' not in recipe and 'system' not in recipe.replace(
        'num_systems', '')
    for constant in ("'step_size': 0.001", "'box_half_width': 5.0",
                     'Spring(stiffness=0.1)', 'Charge(strength=0.2)'):
        assert constant in recipe


def test_own_forces_are_simulated(tmp_path):
    dataset = ParticleSystems(tmp_path, num_systems=(2, 1, 1),
                              forces=[LinearRepulsion(4.0)])
    assert dataset.names == ['linear_repulsion']
    assert dataset.num_edge_types == [2]
    assert dataset.name == 'custom' and len(dataset) == 2
    assert dataset[0].edge_label.shape == (20, 1)


@pytest.mark.parametrize('name, num_types, num_forces', [
    ('nri_springs', 2, 1),
    ('nri_charged', 3, 0),
    ('kuramoto', 2, 0),
])
@pytest.mark.parametrize('num_particles', [5, 10])
def test_nris_systems(root, uncompiled_kuramoto, name, num_types, num_forces,
                      num_particles):
    dataset = systems(root, 'test', name=name, num_particles=num_particles)
    assert len(dataset) == 3 and dataset.num_layer_graphs == 1
    assert dataset.num_edge_types == [num_types]
    # A force of a layer, where the layer is nothing but that.
    assert len(dataset.forces) == num_forces
    assert dataset.frame_interval == 0.1
    for data in dataset:
        assert data.validate() and data.x.shape == (num_particles, 99, 4)
        assert data.edge_label.shape == (num_particles * (num_particles - 1), 1)
        assert data.edge_label.max() < num_types
    split = systems(root, 'test', name=name, num_particles=num_particles,
                    transform=SplitTrajectory(49))
    assert split[0].x.shape == split[0].y.shape == (num_particles, 49, 4)
    with open(osp.join(dataset.processed_dir, 'recipe.txt')) as file:
        assert repr(dataset.system) in file.read()


def test_labels_are_receivers_rows(root):
    dataset = systems(root, name='nri_charged')
    for data in dataset:
        types = torch.zeros(5, 5, dtype=torch.long)
        types[data.edge_index[1], data.edge_index[0]] = data.edge_label[:, 0]
        sign = torch.where(types == 2, -1, 1)
        assert torch.equal(sign, sign[:1] * sign[:1].t())


@dataclass(frozen=True)
class Steady(System):
    """Each particle moves as it started, three features in five frames."""
    layers = {'left': 2, 'right': 4}
    frame_interval: float = 0.5
    broken: bool = False

    def simulate(self, edge_types, seed, num_threads=None, progress=False):
        rng = np.random.default_rng(seed)
        num_systems, _, num_particles, _ = edge_types.shape
        start = rng.normal(size=(num_systems, num_particles, 1, 3))
        x = start + np.arange(5)[:, None]
        return x if not self.broken else x * np.inf


def test_own_systems_are_simulated(tmp_path):
    dataset = systems(tmp_path, system=Steady())
    assert dataset.name == 'custom' and len(dataset) == 7
    assert dataset.names == ['left', 'right']
    assert dataset.num_edge_types == [2, 4] and dataset.frame_interval == 0.5
    assert dataset.forces == ()
    assert dataset[0].x.shape == (5, 5, 3)
    assert dataset[0].x.dtype == torch.float32
    assert set(dataset.edge_label[:, 1].tolist()) == {0, 1, 2, 3}
    by_one = systems(tmp_path, system=Steady(), pre_filter=lambda data: True)
    assert_equal(dataset, by_one)
    with pytest.raises(ValueError, match='of Steady.simulate holds NaN or inf'):
        systems(tmp_path, system=Steady(broken=True))


def test_constants_of_a_system_can_be_ones_own(tmp_path):
    system = Newtonian([Spring(), Charge()], num_dimensions=3, num_steps=500,
                       box_half_width=0.3)
    dataset = systems(tmp_path, system=system, name='small-box')
    assert dataset[0].x.shape == (5, 4, 6)
    assert dataset.x[..., :3].abs().max() <= 0.3
    assert dataset.forces == (Spring(), Charge())


def keys_of(dataset):
    keys = []
    for data in dataset:
        types = np.zeros((1, dataset.num_layer_graphs, 5, 5), np.int64)
        sender, receiver = data.edge_index.numpy()
        types[0, :, receiver, sender] = data.edge_label.numpy()
        keys += graph_keys(types).tolist()
    return keys


def test_splits_by_graph_share_no_graph(tmp_path, calls):
    sizes = (400, 60, 60)
    parts = [
        systems(tmp_path, split, num_systems=sizes, split_by='graph')
        for split in ('train', 'val', 'test')
    ]
    assert [len(part) for part in parts] == list(sizes)
    keys = [set(keys_of(part)) for part in parts]
    assert not (keys[0] & keys[1] or keys[0] & keys[2] or keys[1] & keys[2])
    assert min(map(len, keys)) > 5
    # Of a random split, most are shared.
    random = [
        set(keys_of(systems(tmp_path, split, num_systems=sizes)))
        for split in ('train', 'test')
    ]
    assert len(random[0] & random[1]) > len(random[1]) / 2
    # A smaller split is the beginning of a larger one.
    few = systems(tmp_path, 'test', num_systems=(3, 2, 20), split_by='graph')
    assert keys_of(few) == keys_of(parts[2])[:20]
    again = systems(tmp_path, 'test', num_systems=sizes, split_by='graph',
                    force_reload=True)
    assert_equal(again, parts[2])
    assert str(few).endswith("seed=0, split_by='graph')")


def test_motion_follows_the_chosen_graphs(tmp_path):
    # Of two systems of one seed that move apart, a spring is why.
    dataset = systems(tmp_path, 'test', name='nri_springs', split_by='graph')
    system = NRISprings()
    for s, data in enumerate(dataset):
        types = np.zeros((len(dataset), 1, 5, 5), np.int64)
        sender, receiver = data.edge_index.numpy()
        types[s, 0, receiver, sender] = data.edge_label[:, 0].numpy()
        seed = dataset._stream(2)
        assert np.array_equal(data.x, system.simulate(types, seed)[s])


def test_too_few_graphs_to_split_by_are_refused(tmp_path, calls):
    with pytest.raises(ValueError, match='of 2 kinds up to .* or split by sys'):
        systems(tmp_path, forces=[Spring()], num_particles=2, split_by='graph')
    assert not calls and not list(tmp_path.rglob('systems.pt*'))


def test_layers_are_named_after_forces(tmp_path, calls):
    dataset = systems(tmp_path, name='springs_charges_fsprings')
    assert dataset.names == ['spring', 'charge', 'finite_spring']
    assert dataset.num_edge_types == [2, 2, 2]
    assert dataset.num_layer_graphs == 3
    assert dataset[0].edge_label.shape == (20, 3)

    forces = [Spring(0.1), Charge(), Spring(0.5)]
    dataset = systems(tmp_path, name='two-springs', forces=forces)
    assert dataset.names == ['spring_1', 'charge', 'spring_2']
    assert osp.basename(osp.dirname(dataset.processed_dir)) == 'two-springs'


def test_a_name_with_its_own_forces_is_the_same_data(tmp_path, calls):
    forces = [Spring(), Charge()]
    named = systems(tmp_path, name='springs_charges', forces=forces)
    assert named.processed_dir == systems(tmp_path).processed_dir


def test_other_numbers_of_particles(tmp_path, calls):
    for num_particles in (2, 8):
        dataset = systems(tmp_path, num_particles=num_particles)
        num_edges = num_particles * (num_particles - 1)
        assert dataset[1].validate() and dataset[1].num_nodes == num_particles
        assert dataset[1].edge_label.shape == (num_edges, 2)
        assert dataset[1].is_edge_attr('edge_label')


def test_a_single_system(tmp_path, calls):
    dataset = systems(tmp_path, num_systems=(1, 1, 1))
    assert len(dataset) == 1 and len(list(dataset)) == 1
    assert dataset[0].x.shape == (5, 99, 4)
    assert torch.equal(dataset[0].edge_index, fully_connected(5))
    alone = systems(tmp_path, num_systems=(1, 1, 1),
                    pre_filter=lambda data: True)
    assert_equal(dataset, alone)
    batch, = SystemLoader(dataset, batch_size=4)
    assert batch.num_graphs == 1


def test_transforms_and_filters(tmp_path, calls):
    plain = systems(tmp_path)
    split = systems(tmp_path, transform=SplitTrajectory(49))
    assert split[2].x.shape == split[2].y.shape == (5, 49, 4)
    assert torch.equal(split[2].y, plain[2].x[:, 50:])
    assert plain[2].x.shape == (5, 99, 4)

    before = systems(tmp_path, pre_transform=SplitTrajectory(9))
    assert_equal(before, systems(tmp_path, transform=SplitTrajectory(9)))

    median = plain.x[::5, 0, 0].median()
    some = systems(tmp_path, pre_filter=lambda data: data.x[0, 0, 0] > median)
    kept = [data for data in plain if data.x[0, 0, 0] > median]
    assert 0 < len(some) < len(plain)
    assert_equal(some, kept)


def test_a_filter_that_keeps_nothing_is_refused(tmp_path, calls):
    with pytest.raises(ValueError, match='keeps none'):
        systems(tmp_path, pre_filter=lambda data: False)
    assert not list(tmp_path.rglob('*.p*t*'))


def test_it_behaves_as_any_other_data_set(root):
    dataset = systems(root)
    assert_equal(dataset[2:5], [dataset[i] for i in (2, 3, 4)])
    assert_equal(dataset[:0.5].copy(), dataset[:4])
    assert_equal(copy.deepcopy(dataset), dataset)
    assert_equal(pickle.loads(pickle.dumps(dataset)), dataset)
    shuffled, order = dataset.shuffle(return_perm=True)
    assert_equal(shuffled, [dataset[int(i)] for i in order])
    for a, b in zip(SystemLoader(dataset[[3, 1, 2]], batch_size=2),
                    DataLoader(dataset[[3, 1, 2]], batch_size=2)):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.edge_index, b.edge_index)
        assert torch.equal(a.edge_label, b.edge_label)


def test_loading_is_silent_and_needs_no_permission_to_write(
        root, capfd, monkeypatch):
    systems(root)
    capfd.readouterr()
    monkeypatch.setattr(particle_systems, 'save_once', None)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        systems(root)
    assert capfd.readouterr() == ('', '')


def test_repr_shows_what_it_is(root):
    dataset = systems(root, 'val')
    assert str(dataset) == ("ParticleSystems(4, name='springs_charges', "
                            "split='val', num_particles=5, seed=0)")
    assert str(dataset[:2]).startswith('ParticleSystems(2, ')


@pytest.mark.parametrize('arguments, error, message', [
    ({
        'name': 'charges'
    }, ValueError, "'springs_charges_fsprings'"),
    ({
        'split': 'validation'
    }, ValueError, "must be 'train', 'val' or 'test'"),
    ({
        'num_particles': 1
    }, ValueError, 'num_particles must be at least 2'),
    ({
        'num_particles': 5.0
    }, TypeError, 'whole number, not 5.0'),
    ({
        'num_systems': (10, 5)
    }, ValueError, 'three numbers'),
    ({
        'num_systems': 10
    }, ValueError, 'three numbers'),
    ({
        'num_systems': (10, 5, 0)
    }, ValueError, 'at least 1, not 0'),
    ({
        'num_systems': (10, 5, '3')
    }, TypeError, "whole number, not '3'"),
    ({
        'seed': -1
    }, ValueError, 'seed must be at least 0'),
    ({
        'seed': None
    }, TypeError, 'whole number, not None'),
    ({
        'split_by': 'graphs'
    }, ValueError, "split_by is 'graphs', but must be 'system' or 'graph'"),
    ({
        'system': Kuramoto
    }, TypeError, 'a System object such as Kuramoto'),
    ({
        'system': Kuramoto(),
        'forces': [Spring()]
    }, ValueError, 'Both forces and system'),
    ({
        'system': SignedCharges(strength=2.0),
        'name': 'nri_charged'
    }, ValueError, 'another name'),
    ({
        'forces': []
    }, ValueError, 'forces is empty'),
    ({
        'forces': ['spring']
    }, TypeError, "not 'spring'"),
    ({
        'forces': [Spring]
    }, TypeError, 'Force objects'),
    ({
        'forces': Spring()
    }, TypeError, 'sequence of Force'),
    ({
        'forces': [FiniteSpring()],
        'name': 'springs_charges'
    }, ValueError, 'another name'),
    ({
        'forces': [FiniteSpring()],
        'name': '../x'
    }, ValueError, 'letters'),
])
def test_wrong_arguments_are_refused(tmp_path, calls, arguments, error,
                                     message):
    with pytest.raises(error, match=message):
        systems(tmp_path, **arguments)
    assert not os.listdir(tmp_path) and not calls
