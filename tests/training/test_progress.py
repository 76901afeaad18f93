import re

import pytest
from small_training import build

from pyg_fnri.training import fit, make_trainer
from pyg_fnri.training.progress import StepsProgressBar


@pytest.fixture
def run(train, val, tmp_path):
    """A run of a few epochs of two steps, and what is seen of it."""
    def run(**options):
        module = build(train, options={'batch_size': 32, **options})
        trainer = make_trainer(module, len(train), str(tmp_path), val_every=3,
                               accelerator='cpu')
        bar = trainer.progress_bar_callback
        seen, update = [], bar._update

        def record(task, current, *args, **kwargs):
            update(task, current, *args, **kwargs)
            if task == bar.train_progress_bar_id:
                task = bar.train_progress_bar
                seen.append((task.description, task.completed, task.total))

        bar._update = record
        fit(trainer, module, train, val, str(tmp_path))
        return seen

    return run


def test_steps_of_all_epochs_are_counted(run):
    seen = run(max_steps=5)
    assert [of[1:] for of in seen] == [(k, 5) for k in range(1, 6)]
    assert all('Steps' in of[0] and 'Epoch' not in of[0] for of in seen)


@pytest.mark.slow
def test_epochs_are_counted_where_they_are_the_limit(run):
    seen = run(max_steps=9, max_epochs=2)
    assert [of[1:] for of in seen] == [(1, 2), (2, 2)] * 2
    assert re.search('Epoch 0/1', seen[0][0])


def test_whichever_limit_comes_first_is_shown(train, tmp_path):
    for max_epochs, by_steps in ((2, False), (9, True)):
        module = build(
            train, options={
                'batch_size': 32,
                'max_steps': 5,
                'max_epochs': max_epochs
            })
        trainer = make_trainer(module, len(train), str(tmp_path),
                               accelerator='cpu')
        bar = trainer.progress_bar_callback
        assert isinstance(bar, StepsProgressBar) is by_steps
