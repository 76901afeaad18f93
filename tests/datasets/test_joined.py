import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, InMemoryDataset

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.joined import join


@pytest.mark.parametrize('num_systems', [1, 2, 5])
def test_systems_are_joined_as_pyg_collates_them(num_systems):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_systems, 3, 7, 6)).astype(np.float32)
    types = rng.integers(0, 4,
                         (num_systems, 2, 3, 3)) * (1 - np.eye(3, dtype=int))
    systems = [from_trajectory(a, b) for a, b in zip(x, types)]
    data, slices = join(x, types)
    expected, expected_slices = InMemoryDataset.collate(systems)
    assert set(data.keys()) == set(expected.keys())
    for key, value in expected.to_dict().items():
        assert torch.equal(data[key], value) and data[key].dtype == value.dtype
    if num_systems == 1:
        assert slices is None and expected_slices is None
    else:
        for key, value in expected_slices.items():
            assert torch.equal(slices[key], value)
        assert torch.equal(Batch.from_data_list(systems).x, data.x)
