import math
import pickle
from dataclasses import asdict

import pytest
import pytorch_lightning as pl
import torch

from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import EdgeAccuracy
from pyg_fnri.nn import FNRI, NRI, SFNRI, ForceLawDecoder
from pyg_fnri.recipes import PaperRecipe, QuickRecipe
from pyg_fnri.training import (
    MODELS,
    RECIPES,
    Config,
    SupervisedInference,
    ValidationLines,
    load_checkpoint,
    quiet_lightning,
    save_checkpoint,
)

pytestmark = pytest.mark.filterwarnings('ignore:.*no `val_dataloader`.*',
                                        'ignore:.*LeafSpec.*')


def make_config(**kwargs):
    """A small model's; the quick recipe ends its decay soon."""
    recipe = kwargs.get('recipe', 'quick')
    options = {'hidden_channels': 8, **kwargs.pop('options', {})}
    if recipe == 'quick':
        options = {'max_steps': 20, 'warmup_steps': 2, **options}
    return Config(in_channels=4, num_observed=49, num_edge_types=[2, 2],
                  names=['spring', 'charge'], options=options, **kwargs)


@pytest.fixture(autouse=True)
def quiet():
    quiet_lightning()


def build(train, **kwargs):
    module = make_config(**kwargs).build()
    module.fit_units(train._data.x)
    return module


def make_trainer(max_steps, **kwargs):
    return pl.Trainer(accelerator='cpu', max_steps=max_steps, max_epochs=-1,
                      logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False,
                      num_sanity_val_steps=0, check_val_every_n_epoch=100,
                      **kwargs)


def fit(module, systems, max_steps=3, ckpt_path=None):
    """Trains on batches of 16 systems in their order."""
    trainer = make_trainer(max_steps)
    trainer.fit(module, SystemLoader(systems, batch_size=16),
                ckpt_path=ckpt_path)
    assert trainer.global_step == max_steps
    return trainer


def validate(module, systems):
    loader = SystemLoader(systems, batch_size=20)  # The last one is smaller.
    return make_trainer(1).validate(module, loader, verbose=False)[0]


def assert_same_state(state, other):
    assert state.keys() == other.keys()
    for key, value in state.items():
        assert value.equal(other[key]), key


def is_same_state(state, other):
    return all(value.equal(other[key]) for key, value in state.items())


@pytest.fixture(scope='module')
def train(tiny_systems):
    return tiny_systems('train')


@pytest.fixture(scope='module')
def val(tiny_systems):
    return tiny_systems('val')


@pytest.fixture(scope='module')
def trained(train, tmp_path_factory):
    """A module after four steps, one epoch, and its checkpoint."""
    module = build(train, seed=3, data={'name': 'springs_charges'})
    path = tmp_path_factory.mktemp('training') / 'some.ckpt'
    fit(module, train, max_steps=4).save_checkpoint(path)
    return module.eval(), str(path)


def test_names_of_models_and_recipes():
    assert MODELS == {'nri': NRI, 'fnri': FNRI, 'sfnri': SFNRI}
    assert RECIPES == {'quick': QuickRecipe, 'paper': PaperRecipe}


@pytest.mark.parametrize('change, message', [
    (dict(model='gcn'), "Unknown model 'gcn'; expected one of 'nri', 'fnri'"),
    (dict(recipe='slow'), "Unknown recipe 'slow'; expected one of 'quick'"),
    (dict(options={'size': 3}), "option of the recipe 'quick' 'size'; .*'tau'"),
    (dict(recipe='paper', options={'num_frames': 3}), "'paper' 'num_frames'"),
])
def test_unknown_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        make_config(**change)


def test_weights_come_from_the_seed_alone():
    before = torch.get_rng_state()
    state = make_config(seed=1).build().state_dict()
    assert torch.get_rng_state().equal(before)
    torch.manual_seed(99)
    assert_same_state(state, make_config(seed=1).build().state_dict())
    assert not is_same_state(state, make_config(seed=2).build().state_dict())


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
    assert list(report) == ['val_loss']
    assert report == {'val_loss': validate(module, val)['val_loss']}


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


def test_validation_prints_a_line(trained, val, capsys):
    trainer = make_trainer(1, callbacks=[ValidationLines()])
    trainer.validate(trained[0], SystemLoader(val, batch_size=32),
                     verbose=False)
    line, = capsys.readouterr().out.splitlines()
    assert line.startswith('step 0   accuracy 0.')
    loss = trainer.callback_metrics['val_loss']
    assert f'loss {loss:.4g}' in line


def supervise(train, systems, **kwargs):
    """The losses of 8 steps, and the module."""
    config = make_config()
    plain = config.build()
    module = SupervisedInference(plain.model, plain.recipe, config, **kwargs)
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
    with pytest.raises(ValueError, match="have no 'edge_label'"):
        supervise(train, systems)


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


def test_layers_without_a_name_have_their_number():
    module = Config(4, 49, [2, 2], options={
        'hidden_channels': 8
    }, names=['spring']).build()
    assert module.layer_name(0) == 'spring' and module.layer_name(1) == '1'


def test_optimiser_is_adam_at_the_recipes_rate():
    module = make_config(recipe='paper').build()
    plan = module.configure_optimizers()
    assert isinstance(plan['optimizer'], torch.optim.Adam)
    group, = plan['optimizer'].param_groups
    assert group['lr'] == 5e-4
    parameters = set(map(id, module.model.parameters()))
    assert set(map(id, group['params'])) == parameters


