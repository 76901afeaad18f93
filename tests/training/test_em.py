from shutil import copytree

import pandas as pd
import pytest
import torch
from known_laws import Guess, overdamped
from small_training import assert_same_state, make_config

from pyg_fnri.inference import AnnealingStep
from pyg_fnri.laws.fit import LawFit
from pyg_fnri.training import (Config, ExpectationMaximisation, build_module,
                               load_checkpoint)

# Of two starts, none of which comes far.
pytestmark = pytest.mark.filterwarnings('ignore:Of . starts, one alone')

SETTINGS = dict(num_fitted=8, num_pilot=4, max_starts=2, terms=[])


@pytest.fixture(scope='module')
def make(train, val, laws_sought_briefly):
    """Makes one, and the module that it starts from."""
    def make(out, settings=SETTINGS, train=train, val=val[:12]):
        config = make_config(recipe='laws', seed=3, options=settings)
        module = build_module(config)
        module.fit_units(train._data.x)
        em = ExpectationMaximisation(config, train, val, str(out))
        return em, module

    return make


@pytest.fixture(scope='module')
def run(make, tmp_path_factory):
    """The directory of a whole run, not to be changed."""
    out = tmp_path_factory.mktemp('em')
    em, module = make(out)
    em.run(module)
    return out


def test_each_stage_leaves_its_files(run):
    names = {path.name for path in run.iterdir()}
    assert names == {'laws.ckpt', 'em.csv', 'em.png', 'check.txt', 'best.ckpt'}
    rows = pd.read_csv(run / 'em.csv')
    assert list(rows['iteration']) == list(range(1, 5))
    assert rows[['changed', 'cost', 'accuracy_spring']].notna().all(axis=None)
    verdict = load_checkpoint(str(run / 'best.ckpt')).verdict
    assert verdict and (run / 'check.txt').read_text() == f'{verdict}\n'


def test_laws_of_the_simulation_are_kept(run):
    layer = load_checkpoint(str(run / 'best.ckpt')).model.decoder.layer
    assert layer.interval == pytest.approx(0.1)
    assert (layer.walls.upper == 5).all()
    assert layer.law.value.abs().max() > 0


@pytest.mark.parametrize('shared, number', [(False, 4), (True, 8)])
def test_laws_of_many_systems_are_fitted_to_enough(make, tmp_path, monkeypatch,
                                                   shared, number):
    monkeypatch.setattr('pyg_fnri.training.em.MOST_PARTICLES', 23)  # 5 each.
    em, _ = make(tmp_path, dict(SETTINGS, shared=shared))
    assert em.systems.num_graphs == number


@pytest.mark.parametrize(
    'lost', [['best.ckpt'],
             pytest.param(['best.ckpt', 'laws.ckpt', 'em.csv', 'em.png'],
                          marks=pytest.mark.slow)])
def test_same_result_after_an_interruption(make, run, tmp_path, lost):
    copied = copytree(run, tmp_path / 'run')
    for name in lost:
        (copied / name).unlink()
    kept = {
        p: p.stat().st_mtime_ns
        for p in copied.iterdir() if p.name != 'check.txt'
    }
    em, module = make(copied)
    em.run(module, resume=True)
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    for name in ('laws.ckpt', 'best.ckpt'):
        assert_same_state(*(torch.load(place /
                                       name, weights_only=True)['state_dict']
                            for place in (run, copied)))
    for name in ('em.csv', 'check.txt'):
        assert (copied / name).read_bytes() == (run / name).read_bytes()


def test_order_of_dynamics_is_found(tmp_path, monkeypatch, caplog):
    """Two motions are possible; held-out systems say which."""
    caplog.set_level('INFO', 'pyg_fnri')
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
    config = Config(4, 49, [2], recipe='laws',
                    options=dict(interval=0.1, half_width=0))
    module = build_module(config)
    module.fit_units(systems.x)
    systems_of = systems.to_data_list()
    em = ExpectationMaximisation(config, systems_of, systems_of, str(tmp_path))
    layer = em.find_laws(module).model.decoder.layer
    assert layer.order == 1
    distance = torch.linspace(0.3, 2.0, 9)
    torch.testing.assert_close(
        layer.law(distance)[0], -0.1 * distance, atol=2e-3, rtol=0)
    assert 'order 2   cost' in caplog.text


def test_walls_may_be_left_to_the_data(make, tmp_path):
    em, _ = make(tmp_path, dict(interval=0.1, half_width=0))
    assert em.motions == [{'interval': 0.1, 'half_width': None}]
