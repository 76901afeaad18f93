import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.evaluation import evaluate
from pyg_fnri.metrics import linear_rollout, static_rollout
from pyg_fnri.nn import (FNRI, NRI, SFNRI, LinearStep, MinMaxScaling,
                         RecurrentConv, RecurrentDecoder)
from pyg_fnri.transforms import SplitTrajectory


@pytest.fixture
def systems(make_system):
    """Systems of different size, with a true graph."""
    out = []
    for num_particles in (3, 5, 4, 2, 5):
        system = make_system(num_particles=num_particles, num_steps=26)
        system.edge_label = torch.randint(2, (system.num_edges, 2))
        out.append(SplitTrajectory(12)(system))
    return out


@pytest.fixture
def batches(systems):
    """The same, in batches of different size."""
    return [
        Batch.from_data_list(systems[:3]),
        Batch.from_data_list(systems[3:])
    ]


@pytest.fixture
def units(systems):
    x = torch.cat([torch.cat([data.x, data.y], dim=1) for data in systems])
    return MinMaxScaling(4).fit(1.5 * x)


@pytest.fixture
def make_model(systems, shake):
    """Makes a model of its own units that sees some graph."""
    def make(model):
        out = model(4, 12, [2, 2], hidden_channels=8)
        out.scaling.fit(torch.cat([data.x for data in systems]))
        return shake(out)

    return make


def mean(values):
    return torch.cat([value.flatten() for value in values]).double().mean()


def rollout(model, data, edge_attr, horizon):
    """Frames 1, 2, ... of y in physical units, one after the other."""
    frames = []
    for t in range(data.y.size(1) - 1):
        if t % horizon == 0:
            state = data.y[:, t]
        state = model.scaling.inverse(
            model.decoder.step(model.scaling(state), data.edge_index,
                               edge_attr))
        frames.append(state)
    return torch.stack(frames, dim=1)


@pytest.mark.parametrize('model', [NRI, SFNRI])
def test_rollout_errors_equal_a_computation_by_hand(model, make_model, systems,
                                                    batches, units):
    model = make_model(model)
    step = LinearStep(4)
    step.weight.normal_(std=0.1)
    report = evaluate(model, batches, units, [2, 2], horizons=(1, 4, 10),
                      linear_step=step)
    assert report['num_systems'] == 5
    low, high = units.offset - units.scale, units.offset + units.scale
    for horizon in (1, 4, 10):
        ours, static, linear = [], [], []
        for data in systems:
            edge_attr = model.latent.encode_types(model.predict(data))
            y = data.y[:, 1:]
            out = linear_rollout(step, units(data.y), horizon)
            linear.append((out - units(y)).square())
            with torch.no_grad():
                out = rollout(model, data, edge_attr, horizon)
            ours.append((2 * (out - y) / (high - low)).square())
            out = static_rollout(data.y, horizon)
            static.append((2 * (out - y) / (high - low)).square())
        for name, errors in (('rollout_mse', ours), ('static_mse', static),
                             ('linear_mse', linear)):
            assert report[name][horizon] == pytest.approx(
                mean(errors).item(), rel=1e-4)


def test_graphs_may_be_inferred_in_another_way(make_model, batches, units):
    model = make_model(FNRI)
    inferred = evaluate(model, batches, units, [2, 2], (4, ))

    def given(batch):
        posterior = torch.eye(2)[batch.edge_label].unbind(1)
        return batch.edge_label, list(posterior)

    report = evaluate(model, batches, units, [2, 2], (4, ), given)
    assert report['edge_accuracy'] == {'combined': 1., 'layers': [1., 1.]}
    assert report['auroc'] == [1., 1.] and report['entropy'] == [0., 0.]
    assert report['calibration_error']['combined'] == 0
    assert report['static_mse'] == inferred['static_mse']
    assert report['rollout_mse'] != inferred['rollout_mse']
    # Graphs without probabilities are not judged.
    report = evaluate(model, batches, units, [2, 2], (4, ), lambda batch:
                      (batch.edge_label, None))
    assert report.keys() == {'num_systems', 'rollout_mse', 'static_mse'}


def test_the_model_is_as_before(make_model, batches, units):
    model = make_model(FNRI)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    evaluate(model.train(), batches, units, [2, 2])
    assert all(x.equal(before[key]) for key, x in model.state_dict().items())


def test_what_cannot_be_evaluated_is_refused(make_model, systems, units):
    model = make_model(FNRI)
    with pytest.raises(ValueError, match='no systems'):
        evaluate(model, [], units, [2, 2])
    with pytest.raises(ValueError, match='horizons'):
        evaluate(model, systems, units, [2, 2], horizons=(12, 20))
    del systems[0].y
    with pytest.raises(ValueError, match='continuation'):
        evaluate(model, systems, units, [2, 2])


def test_burn_in_is_not_measured(systems, units, make_model):
    model = make_model(FNRI)
    layer = RecurrentConv(4, 4, model.latent.num_channels, hidden_channels=8)
    model.decoder = RecurrentDecoder(layer, burn_in=5)
    report = evaluate(model, systems, units, [2, 2], horizons=(1, 3, 8, 7))
    assert set(report['rollout_mse']) == {1, 3, 7}  # y has 12 frames.
    for horizon in (3, 7):
        errors, static = [], []
        for data in systems:
            edge_attr = model.latent.encode_types(model.predict(data))
            y, h, state = model.scaling(data.y), None, None
            for t in range(11):
                # True states in burn-in, then every so many steps.
                if t < 5 or (t - 4) % horizon == 0:
                    state = y[:, t]
                    still = units(data.y)[:, t]
                change, h = layer(state, h, data.edge_index, edge_attr)
                state = state + change
                if t >= 4:
                    true = units(data.y)[:, t + 1]
                    out = units(model.scaling.inverse(state))
                    errors.append((out - true).detach().square())
                    static.append((still - true).square())
        assert report['rollout_mse'][horizon] == pytest.approx(
            mean(errors).item(), rel=1e-4)
        assert report['static_mse'][horizon] == pytest.approx(
            mean(static).item(), rel=1e-4)
