import pytest
import torch
from torch_geometric.data import Batch

import pyg_fnri.laws.fit_laws as fit_laws_file
from pyg_fnri.inference import AnnealingStep
from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.laws.fit_laws import fit_laws, fit_scale
from pyg_fnri.metrics import relative_law_error
from pyg_fnri.nn import ForceLaw, ForceLawDecoder, StandardScaling
from pyg_fnri.simulation import Charge, Spring


@pytest.fixture
def choices(batch):
    return find_choices(batch.edge_index, undirected=True)


@pytest.fixture
def transitions(batch, choices):
    return Transitions([batch.x, batch.y], choices, 0.1, 5.0)


@pytest.fixture
def truth(batch, choices):
    """The true channels."""
    return batch.edge_label[choices.edge].float()


def make_layer(num_channels=2):
    return ForceLawDecoder(ForceLaw(num_channels), StandardScaling(4),
                           half_width=5.0)


def fit(layer, transitions, channels, tolerances=(0.1, 0.002), seed=0,
        **kwargs):
    fit_scale(layer, transitions)
    generator = torch.Generator().manual_seed(seed)
    for tolerance in tolerances:
        fit_laws(layer, transitions, channels, AnnealingStep(tolerance, 0.0),
                 generator, **kwargs)


def law_error(law, transitions):
    """Relative errors of springs and charges at the distances seen."""
    distance = torch.logspace(-1.5, 1.2, 400)
    true = torch.stack([f.magnitude(distance) for f in (Spring(), Charge())])
    return relative_law_error(distance,
                              law(distance).detach(), true,
                              transitions.distance[::7, ::5, 1].flatten())


