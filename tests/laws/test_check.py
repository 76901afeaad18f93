import pytest
import torch
from known_laws import LAWS, batches
from outside_assumptions import CASES
from torch_geometric.data import Batch, Data
from verdicts import TWO

from pyg_fnri.laws import check_laws
from pyg_fnri.nn import ForceLaw, ForceLawDecoder, RolloutDecoder


def true_decoder(model, laws=TWO, half_width=None):
    law = ForceLaw(len(laws))
    law.value.data.copy_(torch.stack([true(law.knots) for true in laws]))
    layer = ForceLawDecoder(law, model.scaling, half_width=half_width)
    layer.scale.copy_(torch.tensor([1e-3, 1e-3, 0.02, 0.02]))
    return RolloutDecoder(layer)


@pytest.fixture
def check(make_model):
    """Checks true laws, changed or not, which start from true graphs."""
    def check(data, change_laws=None, half_width=None, laws=TWO, **kwargs):
        torch.manual_seed(0)
        label = data.edge_label if 'guess' not in data else data.guess
        model = make_model(label, **kwargs)
        model.decoder = true_decoder(model, laws, half_width)
        if change_laws is not None:
            change_laws(model.decoder.layer)
        return check_laws(model.to(data.x.dtype), data)

    return check


@pytest.fixture(scope='module')
def lawful():
    return batches(CASES['lawful'].kind, 10)[1]


def noisy(data, share):
    data = data.clone()
    for key in 'xy':
        noise = torch.randn_like(data[key]) * data[key].std((0, 1))
        data[key] = data[key] + share * noise
    return data


def test_true_laws_hold(check, lawful):
    result = check(lawful)
    assert result.holds and result.reasons == () == result.remarks
    assert str(result).startswith('The force laws hold')
    numbers = result.numbers
    assert numbers['laws'] < numbers['linear'] - 3
    assert abs(numbers['laws'] - numbers['one_way']) < 0.02
    assert numbers['velocities_left'] < 0.01 and numbers['law_off'] < 0.05
    assert numbers['unseen'] < 0.01


def test_friction_is_missed(check):
    _, data = batches(CASES['friction'].kind, 10)
    result = check(data)
    assert not result.holds and 'do NOT hold' in str(result)
    assert any('depend on velocity' in reason for reason in result.reasons)


@pytest.mark.slow
def test_walls_that_laws_do_not_know(check, simulate_systems):
    data = Batch.from_data_list(simulate_systems(32, 5, box_half_width=1.5))
    data.y, data.x = data.x[:, 24:], data.x[:, :25]
    known, unknown = (check(data, half_width=half_width, laws=LAWS['fnri'])
                      for half_width in (1.5, None))
    assert known.holds, known
    assert any('half_width' in reason for reason in unknown.reasons)


def test_laws_that_are_too_strong(check, lawful):
    result = check(lawful, lambda layer: layer.law.value.data.mul_(1.3))
    assert not result.holds and result.numbers['velocities_particles'] > 0.5


def test_a_law_that_is_wrong_at_some_distances(check, lawful):
    def without_core(layer):
        law = layer.law
        law.value.data[1] *= (law.knots > 0.6).float()

    result = check(lawful, without_core)
    assert result.numbers['law_off'] > 0.3
    assert any('distances' in reason for reason in result.reasons)


def test_noise_is_not_held_against_laws(check, lawful):
    result = check(noisy(lawful, 0.01))
    assert result.holds, result


@pytest.mark.slow
def test_noise_does_not_hide_what_is_missing(check):
    _, data = batches(CASES['trap'].kind, 16)
    assert not check(noisy(data, 0.01)).holds


@pytest.mark.slow
def test_one_way_interactions_are_told(check, lawful, make_model):
    data = lawful.clone()
    kept = torch.rand(data.num_edges, 1) < 0.7
    data.edge_label = data.edge_label * kept
    truth = make_model(data.edge_label, undirected=False, half_width=None)
    truth.decoder = true_decoder(truth)
    path = truth.predict_trajectory(data, 49, data.edge_label)
    data.x, data.y = path[:, :25], path[:, 25:]
    undirected, directed = (check(data, undirected=undirected)
                            for undirected in (True, False))
    assert directed.holds and 'one_way' not in directed.numbers
    assert undirected.numbers['one_way'] < undirected.numbers['laws'] - 1
    assert any('undirected=False' in text for text in undirected.reasons)


def test_pairs_that_are_never_within_reach_are_unknown(check, lawful):
    def of_short_reach(layer):
        layer.law.value.data *= (layer.law.knots < 1.0).float()

    result = check(lawful, of_short_reach)
    assert result.numbers['unseen'] > 0.1
    assert any('unknown' in remark for remark in result.remarks)


def test_dynamics_of_first_order_are_named(check, lawful):
    data = lawful.clone()
    sender, receiver = data.edge_index
    for key in 'xy':
        position = data[key].chunk(2, -1)[0]
        pull = position[sender] - position[receiver]
        pull = pull * data.edge_label[:, :1, None]
        rate = torch.zeros_like(position).index_add_(0, receiver, pull)
        data[key] = torch.cat([position, 0.2 * rate], -1)
    result = check(data)
    assert any('first order' in reason for reason in result.reasons)


def test_double_precision_and_no_use_of_labels(check, systems):
    data = Batch.from_data_list(systems[:4])
    data.x, data.y = data.x.double(), data.y.double()
    data.guess = data.edge_label
    first = check(data, laws=LAWS['fnri'], half_width=5.0)
    data.edge_label = 1 - data.edge_label
    second = check(data, laws=LAWS['fnri'], half_width=5.0)
    assert first.numbers == pytest.approx(second.numbers)


def test_systems_that_share_no_graph_are_told(make_model, lawful):
    model = make_model(lawful.edge_label)
    model.decoder = true_decoder(model)
    model.latent.shared = True
    result = check_laws(model, lawful)
    assert result.numbers['apart'] < result.numbers['laws'] - 1
    assert 'Systems seem not to share a graph' in str(result)


@pytest.mark.parametrize('num_frames, words', [(4, 'shared=False'),
                                               (3, 'Hardly a frame')])
def test_windows_of_few_noisy_frames_tell_too_little(make_model, lawful,
                                                     num_frames, words):
    whole = torch.cat([lawful[0].x, lawful[0].y], dim=1)
    windows = [
        Data(x=whole[:, i:i + num_frames],
             y=whole[:, i + num_frames:i + 2 * num_frames],
             edge_index=lawful[0].edge_index, edge_label=lawful[0].edge_label)
        for i in range(0, 48, 4)
    ]
    data = noisy(Batch.from_data_list(windows), 0.1)
    model = make_model(data.edge_label)
    model.decoder = true_decoder(model)
    model.latent.shared = True
    assert words in str(check_laws(model, data))
