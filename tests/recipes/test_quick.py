import math
from dataclasses import replace

import pytest
import torch
from built_recipes import build, graph, rates

from pyg_fnri.losses import gaussian_nll, huber_nll
from pyg_fnri.nn import FNRI, NRI, SFNRI, ResidualEncoder, StandardScaling
from pyg_fnri.recipes import QuickRecipe


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


def test_focus_keeps_the_loss_on_average(batch):
    recipe = QuickRecipe(hidden_channels=8, num_frames=2_000, focus=0.6)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    generator = torch.Generator().manual_seed(1)
    loss = recipe.reconstruction(model, batch, edge_attr, generator).item()
    every = recipe.reconstruction(model, batch, edge_attr).item()
    assert loss == pytest.approx(every, rel=0.03)


def test_focus_leaves_every_frame_a_chance():
    with pytest.raises(ValueError, match='focus must be .* below 1, but is 1'):
        QuickRecipe(focus=1)


def test_quick_recipe_needs_an_end():
    with pytest.raises(ValueError, match="decay ends there, but is -1"):
        QuickRecipe(max_steps=-1)


@pytest.mark.parametrize('name, value, expected', [
    ('num_frames', 0, 'at least 1, but is 0'),
    ('pred_steps', 0, 'at least 1, but is 0'),
    ('warmup_steps', 0, 'at least 1, but is 0'),
    ('variance', 0., 'above 0, but is 0'),
    ('delta', -1., 'above 0, but is -1'),
    ('final_rate', 1.5, 'from 0 to 1, but is 1.5'),
])
def test_quick_recipe_refuses_what_it_cannot_do(name, value, expected):
    with pytest.raises(ValueError, match=f'{name} must be .*{expected}'):
        QuickRecipe(**{name: value})
