import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.evaluation import evaluate
from pyg_fnri.experiments.held_out import measure_held_out
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy
from pyg_fnri.training import Config, build_module


@pytest.fixture
def make_module(tiny_systems, shake):
    def make(num_edge_types=(2, 2), model='fnri', **options):
        module = build_module(
            Config(in_channels=4, num_observed=49,
                   num_edge_types=list(num_edge_types), model=model, options={
                       'hidden_channels': 8,
                       **options
                   }))
        module.fit_units(tiny_systems('train')._data.x)
        # Encoders that prefer one type everywhere have no graph to speak of.
        shake(module.model.encoder)
        return module

    return make


@pytest.fixture
def batches(tiny_systems):
    return list(SystemLoader(tiny_systems('test'), batch_size=20))


def test_errors_by_system_have_the_mean_of_a_report(make_module, batches):
    module = make_module()
    found = measure_held_out(module, batches, [2, 2])
    report = evaluate(module.model, batches, module.units, [2, 2], (1, 10),
                      linear_step=module.linear_step)
    for name, errors in (('rollout', found.errors), ('static', found.static),
                         ('linear', found.linear)):
        assert list(errors) == [1, 10]
        for horizon, error in errors.items():
            assert error.shape == (32, )
            assert error.mean() == pytest.approx(report[f'{name}_mse'][horizon],
                                                 rel=1e-4)
    assert found.accuracy == report['edge_accuracy']['combined']
    # In a report, layers are in the order of the truth.
    assert sorted(found.entropy) == pytest.approx(
        sorted(report['entropy_share']))
    loss = [
        module.recipe.reconstruction(
            module.model, batch,
            module.model.latent.encode_types(
                module.model.predict(batch))).item() for batch in batches
    ]
    assert found.nll == pytest.approx((20 * loss[0] + 12 * loss[1]) / 32)


def test_shares_are_those_of_the_graph(make_module, batches):
    found = measure_held_out(make_module((2, 3)), batches)
    assert found.sizes == (2, 3) and found.edge_type.shape == (32 * 20, 2)
    for layer, shares in enumerate(found.shares):
        for kind, share in enumerate(shares):
            assert share == pytest.approx(
                (found.edge_type[:, layer] == kind).double().mean().item())
            if share == 0:
                assert found.worth[layer][kind] == 0


def test_graph_comes_from_observed_frames_alone(make_module, batches):
    module = make_module()
    found = measure_held_out(module, batches)
    for batch in batches:
        batch.y = batch.y.flip(1)
        del batch.edge_label
    other = measure_held_out(module, batches)
    assert other.edge_type.equal(found.edge_type)
    assert not np.allclose(other.errors[1], found.errors[1])
    assert found.accuracy is other.accuracy is None


def test_truth_of_other_layers_is_no_truth(make_module, batches):
    for sizes, known in (((2, 2), True), ((2, ), False), ((2, 2, 2), False)):
        found = measure_held_out(make_module(sizes), batches, [2, 2])
        assert (found.accuracy is not None) == known
    joint = measure_held_out(make_module(model='nri'), batches, [2, 2])
    metric = EdgeAccuracy([2, 2], [4])
    metric.update(joint.edge_type, torch.cat([b.edge_label for b in batches]))
    assert joint.sizes == (4, )
    assert joint.accuracy == metric.compute().combined


def test_graph_that_the_decoder_ignores_is_worth_nothing(make_module, batches):
    module = make_module()
    layer = module.model.decoder.layer.layer
    layer.weight2.data.normal_(std=3.)
    used = measure_held_out(module, batches)
    assert np.log(used.shuffled / used.errors[10]).std() > 0.01
    assert max(abs(w) for layer in used.worth for w in layer) > 0.01
    layer.weight2.data.zero_()
    layer.bias2.data.zero_()
    ignored = measure_held_out(module, batches)
    assert ignored.worth == [[0, 0], [0, 0]]
    np.testing.assert_array_equal(ignored.shuffled, ignored.errors[10])


def test_shuffled_types_repeat(make_module, batches):
    module = make_module()
    module.model.decoder.layer.layer.weight2.data.normal_(std=3.)
    found = [measure_held_out(module, batches).shuffled for _ in range(2)]
    np.testing.assert_array_equal(*found)


def test_rollouts_that_diverge_are_infinitely_bad(make_module, batches):
    module = make_module()
    for parameter in module.model.decoder.layer.layer.node_mlp.parameters():
        parameter.data.fill_(1e15)
    found = measure_held_out(module, batches)
    assert (found.errors[10] == math.inf).all()
    assert np.isfinite(found.linear[10]).all()


def test_nothing_to_infer_is_told(make_module, make_system):
    with pytest.raises(ValueError, match='no candidate edges'):
        measure_held_out(make_module(), [])
    system = make_system(3, 98, edge_index=torch.empty(2, 0, dtype=torch.long))
    system.x, system.y = system.x[:, :49], system.x[:, 49:]
    with pytest.raises(ValueError, match='no candidate edges'):
        measure_held_out(make_module(), [Batch.from_data_list([system])])
