import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest
import torch
from small_training import is_same_state, make_config, validate

import pyg_fnri.training.run
import pyg_fnri.training.trainer
from pyg_fnri.training import build_module, check_run, fit
from pyg_fnri.training.run import _start_run


def test_a_run_is_a_call(train, val, tmp_path):
    # An epoch is one step, the interval between two logs is several.
    config = make_config(options={'max_steps': 6, 'batch_size': 64})
    out = str(tmp_path / 'run')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        module = fit(config, train, val, out, val_every=3, accelerator='cpu',
                     command=['python', 'my.py'])
    assert not module.training and module.config == config
    assert not [w for w in caught if 'log_every_n_steps' in str(w.message)]
    rows = pd.read_csv(tmp_path / 'run' / 'metrics.csv')
    trained = [column for column in rows if column.startswith('train_')]
    assert trained and rows[trained].notna().any(axis=1).sum() == 2
    assert (tmp_path / 'run' / 'command.txt').read_text() == 'python my.py\n'
    with pytest.raises(FileExistsError, match='resume or overwrite'):
        fit(config, train, val, out)


def test_the_best_of_several_starts_goes_on(train, val, tmp_path, monkeypatch,
                                            caplog):
    for module in (pyg_fnri.training.run, pyg_fnri.training.trainer):
        monkeypatch.setattr(module, 'START_STEPS', 5)
    caplog.set_level('INFO', 'pyg_fnri')
    begun = {}

    def begin(trainer, module, *args):
        begun.update(module.state_dict())
        return module

    monkeypatch.setattr(pyg_fnri.training.run, 'train_module', begin)
    config = make_config(options={'num_starts': 3, 'max_steps': 6})
    module = fit(config, train, val, str(tmp_path / 'run'), accelerator='cpu')
    losses = [
        float(message.split()[-1]) for message in caplog.messages
        if message.startswith('start')
    ]
    assert len(losses) == 3 and max(losses) > min(losses)
    loss = validate(module, [val[i] for i in range(len(val))])['val_loss']
    assert loss == pytest.approx(min(losses), rel=2e-3)
    fresh = build_module(config)
    fresh.fit_units(train._data.x)
    assert not is_same_state(begun, fresh.state_dict())
    # Not where labels are given.
    caplog.clear()
    config = make_config(options={'num_starts': 3}, regime='supervised')
    fit(config, train, val, str(tmp_path / 'other'), accelerator='cpu')
    assert not any(message.startswith('start') for message in caplog.messages)


def test_own_files_are_not_replaced_with_a_run(tmp_path):
    out = tmp_path / 'run'
    out.mkdir()
    (out / 'command.txt').touch()
    inside, beside = out / 'data' / 'mine.csv', tmp_path / 'run.csv'
    check_run(str(out), overwrite=True, needed=[str(beside)])
    with pytest.raises(FileExistsError, match='mine.csv'):
        check_run(str(out), overwrite=True, needed=[str(beside), str(inside)])


@pytest.mark.parametrize('options, message',
                         [(dict(decoder='gru', burn_in=49), 'burn_in'),
                          (dict(batch_size=65), 'batch_size')])
def test_what_cannot_work_is_told_before_files_are_touched(
        train, val, tmp_path, options, message):
    (tmp_path / 'command.txt').touch()
    with pytest.raises(ValueError, match=message):
        fit(make_config(options=options), train, val, str(tmp_path),
            overwrite=True, accelerator='cpu')
    assert [path.name for path in tmp_path.iterdir()] == ['command.txt']


def test_a_killed_start_can_be_started_again(tmp_path, monkeypatch):
    (tmp_path / 'command.txt.part').touch()
    check_run(str(tmp_path))
    (tmp_path / 'version_0').mkdir()
    names = ['last.ckpt', 'best.ckpt', 'laws.ckpt', 'a.csv']
    for name in (*names, 'command.txt'):
        (tmp_path / name).touch()
    removed = []
    with monkeypatch.context() as patch:
        patch.setattr(Path, 'unlink', lambda path: removed.append(path.name))
        patch.setattr(shutil, 'rmtree', lambda path: removed.append(path.name))
        _start_run(str(tmp_path), ['new'])
    # Nothing can go on without files that are gone.
    assert removed[:4] == [*names[:2], 'version_0', 'laws.ckpt']
    assert 'command.txt' not in removed
    assert (tmp_path / 'command.txt').read_text() == 'new\n'


def test_units_are_those_of_the_part_that_is_trained_on(train, val, tmp_path):
    config = make_config(options={'max_steps': 1, 'batch_size': 4})
    module = fit(config, train[:8], val, str(tmp_path / 'run'),
                 accelerator='cpu')
    expected = build_module(config)
    expected.fit_units(torch.cat([train.get(k).x for k in range(8)]))
    for part in ('units', 'linear_step', 'model.scaling'):
        assert is_same_state(*(m.get_submodule(part).state_dict()
                               for m in (module, expected)))
