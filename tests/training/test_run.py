import warnings

import pandas as pd
from small_training import build

from pyg_fnri.training import fit, make_trainer


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
