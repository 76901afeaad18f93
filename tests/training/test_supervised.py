import pytest
import torch
from small_training import build, fit, make_config, validate

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import MODELS, SupervisedInference

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*',
                                        'ignore:.*LeafSpec.*')


def supervise(train, systems, **kwargs):
    """The losses of 8 steps, and the module."""
    config = make_config()
    module = SupervisedInference(config.build_model(), config.build_recipe(),
                                 config, **kwargs)
    module.fit_units(train._data.x)
    losses = []
    module.log = lambda name, value, batch_size: losses.append(value.item())
    fit(module, systems, max_steps=8)
    return losses, module


def test_supervision_teaches_the_encoder_alone(train):
    systems = train[:16]  # The same batch in each step.
    losses, module = supervise(train, systems)
    assert losses[-1] < losses[0] - 0.01
    before = build(train).model
    batch = next(iter(SystemLoader(systems, batch_size=16)))
    logits = before.encode(batch.x, batch.edge_index)
    expected = torch.nn.functional.cross_entropy(logits.view(-1, 2),
                                                 batch.edge_label.view(-1))
    assert losses[0] == pytest.approx(expected.item(), rel=1e-5)
    for p, other in zip(module.model.decoder.parameters(),
                        before.decoder.parameters()):
        assert p.equal(other)


def test_supervision_takes_any_graphs(train):
    systems = [train[i] for i in range(16)]
    for system in systems:
        system.edge_found = system.edge_label
        system.edge_label = 1 - system.edge_label
    found, _ = supervise(train, systems, target='edge_found')
    true, _ = supervise(train, train[:16])
    assert found == true
    assert supervise(train, systems)[0] != true
    for system in systems:
        del system.edge_label
    with pytest.raises(ValueError, match='no true interaction graph'):
        supervise(train, systems)
    with pytest.raises(ValueError, match="have no 'edge_other'"):
        supervise(train, systems, target='edge_other')


@pytest.mark.parametrize('model', MODELS)
def test_every_model_is_supervised_in_its_own_types(train, val, model):
    module = build(train, model=model, regime='supervised')
    assert isinstance(module, SupervisedInference)
    batch = next(iter(SystemLoader(val, batch_size=32)))
    module.eval()
    logits = module.model.encode(batch.x, batch.edge_index)
    spring, charge = batch.edge_label.unbind(-1)
    if model == 'nri':
        expected = torch.nn.functional.cross_entropy(logits,
                                                     2 * spring + charge)
    elif model == 'fnri':
        expected = torch.nn.functional.cross_entropy(logits.view(-1, 2),
                                                     batch.edge_label.view(-1))
    else:  # One sigmoid a layer.
        expected = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, batch.edge_label.float())
    report = validate(module, val)
    assert report['val_loss'] == pytest.approx(expected.item(), rel=1e-5)
    assert 0.2 < report['val_accuracy'] < 1
    assert 0.5 < report['val_entropy_share'] < 1  # Next to untrained.


def test_best_checkpoint_is_that_of_the_highest_accuracy():
    assert SupervisedInference.monitor == ('val_accuracy', 'max')
