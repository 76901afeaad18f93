from shutil import copytree, rmtree

import pandas as pd
import pytest
import torch
from known_laws import Guess, overdamped
from small_training import assert_same_state, is_same_state, make_config

import pyg_fnri.training.em
from pyg_fnri.inference import AnnealingStep
from pyg_fnri.laws.fit import LawFit
from pyg_fnri.training import (Config, EMSettings, EncoderDistillation,
                               ExpectationMaximisation, build_module,
                               load_checkpoint)

# Of two starts, none of which comes far.
pytestmark = pytest.mark.filterwarnings('ignore:Of . starts, one alone')

SHORT = {'num_fitted': 8, 'num_pilot': 4, 'max_starts': 2, 'terms': ()}
SETTINGS = EMSettings(num_distilled=16, **SHORT)


@pytest.fixture(scope='module')
def make(train, val, laws_sought_briefly):
    """Makes one, and the module that it starts from."""
    def make(out, settings=SETTINGS, train=train, val=val[:12]):
        config = make_config(recipe='em', seed=3, options={
            'batch_size': 16,
            'max_steps': 4
        })
        module = build_module(config)
        module.fit_units(train._data.x)
        em = ExpectationMaximisation(config, settings, train, val, str(out),
                                     val_every=2, accelerator='cpu')
        return em, module

    return make


@pytest.fixture(scope='module')
def run(make, tmp_path_factory):
    """The directory of a whole run, not to be changed."""
    out = tmp_path_factory.mktemp('em')
    em, module = make(out)
    em.run(module)
    return out


def part(path, name):
    state = torch.load(path, weights_only=True)['state_dict']
    return {k: v for k, v in state.items() if k.startswith(name)}


def test_each_stage_leaves_its_files(run):
    names = {path.name for path in run.iterdir()}
    assert names == {
        'laws.ckpt', 'em.csv', 'em.png', 'distilled', 'check.txt', 'best.ckpt'
    }
    names = {path.name for path in (run / 'distilled').iterdir()}
    assert names == {'best.ckpt', 'last.ckpt', 'metrics.csv', 'curves.png'}
    rows = pd.read_csv(run / 'em.csv')
    assert list(rows['iteration']) == list(range(1, 5))
    assert rows[['changed', 'cost', 'accuracy_spring']].notna().all(axis=None)
    verdict = load_checkpoint(str(run / 'best.ckpt')).verdict
    assert verdict and (run / 'check.txt').read_text() == f'{verdict}\n'


def test_laws_come_first_and_stay_while_the_encoder_learns(run, make, tmp_path):
    encoder, decoder = 'model.encoder', 'model.decoder'
    laws, best = run / 'laws.ckpt', run / 'best.ckpt'
    drawn = {
        f'model.encoder.{name}': value
        for name, value in make(tmp_path)[1].model.encoder.state_dict().items()
    }
    assert_same_state(part(laws, encoder), drawn)
    assert_same_state(part(laws, decoder), part(best, decoder))
    assert not is_same_state(part(laws, encoder), part(best, encoder))
    layer = load_checkpoint(str(best)).model.decoder.layer
    assert layer.interval == pytest.approx(0.1)
    assert (layer.walls.upper == 5).all()
    assert layer.law.value.abs().max() > 0


@pytest.mark.parametrize(
    'lost',
    [['best.ckpt', 'distilled/best.ckpt'],
     pytest.param(['best.ckpt', 'distilled', 'laws.ckpt', 'em.csv', 'em.png'],
                  marks=pytest.mark.slow)])
def test_same_result_after_an_interruption(make, run, tmp_path, lost):
    copied = copytree(run, tmp_path / 'run')
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
        assert_same_state(part(run / name, ''), part(copied / name, ''))
    for name in ('em.csv', 'check.txt'):
        assert (copied / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.parametrize('offset', [0., 100.])
def test_systems_are_turned_where_that_is_safe(make, run, val, tmp_path,
                                               monkeypatch, offset):
    seen = []

    class Watched(EncoderDistillation):
        def training_step(self, batch, batch_idx):
            seen.append((self.recipe.symmetries, self.model.encoder.training))
            return super().training_step(batch, batch_idx)

    monkeypatch.setattr(pyg_fnri.training.em, 'EncoderDistillation', Watched)
    em, _ = make(tmp_path, EMSettings(12, num_distilled=16), val=val[:4])
    module = load_checkpoint(str(run / 'laws.ckpt'))
    module.model.scaling.offset += offset
    em.distil(module)
    assert seen == 4 * [(offset == 0, True)]


def test_order_of_dynamics_is_found(tmp_path, monkeypatch, caplog):
    caplog.set_level('INFO', 'pyg_fnri')
    """Two motions are possible; held-out systems say which."""
    systems = overdamped(6)
    label = systems.edge_label[:, 0]
    knows = Guess(torch.stack([20. * (label == 0), 20. * (label == 1)], 1))

    def fitted(em, guess, motion):
        module = guess.with_laws(**motion)
        module.model.encoder = knows
        fit = LawFit(module.model, systems)
        fit.fit_units()
        for _ in range(3):
            fit.maximise(AnnealingStep(0.01, 0.0), torch.Generator())
        columns = ['iteration', 'changed', 'cost', 'accuracy']
        return module.eval(), pd.DataFrame([[1, 0., 0., 1.]], columns=columns)

    monkeypatch.setattr(ExpectationMaximisation, '_find_laws', fitted)
    config = Config(4, 49, [2], recipe='em', options={'hidden_channels': 8})
    module = build_module(config)
    module.fit_units(systems.x)
    systems_of = systems.to_data_list()
    settings = EMSettings(interval=0.1, half_width=0, num_distilled=0)
    em = ExpectationMaximisation(config, settings, systems_of, systems_of,
                                 str(tmp_path))
    layer = em.find_laws(module).model.decoder.layer
    assert layer.order == 1
    distance = torch.linspace(0.3, 2.0, 9)
    torch.testing.assert_close(
        layer.law(distance)[0], -0.1 * distance, atol=2e-3, rtol=0)
    assert 'order 2   cost' in caplog.text


def test_what_cannot_work_is_told_before_the_work(make, tmp_path):
    em, _ = make(tmp_path, EMSettings(interval=0.1, half_width=0))
    assert em.motions == [{'interval': 0.1, 'half_width': None}]
    with pytest.raises(ValueError, match='num_distilled'):
        make(tmp_path, EMSettings(num_distilled=15))
    assert not list(tmp_path.iterdir())
