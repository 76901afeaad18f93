import importlib
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from pyg_fnri.data import fully_connected
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.particle_systems import SYSTEMS, GraphSplit
from pyg_fnri.datasets.stored import SPLITS
from pyg_fnri.simulation import (Charge, FiniteSpring, Kuramoto, Newtonian,
                                 NRISprings, SoftCharge, Spring, System,
                                 graph_keys, simulate)

SIZES = (7, 4, 3)


def systems(root, split='train', num_systems=SIZES, **kwargs):
    return ParticleSystems(root, split=split, num_systems=num_systems, **kwargs)


def assert_equal(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other):
        assert a.keys() == b.keys()
        for key, value in a.to_dict().items():
            assert torch.equal(value, b[key]), key


@pytest.fixture(scope='module')
def root(tmp_path_factory):
    return str(tmp_path_factory.mktemp('datasets'))


def test_systems_keep_the_data_contract(root):
    dataset = systems(root)
    assert [len(systems(root, split)) for split in SPLITS] == [7, 4, 3]
    for data in dataset:
        assert type(data) is Data and data.validate()
        assert sorted(data.keys()) == ['edge_index', 'edge_label', 'x']
        assert data.x.shape == (5, 99, 4) and data.x.dtype == torch.float32
        assert torch.equal(data.edge_index, fully_connected(5))
        assert data.edge_label.shape == (20, 2)
        assert data.edge_label.dtype == torch.int64
    # Positions change by about velocity times 0.1 s, and stay in the box.
    x = dataset.x
    drift = (x[:, 1:, :2] - x[:, :-1, :2]) - 0.1 * x[:, 1:, 2:]
    assert drift.abs().median() < 1e-2
    assert x[..., :2].abs().max() <= 5


def test_labels_are_the_simulated_interactions(root):
    dataset = systems(root)
    stream = np.random.SeedSequence(0, spawn_key=(0, ))
    seed = int(stream.generate_state(1, np.uint64)[0])
    simulated = simulate((Spring(), Charge()), SIZES[0], seed=seed)
    for s, data in enumerate(dataset):
        for (j, i), label in zip(data.edge_index.t(), data.edge_label):
            interacts = simulated.interactions[s, :, i, j]
            assert label.tolist() == interacts.tolist()
        assert np.array_equal(data.x[..., :2], simulated.position[s])
        assert np.array_equal(data.x[..., 2:], simulated.velocity[s])


def test_other_splits_do_not_change_one(root, tmp_path):
    test = systems(root, 'test')
    same = systems(root, 'test', num_systems=(1, 2, 3))
    assert same.processed_dir == test.processed_dir
    assert_equal(systems(tmp_path, 'test', num_systems=(1, 1, 2)), test[:2])


@dataclass(frozen=True)
class Steady(System):
    """Each particle moves as it started, three features in five frames."""
    layers = {'left': 2, 'right': 4}
    frame_interval: float = 0.5
    wrong: str = ''

    def draw_edge_types(self, seed, num_systems, num_particles):
        types = super().draw_edge_types(seed, num_systems, num_particles)
        return types + (self.wrong == 'types') * (types > 0)

    def simulate(self, edge_types, seed, progress=False):
        rng = np.random.default_rng(seed)
        num_systems, _, num_particles, _ = edge_types.shape
        start = rng.normal(size=(num_systems, num_particles, 1, 3))
        x = start + np.arange(5)[:, None]
        if self.wrong == 'infinite':
            return x * np.inf
        return x[:2] if self.wrong == 'few' else x


def keys_of(dataset):
    keys = []
    for data in dataset:
        types = np.zeros((1, len(dataset.names), 5, 5), np.int64)
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
    # A smaller split is the beginning of a larger one.
    few = systems(tmp_path, 'test', num_systems=(3, 2, 20), split_by='graph')
    assert keys_of(few) == keys_of(parts[2])[:20]


@pytest.mark.parametrize('arguments, error', [
    ({'name': 'charges'}, ValueError), ({'split': 'valid'}, ValueError),
    ({'num_particles': 5.0}, TypeError), ({'num_systems': (10, 5)}, ValueError),
    ({'seed': -1}, ValueError), ({'split_by': 'graphs'}, ValueError),
    ({'num_particles': 2, 'split_by': 'graph', 'forces': [Spring()]},
     ValueError), ({'num_systems': (0, 5, 5)}, ValueError),
    ({'system': Kuramoto(), 'forces': [Spring()]}, ValueError),
    ({'forces': [FiniteSpring()], 'name': 'springs_charges'}, ValueError),
    ({'forces': [Spring]}, ValueError)
])  # yapf: disable
def test_wrong_arguments_are_refused(tmp_path, arguments, error):
    with pytest.raises(error):
        systems(tmp_path, **arguments)
    assert not list(tmp_path.rglob('systems.pt*'))


