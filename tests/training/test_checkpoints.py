import pickle
from dataclasses import asdict

import pytest
import pytorch_lightning as pl
import torch
from small_training import assert_same_state, build

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import load_checkpoint, save_checkpoint
from pyg_fnri.training.checkpoints import MovableCheckpoint

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*')


def test_checkpoint_gives_the_same_predictions(trained, val):
    module, path = trained
    loaded = load_checkpoint(path)
    assert not any(part.training for part in loaded.modules())
    assert_same_state(module.state_dict(), loaded.state_dict())
    assert asdict(loaded.config) == asdict(module.config)
    assert loaded.recipe == module.recipe
    ours, theirs = (m.model.predict_trajectory(val[0], 20)
                    for m in (module, loaded))
    assert ours.equal(theirs)
    assert loaded.units(val[0].y).equal(module.units(val[0].y))


def test_laws_keep_the_distances_they_were_fitted_at(trained, tmp_path):
    laws = trained[0].with_laws(interval=0.1)
    laws.model.decoder.layer.law.rescale(1e-3)
    path = str(tmp_path / 'laws.ckpt')
    save_checkpoint(laws, path)
    law = load_checkpoint(path).model.decoder.layer.law
    assert (law.min_distance, law.max_distance) == (3e-5, 0.015)


def test_the_last_checkpoint_is_whole_or_the_one_before(train, tmp_path,
                                                        monkeypatch):
    def half(checkpoint, file):
        file.write(b'half')
        try:
            raise OSError(28, "No space")
        except OSError:
            raise RuntimeError("unexpected pos")

    def fit(**kwargs):
        trainer = pl.Trainer(
            accelerator='cpu', max_epochs=-1, logger=False,
            enable_progress_bar=False, enable_model_summary=False, callbacks=[
                MovableCheckpoint(tmp_path, 'last', every_n_train_steps=2,
                                  enable_version_counter=False)
            ], **kwargs)
        trainer.fit(build(train), SystemLoader(train, 16),
                    ckpt_path=tmp_path / 'last.ckpt' if resumed else None)

    resumed = False
    fit(max_steps=2)
    old = (tmp_path / 'last.ckpt').read_bytes()
    resumed = True
    with monkeypatch.context() as patch:
        patch.setattr(torch, 'save', half)
        with pytest.raises(OSError, match='last.ckpt. .No space.; make room'):
            fit(max_steps=4)
    assert [path.name for path in tmp_path.iterdir()] == ['last.ckpt']
    assert (tmp_path / 'last.ckpt').read_bytes() == old
    (tmp_path / 'last.ckpt').write_bytes(old[:-9_000] + b'?' + old[-8_999:])
    with pytest.raises(ValueError, match='Cannot load .*last.ckpt'):
        fit(max_steps=4)


def test_other_files_are_refused(trained, tmp_path):
    path = tmp_path / 'other.ckpt'
    with pytest.raises(FileNotFoundError, match='no checkpoint'):
        load_checkpoint(str(path))
    with open(trained[1], 'rb') as file:
        half = file.read()[:20_000]
    for content in (b'', pickle.dumps({'config': 3}, protocol=2), half):
        path.write_bytes(content)
        assert_refused(path)
    checkpoint = torch.load(trained[1], weights_only=True)
    checkpoint['config']['options']['hidden_channels'] = 9
    torch.save(checkpoint, path)
    assert_refused(path)


def assert_refused(path):
    """One sentence tells what is wrong."""
    with pytest.raises(ValueError, match='Cannot load') as error:
        load_checkpoint(str(path))
    assert str(path) in str(error.value) and '\n' not in str(error.value)
