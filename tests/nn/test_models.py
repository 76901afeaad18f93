import torch
import pytest
HORIZONS = [1, 5, 10, 12]


def equal(out, expected, tolerance=1e-5):
    return out.shape == expected.shape and (out - expected).abs().max() <= tolerance


def test_logits_equal_the_authors(reference):
    model = reference.model()
    assert equal(model.encode(reference.x, reference.edge_index), reference.flat('logits'))
    model.train()
    logits = model.encode(reference.x, reference.edge_index)
    assert equal(logits, reference.flat('logits_train_mode'))


@pytest.mark.parametrize('pred_steps', HORIZONS)
def test_rollouts(reference, pred_steps):
    model = reference.model()
    l = model.encode(reference.x, reference.edge_index)
    ea = model.latent.channels(model.latent.posterior(l))
    assert equal(ea, reference.flat('edge_attr'))
    assert equal(model.decode(reference.x, reference.edge_index, ea, pred_steps), reference.flat(f'rollout_{pred_steps}'))
    if reference.has('rollout_skip_first_1'):
        model = reference.model(drop_null=True)
        ea = model.latent.channels(model.latent.posterior(l))
        out = model.decode(reference.x, reference.edge_index, ea, pred_steps)
        assert equal(out, reference.flat(f'rollout_skip_first_{pred_steps}'))
        print((out - reference.flat(f'rollout_skip_first_{pred_steps}')).abs().max())
