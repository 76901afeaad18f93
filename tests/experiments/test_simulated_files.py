import numpy as np
import pandas as pd
import torch

from pyg_fnri.datasets import ParticleSystems, TrajectoryTable
from pyg_fnri.experiments.simulated_files import write_simulated


def test_files_hold_the_systems_and_apart_from_them_their_truth(tmp_path):
    root, folder = str(tmp_path / 'data'), str(tmp_path / 'files')
    table, truth = write_simulated(folder, root, 'nri_springs', 3, 7, seed=2)
    x = np.load(table)
    assert x.shape[:2] == (7, 3) and x.shape[3] == 4
    rows = pd.read_csv(truth)
    assert set(rows.layer) == {'spring'} and 'probability' not in rows
    systems = ParticleSystems(root, 'nri_springs', 'train', 3, (7, 1, 1), 2)
    for number, system in enumerate(systems):
        np.testing.assert_array_equal(x[number], system.x)
        of = rows[rows['system'] == number]
        edges = system.edge_index[:, system.edge_label[:, 0] == 1].T.tolist()
        assert of[['sender', 'receiver']].to_numpy().tolist() == edges
    before = open(table, 'rb').read()
    again = write_simulated(folder, root, 'nri_springs', 3, 7, seed=2)
    assert again == (table, truth)
    assert open(table, 'rb').read() == before  # Runs are known by it.


def test_they_are_read_as_the_same_systems_but_layers_by_name(tmp_path):
    root, name = str(tmp_path / 'data'), 'springs_charges'
    table, truth = write_simulated(str(tmp_path), root, name, 3, 4)
    systems = ParticleSystems(root, name, 'train', 3, (4, 1, 1))
    read = TrajectoryTable(root, table, interactions=truth)
    assert systems.names == ['spring', 'charge']
    assert read.names == ['charge', 'spring'] and len(read) == len(systems)
    for one, other in zip(read, systems):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.edge_index, other.edge_index)
        assert torch.equal(one.edge_label, other.edge_label[:, [1, 0]])
