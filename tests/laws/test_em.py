import copy
import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.inference import AnnealingStep, refine
from pyg_fnri.laws import fit_force_laws
from pyg_fnri.simulation import Charge, Spring


def share(edge_type, truth):
    """Edges of which all layer-graphs are right."""
    return (edge_type == truth).all(-1).double().mean().item()


#: Enough to see whether something makes a difference.
FEW = [AnnealingStep(0.1, 0.5)]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize('family, num_systems', [
    ('fnri', 32),
    pytest.param('nri', 24, marks=pytest.mark.slow),
    pytest.param('sfnri', 24, marks=pytest.mark.slow),
])
def test_laws_and_graphs_find_each_other(systems, flip, make_model, to_types,
                                         family, num_systems):
    batch = Batch.from_data_list(systems[:num_systems])
    truth = to_types(batch.edge_label, family)
    # 15 % of the pairs are wrong in each layer-graph.
    guess = flip(batch.edge_label, batch.edge_index, 0.15)
    model, history = make_model(guess, family, laws=False), []
    before = model.predict(batch)
    assert share(before, truth) < 0.75
    fit_force_laws(model, batch, generator(), on_iteration=history.append)
    assert share(history[-1].edge_type, truth) > 0.98
    # Less and less changes, and less and less is left unexplained.
    assert [p.iteration for p in history] == list(range(1, 10))
    assert history[0].changed > 0.1 > 0.02 > history[-1].changed
    first = (history[0].edge_type != before).any(-1).double().mean()
    assert history[0].changed == pytest.approx(first.item())
    assert history[-1].cost < 0.2 * history[0].cost
    # The laws are there to be read.
    distance = torch.linspace(0.4, 4.0, 30)
    found = model.decoder.layer.law(distance)
    spring, charge = Spring().magnitude(distance), Charge().magnitude(distance)
    true = [spring, charge]
    if family == 'nri':
        true = [charge, spring, spring + charge]
    error = (found - torch.stack(true)).abs().sum(1)
    assert (error < 0.02 * torch.stack(true).abs().sum(1)).all()


@pytest.mark.slow
def test_laws_found_serve_other_systems(systems, make_model, flip):
    batch, other = (Batch.from_data_list(part)
                    for part in (systems[:16], systems[16:32]))
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.1),
                       laws=False)
    fit_force_laws(model, batch, generator())
    distillation = make_model(flip(other.edge_label, other.edge_index, 0.15))
    distillation.decoder = model.decoder
    found = refine(distillation, other, num_restarts=0)
    assert share(found.edge_type, other.edge_label) > 0.97


def test_labels_are_not_looked_at(systems, make_model, flip):
    batch = Batch.from_data_list(systems[:4])
    guess, tables = flip(batch.edge_label, batch.edge_index, 0.1), []
    for labels in (batch.edge_label, 9 - batch.edge_label, None):
        data = batch.clone()
        data.edge_label = labels
        model = make_model(guess, laws=False)
        fit_force_laws(model, data, generator(), FEW)
        tables.append(model.decoder.layer.law.value.data)
    assert torch.equal(tables[0], tables[1])
    assert torch.equal(tables[0], tables[2])
    assert tables[0].abs().max() > 0.1


@pytest.mark.slow
def test_continuation_is_used_where_there_is_one(systems, make_model):
    batch = Batch.from_data_list(systems[:3])
    tables = []
    for y in (batch.y, None, batch.y[:, :1]):
        data = batch.clone()
        data.y = y
        model = make_model(batch.edge_label, laws=False)
        fit_force_laws(model, data, generator(), FEW)
        tables.append(model.decoder.layer.law.value.data)
    assert not torch.equal(tables[0], tables[1])
    # A frame alone is no transition.
    assert torch.equal(tables[1], tables[2])


def test_same_generator_same_laws(systems, make_model):
    batch, tables = Batch.from_data_list(systems[:3]), []
    for seed in (1, 1, 2):
        model = make_model(batch.edge_label, laws=False)
        fit_force_laws(model, batch, generator(seed), FEW)
        tables.append(model.decoder.layer.law.value.data)
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_only_laws_and_their_scale_change(systems, make_model):
    batch = Batch.from_data_list(systems[:5])
    model = make_model(batch.edge_label, laws=False).train()
    before = copy.deepcopy(model.state_dict())
    fit_force_laws(model, batch, generator(), FEW)
    changed = {
        key
        for key, value in model.state_dict().items()
        if not torch.equal(value, before[key])
    }
    assert changed == {'decoder.layer.law.value', 'decoder.layer.scale'}
    assert model.training and model.decoder.layer.law.value.requires_grad


def test_systems_of_different_size(simulate_systems, make_model, flip):
    batch = Batch.from_data_list(
        [*simulate_systems(8, 4), *simulate_systems(8, 6)])
    model = make_model(flip(batch.edge_label, batch.edge_index, 0.1),
                       laws=False)
    history = []
    fit_force_laws(model, batch, generator(), on_iteration=history.append)
    assert share(history[-1].edge_type, batch.edge_label) > 0.97


def test_any_other_decoder_has_no_laws(batch, make_model):
    model = make_model(batch.edge_label, laws=None)
    with pytest.raises(TypeError, match='is a MultiplexConv; .*with_laws'):
        fit_force_laws(model, batch, generator())


def test_data_that_will_not_do(systems, make_model):
    data, model = systems[0], make_model(systems[0].edge_label, laws=False)
    no_edges = torch.empty(2, 0, dtype=torch.long)
    alone = make_model(torch.empty(0, 2, dtype=torch.long), laws=False)
    for change, model, message in [
        (dict(x=data.x * math.nan), model, 'finite trajectories'),
        (dict(y=data.y * math.nan), model, 'finite trajectories'),
        (dict(y=data.y[1:]), model, r'same particles, .* \[4, 49, 4\]'),
        (dict(x=data.x[:, :1], y=None), model, 'T = 2 frames or more'),
        (dict(x=data.x[:1], y=data.y[:1],
              edge_index=no_edges), alone, 'at least two particles'),
        (dict(edge_index=no_edges), alone, 'nothing interacts'),
    ]:
        system = Data(**{
            'x': data.x,
            'y': data.y,
            'edge_index': data.edge_index,
            **change
        })
        with pytest.raises(ValueError, match=message):
            fit_force_laws(model, system, generator())


def test_an_encoder_that_sees_no_interactions(batch, make_model):
    model = make_model(0 * batch.edge_label, laws=False)
    with pytest.raises(ValueError, match='nothing interacts in these graphs'):
        fit_force_laws(model, batch, generator())


def test_no_stages(batch, make_model):
    model = make_model(batch.edge_label, laws=False)
    with pytest.raises(ValueError, match='at least one stage'):
        fit_force_laws(model, batch, generator(), annealing=[])
