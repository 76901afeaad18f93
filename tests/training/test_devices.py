"""Two processes on CPUs stand in for two devices."""
import os

import pytest
import torch
from small_training import build, make_config, make_trainer

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import fit

pytestmark = pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks')
#: Without noise, and without random frames.
OPTIONS = dict(tau=1e9, pred_steps=10, decoder='mlp')


def train_on(devices, train, val, regime):
    module = build(train, regime=regime, options=OPTIONS)
    trainer = make_trainer(3, devices=devices, val_check_interval=3,
                           strategy='ddp_fork' if devices > 1 else 'auto',
                           check_val_every_n_epoch=None)
    generator = torch.Generator().manual_seed(1)
    trainer.fit(
        module,
        SystemLoader(train, 16 // devices, shuffle=True, drop_last=True,
                     generator=generator), SystemLoader(val, 4))
    metrics = {k: v for k, v in trainer.callback_metrics.items() if 'val' in k}
    return module.state_dict(), metrics


@pytest.mark.parametrize('regime', ['learned', 'supervised', 'true_graph'])
def test_two_devices_do_what_one_does(train, val, regime):
    # Of odd numbers, one has more; none is counted twice.
    (one, metrics), (two, others) = (train_on(n, train[:49], val[:19], regime)
                                     for n in (1, 2))
    for key, value in one.items():
        torch.testing.assert_close(two[key], value, atol=1e-6, rtol=1e-6)
    assert metrics.keys() == others.keys() != set()
    for key, value in metrics.items():
        torch.testing.assert_close(others[key], value, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    'strategy',
    [
        'ddp_fork',
        # Imports torch in each process.
        pytest.param('ddp_spawn', marks=pytest.mark.slow)
    ])
def test_run_on_two_devices_has_noise_of_each(train, val, tmp_path, strategy):
    config = make_config(options=dict(batch_size=8, max_steps=4))
    run = dict(val_every=4, accelerator='cpu', devices=2, strategy=strategy)
    fit(config, train, val, str(tmp_path / 'run'), **run)
    last = torch.load(tmp_path / 'run' / 'last.ckpt', weights_only=True)
    first, second = last['generator']
    assert last['global_step'] == 4 and not first.equal(second)
    with pytest.raises(ValueError, match='66 on all devices'):
        fit(make_config(options=dict(batch_size=33)), train, val,
            str(tmp_path / 'other'), **run)


def test_half_precision_is_refused_where_it_cannot_be(train, val, tmp_path):
    with pytest.raises(ValueError, match='takes a GPU'):
        fit(make_config(options=dict(batch_size=8)), train, val,
            str(tmp_path / 'run'), accelerator='cpu', precision='16-mixed')


def test_half_precision_finds_the_same_graphs(train, val):
    outs = []
    for precision in ('32', 'bf16-mixed'):
        module = build(train, options=dict(max_steps=4, num_starts=1))
        trainer = make_trainer(4, precision=precision, val_check_interval=4,
                               check_val_every_n_epoch=None)
        trainer.fit(module, SystemLoader(train, 8), SystemLoader(val, 8))
        assert all(p.dtype == torch.float32 for p in module.parameters())
        outs.append(module.model.posterior(next(iter(SystemLoader(val, 20)))))
    for one, half in zip(*outs):
        assert (one - half).abs().mean() < 0.02 and not half.equal(one)


@pytest.mark.parametrize('model', ['nri', 'sfnri'])
@pytest.mark.parametrize('recipe', ['quick', 'paper'])
@pytest.mark.parametrize('regime', ['learned', 'supervised', 'true_graph'])
def test_no_tensor_is_made_on_another_device(train, model, recipe, regime):
    """The device `meta`, without numbers, refuses to work with the CPU's."""
    module = build(train, model=model, recipe=recipe, regime=regime)
    batch = next(iter(SystemLoader(train, 8))).to('meta')
    module.to('meta')
    module.generator = None
    module.log = module.log_dict = lambda *args, **kwargs: None
    loss = module.training_step(batch, 0)
    loss.backward()
    assert loss.is_meta
    assert all(p.grad is None or p.grad.is_meta for p in module.parameters())


def test_half_precision_on_two_devices(train, val, tmp_path):
    config = make_config(recipe='paper', options=dict(batch_size=8,
                                                      max_steps=2))
    found = fit(config, train, val, str(tmp_path / 'run'), accelerator='cpu',
                devices=2, strategy='ddp_fork', precision='bf16-mixed')
    assert all(k.isfinite().all() for k in found.state_dict().values())
