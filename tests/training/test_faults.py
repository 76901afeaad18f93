"""Runs that are killed, and go on: what they end with is what they would have
ended with."""
import os
import random
import shutil
import signal
import time
from multiprocessing import get_context

import pytest
import pytorch_lightning as pl
import torch
from small_training import assert_same_state, make_config

import pyg_fnri.training.run
from pyg_fnri.training import fit
from pyg_fnri.training.trainer import make_trainer

pytestmark = [
    pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks'),
    pytest.mark.usefixtures('laws_sought_briefly')
]

EM = dict(max_steps=7, num_fitted=8, num_pilot=4, max_starts=1,
          num_distilled=40, terms=[])
#: How often validated, of epochs of five steps, and of four.
RUNS = {
    'samples and frames':
    (make_config(options=dict(batch_size=12, max_steps=11)), 3),
    'at the end of an epoch':
    (make_config(options=dict(batch_size=16, max_steps=9)), 4),
    'dropout and symmetries':
    (make_config(regime='supervised', options=dict(batch_size=12, max_steps=9,
                                                   dropout=0.5)), 4),
    'a schedule by epochs':
    (make_config(recipe='paper', options=dict(batch_size=12, max_epochs=2)), 3),
    'em': (make_config(recipe='em', options=dict(batch_size=12, **EM)), 3)
}

SLOW = {'a schedule by epochs', 'em'}


class Kill(pl.Callback):
    def __init__(self, step):
        self.step = step

    def on_train_batch_end(self, trainer, *args):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope='module')
def start(train, val):
    """Starts a run in a process, to be killed after a step, or to go on."""
    def run(name, out, step, resume):
        def make(*args, **kwargs):
            trainer = make_trainer(*args, **kwargs)
            trainer.callbacks.insert(0, Kill(step))
            return trainer

        torch.set_num_threads(1)
        pyg_fnri.training.run.make_trainer = make
        config, val_every = RUNS[name]
        fit(config, train, val[:8], str(out), val_every=val_every,
            accelerator='cpu', resume=resume, command=['test'])

    def start(name, out, step=None, resume=False):
        process = get_context('fork').Process(target=run,
                                              args=(name, out, step, resume))
        process.start()
        return process

    return start


@pytest.fixture(scope='module')
def straight(start, tmp_path_factory):
    """The directory of a run that nothing stops, and its seconds."""
    done = {}

    def straight(name):
        if name not in done:
            out, begin = tmp_path_factory.mktemp('straight') / 'run', time.time(
            )
            process = start(name, out)
            process.join()
            assert process.exitcode == 0
            done[name] = out, time.time() - begin
        return done[name]

    return straight


def assert_same_run(out, other):
    """To the bit: weights, of the best step too, noise to come, and logs."""
    files = sorted(path.relative_to(out) for path in out.rglob('*.c*'))
    assert files == sorted(p.relative_to(other) for p in other.rglob('*.c*'))
    for file in files:
        if file.suffix == '.csv':
            assert (out / file).read_text() == (other / file).read_text()
            continue
        a, b = (torch.load(place / file, weights_only=True)
                for place in (out, other))
        assert_same_state(a['state_dict'], b['state_dict'])
        assert a.get('global_step') == b.get('global_step')
        assert a['generator'].equal(b['generator'])


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
    for name in RUNS
])
def test_killed_run_goes_on_to_the_same_end(start, straight, tmp_path, name):
    # At the end of an epoch, and after it.
    for step in (5, 6) if name == 'samples and frames' else (6, ):
        process = start(name, tmp_path / f'{step}', step)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        # The best checkpoint is known also where the run was moved.
        out = shutil.move(tmp_path / f'{step}', tmp_path / f'moved{step}')
        process = start(name, out, resume=True)
        process.join()
        assert process.exitcode == 0
        assert_same_run(straight(name)[0], out)


@pytest.mark.slow
def test_random_kills(start, straight, tmp_path, capsys):
    """Four minutes of runs, each killed at moments that nobody chose."""
    draw, equal, number, end = random.Random(time.time()), 0, 0, 240
    end += time.time()
    while time.time() < end:
        name = draw.choice(list(RUNS))
        out, (whole, seconds) = tmp_path / f'{number}', straight(name)
        kills, code = 0, None
        while code != 0:
            resume = any(out.rglob('last.ckpt'))
            if not resume:
                shutil.rmtree(out, ignore_errors=True)
            process = start(name, out, resume=resume)
            process.join(draw.uniform(0, 1.5 * seconds))
            kills += process.exitcode is None
            process.kill()
            process.join()
            code = process.exitcode
            assert code in (0, -signal.SIGKILL)
        number += 1
        try:
            assert_same_run(whole, out)
            equal += 1
        except AssertionError as error:
            print(f'{name}: {error}')
        with capsys.disabled():
            print(
                f'{equal} of {number} runs equal to the bit ({name}, killed '
                f'{kills} times)', flush=True)
    assert equal == number


def test_two_runs_do_not_share_a_directory(start, train, val, tmp_path):
    name, out = 'samples and frames', tmp_path / 'run'
    process = start(name, out, step=18)
    while process.is_alive() and not (out / 'last.ckpt').exists():
        time.sleep(0.02)
    for how in ('resume', 'overwrite'):
        with pytest.raises(FileExistsError, match='Another program'):
            fit(RUNS[name][0], train, val, str(out), **{how: True})
    assert (out / 'last.ckpt').exists()
    process.kill()
    process.join()
    process = start(name, out, resume=True)  # No lock outlives a kill.
    process.join()
    assert process.exitcode == 0
