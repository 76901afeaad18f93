import os

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform, Compose

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.cached_systems import CachedSystems


class Counting(CachedSystems):
    """Systems of as many particles as the recipe says."""
    made = 0

    def __init__(self, root, sizes=(3, 2), **kwargs):
        self.sizes = sizes
        super().__init__(root, 'counting', 'all', {'sizes': sizes}, **kwargs)

    def make(self):
        type(self).made += 1
        joined, kept = self.prepare([
            from_trajectory(torch.full((size, 4, 2), float(size)))
            for size in self.sizes
        ])
        return joined, {'kept': kept}


@pytest.fixture(autouse=True)
def start_at_0():
    Counting.made = 0


def sizes(dataset):
    return [data.num_nodes for data in dataset]


def test_systems_are_made_once(tmp_path):
    for _ in range(2):
        dataset = Counting(tmp_path)
        assert sizes(dataset) == [3, 2] and dataset.facts == {'kept': [0, 1]}
        assert type(dataset[0]) is Data and dataset[1].validate()
    assert Counting.made == 1
    assert sorted(os.listdir(dataset.processed_dir)) == [
        '.lock', 'facts.json', 'recipe.txt', 'systems.pt'
    ]
    assert Counting(tmp_path, force_reload=True) and Counting.made == 2


def test_what_has_changed_finds_no_old_data(tmp_path):
    assert sizes(Counting(tmp_path)) == [3, 2]
    assert sizes(Counting(tmp_path, (2, 4))) == [2, 4]
    filtered = Counting(tmp_path, pre_filter=lambda data: data.num_nodes == 2)
    assert sizes(filtered) == [2] and filtered.facts == {'kept': [1]}

    def double(data):
        data.x = 2 * data.x
        return data

    assert Counting(tmp_path, pre_transform=double)[0].x.max() == 6
    assert Counting.made == 4


class Scale(BaseTransform):
    """As most of PyG's, it has parameters that its representation hides."""
    def __init__(self, factor):
        self.factor = factor

    def forward(self, data):
        data.x = self.factor * data.x
        return data


def test_what_has_changed_inside_finds_no_old_data(tmp_path):
    for factor in (1., 10., 1.):
        dataset = Counting(tmp_path, pre_transform=Compose([Scale(factor)]))
        assert dataset[0].x.max() == 3 * factor
    assert Counting.made == 2


def test_transforms_are_applied_on_each_access(tmp_path):
    def shorten(data):
        data.x = data.x[:, :1]
        return data

    assert Counting(tmp_path, transform=shorten)[0].x.shape == (3, 1, 2)
    assert Counting(tmp_path)[0].x.shape == (3, 4, 2)


def test_one_system_is_a_data_set(tmp_path):
    for _ in range(2):
        dataset = Counting(tmp_path, (3, ))
        assert len(dataset) == 1 and dataset[0].x.shape == (3, 4, 2)


def test_nothing_is_known_of_the_truth_by_default(tmp_path):
    dataset = Counting(tmp_path)
    assert dataset.names == [] and dataset.num_edge_types == []
    assert dataset.num_layer_graphs == 0


def test_failures_leave_nothing_that_looks_whole(tmp_path):
    def fail(data):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Counting(tmp_path, pre_transform=fail)
    folder, = os.listdir(tmp_path / 'counting')
    assert sorted(os.listdir(tmp_path / 'counting' /
                             folder)) == ['.lock', 'recipe.txt']
    with pytest.raises(ValueError, match='keeps none'):
        Counting(tmp_path, pre_filter=lambda data: False)


@pytest.mark.parametrize('name', ['systems.pt', 'facts.json'])
def test_damage_is_said_and_can_be_mended(name, tmp_path):
    dataset = Counting(tmp_path)
    path = os.path.join(dataset.processed_dir, name)
    with open(path, 'w') as file:
        file.write('{')
    with pytest.raises(RuntimeError, match='force_reload=True'):
        Counting(tmp_path)
    assert sizes(Counting(tmp_path, force_reload=True)) == [3, 2]
    assert sizes(Counting(tmp_path)) == [3, 2]
