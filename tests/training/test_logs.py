import pytest
from small_training import make_trainer

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import ValidationLines

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*',
                                        'ignore:.*LeafSpec.*')


def test_validation_prints_a_line(trained, val, capsys):
    trainer = make_trainer(1, callbacks=[ValidationLines()])
    trainer.validate(trained[0], SystemLoader(val, batch_size=32),
                     verbose=False)
    line, = capsys.readouterr().out.splitlines()
    assert line.startswith('step 0   accuracy 0.')
    loss = trainer.callback_metrics['val_loss']
    assert f'loss {loss:.4g}' in line
