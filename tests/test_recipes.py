import math
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.losses import gaussian_nll, huber_nll
from pyg_fnri.nn import (
    FNRI,
    NRI,
    SFNRI,
    MinMaxScaling,
    ResidualEncoder,
    StandardScaling,
)
from pyg_fnri.recipes import PaperRecipe, QuickRecipe, Recipe, draw_frames
from pyg_fnri.transforms import SplitTrajectory

MODELS = [NRI, FNRI, SFNRI]
RECIPES = [PaperRecipe(hidden_channels=8), QuickRecipe(hidden_channels=8)]


def rates(recipe, num_steps):
    """The learning rate of each step, or epoch, of the recipe's schedule."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([parameter], lr=recipe.learning_rate)
    scheduler = recipe.schedule(optimizer)['scheduler']
    out = []
    for _ in range(num_steps):
        out.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        scheduler.step()
    return out


@pytest.fixture
def batch(make_system):
    """Two systems of 26 frames, split in halves of 12."""
    return SplitTrajectory(12)(Batch.from_data_list(
        [make_system(num_particles=n, num_steps=26) for n in (3, 5)]))


def build(recipe, batch, model=FNRI):
    """A model with fitted units."""
    out = recipe.build(model, batch.x.size(-1), batch.x.size(1), [2, 2])
    recipe.fit_units(out, torch.cat([batch.x, batch.y], dim=1))
    return out.eval()


def graph(model, batch):
    types = torch.randint(2, (batch.num_edges, 2))
    return model.latent.encode_types(types)


def test_paper_recipe_has_the_papers_numbers():
    recipe = PaperRecipe()
    assert recipe.hidden_channels == 256
    assert recipe.batch_size == 128
    assert recipe.learning_rate == 5e-4
    assert recipe.max_epochs == 500 and recipe.max_steps == -1
    assert recipe.tau == 0.5
    assert recipe.variance == 5e-5
    assert recipe.pred_steps == 10


def test_paper_recipe_builds_models_of_the_papers_size():
    model = PaperRecipe().build(FNRI, 4, 49, [2, 2])
    assert isinstance(model.scaling, MinMaxScaling)
    sizes = [
        sum(p.numel() for p in part.parameters())
        for part in (model.encoder, model.decoder)
    ]
    assert sizes == [710_660, 406_020]  # Table 3.


def test_paper_recipe_halves_the_rate_every_200_epochs():
    recipe = PaperRecipe()
    lr = rates(recipe, recipe.max_epochs)
    assert len(lr) == 500
    assert lr == pytest.approx([5e-4] * 200 + [2.5e-4] * 200 + [1.25e-4] * 100)
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    assert recipe.schedule(optimizer)['interval'] == 'epoch'


def test_quick_recipe_warms_up_and_decays():
    recipe = QuickRecipe(learning_rate=1., max_steps=1000, warmup_steps=100,
                         final_rate=0.1)
    lr = rates(recipe, 1001)
    cosine = [
        0.1 + 0.9 * (1 + math.cos(math.pi * step / 1000)) / 2
        for step in range(1001)
    ]
    assert lr[0] == pytest.approx(0.01)
    assert lr[49] == pytest.approx(0.5 * cosine[49])
    assert lr[99:] == pytest.approx(cosine[99:])
    assert lr[500] == pytest.approx(0.55) and lr[1000] == pytest.approx(0.1)
    assert max(lr) == lr[99]
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    assert recipe.schedule(optimizer)['interval'] == 'step'


def test_quick_recipe_stays_at_its_final_rate():
    recipe = QuickRecipe(max_steps=10, warmup_steps=2)
    lr = rates(recipe, 15)
    assert lr[10:] == pytest.approx([0.02 * recipe.learning_rate] * 5)


@pytest.mark.parametrize('model, num_channels', [(NRI, 3), (FNRI, 2),
                                                 (SFNRI, 2)])
def test_quick_models_drop_null_and_tie_directions(model, num_channels):
    out = QuickRecipe(hidden_channels=8).build(model, 4, 12, [2, 2])
    assert isinstance(out, model)
    assert out.latent.num_channels == num_channels
    assert out.latent.undirected
    directed = QuickRecipe(hidden_channels=8, undirected=False)
    assert not directed.build(model, 4, 12, [2, 2]).latent.undirected


def test_quick_encoder_and_decoder_share_the_linear_step(batch):
    model = build(QuickRecipe(hidden_channels=8), batch)
    assert isinstance(model.scaling, StandardScaling)
    assert isinstance(model.encoder, ResidualEncoder)
    assert model.encoder.linear_step is model.decoder.layer.linear_step
    assert (model.encoder.linear_step.scale != 1).all()  # It has been fitted.


@pytest.mark.parametrize('recipe', RECIPES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize('model', MODELS)
def test_units_come_from_what_they_are_fitted_to(recipe, model, batch):
    out = build(recipe, batch, model)
    x = out.scaling(torch.cat([batch.x, batch.y], dim=1))
    for part in x.split(2, dim=-1):
        if isinstance(recipe, PaperRecipe):
            assert part.min().item() == pytest.approx(-1, abs=1e-6)
            assert part.max().item() == pytest.approx(1, abs=1e-6)
        else:
            assert part.mean().item() == pytest.approx(0, abs=1e-6)
            assert part.std().item() == pytest.approx(1, abs=1e-6)


def test_paper_reconstruction_is_the_error_of_ten_step_rollouts(batch):
    recipe = PaperRecipe(hidden_channels=8, variance=0.01)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    y = model.scaling(batch.y)
    error = 0.
    for start in (0, 10):
        state = y[:, start]
        for t in range(start + 1, min(start + 11, 12)):
            state = model.decoder.step(state, batch.edge_index, edge_attr)
            error += (state - y[:, t]).square().sum().item()
    loss = recipe.reconstruction(model, batch, edge_attr)
    assert loss.item() == pytest.approx(error / (2 * 0.01 * 8), rel=1e-5)
    seen = recipe.reconstruction(model, batch, edge_attr, torch.Generator())
    assert seen == loss  # It looks at all frames, also in training.
    batch.x = batch.x + 1
    assert recipe.reconstruction(model, batch, edge_attr) == loss


def quick_errors(recipe, model, batch, edge_attr):
    """The loss of each one-step prediction, those of x first."""
    losses = []
    for half in (batch.x, batch.y):
        half = model.scaling(half)
        for t in range(half.size(1) - 1):
            out = model.decoder.step(half[:, t], batch.edge_index, edge_attr)
            losses.append(
                huber_nll(out[:, None], half[:, t + 1:t + 2],
                          model.encoder.linear_step.scale,
                          recipe.variance).item())
    return losses


def test_quick_reconstruction_sums_steps_of_both_halves(batch):
    recipe = QuickRecipe(hidden_channels=8)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    losses = quick_errors(recipe, model, batch, edge_attr)
    assert len(losses) == 22
    loss = recipe.reconstruction(model, batch, edge_attr).item()
    assert loss == pytest.approx(sum(losses), rel=1e-5)


def test_quick_reconstruction_of_random_frames_stands_for_all(batch):
    recipe = QuickRecipe(hidden_channels=8, num_frames=3)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    losses = quick_errors(recipe, model, batch, edge_attr)
    generator = torch.Generator().manual_seed(3)
    frames = torch.randperm(22, generator=generator)[:3].tolist()
    loss = recipe.reconstruction(model, batch, edge_attr,
                                 torch.Generator().manual_seed(3)).item()
    expected = sum(losses[t] for t in frames) * 22 / 3
    assert loss == pytest.approx(expected, rel=1e-5)
    every = replace(recipe, num_frames=100)
    loss = every.reconstruction(model, batch, edge_attr, torch.Generator())
    assert loss.item() == pytest.approx(sum(losses), rel=1e-5)


def test_quick_likelihood_is_robust(batch):
    model = build(QuickRecipe(hidden_channels=8), batch)
    scale = model.encoder.linear_step.scale
    target = torch.zeros(1, 1, 4)
    small, large = 0.5 * scale[None, None], 100 * scale[None, None]
    assert huber_nll(small, target, scale, 0.02).item() == pytest.approx(
        gaussian_nll(small / scale, target, 0.02).item(), rel=1e-5)
    assert huber_nll(large, target, scale,
                     0.02).item() == pytest.approx(4 * 99.5 / 0.02, rel=1e-5)


def test_quick_likelihood_is_gaussian_on_demand(batch):
    recipe = QuickRecipe(hidden_channels=8, delta=math.inf)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    scale = model.encoder.linear_step.scale
    expected = 0.
    for half in (model.scaling(batch.x), model.scaling(batch.y)):
        out = model.decoder(half, batch.edge_index, edge_attr)
        expected += gaussian_nll(out / scale, half[:, 1:] / scale, 0.02).item()
    loss = recipe.reconstruction(model, batch, edge_attr).item()
    assert loss == pytest.approx(expected, rel=1e-5)


def test_quick_rollouts_run_along_the_second_half(batch):
    recipe = QuickRecipe(hidden_channels=8, pred_steps=4)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    y = model.scaling(batch.y)
    out = model.decoder(y, batch.edge_index, edge_attr, 4)
    expected = huber_nll(out, y[:, 1:], model.encoder.linear_step.scale, 0.02)
    for generator in (None, torch.Generator()):
        loss = recipe.reconstruction(model, batch, edge_attr, generator)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_frames_in_focus_stand_for_all():
    generator = torch.Generator().manual_seed(0)
    residual = torch.randn(8, 20, 4)
    residual[2, 7] *= 50  # One frame of the first system.
    batch = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    frame, weight = draw_frames(residual, batch, 40_000, 0.5, generator)
    assert frame.shape == weight.shape == (8, 40_000)
    for system in (slice(0, 3), slice(3, 8)):  # Particles stay together.
        assert (frame[system] == frame[system][:1]).all()
    share = (frame[0] == 7).double().mean().item()
    assert share == pytest.approx(0.5 + 0.5 / 20, abs=0.02)
    assert (frame[3] == 7).double().mean() < 0.2
    # The weights make up for it: any sum comes out right on average.
    value = torch.rand(8, 20) + residual.square().sum(-1)
    drawn = (weight * value.gather(1, frame)).sum(1)
    torch.testing.assert_close(drawn, value.sum(1), rtol=0.05, atol=0)


def test_focus_keeps_the_loss_on_average(batch):
    recipe = QuickRecipe(hidden_channels=8, num_frames=2_000, focus=0.6)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    generator = torch.Generator().manual_seed(1)
    loss = recipe.reconstruction(model, batch, edge_attr, generator).item()
    every = recipe.reconstruction(model, batch, edge_attr).item()
    assert loss == pytest.approx(every, rel=0.03)


@pytest.mark.parametrize('recipe', [PaperRecipe, QuickRecipe])
def test_prior_of_no_interaction(recipe):
    recipe = recipe(hidden_channels=8, null_prior=[0.8, 0.4])
    latent = recipe.build(FNRI, 4, 12, [2, 3]).latent
    assert latent.prior == [[0.8, pytest.approx(0.2)],
                            [0.4, pytest.approx(0.3),
                             pytest.approx(0.3)]]
    joint, = recipe.build(NRI, 4, 12, [2, 3]).latent.prior
    assert joint == pytest.approx([0.32, 0.24, 0.24, 0.08, 0.06, 0.06])
    with pytest.raises(ValueError, match='sfNRI has no prior'):
        recipe.build(SFNRI, 4, 12, [2, 3])
    with pytest.raises(ValueError, match='each of the 1 layer-graphs'):
        recipe.build(FNRI, 4, 12, [2])


@pytest.mark.parametrize('recipe', [PaperRecipe, QuickRecipe])
def test_layers_that_factor_over_particles(recipe, batch):
    recipe = recipe(hidden_channels=8, node_layers=[1], null_prior=[0.8, 0.4])
    model = build(recipe, batch)
    springs, charges = model.latent.parts
    assert springs.prior == [[0.8, pytest.approx(0.2)]]
    assert charges.values == [[0, 1]]
    assert charges.prior == [[0.4, pytest.approx(0.6)]]
    # A step of training, as for any other latent graph.
    logits = model.encode(batch.x, batch.edge_index)
    generator = torch.Generator().manual_seed(0)
    edge_attr = model.latent.sample(logits, recipe.tau, recipe.hard, generator,
                                    batch.edge_index)
    loss = recipe.reconstruction(model, batch, edge_attr, generator)
    loss += model.latent.kl(logits, batch.edge_index).sum()
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
    for other in (NRI, SFNRI):
        with pytest.raises(ValueError, match=f'Only fNRI .* {other.__name__}'):
            replace(recipe, null_prior=None).build(other, 4, 12, [2, 2])


def test_symmetries_leave_the_loss_of_a_symmetric_model_alone(batch):
    generator = torch.Generator().manual_seed(0)
    assert QuickRecipe().augment(batch, generator) is batch
    turned = QuickRecipe(symmetries=True).augment(batch, generator)
    assert not turned.x.equal(batch.x)
    for name in ('x', 'y'):
        before, after = batch[name], turned[name]
        torch.testing.assert_close(before.norm(dim=-1), after.norm(dim=-1))


@pytest.mark.parametrize('name, value, message', [
    ('dropout', 1.0, 'dropout must be a probability below 1, but is 1.0'),
    ('l2', -1e-3, 'l2 must be at least 0, but is -0.001'),
    ('encoder', 'rnn', "encoder must be one of mlp, cnn, but is 'rnn'"),
    ('decoder', 'cnn', "decoder must be one of mlp, gru, but is 'cnn'"),
])
def test_other_values_are_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        PaperRecipe(**{name: value})


def test_focus_leaves_every_frame_a_chance():
    with pytest.raises(ValueError, match='focus must be .* below 1, but is 1'):
        QuickRecipe(focus=1)


@pytest.mark.parametrize('recipe', [PaperRecipe, QuickRecipe])
@pytest.mark.parametrize('name, value', [
    ('hidden_channels', 0),
    ('batch_size', -3),
    ('learning_rate', 0.),
    ('learning_rate', math.nan),
    ('learning_rate', math.inf),
    ('tau', -0.5),
    ('max_epochs', 0),
    ('max_steps', -2),
])
def test_values_out_of_range_are_refused(recipe, name, value):
    with pytest.raises(ValueError, match=f'{name} must be .* but is {value}'):
        recipe(**{name: value})


def test_quick_recipe_needs_an_end():
    with pytest.raises(ValueError, match="decay ends there, but is -1"):
        QuickRecipe(max_steps=-1)


def test_repr_carries_every_parameter():
    recipe = PaperRecipe(batch_size=7)
    assert eval(repr(recipe)) == recipe
    quick = QuickRecipe(final_rate=0.5, undirected=False)
    assert eval(repr(quick)) == quick


def test_recipe_is_only_a_plan():
    with pytest.raises(TypeError, match='abstract'):
        Recipe()
