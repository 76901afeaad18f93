import pytest
import torch
from built_recipes import build, graph, rates

from pyg_fnri.nn import FNRI, MinMaxScaling
from pyg_fnri.recipes import PaperRecipe


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


def test_paper_recipe_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match='variance must be .* but is 0'):
        PaperRecipe(variance=0)
    with pytest.raises(ValueError, match='pred_steps must be .* but is 0'):
        PaperRecipe(pred_steps=0)
