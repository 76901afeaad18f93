import math

import pytest
import torch
from built_recipes import build

from pyg_fnri.nn import FNRI, NRI, SFNRI
from pyg_fnri.recipes import PaperRecipe, QuickRecipe, Recipe

MODELS = [NRI, FNRI, SFNRI]
RECIPES = [PaperRecipe(hidden_channels=8), QuickRecipe(hidden_channels=8)]


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


@pytest.mark.parametrize('recipe', [PaperRecipe, QuickRecipe])
def test_prior_of_no_interaction(recipe):
    recipe = recipe(hidden_channels=8, null_prior=[0.8, 0.4])
    latent = recipe.build(FNRI, 4, 12, [2, 3]).latent
    assert latent.prior == [[0.8, pytest.approx(0.2)],
                            [0.4, pytest.approx(0.3),
                             pytest.approx(0.3)]]
    joint, = recipe.build(NRI, 4, 12, [2, 3]).latent.prior
    assert joint == pytest.approx([0.32, 0.24, 0.24, 0.08, 0.06, 0.06])
    with pytest.raises(ValueError, match='SFNRI has no prior'):
        recipe.build(SFNRI, 4, 12, [2, 3])
    with pytest.raises(ValueError, match='each of the 1 layer-graphs'):
        recipe.build(FNRI, 4, 12, [2])


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


def test_repr_carries_every_parameter():
    recipe = PaperRecipe(batch_size=7)
    assert eval(repr(recipe)) == recipe
    quick = QuickRecipe(final_rate=0.5, undirected=False)
    assert eval(repr(quick)) == quick


def test_recipe_is_only_a_plan():
    with pytest.raises(TypeError, match='abstract'):
        Recipe()
