import copy
import warnings
from shutil import copy2, copytree, rmtree

import pandas as pd
import pytest
import torch
from short_discovery import shorten
from small_training import assert_same_state, build, is_same_state

import pyg_fnri.training.em
from pyg_fnri.inference import AnnealingStep
from pyg_fnri.laws import Discovery, Progress, Start
from pyg_fnri.training import (
    EMSettings,
    EncoderDistillation,
    ExpectationMaximisation,
    load_checkpoint,
    save_checkpoint,
)

# Of two starts, none of which comes far.
pytestmark = pytest.mark.filterwarnings('ignore:Of . starts, one alone')

SETTINGS = EMSettings(num_fitted=12, num_distilled=32, distilled_steps=4)


@pytest.fixture(scope='module', autouse=True)
def short(pictures_drawn_once):
    """Two iterations, as many as it takes to see that there are some."""
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch, [AnnealingStep(0.3, 1.), AnnealingStep(0.1, 0.5)])
        yield


@pytest.fixture(scope='module')
def guess(train, tmp_path_factory):
    """Where the model to start from is."""
    path = str(tmp_path_factory.mktemp('guess') / 'best.ckpt')
    save_checkpoint(build(train, options={'batch_size': 16}, seed=3), path)
    return path


@pytest.fixture(scope='module')
def make(guess, train, val):
    """Makes one, and its guess."""
    def make(out, settings=SETTINGS, train=train, val=val, **options):
        module = load_checkpoint(guess)
        module.config.options.update(options)
        em = ExpectationMaximisation(module.config, settings, train, val,
                                     str(out), val_every=2, accelerator='cpu')
        return em, module

    return make


@pytest.fixture(scope='module')
def run(make, tmp_path_factory):
    """The directory of a whole run, not to be changed."""
    out = tmp_path_factory.mktemp('em')
    em, module = make(out)
    em.run(module)
    return out


@pytest.fixture
def copied(run, tmp_path):
    return copytree(run, tmp_path / 'run')


def state(path):
    return torch.load(path, weights_only=True)['state_dict']


def part(path, name):
    return {k: v for k, v in state(path).items() if k.startswith(name)}


def test_each_stage_leaves_its_files(run):
    assert {path.name
            for path in run.iterdir()} == {
                'laws.ckpt', 'em.csv', 'em.png', 'distilled', 'check.txt',
                'best.ckpt'
            }
    assert {path.name
            for path in (run / 'distilled').iterdir()
            } == {'best.ckpt', 'last.ckpt', 'metrics.csv', 'curves.png'}
    assert (run / 'em.png').read_bytes().startswith(b'\x89PNG')
    rows = pd.read_csv(run / 'em.csv')
    assert list(rows['iteration']) == [1, 2, 3]
    names = {
        'changed', 'cost', 'accuracy', 'accuracy_spring', 'accuracy_charge'
    }
    assert names <= set(rows) and rows[list(names)].notna().all(axis=None)


def test_a_check_says_whether_laws_hold(run):
    text = (run / 'check.txt').read_text()
    assert text.startswith(('The force laws hold', 'The force laws do NOT'))
    assert 'held-out single steps of 32 systems' in text


def test_a_single_system_checks_nothing(make, guess, run, val, tmp_path):
    em, _ = make(tmp_path, val=val[:1])
    laws = load_checkpoint(str(run / 'laws.ckpt'))
    em.check(laws, load_checkpoint(guess))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('confirmed', [True, False])
