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
    value = {
        name.removeprefix('val_'): f'{value:.4g}'
        for name, value in trainer.callback_metrics.items()
    }
    assert line == (
        f"step 0   accuracy {value['accuracy']} (charge "
        f"{value['accuracy_charge']}, spring {value['accuracy_spring']})   "
        f"entropy {value['entropy_share']}   loss {value['loss']}   "
        f"rollout_mse {value['rollout_mse']} (linear {value['linear_mse']}, "
        f"static {value['static_mse']})")
    assert len(line) < 140  # To be read at a glance.
