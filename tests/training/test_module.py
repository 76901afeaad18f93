import copy
import copyreg
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_training import assert_same_state, build, fit, make_config, validate
from torch.nn.functional import cross_entropy

from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy, linear_rollout, static_rollout
from pyg_fnri.nn import per_mass
from pyg_fnri.training import build_module

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*',
                                        'ignore:.*LeafSpec.*')


@pytest.mark.parametrize('model, recipe', [('nri', 'paper'), ('fnri', 'quick'),
                                           ('sfnri', 'quick')])
def test_every_model_trains_by_every_recipe(train, model, recipe):
    module = build(train, model=model, recipe=recipe)
    before = copy.deepcopy(module.model)
    metrics = fit(module, train, max_steps=1).callback_metrics
    loss, kl = metrics['train_loss'], metrics['train_kl']
    assert loss.isfinite() and loss > kl >= 0
    assert (kl == 0) == (model == 'sfnri')
    for part in ('encoder', 'decoder'):
        assert share_moved(module.model, before, part) > 0.5


def share_moved(model, before, part):
    """The share of weights of a part of a model that are not as before."""
    new, old = (m.get_submodule(part).parameters() for m in (model, before))
    return np.mean([not p.equal(q) for p, q in zip(new, old)])


def test_loss_is_reconstruction_and_divergence_per_particle(train):
    module = build(train, recipe='paper').eval()
    batch = next(iter(SystemLoader(train, batch_size=16)))
    module.log_dict = lambda values, batch_size: None
    state = module.generator.get_state()
    loss = module.training_step(batch, 0)
    latent, generator = module.model.latent, torch.Generator()
    generator.set_state(state)
    logits = module.model.encode(batch.x, batch.edge_index)
    sample = latent.sample(logits, 0.5, generator=generator)
    y = module.model.scaling(batch.y)
    out = module.model.decoder(y, batch.edge_index, sample, 10)
    nll = (out - y[:, 1:]).square().sum() / (2 * 5e-5)
    expected = (nll + latent.kl(logits).sum()) / (16 * 5)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_one_graph_predicts_all_systems_that_share_it(train):
    module = build(train, options={'shared': True}).eval()
    batch, seen = next(iter(SystemLoader(train, batch_size=16))), []
    reconstruction = type(module.recipe).reconstruction

    def spy(recipe, model, data, edge_attr, *args):
        seen.append(edge_attr)
        return reconstruction(recipe, model, data, edge_attr, *args)

    logged = {}
    module.log_dict = lambda values, batch_size: logged.update(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(module.recipe), 'reconstruction', spy)
        module.training_step(batch, 0)
    first, *others = seen[0].chunk(16)
    assert all(other.equal(first) for other in others)
    # There is one divergence as well.
    model = module.model
    logits = model.encode(batch.x, batch.edge_index, batch.batch)
    kl = model.latent.kl(logits[:20]).sum() / (16 * 5)
    assert logged['train_kl'].item() == pytest.approx(kl.item(), rel=1e-5)


def test_labels_never_influence_training(train):
    states = []
    for kept in (True, False):
        systems = [train[i] for i in range(48)]
        for system in systems:
            if not kept:
                del system.edge_label
        module = build(train)
        fit(module, systems)
        states.append(module.state_dict())
    assert_same_state(*states)


def test_validation_reports_the_accuracy_of_all_systems(trained, val):
    module, _ = trained
    report = validate(module, val)
    metric = EdgeAccuracy([2, 2])
    for data in val:
        metric.update(module.model.predict(data), data.edge_label)
    combined, (spring, charge), _ = metric.compute()
    assert report['val_accuracy'] == pytest.approx(combined.item())
    assert report['val_accuracy_spring'] == pytest.approx(spring.item())
    assert report['val_accuracy_charge'] == pytest.approx(charge.item())
    assert validate(module, val) == report  # Counts start anew each time.
    systems = [data.clone() for data in val]
    for data in systems:
        del data.edge_label
    blank = validate(module, systems)  # No accuracy, rather than one of zero.
    assert blank == {k: v for k, v in report.items() if 'accuracy' not in k}
    with pytest.raises(ValueError, match="regime 'learned'"):
        module.given_types(systems[0])