def test_laws_of_a_single_start_are_doubted(make, tmp_path, monkeypatch, capsys,
                                            confirmed):
    starts = [Start(0, 0.5), Start(1, 0.25 if confirmed else 2.)]

    def discover(model, data, generator, on_start, on_iteration):
        for start in starts:
            on_start(start)
        types = torch.zeros_like(data.edge_label)
        on_iteration(Progress(1, 0.5, 0.25, types))
        return Discovery(starts, starts[0], confirmed)

    monkeypatch.setattr(pyg_fnri.training.em, 'discover_force_laws', discover)
    em, module = make(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        em.find_laws(module)
    told = [str(w.message) for w in caught if 'Of 2 starts' in str(w.message)]
    assert len(told) == (not confirmed)
    lines = capsys.readouterr().out.splitlines()
    assert ("start 0   from the encoder's graphs   held-out cost 0.5 nat"
            in lines)
    assert (f'start 1   from random graphs   held-out cost '
            f'{starts[1].cost:.4g} nat') in lines
    assert lines[-1].startswith('iteration 1   changed 0.5   cost 0.25')


def test_laws_come_first_and_stay_while_the_encoder_learns(run, guess):
    encoder, decoder = 'model.encoder', 'model.decoder'
    laws, best = run / 'laws.ckpt', run / 'best.ckpt'
    assert_same_state(part(laws, encoder), part(guess, encoder))
    assert_same_state(part(laws, decoder), part(best, decoder))
    assert not is_same_state(part(laws, encoder), part(best, encoder))
    layer = load_checkpoint(str(best)).model.decoder.layer
    assert layer.interval == pytest.approx(0.1) and layer.half_width == 5
    assert layer.law.value.abs().max() > 0


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:The dirpath has changed')
@pytest.mark.parametrize('lost', [
    ['best.ckpt', 'distilled/best.ckpt'],
    pytest.param(['best.ckpt', 'distilled'], marks=pytest.mark.slow),
    pytest.param(['best.ckpt', 'distilled/metrics.csv'],
                 marks=pytest.mark.slow),
    pytest.param(['best.ckpt', 'distilled', 'laws.ckpt', 'em.csv', 'em.png'],
                 marks=pytest.mark.slow),
])
def test_same_result_after_an_interruption(make, run, copied, lost):
    for path in (copied / name for name in lost):
        rmtree(path) if path.is_dir() else path.unlink()
    kept = {
        p: p.stat().st_mtime_ns
        for p in copied.iterdir() if p.is_file() and p.name != 'check.txt'
    }
    em, module = make(copied)
    em.run(module, resume=True)
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    for name in ('laws.ckpt', 'best.ckpt', 'distilled/last.ckpt'):
        assert_same_state(state(run / name), state(copied / name))
    for name in ('em.csv', 'check.txt'):
        assert (copied / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:The dirpath has changed')
def test_learning_goes_on_where_it_was(make, copied):
    (copied / 'best.ckpt').unlink()
    em, module = make(copied, EMSettings(12, 32, distilled_steps=6))
    em.run(module, resume=True)
    last = torch.load(copied / 'distilled' / 'last.ckpt', weights_only=True)
    assert last['global_step'] == 6
    history = pd.read_csv(copied / 'distilled' / 'metrics.csv')
    assert history['val_loss'].dropna().size == 3  # After 2, 4 and 6 steps.


@pytest.mark.slow
def test_nothing_of_a_former_run_is_used_unless_resumed(make, run, copied):
    for name in ('laws.ckpt', 'best.ckpt', 'distilled/last.ckpt'):
        (copied / name).write_bytes(b'of other data')
    em, module = make(copied)
    em.run(module)
    assert_same_state(state(run / 'best.ckpt'), state(copied / 'best.ckpt'))


@pytest.mark.slow
def test_labels_are_only_measured_by(make, run, train, val, tmp_path):
    wrong = [copy.copy(systems) for systems in (train, val)]
    for systems in wrong:
        systems._data = copy.copy(systems._data)
        systems._data.edge_label = 1 - systems._data.edge_label
    em, module = make(tmp_path, train=wrong[0], val=wrong[1])
    em.run(module)
    assert_same_state(state(run / 'best.ckpt'), state(tmp_path / 'best.ckpt'))


def test_encoder_may_be_left_as_it_is(make, run, guess, tmp_path):
    copy2(run / 'laws.ckpt', tmp_path)
    em, module = make(tmp_path, EMSettings(num_fitted=12, num_distilled=0))
    result = em.run(module, resume=True)
    assert not (tmp_path / 'distilled').exists() and not result.training
    assert_same_state(part(tmp_path / 'best.ckpt', 'model.encoder'),
                      part(guess, 'model.encoder'))


@pytest.mark.parametrize('offset, options, turned', [
    (0., {}, True),
    (0., {
        'symmetries': False
    }, False),
    (100., {}, False),
])
def test_pupils_see_systems_turned_where_that_is_safe(make, run, val, tmp_path,
                                                      monkeypatch, offset,
                                                      options, turned):
    seen = []

    class Watched(EncoderDistillation):
        def training_step(self, batch, batch_idx):
            seen.append((self.recipe.symmetries, self.model.encoder.training))
            return super().training_step(batch, batch_idx)

    monkeypatch.setattr(pyg_fnri.training.em, 'EncoderDistillation', Watched)
    em, _ = make(tmp_path, EMSettings(12, 16, distilled_steps=1), val=val[:4])
    module = load_checkpoint(str(run / 'laws.ckpt'))
    module.config.options.update(options)
    module.model.scaling.offset += offset
    em.teach(module)
    assert seen == [(turned, True)]


def test_what_cannot_work_is_told_before_the_work(make, tmp_path):
    with pytest.raises(ValueError, match='takes 16 systems.* from 15; raise'):
        make(tmp_path, EMSettings(num_distilled=15))
    em, module = make(tmp_path)
    module.trained = ('decoder', )
    with pytest.raises(ValueError, match='needs a trained encoder'):
        em.run(module)
    assert not list(tmp_path.iterdir())
