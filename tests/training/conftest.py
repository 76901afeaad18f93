import pytest
from small_training import build, fit

from pyg_fnri.training import quiet_lightning


@pytest.fixture(autouse=True)
def quiet():
    with quiet_lightning():
        yield


@pytest.fixture(scope='module')
def train(tiny_systems):
    return tiny_systems('train')


@pytest.fixture(scope='module')
def val(tiny_systems):
    return tiny_systems('val')


@pytest.fixture(scope='module')
def trained(train, tmp_path_factory):
    """A module after four steps, one epoch, and its checkpoint."""
    module = build(train, seed=3, data={'name': 'springs_charges'})
    path = tmp_path_factory.mktemp('training') / 'some.ckpt'
    fit(module, train, max_steps=4).save_checkpoint(path)
    return module.eval(), str(path)
