import csv
import pickle
import signal
from dataclasses import asdict
from functools import partial

import pandas as pd
import pytest
import pytorch_lightning as pl
import rich
import torch
from rich.console import Console
from small_training import assert_same_state, build
from small_training import make_trainer as quiet_trainer

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import load_checkpoint, save_checkpoint
from pyg_fnri.training.trainer import (MovableCheckpoint, ProgressLines,
                                       WholeMetrics, make_trainer, train_module)


def test_steps_are_counted_on_a_terminal(train, val, tmp_path, monkeypatch):
    monkeypatch.setattr(rich, '_console', Console(force_terminal=True))
    options = {'batch_size': 32, 'max_steps': 5, 'max_epochs': 2}
    module = build(train, options=options)
    trainer = make_trainer(module, len(train), str(tmp_path), val_every=3,
                           accelerator='cpu')
    train_module(trainer, module, train, val, str(tmp_path))
    lines, = (c for c in trainer.callbacks if isinstance(c, ProgressLines))
    task, = lines.bars.tasks
    assert task.completed == task.total == 4 == trainer.global_step
    assert not lines.bars.live.is_started


def test_validation_logs_a_line(trained, val, caplog):
    caplog.set_level('INFO', 'pyg_fnri')
    trainer = quiet_trainer(1, callbacks=[ProgressLines()])
    trainer.validate(trained[0], SystemLoader(val, batch_size=32),
                     verbose=False)
    line, = caplog.messages
    assert line.startswith('step 0   accuracy 0.')
    for name, value in trainer.callback_metrics.items():
        word = name.removeprefix('val_').removeprefix('accuracy_').split('_')[0]
        assert word in line and f' {value:.4g}' in line


def test_best_score_is_known_where_a_run_was_moved(train, val, tmp_path):
    for name, steps in (('a', 2), ('b', 4)):
        module = build(train, options={'batch_size': 32, 'max_steps': steps})
        out, last = str(tmp_path / name), None
        if name == 'b':
            (tmp_path / 'a').rename(tmp_path / 'b')
            last = str(tmp_path / 'b' / 'last.ckpt')
            checkpoint = torch.load(last, weights_only=True)
            for state in checkpoint['callbacks'].values():
                # Nothing is ever as good again.
                state['best_model_score'] = torch.tensor(-1e9)
                state['best_k_models'] = dict.fromkeys(state['best_k_models'],
                                                       torch.tensor(-1e9))
                state['kth_value'] = torch.tensor(-1e9)
            torch.save(checkpoint, last)
        trainer = make_trainer(module, len(train), out, 2, 'cpu', last)
        train_module(trainer, module, train, val, out, last)
        best = torch.load(tmp_path / name / 'best.ckpt', weights_only=True)
        assert best['global_step'] == 2
    last = torch.load(tmp_path / 'b' / 'last.ckpt', weights_only=True)
    assert last['global_step'] == 4


class Stop(pl.Callback):
    def on_train_batch_start(self, trainer, *args):
        if trainer.global_step == 2:
            signal.raise_signal(signal.SIGTERM)


def test_stop_ends_the_program(train, val, tmp_path):
    module = build(train, options={'batch_size': 8})  # In mid epoch.
    trainer = make_trainer(module, len(train), str(tmp_path), 2, 'cpu')
    trainer.callbacks.append(Stop())
    with pytest.raises(SystemExit) as stopped:
        train_module(trainer, module, train, val, str(tmp_path))
    assert stopped.value.code == 143 and trainer.global_step == 3
    last = torch.load(tmp_path / 'last.ckpt', weights_only=True)
    assert last['global_step'] == 2


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

    def fit(max_steps):
        trainer = quiet_trainer(
            max_steps, enable_checkpointing=True, callbacks=[
                MovableCheckpoint(tmp_path, 'last', every_n_train_steps=2,
                                  enable_version_counter=False)
            ])
        trainer.fit(build(train), SystemLoader(train, 16),
                    ckpt_path=tmp_path / 'last.ckpt' if resumed else None)

    resumed = False
    fit(2)
    old = (tmp_path / 'last.ckpt').read_bytes()
    resumed = True
    with monkeypatch.context() as patch:
        patch.setattr(torch, 'save', half)
        with pytest.raises(OSError, match='last.ckpt. .No space.; make room'):
            fit(4)
    assert [path.name for path in tmp_path.iterdir()] == ['last.ckpt']
    assert (tmp_path / 'last.ckpt').read_bytes() == old
    (tmp_path / 'last.ckpt').write_bytes(old[:-9_000] + b'?' + old[-8_999:])
    with pytest.raises(ValueError, match='Cannot load .*last.ckpt'):
        fit(4)


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


def test_metrics_are_whole_or_those_before(tmp_path, monkeypatch):
    metrics, path = WholeMetrics(str(tmp_path)), tmp_path / 'metrics.csv'
    metrics.log_metrics({'a': 0.5}, 0)
    metrics.save()
    before = path.read_text()
    metrics.log_metrics({'b': torch.tensor(2.0)}, 1)
    with monkeypatch.context() as patch:
        patch.setattr(csv.DictWriter, 'writerows', None)
        with pytest.raises(TypeError):
            metrics.save()
    WholeMetrics(str(tmp_path))  # Nor does opening it clear the file.
    assert path.read_text() == before == 'a,step\n0.5,0\n'
    metrics.save()
    assert path.read_text() == 'a,b,step\n0.5,,0\n,2.0,1\n'


def test_metrics_have_names_that_the_system_cannot_encode(
        tmp_path, monkeypatch):
    monkeypatch.setattr('pyg_fnri.training.trainer.open',
                        partial(open, encoding='ascii'), raising=False)
    metrics = WholeMetrics(str(tmp_path))
    metrics.log_metrics({'val_accuracy_Ω': 0.5}, 1)
    metrics.save()
    text = (tmp_path / 'metrics.csv').read_text(encoding='utf-8')
    assert text.splitlines() == ['step,val_accuracy_Ω', '1,0.5']


@pytest.mark.parametrize('max_steps, val_every, steps', [(5, 3, [1, 3]),
                                                         (3, 10, [2]),
                                                         (4, 2, [1, 3])])
def test_the_last_steps_are_looked_at_and_kept(train, val, tmp_path, max_steps,
                                               val_every, steps):
    module = build(train, options={'batch_size': 8, 'max_steps': max_steps})
    trainer = make_trainer(module, len(train), str(tmp_path), val_every, 'cpu')
    train_module(trainer, module, train, val, str(tmp_path))
    rows = pd.read_csv(tmp_path / 'metrics.csv').dropna(subset=['val_loss'])
    assert rows['step'].tolist() == steps
    last = torch.load(tmp_path / 'last.ckpt', weights_only=True)
    assert last['global_step'] == steps[-1] + 1
