import copy
import math

import pytest
import torch
from misspecified_batches import batches
from outside_assumptions import Friction
from small_training import (
    assert_same_state,
    build,
    fit,
    is_same_state,
    make_config,
    validate,
)

from pyg_fnri.inference import AnnealingStep
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import Transitions
from pyg_fnri.laws.fit import fit_laws, fit_scale
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy
from pyg_fnri.nn import (
    ForceLawDecoder,
    LinearStep,
    ResidualForceLaws,
    per_mass,
)
from pyg_fnri.training import (
    MODELS,
    RECIPES,
    Config,
    TrueGraphPrediction,
    build_module,
    load_checkpoint,
    save_checkpoint,
)

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*',
                                        'ignore:.*LeafSpec.*')


def test_units_of_reports_are_min_max_whatever_the_models(train):
    module = build(train)
    x = module.units(train._data.x)
    for part in x.split(2, dim=-1):
        assert part.min().item() == pytest.approx(-1, abs=1e-6)
        assert part.max().item() == pytest.approx(1, abs=1e-6)
    z = module.model.scaling(train._data.x)
    assert z[..., :2].std().item() == pytest.approx(1, rel=1e-4)


@pytest.mark.parametrize('model', MODELS)
@pytest.mark.parametrize('recipe', RECIPES)
def test_every_model_trains_by_every_recipe(train, model, recipe):
    module = build(train, model=model, recipe=recipe)
    before = {key: p.clone() for key, p in module.named_parameters()}
    trainer = fit(module, train, max_steps=1)
    loss = trainer.callback_metrics['train_loss']
    kl = trainer.callback_metrics['train_kl']
    assert loss.isfinite() and loss > kl >= 0
    assert (kl == 0) == (model == 'sfnri')
    for key, p in module.named_parameters():
        assert p.isfinite().all(), key
    for part in (module.model.encoder, module.model.decoder):
        moved = [
            not p.equal(before[key]) for key, p in module.named_parameters()
            if any(p is own for own in part.parameters())
        ]
        assert moved and sum(moved) > len(moved) / 2


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


def test_same_seed_same_weights(train):
    first, again, other = (build(train, seed=seed) for seed in (5, 5, 6))
    for seed, module in enumerate((first, again, other)):
        torch.manual_seed(seed)  # Nothing depends on this one.
        fit(module, train)
    assert_same_state(first.state_dict(), again.state_dict())
    assert not is_same_state(first.state_dict(), other.state_dict())


@pytest.mark.parametrize('recipe', RECIPES)
def test_labels_never_influence_training(train, recipe):
    states = []
    for labels in ('true', 'shuffled', 'absent'):
        systems = [train[i] for i in range(48)]
        for system in systems:
            if labels == 'shuffled':
                order = torch.randperm(system.num_edges)
                system.edge_label = 1 - system.edge_label[order]
            elif labels == 'absent':
                del system.edge_label
        module = build(train, recipe=recipe)
        fit(module, systems)
        states.append(module.state_dict())
    assert_same_state(states[0], states[1])
    assert_same_state(states[0], states[2])


def test_validation_reports_the_accuracy_of_all_systems(trained, val):
    module, _ = trained
    report = validate(module, val)
    metric = EdgeAccuracy([2, 2])
    for data in val:
        metric.update(module.model.predict(data), data.edge_label)
    expected = metric.compute()
    assert report['val_accuracy'] == pytest.approx(expected.combined.item())
    assert report['val_accuracy_spring'] == pytest.approx(
        expected.layers[0].item())
    assert report['val_accuracy_charge'] == pytest.approx(
        expected.layers[1].item())
    assert validate(module, val) == report  # Counts start anew each time.


def test_validation_loss_is_that_of_the_most_probable_graph(trained, val):
    module, _ = trained
    losses = []
    for data in val:
        edge_attr = module.model.latent.encode_types(module.model.predict(data))
        losses.append(
            module.recipe.reconstruction(module.model, data, edge_attr).item())
    assert validate(module, val)['val_loss'] == pytest.approx(
        math.fsum(losses) / len(losses), rel=1e-4)


