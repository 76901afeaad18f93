import pytest
import torch
from misspecified_batches import batches
from outside_assumptions import Misspecified
from torch_geometric.data import Batch

from pyg_fnri.laws import check_laws
from pyg_fnri.nn import (ForceLaw, ForceLawDecoder, LinearStep, MinMaxScaling,
                         RolloutDecoder)
from pyg_fnri.simulation import Charge, Spring


class Dragged(torch.nn.Module):
    """Laws and friction: what well-trained networks would know."""
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index, edge_attr):
        velocity = x.chunk(2, -1)[1]
        drag = torch.cat([0 * velocity, -0.02 * velocity], -1)
        return self.layer(x, edge_index, edge_attr) + drag


def true_decoder(model, forces, half_width=None):
    law = ForceLaw(len(forces))
    for channel, force in enumerate(forces):
        law.value.data[channel] = torch.from_numpy(
            force.magnitude(law.knots.numpy()))
    layer = ForceLawDecoder(law, model.scaling, half_width=half_width)
    layer.scale.copy_(torch.tensor([1e-3, 1e-3, 0.02, 0.02]))
    return RolloutDecoder(layer)


@pytest.fixture
def check(make_model):
    """Checks true laws against the paper's networks as drawn, or others of
    each; both start from true graphs."""
    def check(data, change_laws=None, networks=None, half_width=None,
              forces=Misspecified().forces, **kwargs):
        torch.manual_seed(0)
        label = data.edge_label if 'guess' not in data else data.guess
        units = MinMaxScaling(4).to(data.x.dtype).fit(data.x)
        linear_step = LinearStep(4).to(data.x.dtype).fit(
            units(torch.cat([data.x, data.y], 1)))
        laws = make_model(label, **kwargs)
        laws.decoder = true_decoder(laws, forces, half_width)
        if change_laws is not None:
            change_laws(laws.decoder.layer)
        other = make_model(label, laws=None)
        if networks is not None:
            other.decoder.layer = networks(true_decoder(other, forces).layer)
        laws, other = laws.to(data.x.dtype), other.to(data.x.dtype)
        return check_laws(laws, other, data, linear_step, units)

    return check


@pytest.fixture(scope='module')
def lawful():
    return batches(Misspecified(), 16)[1]


def test_true_laws_hold(check, lawful):
    result = check(lawful)
    assert result.holds and result.reasons == []
    assert str(result).startswith('The force laws hold: ')
    assert result.laws.mean < result.linear.mean < result.networks.mean
    assert result.ahead.mean > 3 and result.behind.mean == pytest.approx(
        result.laws.mean - result.networks.mean, abs=1e-5)
    assert result.unexplained < 0.01 and result.particles == 0
    assert result.findings == () and result.at_walls is None
    assert abs(result.one_way.mean) < 0.02


def test_networks_that_know_of_friction_are_better(check):
    _, data = batches(Misspecified(term='friction'), 16)
    result = check(data, networks=Dragged)
    assert not result.holds and 'do NOT hold' in str(result)
    assert result.behind.mean > 10 * result.behind.error > 0
    assert result.findings[0].name == 'drag'


def test_walls_that_laws_do_not_know(check, simulate_systems):
    data = Batch.from_data_list(simulate_systems(8, 5, box_half_width=1.5))
    data.y, data.x = data.x[:, 24:], data.x[:, :25]
    known, unknown = (check(data, half_width=half_width,
                            forces=[Spring(), Charge()])
                      for half_width in (1.5, None))
    assert known.holds and known.at_walls.mean < 0
    reason, = unknown.reasons
    assert 'half_width' in reason


def test_laws_that_are_too_strong(check, lawful):
    result = check(lawful, lambda layer: layer.law.value.data.mul_(1.3))
    assert 'no noise' in str(result)
    assert result.persistence > 0.7 and result.findings == ()
    assert 0.18 < result.unexplained < 1.2


def test_noise_is_not_held_against_laws(check, lawful):
    data = lawful.clone()
    for key in 'xy':
        noise = torch.randn_like(data[key]) * data[key].std((0, 1))
        data[key] = data[key] + 0.01 * noise
    result = check(data)
    assert result.unexplained > 0.05 and result.persistence < 0
    assert result.holds, result


def test_one_way_interactions_are_told(check, lawful, make_model):
    data = lawful.clone()
    kept = torch.rand(data.num_edges, 1) < 0.7
    data.edge_label = data.edge_label * kept
    truth = make_model(data.edge_label, undirected=False, half_width=None)
    truth.decoder = true_decoder(truth, Misspecified().forces)
    path = truth.predict_trajectory(data, 49, data.edge_label)
    data.x, data.y = path[:, :25], path[:, 25:]
    undirected, directed = (check(data, undirected=undirected)
                            for undirected in (True, False))
    assert directed.holds and directed.one_way is None
    assert undirected.one_way.mean > 1 and undirected.particles > 0.1
    assert 'undirected=False' in str(undirected)


def test_double_precision_and_no_use_of_labels(check, systems):
    data = Batch.from_data_list(systems[:4])
    data.x, data.y = data.x.double(), data.y.double()
    data.guess = data.edge_label
    first = check(data, forces=[Spring(), Charge()], half_width=5.0)
    data.edge_label = 1 - data.edge_label
    second = check(data, forces=[Spring(), Charge()], half_width=5.0)
    assert first.laws.mean < first.networks.mean
    for one, other in zip(first.laws, second.laws):
        assert one == pytest.approx(other, rel=1e-6)


def test_a_continuation_is_needed(lawful, check):
    data = lawful.clone()
    data.y = data.y[:, :1]
    with pytest.raises(ValueError, match='continuation y'):
        check(data)
