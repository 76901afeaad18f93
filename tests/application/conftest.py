"""A module that has seen frames 0.1 apart, and tables of other systems."""
import numpy as np
import pandas as pd
import pytest
import torch

from pyg_fnri.application import open_systems
from pyg_fnri.training import Config, build_module


@pytest.fixture
def module(shake):
    """Trained, as far as one can tell; it looks at 6 frames."""
    config = Config(in_channels=4, num_observed=6, num_edge_types=[2, 2],
                    recipe='paper', options={'hidden_channels':
                                             8}, data={'time_step': 0.1})
    module = build_module(config)
    module.fit_units(torch.randn(20, 12, 4))
    shake(module.model)
    return module


@pytest.fixture
def write_table(tmp_path):
    """Writes a table of systems of given sizes."""
    def write(sizes, num_steps=10, time_step=0.1, name='new.csv'):
        generator = np.random.default_rng(0)
        rows = [(f's{system}', time_step * frame, f'p{particle}',
                 *generator.normal(size=4)) for system, size in enumerate(sizes)
                for particle in range(size) for frame in range(num_steps)]
        columns = ['system', 'time', 'particle', 'x', 'y', 'vx', 'vy']
        path = tmp_path / name
        pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
        return str(path)

    return write


@pytest.fixture
def open_table(module, write_table, tmp_path):
    """Opens such a table for the module."""
    def open_it(sizes, **kwargs):
        return open_systems(module.config, write_table(sizes, **kwargs),
                            str(tmp_path / 'root'))

    return open_it
