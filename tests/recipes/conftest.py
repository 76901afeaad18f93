"""Systems that the tests of all recipes share."""
import pytest
from torch_geometric.data import Batch

from pyg_fnri.transforms import SplitTrajectory


@pytest.fixture
def batch(make_system):
    """Two systems of 26 frames, split in halves of 12."""
    return SplitTrajectory(12)(Batch.from_data_list(
        [make_system(num_particles=n, num_steps=26) for n in (3, 5)]))
