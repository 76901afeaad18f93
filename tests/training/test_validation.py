import math

import pytest
import torch
from small_training import build, validate

from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import RolloutMSE, posterior_entropy
from pyg_fnri.metrics.errors import linear_rollout, static_rollout
from pyg_fnri.nn.latent import reverse_edges
from pyg_fnri.training import MODELS
from pyg_fnri.training.validation import graph_shares

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*',
                                        'ignore:.*LeafSpec.*')


def test_validation_rollouts_are_in_the_papers_unit(trained, val):
    module, _ = trained
    metric = RolloutMSE([10])
    for data in val:
        edge_attr = module.model.latent.encode_types(module.model.predict(data))
        y = module.model.decode(data.y, data.edge_index, edge_attr, 10)
        metric.update({10: module.units(y)}, module.units(data.y)[:, 1:])
    # Min-max units of the training split, in 1e-5.
    assert validate(module, val)['val_rollout_mse'] == pytest.approx(
        1e5 * metric.compute()[10].item(), rel=1e-4)


def test_validation_tells_what_predictions_without_a_graph_score(trained, val):
    module, _ = trained
    units, metric = module.units, RolloutMSE([10])
    report = validate(module, val)
    y = units(torch.cat([data.y for data in val]))
    for name, rollout in (('static', static_rollout(y, 10)),
                          ('linear', linear_rollout(module.linear_step, y,
                                                    10))):
        metric.reset()
        metric.update({10: rollout}, y[:, 1:])
        assert report[f'val_{name}_mse'] == pytest.approx(
            1e5 * metric.compute()[10].item(), rel=1e-4)
    # Close encounters and walls aside, most motion is straight on.
    assert report['val_linear_mse'] < report['val_static_mse'] / 2


@pytest.mark.parametrize('model', MODELS)
def test_validation_tells_of_graphs_what_can_be_known(train, val, model):
    module = build(train, model=model, recipe='paper').eval()
    module.model.encoder.lin.weight.data.mul_(20)
    batch = next(iter(SystemLoader(val, batch_size=32)))
    report = validate(module, val)
    entropy, differ = [], []
    reverse = reverse_edges(batch.edge_index)
    for q in module.model.posterior(batch):
        entropy.append(posterior_entropy(q) / math.log(q.size(-1)))
        differ.append(q.argmax(-1) != q.argmax(-1)[reverse])
    expected = torch.stack(entropy).mean().item()
    assert report['val_entropy_share'] == pytest.approx(expected, rel=1e-4)
    assert 0 < expected < 0.99
    expected = torch.stack(differ).double().mean().item()
    assert report['val_asymmetric_share'] == pytest.approx(expected, rel=1e-4)
    assert expected > 0
    # Of tied directions there is nothing to tell.
    assert 'val_asymmetric_share' not in validate(build(train), val)


def test_systems_without_candidate_edges_have_no_entropy(trained, val):
    systems = [val[i] for i in range(4)]
    for system in systems:
        system.edge_index = system.edge_index[:, :0]
        del system.edge_label
    report = validate(trained[0], systems)
    assert 'val_entropy_share' not in report
    assert all(map(math.isfinite, report.values()))


def test_shares_tell_of_how_many_edges_and_pairs_they_are():
    # Two pairs, of which one differs in one layer of two, and an edge alone.
    edge_index = torch.tensor([[1, 0, 2, 1, 2], [0, 1, 1, 2, 0]])
    edge_type = torch.tensor([[0, 1], [0, 1], [0, 1], [1, 1], [1, 0]])
    posterior = [torch.full((5, 2), 0.5), torch.eye(3)[[0, 1, 2, 1, 0]]]
    assert graph_shares(edge_type, posterior, edge_index, False) == {
        'val_entropy_share': (0.5, 5),
        'val_asymmetric_share': (0.25, 2)
    }
    # Of edges one way alone there are no pairs.
    assert 'val_asymmetric_share' not in graph_shares(
        edge_type[1:3], [q[1:3] for q in posterior], edge_index[:, 1:3], False)
