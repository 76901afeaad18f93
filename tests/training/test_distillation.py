import copy

import pytest
from small_training import build, validate

from pyg_fnri.training import EncoderDistillation


@pytest.fixture
def distillation(train):
    module = build(train)
    return EncoderDistillation(module.model.eval(), module.recipe,
                               module.config)


def with_target(systems, target):
    """The systems with a graph to be learned."""
    out = copy.copy(systems)
    out._data = copy.copy(systems._data)
    out._data.edge_target = target(systems._data.edge_label)
    out.slices = {**out.slices, 'edge_target': out.slices['edge_label']}
    return out


def test_targets_are_learned_and_truth_is_measured_by(distillation, val):
    right, wrong = (validate(distillation, with_target(val, target))
                    for target in (lambda t: t, lambda t: 1 - t))
    assert right['val_accuracy'] == wrong['val_accuracy']
    assert right['val_loss'] != wrong['val_loss']


def test_best_is_what_is_closest_to_the_targets(distillation):
    assert distillation.monitor == ('val_loss', 'min')


def test_targets_are_needed(distillation, train):
    batch = train[0]
    with pytest.raises(ValueError, match="have no 'edge_target'"):
        distillation.training_step(batch, 0)
