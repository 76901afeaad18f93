import numpy as np
import pytest

from pyg_fnri.datasets import TrajectoryTable
from pyg_fnri.simulation import Newtonian


@pytest.fixture
def open_table(tmp_path):
    """Makes data sets of tables."""
    def open_table(source, *args, **kwargs):
        return TrajectoryTable(tmp_path / 'root', source, *args, **kwargs)

    return open_table


@pytest.fixture
def calls(monkeypatch):
    """Replaces the motion by random numbers; lists its calls."""
    calls = []

    def fake(self, edge_types, seed, progress=False):
        calls.append(seed)
        rng = np.random.default_rng(seed)
        num_systems, _, num_particles, _ = edge_types.shape
        shape = (num_systems, num_particles, 99, 4)
        return rng.standard_normal(shape, np.float32)

    monkeypatch.setattr(Newtonian, 'simulate', fake)
    return calls
