import os

import pytest
import torch
from torch_geometric.data import InMemoryDataset

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.stored_systems import StoredSystems, save_systems


class Two(StoredSystems):
    """Two systems, in a file or in several."""
    processed_file_names = ['systems.pt']
    num_edge_types = [2, 3, 2]

    def process(self):
        os.makedirs(self.processed_dir, exist_ok=True)
        joined, self.kept = self.prepare(
            [from_trajectory(torch.ones(size, 4, 2)) for size in (3, 2)])
        for path in self.processed_paths:
            save_systems(joined, path)


class InParts(Two):
    processed_file_names = ['systems.pt', 'others']
    again = 'try again'


def test_the_recipe_names_the_folder(tmp_path):
    folders = {
        Two(tmp_path, 'two', 'all', recipe).processed_dir
        for recipe in ('one', 'other', 'one')
    }
    assert len(folders) == 2
    assert {os.path.dirname(f) for f in folders} == {str(tmp_path / 'two')}
    assert all(os.listdir(folder) == ['systems.pt'] for folder in folders)


def test_layers_are_counted(tmp_path):
    assert Two(tmp_path, 'two', 'all', '').num_layer_graphs == 3


def test_filters_come_before_transforms(tmp_path):
    def grow(data):
        data.x = 5 * data.x
        return data

    dataset = Two(tmp_path, 'two', 'all', '', pre_transform=grow,
                  pre_filter=lambda data: data.num_nodes * data.x.max() < 3)
    assert dataset.kept == [1] and len(dataset) == 1
    assert dataset[0].x.unique().tolist() == [5]


def test_what_is_damaged_is_named(tmp_path):
    for cls, place, again in [(Two, "systems.pt'", 'make it again'),
                              (InParts, "all-[0-9a-f]+'", 'try again')]:
        dataset = cls(tmp_path, cls.__name__, 'all', '')
        with open(dataset.processed_paths[0], 'w'):
            pass
        with pytest.raises(
                RuntimeError, match=f'Cannot load .*{place} .*delete it, or '
                f'pass force_reload=True to {again}'):
            cls(tmp_path, cls.__name__, 'all', '')
        assert len(cls(tmp_path, cls.__name__, 'all', '',
                       force_reload=True)) == 2


def test_failed_writes_are_errors_of_the_system(tmp_path, monkeypatch):
    def fail(obj, file):
        raise RuntimeError('unexpected pos 64 vs 0')

    monkeypatch.setattr(torch, 'save', fail)
    with pytest.raises(OSError, match='pos 64 vs 0'):
        save_systems(
            InMemoryDataset.collate([from_trajectory(torch.ones(3, 4, 2))]),
            str(tmp_path / 'file'))
