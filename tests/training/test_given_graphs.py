import pytest
import torch
from small_training import build

from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import SupervisedInference, TrueGraphPrediction


def other_target(module_type, train, target):
    regime = ('supervised'
              if module_type is SupervisedInference else 'true_graph')
    module = build(train, regime=regime)
    return module_type(module.model, module.recipe, module.config, target)


@pytest.fixture
def batch(train):
    return next(iter(SystemLoader(train, batch_size=8)))


@pytest.mark.parametrize('module_type',
                         [SupervisedInference, TrueGraphPrediction])
def test_graphs_of_another_name_are_taken_as_they_are(train, batch,
                                                      module_type):
    batch.found = 1 - batch.edge_label
    for target in ('edge_label', 'found'):
        module = other_target(module_type, train, target)
        assert torch.equal(module.given_types(batch), batch[target])


@pytest.mark.parametrize('module_type, part', [
    (SupervisedInference, 'encoder'),
    (TrueGraphPrediction, 'decoder'),
])
def test_graphs_that_are_not_there(train, batch, module_type, part):
    module = other_target(module_type, train, 'found')
    with pytest.raises(ValueError, match=f"no 'found' that the {part} could"):
        module.given_types(batch)
    with pytest.raises(ValueError, match="no 'found'"):
        module.training_step(batch, 0)