def test_checkpoint_gives_the_same_predictions(trained, val):
    module, path = trained
    loaded = load_checkpoint(path)
    assert not any(part.training for part in loaded.modules())
    assert_same_state(module.state_dict(), loaded.state_dict())
    assert asdict(loaded.config) == asdict(module.config)
    assert loaded.recipe == module.recipe
    for i in range(3):
        posterior = module.model.posterior(val[i])
        for ours, theirs in zip(posterior, loaded.model.posterior(val[i])):
            assert ours.equal(theirs)
        paths = [
            m.model.predict_trajectory(val[i], 20) for m in (module, loaded)
        ]
        assert paths[0].equal(paths[1])
    assert loaded.units(val[0].y).equal(module.units(val[0].y))


def test_checkpoint_holds_numbers_and_plain_settings(trained):
    _, path = trained
    checkpoint = torch.load(path, weights_only=True)
    assert checkpoint['config']['data'] == {'name': 'springs_charges'}
    assert checkpoint['global_step'] == 4


def test_training_goes_on_where_a_checkpoint_left_off(train, tmp_path):
    systems = train[:16]  # A single batch: its order is not in a checkpoint.
    straight, first, second = (build(train) for _ in range(3))
    fit(straight, systems, max_steps=6)
    fit(first, systems, max_steps=4).save_checkpoint(tmp_path / 'some.ckpt')
    fit(second, systems, max_steps=6, ckpt_path=tmp_path / 'some.ckpt')
    assert_same_state(straight.state_dict(), second.state_dict())


def test_checkpoint_is_written_whole_or_not_at_all(trained, tmp_path,
                                                   monkeypatch):
    module, _ = trained
    path = tmp_path / 'some.ckpt'
    save_checkpoint(module, str(path))
    assert_same_state(
        load_checkpoint(str(path)).state_dict(), module.state_dict())
    before = path.read_bytes()

    def break_off(checkpoint, path):
        with open(path, 'wb') as file:
            file.write(before[:1000])
        raise OSError('No space left on device')

    monkeypatch.setattr(torch, 'save', break_off)
    with pytest.raises(OSError, match='No space left'):
        save_checkpoint(module, str(path))
    assert path.read_bytes() == before


def test_loading_draws_no_random_numbers(trained):
    before = torch.get_rng_state()
    load_checkpoint(trained[1])
    assert torch.get_rng_state().equal(before)


def test_missing_checkpoint_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match='no checkpoint .*train.py'):
        load_checkpoint(str(tmp_path / 'none.ckpt'))
    with pytest.raises(FileNotFoundError, match='no checkpoint'):
        load_checkpoint(str(tmp_path))


def change_config(checkpoint, **values):
    checkpoint['config'].update(values)


BROKEN = {
    'other sizes': lambda c: change_config(c, options={'hidden_channels': 9}),
    'other model': lambda c: change_config(c, model='nri'),
    'other layers': lambda c: change_config(c, num_edge_types=[2, 3]),
    'unknown model': lambda c: change_config(c, model='gcn'),
    'unknown setting': lambda c: change_config(c, colour='red'),
    'no settings': lambda c: c.pop('config'),
    'no weights': lambda c: c.pop('state_dict'),
    'a weight less': lambda c: c['state_dict'].popitem(),
}


@pytest.mark.parametrize('kind', BROKEN)
def test_checkpoint_that_does_not_fit_is_refused(trained, tmp_path, kind):
    path = tmp_path / 'broken.ckpt'
    checkpoint = torch.load(trained[1], weights_only=True)
    BROKEN[kind](checkpoint)
    torch.save(checkpoint, path)
    assert_refused(path)


@pytest.mark.parametrize('content', [
    pytest.param(b'', id='empty'),
    pytest.param(b'certainly no checkpoint', id='text'),
    pytest.param(bytes(range(256)) * 40, id='bytes'),
    pytest.param(pickle.dumps({'config': 3}, protocol=2), id='pickle'),
])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / 'other.ckpt'
    path.write_bytes(content)
    assert_refused(path)


def test_half_a_checkpoint_is_refused(trained, tmp_path):
    path = tmp_path / 'half.ckpt'
    with open(trained[1], 'rb') as file:
        content = file.read()
    path.write_bytes(content[:len(content) // 2])
    assert_refused(path)


def assert_refused(path):
    """One sentence tells what is wrong, and the file stays as it is."""
    content = path.read_bytes()
    with pytest.raises(ValueError, match='is not a checkpoint') as error:
        load_checkpoint(str(path))
    message = str(error.value)
    assert str(path) in message and 'scripts/train.py' in message
    assert '\n' not in message and len(message) < 500
    assert path.read_bytes() == content


class Touch:
    """Unpickling makes a file."""
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, 'w')


def test_nothing_in_a_file_is_executed(trained, tmp_path):
    checkpoint = torch.load(trained[1], weights_only=True)
    checkpoint['extra'] = Touch(str(tmp_path / 'touched'))
    path = tmp_path / 'evil.ckpt'
    torch.save(checkpoint, path)
    assert_refused(path)
    assert not (tmp_path / 'touched').exists()