def test_own_systems_are_simulated(tmp_path, calls):
    dataset = systems(tmp_path, system=Steady())
    assert dataset.name == 'custom' and len(dataset) == 7
    assert dataset.names == ['left', 'right'] and dataset.forces == ()
    assert dataset.num_edge_types == [2, 4] and dataset.frame_interval == 0.5
    assert dataset[0].x.shape == (5, 5, 3)
    assert dataset[0].x.dtype == torch.float32
    assert set(dataset.edge_label[:, 1].tolist()) == {0, 1, 2, 3}
    for wrong in ('infinite', 'few', 'types'):
        with pytest.raises(ValueError):
            systems(tmp_path, system=Steady(wrong=wrong))
    forces = [SoftCharge(4.0), Spring(), Spring()]
    dataset = systems(tmp_path, forces=forces, num_systems=(2, 1, 1))
    assert dataset.names == ['soft_charge', 'spring_1', 'spring_2']
    assert dataset[0].edge_label.shape == (20, 3)


def test_systems_are_joined_as_pyg_collates_them(root):
    for size in (7, 1):
        dataset = systems(root, num_systems=(size, 1, 1))
        data, slices = dataset.collate([*dataset])
        assert_equal([data], [dataset._data])
        if size > 1:
            for key, value in slices.items():
                assert torch.equal(value, dataset.slices[key])
    assert_equal(pickle.loads(pickle.dumps(dataset)), dataset)


def test_every_argument_changes_the_cache(tmp_path, calls):
    variants = [
        {}, {'split': 'val', 'num_systems': (4, 7, 3)},
        {'name': 'springs_charges_fsprings'}, {'num_particles': 4},
        {'num_systems': (8, 4, 3)}, {'seed': 1}, {'split_by': 'graph'},
        {'forces': [Spring(), Charge(0.21)]}, {'forces': [Charge(), Spring()]},
        {'forces': [Spring(), SoftCharge()]},
        {'system': Newtonian([Spring(), Charge()], speed=0.6)},
        {'system': NRISprings()}
    ]  # yapf: disable
    for _ in range(2):  # Made once, each by a stream of its own.
        folders = [systems(tmp_path, **kw).processed_dir for kw in variants]
        assert len(set(folders)) == len(calls) == len(variants)


SOURCE = """
from dataclasses import dataclass
import numpy as np
from pyg_fnri.simulation import Force, System
G = {constant}

@dataclass(frozen=True)
class Own(Force):
    def magnitude(self, distance):
        return {constant} * distance

@dataclass(frozen=True)
class OwnSystem(System):
    layers = {{'own': 2}}

    def simulate(self, edge_types, seed, progress=False):
        return G * np.ones((*edge_types.shape[::3], 5, 4))
"""


def test_code_and_constants_of_ones_own_change_the_cache(
        tmp_path, calls, monkeypatch):
    (tmp_path / 'mine.py').write_text(SOURCE.format(constant=1.))
    monkeypatch.syspath_prepend(tmp_path)
    mine = importlib.import_module('mine')

    def folder():
        return systems(tmp_path, forces=[mine.Own()]).processed_dir

    first = folder()
    assert systems(tmp_path, system=mine.OwnSystem()).x.max() == 1
    assert folder() == first and len(calls) == 1
    monkeypatch.setattr(mine, 'G', 2.)  # The source is as it was.
    assert systems(tmp_path, system=mine.OwnSystem()).x.max() == 2
    monkeypatch.setattr(mine.Own, 'magnitude', lambda self, r: 1.1 * r)
    assert folder() != first and len(calls) == 2


def drawing(name, seed):
    return lambda num: SYSTEMS[name].draw_edge_types(seed, num, 5)


def test_classes_of_graphs_are_split_about_8_to_1_to_1():
    split = GraphSplit(drawing('springs_charges', 99), 0)
    graphs = drawing('springs_charges', 1)(20_000)
    keys, parts = graph_keys(graphs), split.splits(graphs)
    classes = [set(keys[parts == part].tolist()) for part in SPLITS]
    assert len(set.union(*classes)) == sum(map(len, classes)) > 30
    # A class of five particles can weigh as much as a split.
    for part, share, slack in zip(SPLITS, (0.8, 0.1, 0.1), (.12, .07, .07)):
        assert abs((parts == part).mean() - share) < slack
        assert abs((parts == part).mean() - split.shares[part]) < 0.02
    other = GraphSplit(drawing('springs_charges', 99), 1)
    assert (other.splits(graphs[:1000]) != parts[:1000]).any()


def test_more_graphs_are_drawn_where_there_are_too_few(monkeypatch):
    split = GraphSplit(drawing('springs_charges', 99), 0)
    draw = drawing('springs_charges', 1)
    enough = split.draw(draw, 'val', 500)
    assert (split.splits(enough) == 'val').all() and len(enough) == 500
    monkeypatch.setitem(split.shares, 'val', 0.9)
    assert (split.draw(draw, 'val', 500) == enough).all()
    none = GraphSplit(drawing('nri_charged', 99), 0)
    monkeypatch.setitem(none.shares, 'test', 1e-4)
    with pytest.raises(ValueError, match='too rare'):
        none.draw(drawing('nri_charged', 1), 'test', 50)
