import math
from functools import partial

import pytest
import torch

from pyg_fnri.metrics import RolloutMSE


def frames(num_particles, seed, num_frames=24):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_particles, num_frames, 4, generator=generator)


def test_rollout_mse_weighs_every_value_the_same():
    metric = RolloutMSE(horizons=(1, 10, 20))
    errors = {h: [] for h in metric.horizons}
    for seed, num_particles in enumerate([5, 40]):
        target = frames(num_particles, seed)
        predictions = {
            h: target + h * frames(num_particles, seed + 10 * h)
            for h in metric.horizons
        }
        metric.update(predictions, target)
        for h in metric.horizons:
            errors[h].append((predictions[h] - target).double().square())
    result = metric.compute()
    assert list(result) == [1, 10, 20]
    for h in metric.horizons:
        expected = torch.cat(errors[h]).mean().item()
        assert result[h].item() == pytest.approx(expected, rel=1e-6)


def test_rollout_mse_adds_small_errors_in_double_precision():
    metric = RolloutMSE(horizons=(1, ))
    target = torch.zeros(1000, 10, 4)
    metric.update({1: target + 1e4}, target)
    for _ in range(10):
        metric.update({1: target + 1e-2}, target)
    expected = (1e8 + 10 * torch.tensor(1e-2).double().item()**2) / 11
    assert metric.compute()[1].item() == pytest.approx(expected, rel=1e-13)


def test_rollout_mse_across_processes(as_two_processes):
    batches = []
    for seed, num_particles in enumerate([5, 15, 30]):
        target = frames(num_particles, seed)
        batches.append(({2: frames(num_particles, seed + 50)}, target))
    single = RolloutMSE((2, ))
    for batch in batches:
        single.update(*batch)
    result = as_two_processes(partial(RolloutMSE, (2, )), batches)
    assert result[2].item() == pytest.approx(single.compute()[2].item(),
                                             rel=1e-12)


def test_repr_carries_the_horizons():
    assert str(RolloutMSE((1, 5))) == 'RolloutMSE(horizons=(1, 5))'


@pytest.mark.filterwarnings('ignore:The ``compute`` method')
def test_compute_before_update_is_refused():
    with pytest.raises(ValueError, match='before compute'):
        RolloutMSE().compute()


@pytest.mark.parametrize('horizons', [(), (0, ), (1, 1), (1.5, )])
def test_rollout_mse_rejects_bad_horizons(horizons):
    with pytest.raises(ValueError, match='different whole numbers'):
        RolloutMSE(horizons)


def test_bad_rollouts_are_refused():
    metric = RolloutMSE((1, 5))
    good = frames(5, seed=0)
    with pytest.raises(TypeError, match='map each horizon'):
        metric.update(good, good)
    with pytest.raises(ValueError, match=r'horizons \[1\], expected \[1, 5\]'):
        metric.update({1: good}, good)
    with pytest.raises(ValueError, match='horizon 5 has shape'):
        metric.update({1: good, 5: good[:, :-1]}, good)
    with pytest.raises(ValueError, match=r'target has shape \[5, 24\]'):
        metric.update({1: good, 5: good}, good[..., 0])
    with pytest.raises(ValueError, match='too few for a rollout of 5 steps'):
        metric.update({1: good[:, :4], 5: good[:, :4]}, good[:, :4])
    with pytest.raises(TypeError, match='floating-point'):
        metric.update({1: good.long(), 5: good}, good)
    for value in (math.nan, math.inf):
        bad = good.clone()
        bad[2, 3, 1] = value
        with pytest.raises(ValueError, match='horizon 5 holds NaN'):
            metric.update({1: good, 5: bad}, good)
        with pytest.raises(ValueError, match='target holds NaN'):
            metric.update({1: good, 5: good}, bad)
    assert metric.num_values == 0