def test_no_accuracy_without_truth(trained, val):
    module, _ = trained
    systems = [val[i] for i in range(len(val))]
    for system in systems:
        del system.edge_label
    report = validate(module, systems)
    assert set(report) == {
        'val_loss', 'val_rollout_mse', 'val_static_mse', 'val_linear_mse',
        'val_entropy_share'
    }
    with_truth = validate(module, val)
    assert report == {key: with_truth[key] for key in report}


def test_accuracies_of_a_given_graph(trained, val):
    module, _ = trained
    data = val[0]
    wrong = data.edge_label.clone()
    wrong[:5, 0] = 1 - wrong[:5, 0]
    expected = {
        'accuracy': 0.75,
        'accuracy_spring': 0.75,
        'accuracy_charge': 1.
    }
    assert module.accuracies(wrong, data) == expected
    assert module.accuracies(wrong, data) == expected  # Nothing is kept.
    del data.edge_label
    assert module.accuracies(wrong, data) == {}


def test_laws_take_the_decoders_place(trained, val, tmp_path):
    module, _ = trained
    laws = module.with_laws(interval=0.1, half_width=5.).eval()
    assert isinstance(laws.model.decoder.layer, ForceLawDecoder)
    assert not isinstance(module.model.decoder.layer, ForceLawDecoder)
    logits = [
        m.model.encode(val[0].x, val[0].edge_index) for m in (module, laws)
    ]
    assert logits[0].equal(logits[1])
    save_checkpoint(laws, str(tmp_path / 'laws.ckpt'))
    loaded = load_checkpoint(str(tmp_path / 'laws.ckpt'))
    assert loaded.model.decoder.layer.half_width == 5.
    paths = [m.model.predict_trajectory(val[0], 5) for m in (laws, loaded)]
    assert paths[0].equal(paths[1])


@pytest.fixture(scope='module')
def friction():
    """Batches of systems with friction, and laws fitted to the first ones."""
    train, val = batches(Friction())
    config = make_config(
        options={
            'max_steps': 60,
            'learning_rate': 0.01,
            'num_frames': 4
        }, seed=4)
    module = build_module(config)
    module.fit_units(torch.cat([train.x, train.y], dim=1))
    laws = module.with_laws(interval=0.1)
    fit_true_laws(laws, train)
    return laws, train, val


def fit_true_laws(laws, batch):
    """To the true graphs, without a look at the encoder's."""
    layer, latent = laws.model.decoder.layer, laws.model.latent
    choices = find_choices(batch.edge_index, latent.undirected)
    transitions = Transitions([batch.x, batch.y], choices, layer.interval)
    channels = latent.encode_types(batch.edge_label)[choices.edge]
    fit_scale(layer, transitions)
    for tolerance in (0.1, 0.02):
        fit_laws(layer, transitions, channels, AnnealingStep(tolerance, 0.0),
                 torch.Generator())


def step_error(module, batch):
    """Median error of velocities after a step, in units of forces."""
    model = module.model
    edge_attr = model.latent.encode_types(batch.edge_label)
    with torch.no_grad():
        out = model.decode(batch.y, batch.edge_index, edge_attr)
    error = (out - batch.y[:, 1:]) / model.decoder.layer.scale
    return error.chunk(2, dim=-1)[1].abs().median().item()


def train_on_truth(module, batch, max_steps):
    regime = TrueGraphPrediction(module.model, module.recipe, module.config)
    regime.units, regime.linear_step = module.units, module.linear_step
    fit(regime, batch.to_data_list(), max_steps)


def test_residual_learns_what_laws_miss(friction, tmp_path):
    laws, train, val = friction
    module = laws.with_residual(hidden_channels=16)
    assert isinstance(module.model.decoder.layer, ResidualForceLaws)
    plain = step_error(laws, val)
    assert step_error(module, val) == plain
    train_on_truth(module, train, 60)
    assert step_error(module, val) < 0.7 * plain
    for part in ('encoder', 'decoder.layer.law'):
        assert_same_state(
            laws.model.get_submodule(part).state_dict(),
            module.model.get_submodule(part).state_dict())
    # What it was given is as it was.
    assert step_error(laws, val) == plain
    save_checkpoint(module, str(tmp_path / 'corrected.ckpt'))
    loaded = load_checkpoint(str(tmp_path / 'corrected.ckpt'))
    assert step_error(loaded, val) == step_error(module, val)
    assert loaded.config.regime == 'learned'


