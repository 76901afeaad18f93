import math
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import fully_connected
from pyg_fnri.losses import huber_nll
from pyg_fnri.nn import (FNRI, NRI, SFNRI, MinMaxScaling, ResidualEncoder,
                         StandardScaling)
from pyg_fnri.training import (DECODERS, ENCODERS, LawsRecipe, PaperRecipe,
                               QuickRecipe)
from pyg_fnri.transforms import SplitTrajectory


@pytest.fixture
def batch(make_system):
    """Two systems of 26 frames, split in halves of 12."""
    return SplitTrajectory(12)(Batch.from_data_list(
        [make_system(num_particles=n, num_steps=26) for n in (3, 5)]))


def rates(recipe, num_steps):
    """The learning rates of encoder and decoder in each step, or epoch, of the
    recipe's schedule."""
    parts = [{'params': [torch.nn.Parameter(torch.zeros(1))]} for _ in range(2)]
    optimizer = torch.optim.Adam(parts, lr=recipe.learning_rate)
    scheduler = recipe.schedule(optimizer)['scheduler']
    out = []
    for _ in range(num_steps):
        out.append([group['lr'] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return map(list, zip(*out))


def build(recipe, batch, model=FNRI):
    """A model of two layers of two types, with fitted units."""
    out = recipe.build(model, batch.x.size(-1), batch.x.size(1), [2, 2])
    recipe.fit_units(out, torch.cat([batch.x, batch.y], dim=1))
    return out.eval()


def graph(model, batch):
    types = torch.randint(2, (batch.num_edges, 2))
    return model.latent.encode_types(types)


def test_units_come_from_what_they_are_fitted_to(batch):
    whole = torch.cat([batch.x, batch.y], dim=1)
    paper, quick = (build(recipe(hidden_channels=8), batch).scaling(whole)
                    for recipe in (PaperRecipe, QuickRecipe))
    for part in paper.split(2, dim=-1):
        assert part.aminmax() == pytest.approx((-1, 1), abs=1e-6)
    for part in quick.split(2, dim=-1):
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
    with pytest.raises(ValueError, match='null_prior'):
        recipe.build(SFNRI, 4, 12, [2, 3])


@pytest.mark.parametrize('encoder', ENCODERS)
@pytest.mark.parametrize('decoder', DECODERS)
def test_networks_have_the_sizes_of_the_recipe(encoder, decoder, make_system):
    recipe = PaperRecipe(hidden_channels=8, encoder=encoder, decoder=decoder,
                         burn_in=7)
    model = recipe.build(FNRI, 4, 14, [2, 3]).eval()
    widths = {p.size(-1) for p in model.parameters() if p.dim() > 1}
    assert 8 in widths and 256 not in widths
    # A memory has to see some frames; what has none, the first alone.
    assert model.decoder.burn_in == (7 if decoder == 'gru' else 1)
    data = make_system(num_steps=14)
    assert model.encoder(data.x, data.edge_index).shape == (20, 5)
    path = model.decoder(data.x, data.edge_index, torch.rand(20, 5))
    assert path.shape == (5, 13, 4)


@pytest.mark.parametrize('recipe, values',
                         [(PaperRecipe, dict(learning_rate=math.nan)),
                          (PaperRecipe, dict(encoder='rnn')),
                          (QuickRecipe, dict(max_steps=-1)),
                          (LawsRecipe, dict(interval=math.nan))])
def test_values_out_of_range_are_refused(recipe, values):
    with pytest.raises(ValueError, match=f'^{min(values)} must be'):
        recipe(**values)


@pytest.mark.parametrize('num_features', [1, 2, 3, 4, 6])
def test_quick_recipe_takes_any_number_of_features(num_features):
    names = ['mlp'] if num_features % 2 else ['mlp', 'equivariant']
    x, edge_index = torch.randn(5, 14, num_features), fully_connected(5)
    for name in names:
        recipe = QuickRecipe(hidden_channels=8, encoder=name)
        assert recipe.decoder == name
        model = recipe.build(FNRI, num_features, 14, [2, 2])
        logits, out = model(x, edge_index)
        assert logits.shape == (20, 4)
        assert out.shape == (5, 13, num_features)


def test_temperature_falls_and_never_rises():
    recipe = QuickRecipe(max_steps=100)
    taus = [recipe.temperature(step) for step in (0, 20, 40, 200)]
    assert taus == pytest.approx([2.0, 2**0.5, 1.0, 1.0])
    assert QuickRecipe(tau=0.5).temperature(3_000) == 0.5
    assert PaperRecipe(tau=0.7).temperature(3_000) == 0.7


def test_paper_recipe_is_the_papers():
    recipe = PaperRecipe()
    assert (recipe.batch_size, recipe.tau, recipe.variance) == (128, 0.5, 5e-5)
    model = recipe.build(FNRI, 4, 49, [2, 2])
    assert isinstance(model.scaling, MinMaxScaling)
    sizes = [
        sum(p.numel() for p in part.parameters())
        for part in (model.encoder, model.decoder)
    ]
    assert sizes == [710_660, 406_020]  # Table 3.
    for lr in rates(recipe, recipe.max_epochs):
        assert lr == pytest.approx([5e-4] * 200 + [2.5e-4] * 200 +
                                   [1.25e-4] * 100)


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


def test_quick_recipe_warms_up_and_decays():
    recipe = QuickRecipe(learning_rate=1., max_steps=1250, warmup_steps=100,
                         final_rate=0.1, final_share=0.2, decoder='mlp')
    encoder, decoder = rates(recipe, 1400)
    cosine, again = ([
        0.1 + 0.9 * (1 + math.cos(math.pi * step / number)) / 2
        for step in range(number)
    ] for number in (1000, 250))
    for lr in (encoder, decoder):
        assert lr[0] == pytest.approx(0.01)
        assert lr[49] == pytest.approx(0.5 * cosine[49])
        assert lr[99:1000] == pytest.approx(cosine[99:])
    # In the last stage, the decoder learns by itself, if it cannot teach.
    assert set(encoder[1000:]) == {0}
    taught, _ = rates(replace(recipe, decoder='equivariant'), 1400)
    assert taught == decoder
    half = [rate / 2 for rate in again] + 150 * [0.05]
    assert decoder[1000:] == pytest.approx(half)


def test_decoder_of_quick_recipe_ends_with_squared_errors():
    recipe = QuickRecipe(max_steps=80, final_share=0.25)
    assert recipe.last_stage(59) is None
    assert recipe.last_stage(60) == replace(recipe, delta=math.inf, focus=0.5,
                                            num_frames=8)
    assert PaperRecipe().last_stage(10**9) is None


@pytest.mark.parametrize('model, num_channels', [(NRI, 3), (FNRI, 2),
                                                 (SFNRI, 2)])
def test_quick_models_drop_null_and_tie_directions(model, num_channels, batch):
    out = build(QuickRecipe(hidden_channels=8), batch, model)
    assert isinstance(out, model) and isinstance(out.scaling, StandardScaling)
    assert out.latent.num_channels == num_channels
    assert out.latent.undirected
    assert isinstance(out.encoder, ResidualEncoder)
    linear_step = out.encoder.linear_step
    assert linear_step is out.decoder.layer.linear_step
    assert (linear_step.scale != 1).all()  # It has been fitted.


def test_quick_reconstruction_is_of_steps_in_both_halves(batch):
    recipe = QuickRecipe(hidden_channels=8, num_frames=3)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    losses, scale = [], model.encoder.linear_step.scale
    for half in (model.scaling(batch.x), model.scaling(batch.y)):
        for t in range(11):
            out = model.decoder.step(half[:, t], batch.edge_index, edge_attr)
            losses.append(
                huber_nll(out, half[:, t + 1], scale, recipe.variance).item())
    loss = recipe.reconstruction(model, batch, edge_attr).item()
    assert loss == pytest.approx(sum(losses), rel=1e-5)
    # Random frames stand for all.
    generator = torch.Generator().manual_seed(3)
    frames = torch.randperm(22, generator=generator)[:3].tolist()
    loss = recipe.reconstruction(model, batch, edge_attr,
                                 torch.Generator().manual_seed(3)).item()
    expected = sum(losses[t] for t in frames) * 22 / 3
    assert loss == pytest.approx(expected, rel=1e-5)


def test_quick_rollouts_run_along_the_second_half(batch):
    recipe = QuickRecipe(hidden_channels=8, pred_steps=4)
    model = build(recipe, batch)
    edge_attr = graph(model, batch)
    y = model.scaling(batch.y)
    out = model.decoder(y, batch.edge_index, edge_attr, 4)
    expected = huber_nll(out, y[:, 1:], model.encoder.linear_step.scale, 0.02)
    loss = recipe.reconstruction(model, batch, edge_attr, torch.Generator())
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
