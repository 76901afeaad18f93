"""Small modules, and Lightning without its noise, for tests of training."""

import pytorch_lightning as pl

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import Config, build_module


def make_config(**kwargs):
    """A small model's; the quick recipe ends its decay soon."""
    recipe = kwargs.get('recipe', 'quick')
    options = kwargs.pop('options', {})
    if recipe != 'laws':
        options = {'hidden_channels': 8, **options}
    if recipe == 'quick':
        options = {'max_steps': 20, 'warmup_steps': 2, **options}
    return Config(in_channels=4, num_observed=49, num_edge_types=[2, 2],
                  names=['spring', 'charge'], options=options, **kwargs)


def build(train, **kwargs):
    module = build_module(make_config(**kwargs))
    module.fit_units(train._data.x)
    return module


def make_trainer(max_steps, **kwargs):
    quiet = dict(accelerator='cpu', max_epochs=-1, logger=False,
                 enable_checkpointing=False, enable_progress_bar=False,
                 enable_model_summary=False, num_sanity_val_steps=0,
                 check_val_every_n_epoch=100)
    return pl.Trainer(max_steps=max_steps, **{**quiet, **kwargs})


def fit(module, systems, max_steps=3, ckpt_path=None):
    """Trains on batches of 16 systems in their order."""
    trainer = make_trainer(max_steps)
    trainer.fit(module, SystemLoader(systems, batch_size=16),
                ckpt_path=ckpt_path)
    assert trainer.global_step == max_steps
    return trainer


def validate(module, systems):
    loader = SystemLoader(systems, batch_size=20)  # The last one is smaller.
    return make_trainer(1).validate(module, loader, verbose=False)[0]


def assert_same_state(state, other):
    assert state.keys() == other.keys()
    for key, value in state.items():
        assert value.equal(other[key]), key


def is_same_state(state, other):
    return all(value.equal(other[key]) for key, value in state.items())
