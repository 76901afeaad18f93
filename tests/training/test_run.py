import warnings

import pandas as pd
import pytest
from small_training import build

from pyg_fnri.training import check_burn_in, check_run, fit, make_trainer


def test_short_epochs_are_logged_without_a_warning(train, val, tmp_path):
    # An epoch is one step, the interval between two logs is several.
    out = str(tmp_path)
    module = build(train, options={'max_steps': 6, 'batch_size': 64})
    trainer = make_trainer(module, len(train), out, val_every=3,
                           accelerator='cpu')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        fit(trainer, module, train, val, out)
    assert trainer.current_epoch > 1 and trainer.global_step == 6
    assert not [w for w in caught if 'log_every_n_steps' in str(w.message)]
    rows = pd.read_csv(tmp_path / 'metrics.csv')
    trained = [column for column in rows if column.startswith('train_')]
    assert trained and rows[trained].notna().any(axis=1).sum() == 2


def test_burn_in_has_to_leave_frames_to_predict(train, val):
    frames = val[0].y.size(1)
    for burn_in in (frames - 1, frames):
        module = build(train, options={'decoder': 'gru', 'burn_in': burn_in})
        if burn_in < frames:
            check_burn_in(module, val)
            continue
        with pytest.raises(ValueError,
                           match=f'{frames} true frames .*--burn-in'):
            check_burn_in(module, val)


def test_data_of_ones_own_are_not_replaced_with_a_run(tmp_path):
    out = tmp_path / 'run'
    out.mkdir()
    (out / 'command.txt').touch()
    inside, beside = out / 'data' / 'mine.csv', tmp_path / 'run.csv'
    check_run(str(out), overwrite=True, needed=[str(beside)])
    with pytest.raises(FileExistsError, match="mine.csv' is in .* move it"):
        check_run(str(out), overwrite=True, needed=[str(beside), str(inside)])