def test_a_residual_leaves_encoder_and_laws_as_they_are(friction, tmp_path):
    laws, train, _ = friction
    save_checkpoint(laws.with_residual(8), str(tmp_path / 'residual.ckpt'))
    module = load_checkpoint(str(tmp_path / 'residual.ckpt'))
    before = copy.deepcopy(module.model.state_dict())
    fit(module, train.to_data_list(), 1)  # Without labels: the encoder is run.
    changed = [
        name for name, value in module.model.state_dict().items()
        if not value.equal(before[name])
    ]
    assert changed and all('decoder.layer.network.' in n for n in changed)


def test_only_laws_have_a_residual(trained):
    with pytest.raises(TypeError, match='is a OverLinearStep; see with_laws'):
        trained[0].with_residual()


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


def test_layers_without_a_name_have_their_number():
    module = build_module(
        Config(4, 49, [2, 2], options={'hidden_channels': 8}, names=['spring']))
    assert module.layer_name(0) == 'spring' and module.layer_name(1) == '1'


def test_optimiser_is_adam_at_the_recipes_rate():
    module = build_module(make_config(recipe='paper'))
    plan = module.configure_optimizers()
    assert isinstance(plan['optimizer'], torch.optim.Adam)
    group, = plan['optimizer'].param_groups
    assert group['lr'] == 5e-4
    parameters = set(map(id, module.model.parameters()))
    assert set(map(id, group['params'])) == parameters


def test_true_types_are_the_latent_graphs_own(train):
    batch = next(iter(SystemLoader(train, batch_size=4)))
    spring, charge = batch.edge_label.unbind(-1)
    assert build(train).true_types(batch).equal(batch.edge_label)
    joint = build(train, model='nri').true_types(batch)
    assert joint.equal((2 * spring + charge).unsqueeze(-1))
    del batch.edge_label
    with pytest.raises(ValueError, match='no true interaction graph'):
        build(train).true_types(batch)


def test_linear_step_is_fitted_in_the_units_of_reports(train):
    module = build(train)
    expected = LinearStep(4).fit(module.units(train._data.x))
    assert_same_state(module.linear_step.state_dict(), expected.state_dict())
    # Walls at 5 m, of which the fastest particles come within a hair.
    assert module.linear_step.walls.upper.isfinite().all()


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


def test_hard_samples_reach_the_decoder(train):
    batch = next(iter(SystemLoader(train, batch_size=4)))
    for hard in (False, True):
        module = build(train, options={'hard': hard})
        module.log_dict = lambda values, batch_size: None
        seen = []
        step = module.model.decoder.step
        module.model.decoder.step = lambda x, edge_index, edge_attr: (
            seen.append(edge_attr), step(x, edge_index, edge_attr))[1]
        module.training_step(batch, 0)
        is_whole = (seen[0] * (1 - seen[0])).abs().max() < 1e-6
        assert bool(is_whole) == hard and seen[0].requires_grad


def test_untrained_parts_are_not_for_use():
    for regime, trained in (('learned', {'encoder', 'decoder'}),
                            ('supervised', {'encoder'}), ('true_graph',
                                                          {'decoder'})):
        module = build_module(make_config(regime=regime))
        for part in ('encoder', 'decoder'):
            if part in trained:
                module.require(part)
                continue
            with pytest.raises(ValueError, match=f'needs a trained {part}'):
                module.require('encoder', 'decoder')
    # Laws, found later, are a decoder as good as any.
    laws = build_module(make_config(regime='supervised')).with_laws()
    laws.require('encoder', 'decoder')


def test_samples_go_on_where_a_checkpoint_was_written(train):
    module, resumed = build(train), build(train)
    torch.rand(7, generator=module.generator)
    checkpoint = {}
    module.on_save_checkpoint(checkpoint)
    resumed.on_load_checkpoint(checkpoint)
    resumed.on_fit_start()
    expected = torch.rand(3, generator=module.generator)
    assert torch.rand(3, generator=resumed.generator).equal(expected)
    # From another kind of device, whose states are of another size.
    checkpoint['generator'] = checkpoint['generator'][:16]
    resumed.on_load_checkpoint(checkpoint)
    resumed.on_fit_start()
    anew = torch.Generator().manual_seed(resumed.config.seed)
    assert torch.rand(3, generator=resumed.generator).equal(
        torch.rand(3, generator=anew))