def test_masses_are_known_in_training_and_validation(train, val):
    module = build(train)
    module.log_dict = lambda values, **kwargs: None
    batch = next(iter(SystemLoader(val, batch_size=4)))
    seen, recipe = [], module.recipe
    expected = batch.clone()
    expected.mass = 0.5 + torch.rand(20)

    class Watched(type(recipe)):
        def reconstruction(self, model, data, edge_attr, generator=None):
            seen.append(edge_attr.detach())
            return super().reconstruction(model, data, edge_attr, generator)

    module.recipe = Watched(**vars(recipe))
    for data in (batch, expected):
        module.generator.manual_seed(1)
        module.train()
        module.training_step(data, 0)
        module._log_prediction(data, data.edge_label)
    for plain, weighted in (seen[::2], seen[1::2]):
        assert plain.any()
        torch.testing.assert_close(weighted, per_mass(plain, expected))


def test_penalty_is_on_the_encoders_squared_weights(train):
    batch = next(iter(SystemLoader(train, batch_size=16)))
    losses = []
    for l2 in (0.0, 0.1):
        module = build(train, model='sfnri', options={'l2': l2})
        module.log_dict = lambda values, batch_size: None
        losses.append(module.training_step(batch, 0).item())
    squares = sum(w.square().sum().item()
                  for w in module.model.encoder.parameters())
    assert losses[1] - losses[0] == pytest.approx(0.1 * squares, rel=1e-3)


@pytest.mark.parametrize('regime, left', [('supervised', 'decoder'),
                                          ('true_graph', 'encoder')])
def test_untrained_parts_are_not_for_use(regime, left):
    module = build_module(make_config(regime=regime))
    module.require({'encoder', 'decoder'}.difference({left}).pop())
    with pytest.raises(ValueError, match=f'trained {left}'):
        module.require('encoder', 'decoder')
    # Laws, found later, are a decoder as good as any.
    assert module.with_laws().is_trained('decoder')


@pytest.mark.parametrize('regime, part, other',
                         [('supervised', 'encoder', 'decoder'),
                          ('true_graph', 'decoder', 'encoder')])
def test_one_part_alone_is_trained(train, regime, part, other):
    module = build(train, regime=regime)
    before = copy.deepcopy(module.model)
    loss = fit(module, train, max_steps=2).callback_metrics['train_loss']
    assert loss.isfinite()
    assert_same_state(
        getattr(module.model, other).state_dict(),
        getattr(before, other).state_dict())
    assert share_moved(module.model, before, part) > 0.5
    assert all(p.requires_grad for p in module.model.parameters())


def test_nri_is_supervised_in_joint_types(train, val):
    module = build(train, model='nri', regime='supervised').eval()
    batch = next(iter(SystemLoader(val, batch_size=32)))
    logits = module.model.encode(batch.x, batch.edge_index)
    spring, charge = batch.edge_label.unbind(-1)
    expected = cross_entropy(logits, 2 * spring + charge)
    report = validate(module, val)
    assert report['val_loss'] == pytest.approx(expected.item(), rel=1e-5)
    assert 0.2 < report['val_accuracy'] < 1


def test_validation_rollouts_are_compared_with_no_graph(trained, val):
    module, _ = trained
    batch = next(iter(SystemLoader(val, batch_size=32)))
    y = module.units(batch.y)
    edge_attr = module.model.latent.encode_types(module.model.predict(batch))
    out = module.model.decode(batch.y, batch.edge_index, edge_attr, 10)
    report = validate(module, val)
    for name, rollout in (('rollout', module.units(out)),
                          ('static', static_rollout(y, 10)),
                          ('linear', linear_rollout(module.linear_step, y,
                                                    10))):
        # Min-max units of the training split, in 1e-5.
        expected = 1e5 * (rollout - y[:, 1:]).square().mean().item()
        assert report[f'val_{name}_mse'] == pytest.approx(expected, rel=1e-3)