def test_scale_is_the_typical_change(transitions):
    layer = make_layer()
    fit_scale(layer, transitions)
    change = transitions.change[transitions.valid].abs()
    for feature, scale in enumerate(layer.scale.tolist()):
        quantity = change[:, feature // 2 * 2:][:, :2]
        # Half of the changes are smaller than a Gaussian's would be.
        smaller = (quantity < scale / 1.4826).double().mean()
        assert smaller.item() == pytest.approx(0.5, abs=1e-3)
    assert layer.scale[0] == layer.scale[1] < layer.scale[2] == layer.scale[3]


def test_true_graphs_give_the_true_laws(transitions, truth):
    layer = make_layer()
    fit(layer, transitions, truth)
    assert (law_error(layer.law, transitions) < 0.02).all()


def test_many_particles_need_few_transitions(transitions, truth, monkeypatch):
    looked_at, design = [], fit_laws_file._design

    def counted(layer, transitions, channels, transition):
        looked_at.append(transition)
        return design(layer, transitions, channels, transition)

    monkeypatch.setattr(fit_laws_file, '_design', counted)
    num_nodes = transitions.change.size(0)
    for most, expected in ((3 * num_nodes, 3), (1, 1)):
        monkeypatch.setattr(fit_laws_file, 'MOST_CHANGES', most)
        looked_at.clear()
        fit(make_layer(), transitions, truth, (0.1, ), num_iterations=1)
        assert len({*looked_at}) == len(looked_at) == expected


def test_corrupted_transitions_do_little_harm(transitions, truth):
    bad = torch.rand(transitions.valid.size()) < 0.01
    transitions.change[bad] += torch.randn(int(bad.sum()), 4) * torch.tensor(
        [0.1, 0.1, 2.0, 2.0])
    layer = make_layer()
    fit(layer, transitions, truth)
    assert (law_error(layer.law, transitions) < 0.02).all()
    # That is the robust weights' doing.
    fit(layer, transitions, truth, tolerances=(1e6, ))
    assert (law_error(layer.law, transitions) > 0.1).any()


def test_some_wrong_graphs_do_little_harm(transitions, truth):
    wrong = torch.rand(truth.size()) < 0.05
    layer = make_layer()
    fit(layer, transitions, (truth - wrong.float()).abs(),
        (0.3, 0.1, 0.03, 0.01))
    # At distances, that is, at which most pairs are right: far from each
    # other there are no springs but wrong ones.
    distance = torch.linspace(0.5, 3.0, 20)
    true = torch.stack([f.magnitude(distance) for f in (Spring(), Charge())])
    error = (layer.law(distance) - true).abs().sum(1) / true.abs().sum(1)
    assert (error < 0.03).all()


def test_order_of_channels_is_the_order_of_laws(transitions, truth):
    layer, other = make_layer(), make_layer()
    fit(layer, transitions, truth)
    fit(other, transitions, truth.flip(1))
    torch.testing.assert_close(layer.law.value, other.law.value.flip(0),
                               atol=1e-3, rtol=1e-2)


def test_robust_errors_get_smaller(batch, choices, truth):
    transitions = Transitions([batch.x[:, :13]], choices, 0.1, 5.0)
    layer, cost = make_layer(), []
    fit_scale(layer, transitions)
    layer.law.value.data.normal_()
    for _ in range(5):
        errors = ImpulseEvidence(transitions, layer).errors(truth)
        cost.append((errors.square() / 0.01).log1p().mean().item())
        # All transitions, so that it is the same sum that is minimised.
        fit_laws(layer, transitions, truth, AnnealingStep(0.01, 0.0),
                 torch.Generator(), num_transitions=30, num_iterations=1)
    assert cost[-1] < 0.2 * cost[0]
    for before, after in zip(cost, cost[1:]):
        assert after < 1.001 * before


def test_is_least_squares_without_robust_weights(batch, choices, truth):
    transitions = Transitions([batch.x[:, :9]], choices, 0.1, 5.0)
    layer = make_layer()
    fit(layer, transitions, truth, tolerances=(1e9, ), num_transitions=1_000,
        num_iterations=1)

    def cost():
        errors = ImpulseEvidence(transitions, layer).errors(truth)
        return errors.double().square().sum()

    best = cost()
    # No change of the tables is an improvement; where there are no data, none
    # makes a difference.
    value = layer.law.value.data
    for _ in range(20):
        before = value.clone()
        value += 1e-2 * torch.randn_like(value) * value.abs()
        assert cost() > best * (1 - 1e-4)
        value.copy_(before)


def test_directed_graphs(batch):
    choices = find_choices(batch.edge_index, undirected=False)
    transitions = Transitions([batch.x, batch.y], choices, 0.1, 5.0)
    layer = make_layer()
    fit(layer, transitions, batch.edge_label[choices.edge].float())
    assert (law_error(layer.law, transitions) < 0.02).all()


def test_walls_are_no_forces(simulate_systems):
    batch = Batch.from_data_list(
        simulate_systems(40, 5, box_half_width=1.0, position_std=0.3))
    choices = find_choices(batch.edge_index, undirected=True)
    channels = batch.edge_label[choices.edge].float()
    errors = []
    for half_width in (1.0, None):
        transitions = Transitions([batch.x], choices, 0.1, half_width)
        layer = make_layer()
        # Least squares, which a few bounces would lead astray.
        fit(layer, transitions, channels, (1e6, ))
        errors.append(law_error(layer.law, transitions).max())
    assert errors[0] < 0.1 and errors[1] > 2 * errors[0]


def test_a_law_without_pairs_is_zero(transitions, truth):
    layer = make_layer(3)
    layer.law.value.data.normal_()
    fit(layer, transitions, torch.cat([truth, 0 * truth[:, :1]], 1))
    assert layer.law.value[2].abs().max() < 1e-6
    assert (law_error(lambda r: layer.law(r)[:2], transitions) < 0.02).all()


def test_laws_go_on_smoothly_where_nothing_was_seen(transitions, truth):
    layer = make_layer()
    fit(layer, transitions, truth)
    value = layer.law.value
    assert value.isfinite().all()
    assert layer.law(torch.tensor(14.0))[0] < -0.8  # The spring's is -1.4.
    assert layer.law(torch.tensor(0.05))[1] > 10  # The charge's is 80.


def test_generator_picks_the_transitions(transitions, truth):
    tables = []
    for seed in (1, 1, 2):
        layer = make_layer()
        fit(layer, transitions, truth, (0.1, ), seed=seed)
        tables.append(layer.law.value.data)
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_nothing_interacts(transitions, truth):
    layer = make_layer()
    with pytest.raises(ValueError, match='nothing interacts in these graphs'):
        fit(layer, transitions, 0 * truth)
    assert not layer.law.value.any()


def test_transitions_at_walls_are_not_picked(transitions, truth):
    layer, other = make_layer(), make_layer()
    transitions.valid[:, 20:] = False
    fit(layer, transitions, truth)
    # As if they were not there.
    fit(other, transitions.take(slice(0, 20)), truth)
    assert torch.equal(layer.law.value, other.law.value)
    # Among the few that say something, some are seen by all means.
    transitions.valid[:, 1:] = False
    for seed in range(5):
        fit(layer, transitions, truth, (0.1, ), seed, num_transitions=2)


def test_no_candidate_edges(batch):
    choices = find_choices(torch.empty(2, 0, dtype=torch.long), True)
    transitions = Transitions([batch.x], choices, 0.1, 5.0)
    with pytest.raises(ValueError, match='no two particles .* are joined'):
        fit(make_layer(), transitions, torch.zeros(0, 2))


def test_walls_everywhere(batch, choices):
    transitions = Transitions([batch.x], choices, 0.1, half_width=0.01)
    with pytest.raises(ValueError, match='meet a wall .* check half_width'):
        fit_scale(make_layer(), transitions)


def test_free_particles(batch, choices):
    time = 0.1 * torch.arange(5).view(1, -1, 1)
    start = batch.x[:, :1]
    x = torch.cat([
        start[..., :2] + time * start[..., 2:], start[..., 2:].expand(
            -1, 5, -1)
    ], -1)
    with pytest.raises(ValueError, match='as if no force acted'):
        fit_scale(make_layer(), Transitions([x], choices, 0.1))
