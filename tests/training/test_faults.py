"""Runs that are killed, and go on: what they end with is what they would have
ended with."""
import csv
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
from fault_table import record
from small_training import assert_same_state, make_config

import pyg_fnri.training.run
from pyg_fnri import load
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.datasets.stored import loaded
from pyg_fnri.estimator import present_results
from pyg_fnri.training import fit
from pyg_fnri.training.trainer import make_trainer

pytestmark = [
    pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks'),
    pytest.mark.usefixtures('laws_sought_briefly')
]

LAWS = dict(num_fitted=4, num_pilot=2, max_starts=2, terms=[])
#: How often validated, of epochs of five steps, and of four.
RUNS = {
    'samples and frames':
    (make_config(options=dict(batch_size=12, max_steps=11)), 3),
    'at the end of an epoch':
    (make_config(options=dict(batch_size=16, max_steps=9)), 4),
    'dropout':
    (make_config(regime='supervised', options=dict(batch_size=12, max_steps=9,
                                                   dropout=0.5)), 4),
    'a schedule by epochs':
    (make_config(recipe='paper', options=dict(batch_size=12, max_epochs=2)), 3),
    'laws': (make_config(recipe='laws', options=LAWS), 3)
}

SLOW = {'a schedule by epochs', 'laws'}
#: Kills on each of two disks, of what makes a result, and a file that it has.
NUM_KILLS = 50
KEYS = {
    'generating': 'systems.pt',
    'training': 'last.ckpt',
    'laws': 'laws.ckpt',
    'inferring': 'model.ckpt'
}
DISKS = {'same disk': None, 'another disk': '/dev/shm'}
OPERATIONS = ('open', 'os.rename', 'os.remove', 'os.mkdir', 'os.rmdir')


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


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
        for name in RUNS if name != 'laws'  # It takes no steps.
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


@pytest.fixture(scope='module')
def works(start, straight, train, val, tmp_path_factory):
    """What makes a result in a folder, or goes on; a result, and an old one."""
    def generate(out, resume):
        ParticleSystems(out, num_systems=(40, 1, 1), force_reload=True)

    def train_one(name, out, resume):
        config, val_every = RUNS[name]
        fit(config, train, val[:8], str(out), val_every=val_every,
            accelerator='cpu', resume=resume, overwrite=not resume,
            command=['test'])

    def infer(out, resume, first=0):
        found = load(str(straight('laws')[0] / 'best.ckpt'))
        found.infer(
            val._data.x.view(-1, 5, 99,
                             4)[first:first + 2].numpy()[:, :, :60]).save(out)

    def make(kind):
        work = {
            'generating': generate,
            'inferring': infer
        }.get(kind, partial(train_one, kind))
        whole, old = (tmp_path_factory.mktemp('whole') / name
                      for name in ('new', 'old'))
        # Here, so that all is imported, and drawn, where processes fork.
        work(old, False, **({'first': 2} if kind == 'inferring' else {}))
        work(whole, False)
        return work, whole, old

    return make


def attempt(work, out, resume, count, at=-1, size=None, seconds=None):
    """Works in a process, to be killed before an operation on a file, in a file
    of more bytes, or after some time; its exit code."""
    def run():
        def hook(event, args):
            if event in OPERATIONS and str(args[0]).startswith(str(out)):
                if count.value == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                count.value += 1

        torch.set_num_threads(1)
        tempfile.tempdir = str(out.parent)
        count.value = 0
        sys.addaudithook(hook)
        if size is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        work(out, resume)

    process = get_context('fork').Process(target=run)
    process.start()
    process.join(seconds)
    process.kill()
    process.join()
    assert process.exitcode in (0, 1, -signal.SIGKILL, -signal.SIGXFSZ)
    return process.exitcode


def contents(out):
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob('*') if path.is_file() and not any(
            part.endswith(('.part', '.whole', '.lock')) for part in path.parts)
    }


def is_whole(path, content, others):
    """A row of metrics may be written; all else is checked, or known."""
    with suppress(ValueError):
        if path.suffix in ('.ckpt', '.pt'):
            with loaded(str(path), ''):
                return True
    if path.name == 'metrics.csv':
        rows = [*csv.reader(content.decode().splitlines())]
        return content[-1:] == b'\n' and len({*map(len, rows)}) == 1
    return content in others


@pytest.mark.slow
@pytest.mark.parametrize('disk', DISKS)
@pytest.mark.parametrize('kind', KEYS)
def test_kills_lose_nothing(works, tmp_path, kind, disk):
    """At operations on files, in the middle of files, and at any time."""
    draw, names, goes_on = random.Random(0), [kind], kind in ('training',
                                                              'laws')
    made, kills = {}, {kind: 0}
    if kind == 'training':
        names = [name for name in RUNS if name not in SLOW]
        kills['resuming'] = 0
    root = Path(tempfile.mkdtemp(dir=DISKS[disk] or tmp_path))
    ends = equal = lost = half = 0
    count = get_context('fork').Value('i')
    for name in names:
        made[name] = works(name)
        begin = time.time()
        assert not attempt(made[name][0], root / 'first', False, count)
        made[name] += (time.time() - begin, count.value)
        shutil.rmtree(root / 'first')
    while min(kills.values()) < NUM_KILLS:
        name = names[ends % len(names)]
        work, whole, old, seconds, operations = made[name]
        out, examples = root / 'out', [contents(whole), contents(old)]
        if ends % 2:
            shutil.copytree(old, out)
        for number in range(draw.randint(1, 3) + 2 * goes_on):
            had = {name for name in contents(out) if KEYS[kind] in name}
            resume = goes_on and bool(had) and number > 0
            how = draw.choice(2 * [dict(at=draw.randrange(operations))] + [
                dict(size=int(draw.random() *
                              len(draw.choice([*examples[0].values()])))),
                dict(seconds=draw.random() * seconds)
            ])
            if attempt(work, out, resume, count, **how) >= 0:
                break
            kills['resuming' if resume and 'resuming' in kills else kind] += 1
            if kind == 'inferring':
                present_results(str(out))
            files = contents(out)
            torn = [
                name for name, content in files.items() if not is_whole(
                    out / name, content, [of.get(name) for of in examples])
            ]
            if kind == 'inferring' and not any(files.items() <= of.items()
                                               for of in examples):
                torn.append('of two results')
            gone = (resume or not goes_on) and had - {*files}
            half, lost = half + bool(torn), lost + bool(gone)
            if torn or gone:
                print(name, number, resume, how, torn, gone)
        resume = goes_on and any(out.rglob(KEYS[kind]))
        try:
            assert not attempt(work, out, resume, count)
            if goes_on:
                assert_same_run(whole, out)
            else:
                assert contents(out) == examples[0]
            equal += 1
        except AssertionError as error:
            print(name, number, resume, how, error)
        ends += 1
        shutil.rmtree(out)
    shutil.rmtree(root)
    for name, number in kills.items():
        record(f'kills of {name}, {disk}', number=number, lost=lost,
               **{'half written': half}, equal=f'{equal} of {ends} ends')
    assert (lost, half, equal) == (0, 0, ends)


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
