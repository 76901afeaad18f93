import pytest
import torch
from small_training import assert_same_state, build, fit, validate

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import MODELS, TrueGraphPrediction


@pytest.mark.parametrize('recipe', ['quick', 'paper'])
@pytest.mark.parametrize('model', MODELS)
def test_decoder_alone_is_trained(train, model, recipe):
    module = build(train, model=model, recipe=recipe, regime='true_graph',
                   options={'symmetries': False})
    assert isinstance(module, TrueGraphPrediction)
    before = build(train, model=model, recipe=recipe, regime='true_graph')
    fit(module, train, max_steps=2)
    assert_same_state(module.model.encoder.state_dict(),
                      before.model.encoder.state_dict())
    moved = [
        not p.equal(q) for p, q in zip(module.model.decoder.parameters(),
                                       before.model.decoder.parameters())
    ]
    assert sum(moved) > len(moved) / 2


def test_validation_takes_the_true_graph(train, val):
    module = build(train, regime='true_graph').eval()
    batch = next(iter(SystemLoader(val, batch_size=32)))
    losses = []
    for edge_type in (batch.edge_label, 1 - batch.edge_label):
        edge_attr = module.model.latent.encode_types(edge_type)
        losses.append(
            module.recipe.reconstruction(module.model, batch, edge_attr).item())
    report = validate(module, val)
    assert set(report) == {
        'val_loss', 'val_rollout_mse', 'val_static_mse', 'val_linear_mse'
    }
    assert report['val_loss'] == pytest.approx(losses[0], rel=1e-4)
    assert losses[1] != pytest.approx(losses[0], rel=1e-4)


def test_truth_is_needed(train):
    systems = [train[i] for i in range(16)]
    for system in systems:
        del system.edge_label
    with pytest.raises(ValueError, match="by the regime 'learned'"):
        fit(build(train, regime='true_graph'), systems)


def test_same_seed_same_decoder(train):
    first, again = (build(train, regime='true_graph') for _ in range(2))
    for seed, module in enumerate((first, again)):
        torch.manual_seed(seed)
        fit(module, train)
    assert_same_state(first.state_dict(), again.state_dict())
