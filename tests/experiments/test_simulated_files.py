import numpy as np
import pandas as pd

from pyg_fnri.datasets import ParticleSystems
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
