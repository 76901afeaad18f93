import signal

import pytest
import pytorch_lightning as pl
import rich
import torch
from rich.console import Console
from small_training import build
from small_training import make_trainer as quiet_trainer

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training.trainer import ProgressLines, make_trainer, train_module


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