def test_shares_are_of_edges_and_pairs(train, val):
    # Two pairs, of which one differs in one layer of two, and an edge alone.
    batch = val[0].clone()
    batch.edge_index = torch.tensor([[1, 0, 2, 1, 2], [0, 1, 1, 2, 0]])
    del batch.edge_label
    edge_type = torch.tensor([[0, 1], [0, 1], [0, 1], [1, 1], [1, 0]])
    posterior = [torch.full((5, 2), 0.5), torch.eye(3)[[0, 1, 2, 1, 0]]]
    for undirected in (False, True):
        module = build(train, options={'undirected': undirected})
        logged = {}
        module.log = lambda name, value, batch_size, **kwargs: logged.update(
            {name: (value, batch_size)})
        module._log_posterior(batch, edge_type, posterior)
        assert logged.pop('val_entropy_share') == (0.5, 5)
        assert logged == ({} if undirected else {
            'val_asymmetric_share': (0.25, 2)
        })


def test_modules_are_sent_to_other_processes(train):
    module = build(train)
    module.generator.manual_seed(7)
    # As bytes: tensors that are shared may be gone before they are received.
    _, (state, ) = copyreg.dispatch_table[torch.Generator](module.generator)
    assert isinstance(state, bytes)
    again = pickle.loads(pickle.dumps(module))
    assert torch.equal(again.generator.get_state(),
                       module.generator.get_state())
    assert_same_state(again.state_dict(), module.state_dict())


@pytest.mark.parametrize('model', ['nri', 'fnri', 'sfnri'])
def test_graphs_stay_while_the_decoder_goes_on(train, model):
    options = dict(max_steps=4, final_share=0.9, decoder='mlp')
    once, often = (build(train, model=model, options=options) for _ in range(2))
    fit(once, train, max_steps=1)
    fit(often, train, max_steps=4)
    # Statistics of batch norm included.
    assert_same_state(once.model.encoder.state_dict(),
                      often.model.encoder.state_dict())
    assert share_moved(often.model, once.model, 'decoder') > 0.5


def test_messages_teach_the_encoder(train):
    options = dict(max_steps=4, final_share=0.9, l2=1e-3)
    once, often = (build(train, options=options) for _ in range(2))
    fit(once, train, max_steps=1)
    fit(often, train, max_steps=4)
    for part in ('encoder', 'decoder'):
        assert share_moved(often.model, once.model, part) > 0.5
    with pytest.raises(ValueError, match='trains no messages'):
        replace(often.config, regime='supervised',
                options=dict(decoder='equivariant'))


def posterior_of(types, sure):
    """Pairs as sure of their type as all of that type are."""
    q = (1 - sure[types]) / (len(sure) - 1)
    return q.unsqueeze(1).repeat(1, len(sure)).scatter(1, types.unsqueeze(1),
                                                       sure[types].unsqueeze(1))


@pytest.mark.parametrize('drop_null', [True, False])
def test_one_of_two_types_that_stand_for_one_is_a_frequent_one(
        train, drop_null):
    module = build(train, model='nri', options=dict(drop_null=drop_null))
    types = torch.tensor([0] * 9 + [1] * 2 + [2] * 8 + [3])
    sure = torch.tensor([0.5, 0.9, 0.9, 0.6])
    messages, before = (m.model.decoder.layer.layer
                        for m in (module, copy.deepcopy(module)))

    module.all_gather = lambda numbers: numbers  # Of no other process.

    def split():
        module.model.infer = lambda batch: (types.unsqueeze(1),
                                            [posterior_of(types, sure)])
        module._split_types(None)
        return [(new - old).abs().mean().item()
                for new, old in zip(messages.weight2, before.weight2)]

    moved = split()
    spread = before.weight2.std().item()
    if drop_null:  # Type 3 becomes a type 2, as type 0 has no network.
        assert moved[:2] == [0, 0] and moved[2] > spread / 2
        difference = messages.weight2[2] - before.weight2[1]
        assert 0.05 * spread < difference.std() < 0.2 * spread
    else:  # Type 0 is both the least sure and the most frequent one.
        assert moved == [0, 0, 0, 0]
    messages.load_state_dict(before.state_dict())
    sure = torch.tensor([0.5, 0.9, 0.9, 0.9]) if drop_null else sure.clamp(0.9)
    assert not any(split())
