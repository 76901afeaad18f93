import pickle
from dataclasses import asdict

import pytest
import torch
from small_training import assert_same_state, build, fit

from pyg_fnri.training import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*',
                                        'ignore:.*LeafSpec.*')


def test_checkpoint_gives_the_same_predictions(trained, val):
    module, path = trained
    loaded = load_checkpoint(path)
    assert not any(part.training for part in loaded.modules())
    assert_same_state(module.state_dict(), loaded.state_dict())
    assert asdict(loaded.config) == asdict(module.config)
    assert loaded.recipe == module.recipe
    for i in range(3):
        posterior = module.model.posterior(val[i])
        for ours, theirs in zip(posterior, loaded.model.posterior(val[i])):
            assert ours.equal(theirs)
        paths = [
            m.model.predict_trajectory(val[i], 20) for m in (module, loaded)
        ]
        assert paths[0].equal(paths[1])
    assert loaded.units(val[0].y).equal(module.units(val[0].y))


def test_laws_keep_the_distances_they_were_fitted_at(trained, tmp_path):
    laws = trained[0].with_laws(interval=0.1)
    laws.model.decoder.layer.law.rescale(1e-3)
    path = str(tmp_path / 'laws.ckpt')
    for module in (laws, laws.with_residual(8)):
        save_checkpoint(module, path)
        law = load_checkpoint(path).model.decoder.layer.law
        assert (law.min_distance, law.max_distance) == (3e-5, 0.015)
    # Older checkpoints do not say, as there was one range only.
    checkpoint = torch.load(path, weights_only=True)
    del checkpoint['state_dict']['model.decoder.layer.law._extra_state']
    torch.save(checkpoint, path)
    law = load_checkpoint(path).model.decoder.layer.law
    assert (law.min_distance, law.max_distance) == (0.03, 15.0)


def test_checkpoint_holds_numbers_and_plain_settings(trained):
    _, path = trained
    checkpoint = torch.load(path, weights_only=True)
    assert checkpoint['config']['data'] == {'name': 'springs_charges'}
    assert checkpoint['global_step'] == 4


def test_training_goes_on_where_a_checkpoint_left_off(train, tmp_path):
    systems = train[:16]  # A single batch: its order is not in a checkpoint.
    straight, first, second = (build(train) for _ in range(3))
    fit(straight, systems, max_steps=6)
    fit(first, systems, max_steps=4).save_checkpoint(tmp_path / 'some.ckpt')
    fit(second, systems, max_steps=6, ckpt_path=tmp_path / 'some.ckpt')
    assert_same_state(straight.state_dict(), second.state_dict())


def test_checkpoint_is_written_whole_or_not_at_all(trained, tmp_path,
                                                   monkeypatch):
    module, _ = trained
    path = tmp_path / 'some.ckpt'
    save_checkpoint(module, str(path))
    assert_same_state(
        load_checkpoint(str(path)).state_dict(), module.state_dict())
    before = path.read_bytes()

    def break_off(checkpoint, path):
        with open(path, 'wb') as file:
            file.write(before[:1000])
        raise OSError('No space left on device')

    monkeypatch.setattr(torch, 'save', break_off)
    with pytest.raises(OSError, match='No space left'):
        save_checkpoint(module, str(path))
    assert path.read_bytes() == before


def test_loading_draws_no_random_numbers(trained):
    before = torch.get_rng_state()
    load_checkpoint(trained[1])
    assert torch.get_rng_state().equal(before)


def test_missing_checkpoint_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match='no checkpoint .*train.py'):
        load_checkpoint(str(tmp_path / 'none.ckpt'))
    with pytest.raises(FileNotFoundError, match='no checkpoint'):
        load_checkpoint(str(tmp_path))


def change_config(checkpoint, **values):
    checkpoint['config'].update(values)


BROKEN = {
    'other sizes': lambda c: change_config(c, options={'hidden_channels': 9}),
    'other model': lambda c: change_config(c, model='nri'),
    'other layers': lambda c: change_config(c, num_edge_types=[2, 3]),
    'unknown model': lambda c: change_config(c, model='gcn'),
    'unknown setting': lambda c: change_config(c, colour='red'),
    'no settings': lambda c: c.pop('config'),
    'no weights': lambda c: c.pop('state_dict'),
    'a weight less': lambda c: c['state_dict'].popitem(),
}


@pytest.mark.parametrize('kind', BROKEN)
def test_checkpoint_that_does_not_fit_is_refused(trained, tmp_path, kind):
    path = tmp_path / 'broken.ckpt'
    checkpoint = torch.load(trained[1], weights_only=True)
    BROKEN[kind](checkpoint)
    torch.save(checkpoint, path)
    assert_refused(path)


@pytest.mark.parametrize('content', [
    pytest.param(b'', id='empty'),
    pytest.param(b'certainly no checkpoint', id='text'),
    pytest.param(bytes(range(256)) * 40, id='bytes'),
    pytest.param(pickle.dumps({'config': 3}, protocol=2), id='pickle'),
])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / 'other.ckpt'
    path.write_bytes(content)
    assert_refused(path)


def test_half_a_checkpoint_is_refused(trained, tmp_path):
    path = tmp_path / 'half.ckpt'
    with open(trained[1], 'rb') as file:
        content = file.read()
    path.write_bytes(content[:len(content) // 2])
    assert_refused(path)


def assert_refused(path):
    """One sentence tells what is wrong, and the file stays as it is."""
    content = path.read_bytes()
    with pytest.raises(ValueError, match='is not a checkpoint') as error:
        load_checkpoint(str(path))
    message = str(error.value)
    assert str(path) in message and 'scripts/train.py' in message
    assert '\n' not in message and len(message) < 500
    assert path.read_bytes() == content


class Touch:
    """Unpickling makes a file."""
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, 'w')


def test_nothing_in_a_file_is_executed(trained, tmp_path):
    checkpoint = torch.load(trained[1], weights_only=True)
    checkpoint['extra'] = Touch(str(tmp_path / 'touched'))
    path = tmp_path / 'evil.ckpt'
    torch.save(checkpoint, path)
    assert_refused(path)
    assert not (tmp_path / 'touched').exists()
