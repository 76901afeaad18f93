import pytest

from pyg_fnri.datasets import TrajectoryTable


@pytest.fixture
def open_table(tmp_path):
    """Makes data sets of tables."""
    def open_table(source, *args, **kwargs):
        return TrajectoryTable(tmp_path / 'root', source, *args, **kwargs)

    return open_table
