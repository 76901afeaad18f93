import pytest
import torch
from torch_geometric.data import Batch, InMemoryDataset
from torch_geometric.loader import DataLoader

from pyg_fnri.inference import refine, with_inferred_graphs
from pyg_fnri.loader import SystemLoader
from pyg_fnri.transforms import SplitTrajectory


class Systems(InMemoryDataset):
    """Systems of any size."""
    def __init__(self, data_list, transform=None):
        super().__init__(None, transform)
        self.data, self.slices = self.collate(data_list)


class Opinion(torch.nn.Module):
    """An encoder that knows little, of each edge by itself."""
    def forward(self, x, edge_index):
        sender, receiver = edge_index
        near = (x[receiver, :, :2] - x[sender, :, :2]).norm(dim=-1).mean(-1)
        zero = torch.zeros_like(near)
        return torch.stack([zero, 1 - near, zero, near - 1], -1)


@pytest.fixture
def model(make_model):
    model = make_model(torch.zeros(0, 2, dtype=torch.long))
    model.encoder = Opinion()
    return model


def assert_own_graphs(model, taught, batches):
    """Each system has the graph that is found for it in its batch."""
    expected = torch.cat(
        [refine(model, batch, num_restarts=2).edge_type for batch in batches])
    found = torch.cat([data.edge_target for data in taught])
    assert torch.equal(found, expected)


def test_each_system_gets_its_own_graph(model, tiny_systems):
    dataset = tiny_systems('train')
    batches = list(SystemLoader(dataset[:24], 7))  # The last one is smaller.
    taught = with_inferred_graphs(model, dataset, iter(batches))
    assert len(taught) == 24
    assert_own_graphs(model, taught, batches)
    for data, other in zip(taught, dataset):
        for key in ('x', 'y', 'edge_index', 'edge_label'):
            assert torch.equal(data[key], other[key]), key
    # The laws being the true ones, most of that is right.
    correct = torch.cat(
        [data.edge_target == data.edge_label for data in taught])
    assert correct.double().mean() > 0.75


def test_a_subset_in_any_order(model, tiny_systems):
    dataset = tiny_systems('train')
    subset = dataset[[40, 3, 63, 3, 17]]
    batches = list(SystemLoader(subset[:4], 2))
    taught = with_inferred_graphs(model, subset, batches)
    assert len(taught) == 4
    for data, own in zip(taught, (40, 3, 63, 3)):
        assert torch.equal(data.x, dataset[own].x)
    assert_own_graphs(model, taught, batches)


def test_systems_of_different_size(model, simulate_systems):
    systems = [
        data for pair in zip(simulate_systems(4, 3), simulate_systems(4, 6),
                             simulate_systems(4, 4)) for data in pair
    ]
    dataset = Systems(systems)
    batches = list(SystemLoader(dataset, 5))
    taught = with_inferred_graphs(model, dataset, batches)
    assert [data.edge_target.size(0) for data in taught] == [6, 30, 12] * 4
    assert_own_graphs(model, taught, batches)


def test_batches_hold_the_targets(model, tiny_systems):
    dataset = tiny_systems('train')
    taught = with_inferred_graphs(model, dataset, SystemLoader(dataset[:9], 9))
    ours = next(iter(SystemLoader(taught[[7, 2, 5]], 3)))
    theirs = next(iter(DataLoader(taught[[7, 2, 5]], 3)))
    assert torch.equal(ours.edge_target, theirs.edge_target)
    expected = torch.cat([taught[i].edge_target for i in (7, 2, 5)])
    assert torch.equal(ours.edge_target, expected)
    assert ours.x.size() == ours.y.size() == (15, 49, 4)  # Split as before.


def test_data_set_is_left_as_it_is(model, tiny_systems):
    dataset = tiny_systems('train')
    taught = with_inferred_graphs(model, dataset, SystemLoader(dataset[:3], 3))
    assert len(dataset) == 64 and 'edge_target' not in dataset[0]
    assert 'edge_target' not in dataset._data
    assert 'edge_target' not in dataset.slices
    # What is in both is not there twice.
    assert taught._data.x.data_ptr() == dataset._data.x.data_ptr()


def test_a_data_set_of_one_system(model, tiny_systems):
    whole = tiny_systems('train').get(0)
    dataset = Systems([whole], SplitTrajectory(49))
    batches = list(SystemLoader(dataset, 1))
    taught = with_inferred_graphs(model, dataset, batches)
    assert len(taught) == 1
    assert taught[0].edge_target.size() == (20, 2)
    assert_own_graphs(model, taught, batches)


def test_labels_are_not_needed(model, tiny_systems):
    systems = [tiny_systems('train').get(i).clone() for i in range(3)]
    for data in systems:
        del data.edge_label
    dataset = Systems(systems, SplitTrajectory(49))
    taught = with_inferred_graphs(model, dataset, SystemLoader(dataset, 3))
    assert taught[2].edge_target.size() == (20, 2)


def test_batches_that_are_others(model, tiny_systems, simulate_systems):
    dataset = tiny_systems('train')
    with pytest.raises(ValueError, match='64 systems .* got 0 systems'):
        with_inferred_graphs(model, dataset, [])
    with pytest.raises(ValueError, match='2 systems .* got 4 systems'):
        with_inferred_graphs(model, dataset[:2], SystemLoader(dataset[:4], 4))
    other = Batch.from_data_list(simulate_systems(2, 4))
    with pytest.raises(ValueError, match='they have 24 edges, and those 40'):
        with_inferred_graphs(model, dataset, [other])
