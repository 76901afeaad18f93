import pytest
import torch

from pyg_fnri.inference.evidence import DecoderEvidence, find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.nn import (
    FNRI,
    LinearStep,
    OverLinearStep,
    RecurrentConv,
    RecurrentDecoder,
    StandardScaling,
)


def fitted_model(x, **kwargs):
    """The paper's decoder, with random weights, in the units of data."""
    scaling = StandardScaling(4)
    model = FNRI(4, x.size(1), [2, 2], 8, scaling=scaling, **kwargs)
    scaling.fit(x)
    return model


@pytest.mark.parametrize('undirected', [True, False])
def test_changes_agree_with_errors_anew(some_graph, assert_changes_agree,
                                        undirected):
    x, edge_index = some_graph
    choices = find_choices(edge_index, undirected)
    evidence = DecoderEvidence(fitted_model(x), [x], edge_index, choices)
    assert_changes_agree(evidence, choices, torch.rand(3, 4))


def recurrent_model(x):
    """The same with a memory."""
    model = fitted_model(x)
    model.decoder = RecurrentDecoder(RecurrentConv(4, 4, 4, 8), burn_in=2)
    return model


@pytest.mark.parametrize('make', [fitted_model, recurrent_model])
def test_errors_are_those_of_the_decoders_step(make_system, make):
    data = make_system(4, 6)
    choices = find_choices(data.edge_index, undirected=True)
    model = make(data.x)
    evidence = DecoderEvidence(model, [data.x], data.edge_index, choices)
    channels = torch.rand(6, 4)
    edge_attr = torch.empty(12, 4)
    edge_attr[choices.edge] = edge_attr[choices.reverse] = channels
    x = model.scaling(data.x)
    out = model.decoder(x, data.edge_index, edge_attr, pred_steps=1)
    expected = (x[:, 1:] - out) / LinearStep(4).fit(x).scale
    torch.testing.assert_close(evidence.errors(channels), expected)


def test_scale_is_the_models_own_where_it_has_one(make_system):
    data = make_system(4, 6)
    choices = find_choices(data.edge_index, undirected=True)
    model = fitted_model(data.x)
    linear_step = LinearStep(4).fit(model.scaling(torch.randn(50, 9, 4)))
    model.decoder.layer = OverLinearStep(model.decoder.layer, linear_step)
    evidence = DecoderEvidence(model, [data.x], data.edge_index, choices)
    assert torch.equal(evidence.scale, linear_step.scale)
    # One system without forces has none of its own.
    still = torch.zeros(4, 6, 4)
    evidence = DecoderEvidence(model, [still], data.edge_index, choices)
    assert evidence.errors(torch.rand(6, 4)).isfinite().all()


def test_nothing_is_predicted_across_a_gap(make_system):
    data = make_system(4, 6)
    choices = find_choices(data.edge_index, undirected=True)
    model, channels = fitted_model(data.x), torch.rand(6, 4)
    parts = [data.x[:, :3], data.x[:, 2:]]
    whole, halves = (DecoderEvidence(model, x, data.edge_index, choices)
                     for x in ([data.x], parts))
    assert halves.errors(channels).shape == (4, 5, 4)
    torch.testing.assert_close(
        halves.errors(channels) * halves.scale,
        whole.errors(channels) * whole.scale)


def test_memory_starts_anew_after_a_gap(make_system):
    data = make_system(4, 9)
    choices = find_choices(data.edge_index, undirected=True)
    model, channels = recurrent_model(data.x), torch.rand(6, 4)
    parts = [data.x[:, :4], data.x[:, 5:]]
    both, second = (DecoderEvidence(model, x, data.edge_index, choices)
                    for x in (parts, parts[1:]))
    torch.testing.assert_close(
        both.errors(channels)[:, 3:] * both.scale,
        second.errors(channels) * second.scale)
    # Another start, another memory, other errors.
    parts[0] = parts[0].roll(1, dims=0)
    other = DecoderEvidence(model, [torch.cat(parts, 1)], data.edge_index,
                            choices)
    assert not torch.allclose(
        other.errors(channels)[:, 4:] * other.scale,
        second.errors(channels) * second.scale)


def test_force_laws_give_the_same_either_way(batch, make_model):
    # Impulses along the observed path and integration of the laws differ
    # where particles meet, not elsewhere.
    model = make_model(batch.edge_label, half_width=5.0)
    layer = model.decoder.layer
    layer.num_substeps = 8
    choices = find_choices(batch.edge_index, undirected=True)
    transitions = Transitions([batch.x], choices, layer.interval,
                              layer.half_width)
    impulses = ImpulseEvidence(transitions, layer)
    steps = DecoderEvidence(model, [batch.x], batch.edge_index, choices)
    channels = torch.randint(2, (choices.edge.numel(), 2)).float()
    # Both in physical units.
    first = impulses.errors(channels) * impulses.scale
    second = steps.errors(channels) * steps.scale * model.scaling.scale
    typical = first[transitions.valid].abs().median(0).values
    difference = (first - second)[transitions.valid].abs()
    assert (difference.median(0).values < 0.02 * typical).all()
    assert (difference.quantile(0.9, dim=0) < 0.3 * typical).all()


def test_too_short_or_constant_trajectories(make_system):
    data = make_system(4, 6)
    choices = find_choices(data.edge_index, undirected=True)
    model = fitted_model(data.x)
    for x, message in [(data.x[:, :1], 'at least T = 2 frames'),
                       (torch.zeros(4, 6, 4), 'no interactions to learn'),
                       (data.x / 0, 'finite trajectories')]:
        with pytest.raises(ValueError, match=message):
            DecoderEvidence(model, [x], data.edge_index, choices)
