from dataclasses import replace

import numpy as np
import pytest

from pyg_fnri.application import observe, open_systems
from pyg_fnri.datasets import particle_systems
from pyg_fnri.simulation import Newtonian, Spring


def test_all_systems_are_opened_whole(open_table):
    dataset = open_table([3, 2])
    assert dataset.split == 'all' and dataset.system_names == ['s0', 's1']
    assert [data.x.size(1) for data in dataset] == [10, 10]


def test_predictions_start_from_the_last_observed_frame(make_system):
    data = make_system(num_steps=10)
    x = data.x
    out = observe(data, 6)
    assert out.x.equal(x[:, :6]) and out.y.equal(x[:, 5:])
    assert observe(make_system(num_steps=6), 6).y.size(1) == 1


def test_candidate_edges_are_chosen_as_in_training(module, write_table,
                                                   tmp_path):
    trained = {'neighbours': 1, 'radius': None, 'directed': True}
    config = replace(module.config, data=trained)
    dataset = open_systems(config, write_table([5]), str(tmp_path / 'root'))
    assert dataset[0].num_edges == 5


def test_trajectories_are_read_as_in_training_unless_told(
        module, write_table, tmp_path):
    table, root = write_table([3]), str(tmp_path / 'root')
    config = replace(
        module.config, data={
            'files': {
                'table': 'old.csv'
            },
            'reading': {
                'position': ['y', 'x'],
                'velocity': ['vy', 'vx']
            }
        })
    x = open_systems(config, table, root)[0].x
    plain = open_systems(module.config, table, root)[0].x
    assert x.equal(plain[..., [1, 0, 3, 2]])
    # Velocities are then those that belong to them.
    given = open_systems(config, table, root, reading={'position': ['x', 'y']})
    assert given[0].x.equal(plain)


@pytest.mark.parametrize('kwargs, message', [
    ({
        'num_steps': 5
    }, 'looks at 6 frames, but .* have 5'),
    ({
        'time_step': 0.2
    }, '0.2 apart, but .* trained on 0.1; resample'),
])
def test_systems_that_do_not_fit_are_refused(open_table, kwargs, message):
    with pytest.raises(ValueError, match=message):
        open_table([3], **kwargs)


def test_simulated_frames_are_as_far_apart_as_their_system_says(
        module, write_table, tmp_path, monkeypatch):
    slow = Newtonian([Spring()], sample_every=200)
    monkeypatch.setitem(particle_systems.SYSTEMS, 'slow', slow)
    root = str(tmp_path / 'root')

    def open_for(name, time_step):
        data = {'name': name, 'num_systems': [3, 1, 1]}
        return open_systems(replace(module.config, data=data),
                            write_table([3], time_step=time_step), root)

    assert len(open_for('slow', 0.2)) == len(open_for('kuramoto', 0.1)) == 1
    with pytest.raises(ValueError, match='0.1 apart, .* trained on 0.2; resam'):
        open_for('slow', 0.1)


def test_other_features_are_refused(module, tmp_path):
    np.save(tmp_path / 'x.npy', np.ones((2, 3, 8, 6)))
    with pytest.raises(ValueError, match='4 features .* has 6'):
        open_systems(module.config, str(tmp_path / 'x.npy'),
                     str(tmp_path / 'root'))
