from pathlib import Path

import numpy as np
import pytest
import torch
from small_training import assert_same_state, is_same_state, make_config

from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.training import Config, load_checkpoint, save_checkpoint
from pyg_fnri.training.module import build_module


def test_weights_come_from_the_seed_alone():
    before = torch.get_rng_state()
    states = [
        make_config(seed=seed).build_model().decoder.state_dict()
        for seed in (1, 1, 2)
    ]
    assert torch.get_rng_state().equal(before)
    assert_same_state(states[0], states[1])
    assert not is_same_state(states[0], states[2])


def test_paper_regularises_as_the_paper_does():
    def recipe(model, regime):
        return make_config(model=model, regime=regime,
                           recipe='paper').build_recipe()

    assert recipe('fnri', 'supervised').dropout == 0.5
    assert recipe('fnri', 'learned').dropout == 0.0
    assert recipe('sfnri', 'learned').l2 == 5e-8
    assert recipe('sfnri', 'supervised').l2 == 2e-5
    assert recipe('fnri', 'learned').l2 == recipe('nri', 'supervised').l2 == 0


def test_settings_of_other_libraries_can_be_read_again(tmp_path):
    config = Config(
        np.int64(4), np.int32(10), np.array([2, 2]), np.array(['a', 'b']),
        seed=torch.tensor(3), options={
            'learning_rate': np.logspace(-4, -3, 3)[1],
            'hidden_channels': np.int64(16),
            'null_prior': (0.5, np.float32(0.5))
        }, data=dict(path=Path('/x'), sizes=range(2)))
    path = str(tmp_path / 'some.ckpt')
    save_checkpoint(build_module(config), path)
    assert load_checkpoint(path).config == config
    assert config.data == {'path': '/x', 'sizes': [0, 1]}
    with pytest.raises(TypeError, match='data holds'):
        Config(4, 10, [2], data={'what': object()})


def test_settings_of_a_data_set(train):
    config = Config.for_dataset(train, 49, model='nri')
    assert config.in_channels == 4 and config.num_edge_types == [2, 2]
    assert config.names == ['spring', 'charge'] and config.model == 'nri'
    assert Config.for_dataset(train, 49, (2, 2)).num_edge_types == [2, 2]
    with pytest.raises(ValueError, match='truth'):
        Config.for_dataset(train, 49, [3])


def test_networks_see_lines_where_features_are_positions_and_velocities(
        train, tmp_path, uncompiled_kuramoto):
    assert Config.for_dataset(train, 49).options == {'encoder': 'equivariant'}
    asked = Config.for_dataset(train, 49, options={'encoder': 'cnn'})
    assert asked.options == {'encoder': 'cnn'}
    assert not Config.for_dataset(train, 49, recipe='paper').options
    # Four features, too, but an angle, its rate and a constant.
    phases = ParticleSystems(str(tmp_path), 'kuramoto', num_systems=(4, 2, 2))
    assert Config.for_dataset(phases, 10).options == {'encoder': 'mlp'}
