import copy

import pytest
import torch
from torch.utils.data import Subset
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import BaseTransform, Compose

from pyg_fnri.data import from_trajectory
from pyg_fnri.loader import SystemLoader
from pyg_fnri.transforms import SplitTrajectory


class Systems(InMemoryDataset):
    def __init__(self, data_list, transform=None):
        super().__init__(None, transform)
        self.data, self.slices = self.collate(data_list)


class Reverse(BaseTransform):
    """Cannot be applied to a batch: it mixes the particles."""
    def forward(self, data):
        data.x = data.x.flip(0)
        return data


def systems(sizes, labelled=True):
    generator = torch.Generator().manual_seed(1)
    data_list = []
    for n in sizes:
        x = torch.randn(n, 9, 4, generator=generator)
        label = torch.randint(0, 3, (n * (n - 1), 2), generator=generator)
        data_list.append(from_trajectory(x, label if labelled else None))
    return data_list


EQUAL, MIXED = [5] * 11, [5, 3, 2, 7, 5, 2, 2, 4, 3, 3, 6]


def assert_equal(a, b):
    assert type(a) is type(b) and set(a.keys()) == set(b.keys())
    for key, value in a.to_dict().items():
        tensor = isinstance(value, torch.Tensor)
        assert not tensor or value.dtype == b[key].dtype
        assert torch.equal(value, b[key]) if tensor else value == b[key], key


def assert_equal_batches(ours, theirs):
    ours, theirs = list(ours), list(theirs)
    assert len(ours) == len(theirs) > 0
    for a, b in zip(ours, theirs):
        assert a.num_graphs == b.num_graphs and a.num_nodes == b.num_nodes
        assert_equal(a, b)
        for one, other in zip(a.to_data_list(), b.to_data_list()):
            assert_equal(one, other)


def assert_as_pyg(dataset, fast):
    """Batches are PyG's, and come fast if no single system is cut out."""
    if hasattr(dataset, '_data_list'):
        dataset = copy.copy(dataset)
        dataset._data_list = None
        list(SystemLoader(dataset, batch_size=4))
        cut = [data for data in dataset._data_list or [] if data is not None]
        assert (len(cut) <= 1) == fast
    assert_equal_batches(SystemLoader(dataset, batch_size=4),
                         DataLoader(dataset, batch_size=4))


@pytest.mark.parametrize('sizes', [EQUAL, MIXED])
@pytest.mark.parametrize(
    'transform, fast',
    [(None, True), (SplitTrajectory(4), True),
     (Compose([SplitTrajectory(4, 3)]), True),
     (Compose([SplitTrajectory(4), Reverse()]), False)])
def test_batches_equal_those_of_pyg(sizes, transform, fast):
    assert_as_pyg(Systems(systems(sizes), transform), fast)


class Doubled(Systems):
    """Computes its systems as they are asked for."""
    def get(self, idx):
        data = super().get(idx)
        data.x = 2 * data.x
        return data


def with_tensors_of_every_kind():
    data_list = systems(MIXED)
    for i, data in enumerate(data_list):
        data.edge_attr = torch.rand(data.num_edges, 3)
        data.mass = torch.rand(data.num_nodes)
        data.target_index = torch.tensor([i % 2, 0])
        data.energy = torch.tensor([float(i)])
    return data_list


@pytest.mark.parametrize(
    'dataset, fast',
    [(Systems(with_tensors_of_every_kind()), True),
     (Systems(systems(MIXED, labelled=False)), True),
     (Systems([
         Data(x=data.x, edge_index=data.edge_index, name=f'{i}')
         for i, data in enumerate(systems(EQUAL))
     ]), False), (Doubled(systems(EQUAL)), False),
     (Systems([Data(x=data.x.bfloat16()) for data in systems(EQUAL)]), False),
     (Systems(systems([5])), True), (systems(EQUAL), False),
     (Systems(systems(MIXED), SplitTrajectory(4))[[7, 0, 3, 3, 10]], True),
     (Subset(Systems(systems(MIXED), SplitTrajectory(2)), [4, 1, 8]), False)])
def test_other_kinds_of_data_sets(dataset, fast):
    assert_as_pyg(dataset, fast)


def test_same_generator_gives_the_same_order():
    ours, theirs = (loader(Systems(systems(MIXED)), batch_size=4, shuffle=True,
                           generator=torch.Generator().manual_seed(5))
                    for loader in (SystemLoader, DataLoader))
    for _ in range(2):  # Two epochs.
        assert_equal_batches(ours, theirs)


def test_a_batch_does_not_share_memory_with_the_data_set():
    dataset = Systems(systems(EQUAL), SplitTrajectory(4))
    x = dataset._data.x.clone()
    for batch in SystemLoader(dataset, batch_size=11):
        batch.x.zero_()
        batch.y.zero_()
        batch.edge_index.zero_()
    assert torch.equal(dataset._data.x, x)
    assert dataset._data.edge_index.max() == 4
