import copy
import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import (
    FNRI,
    CNNEncoder,
    LinearStep,
    MinMaxScaling,
    MLPEncoder,
    OverLinearStep,
    RelationalAutoEncoder,
    ResidualEncoder,
    StandardScaling,
)


@pytest.fixture
def model(model_class, shake):
    """Each model, as if trained, in units unlike the physical ones."""
    model = model_class(4, 6, [2, 3], hidden_channels=8)
    x = 5 + 3 * torch.randn(10, 6, 4)
    x[..., 2:] *= 0.1
    model.scaling.fit(x)
    return shake(model)


@pytest.fixture
def systems(make_system):
    return [make_system(n) for n in (2, 5, 3)]


def test_batch_of_mixed_sizes_equals_systems_one_by_one(model, systems):
    batch = Batch.from_data_list(systems)
    for layer, q in enumerate(model.posterior(batch)):
        expected = [model.posterior(data)[layer] for data in systems]
        torch.testing.assert_close(q, torch.cat(expected))
    expected = [model.predict(data) for data in systems]
    assert torch.equal(model.predict(batch), torch.cat(expected))
    expected = [model.predict_trajectory(data, 4) for data in systems]
    torch.testing.assert_close(model.predict_trajectory(batch, 4),
                               torch.cat(expected), atol=1e-5, rtol=1e-5)


def test_infer_is_predict_and_posterior(model, systems):
    batch = Batch.from_data_list(systems)
    edge_type, posterior = model.infer(batch)
    assert torch.equal(edge_type, model.predict(batch))
    for q, expected in zip(posterior, model.posterior(batch), strict=True):
        assert torch.equal(q, expected)


def test_single_system(model, make_system):
    data = make_system(2)
    num_layers = model.latent.num_layers
    edge_type = model.predict(data)
    assert edge_type.shape == (2, num_layers)
    assert edge_type.dtype == torch.int64
    assert [q.shape for q in model.posterior(data)
            ] == [(2, k) for k in model.latent.num_edge_types]
    out = model.predict_trajectory(data, 7)
    assert out.shape == (2, 7, 4) and not out.requires_grad
    # The same from a batch of one.
    batch = Batch.from_data_list([data])
    assert torch.equal(model.predict(batch), edge_type)
    assert torch.equal(model.predict_trajectory(batch, 7), out)


def test_renumbering_the_particles_renumbers_the_results(model, make_system):
    data = make_system(5)
    order = torch.tensor([3, 0, 4, 1, 2])
    renumbered = Data(x=data.x[order],
                      edge_index=order.argsort()[data.edge_index])
    for q, expected in zip(model.posterior(renumbered), model.posterior(data)):
        torch.testing.assert_close(q, expected)
    torch.testing.assert_close(model.predict_trajectory(renumbered, 3),
                               model.predict_trajectory(data, 3)[order])


def test_any_candidate_graph(model, make_system):
    # Nobody acts on particle 2; the order is none in particular.
    edge_index = torch.tensor([[3, 0, 2, 4, 1, 2], [0, 1, 0, 3, 4, 4]])
    data = make_system(5, edge_index=edge_index)
    assert model.predict(data).size(0) == 6
    order = torch.randperm(6)
    other = Data(x=data.x, edge_index=edge_index[:, order])
    assert torch.equal(model.predict(other), model.predict(data)[order])
    torch.testing.assert_close(model.predict_trajectory(other, 3),
                               model.predict_trajectory(data, 3))


def test_no_candidate_edges(model, make_system):
    data = make_system(5, edge_index=torch.empty(2, 0, dtype=torch.long))
    assert model.predict(data).shape == (0, model.latent.num_layers)
    assert model.predict_trajectory(data, 3).shape == (5, 3, 4)


def test_works_in_its_own_units_but_speaks_physical_ones(model, make_system):
    data, scaling = make_system(), model.scaling
    plain = copy.deepcopy(model)
    plain.scaling = MinMaxScaling(4)  # As new, it changes nothing.
    scaled = Data(x=scaling(data.x), edge_index=data.edge_index)
    args = data.edge_index, torch.rand(20, model.latent.num_channels)

    assert torch.equal(model.encode(data.x, data.edge_index),
                       plain.encode(scaled.x, data.edge_index))
    torch.testing.assert_close(model.decode(data.x, *args),
                               scaling.inverse(plain.decode(scaled.x, *args)))
    torch.testing.assert_close(
        model.predict_trajectory(data, 3),
        scaling.inverse(plain.predict_trajectory(scaled, 3)))


def test_trajectory_goes_on_from_the_last_frame_with_the_graph(
        model, make_system):
    data = make_system()
    edge_type = model.predict(data)
    out = model.predict_trajectory(data, 4)
    assert torch.equal(model.predict_trajectory(data, 4, edge_type), out)

    # The same by hand: one rollout without a look at the truth.
    edge_attr = model.latent.encode_types(edge_type)
    x = data.x[:, -1:].expand(-1, 5, -1)
    torch.testing.assert_close(
        model.decode(x, data.edge_index, edge_attr, pred_steps=4), out)

    # Another graph, another future.
    k = model.latent.num_edge_types[0]
    other = model.predict_trajectory(data, 4, (edge_type + 1) % k)
    assert not torch.allclose(other, out)
    # A graph that is known needs no particular number of observed frames.
    last = Data(x=data.x[:, -1:], edge_index=data.edge_index)
    assert torch.equal(model.predict_trajectory(last, 4, edge_type), out)


def test_forward_is_encode_sample_and_decode(model, make_system):
    data, y = make_system(), torch.randn(5, 9, 4)
    generator = torch.Generator().manual_seed(0)
    logits, out = model(data.x, data.edge_index, y, pred_steps=3, tau=0.7,
                        hard=True, generator=generator)
    expected = model.encode(data.x, data.edge_index)
    edge_attr = model.latent.sample(expected, 0.7, True,
                                    torch.Generator().manual_seed(0),
                                    data.edge_index)
    assert torch.equal(logits, expected)
    assert torch.equal(out, model.decode(y, data.edge_index, edge_attr, 3))
    assert out.shape == (5, 8, 4)

    logits, out = model(data.x, data.edge_index)
    assert out.shape == (5, 5, 4)
    with pytest.raises(ValueError, match='x has 5 of them and y has 4'):
        model(data.x, data.edge_index, y[:4])


def test_inference_restores_the_mode_of_every_part(model, make_system):
    data = make_system()
    model.train()
    model.decoder.eval()  # A part that is to stay as it is.
    statistics = copy.deepcopy(model.state_dict())
    modes = [part.training for part in model.modules()]
    model.posterior(data)
    model.predict(data)
    model.predict_trajectory(data, 3)
    with pytest.raises(ValueError):
        model.predict_trajectory(data, 0)
    assert [part.training for part in model.modules()] == modes
    assert torch.is_grad_enabled()
    # In training mode, the statistics of batch norm would have moved.
    for key, value in model.state_dict().items():
        assert torch.equal(value, statistics[key]), key


def test_copies_are_equal_and_independent(model, make_system, tmp_path):
    data = make_system()
    expected = model.predict_trajectory(data, 3)
    torch.save(model, tmp_path / 'model.pt')
    copies = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(tmp_path / 'model.pt', weights_only=False),
    ]
    fresh = type(model)(4, 6, [2, 3], hidden_channels=8)
    fresh.load_state_dict(model.state_dict())
    copies.append(fresh)
    model.reset_parameters()
    for other in copies:
        assert torch.equal(other.predict_trajectory(data, 3), expected)


def test_reset_parameters_draws_every_weight_again(model):
    scale = model.scaling.scale.clone()
    torch.manual_seed(1)
    model.reset_parameters()
    first = {key: value.clone() for key, value in model.state_dict().items()}
    model.reset_parameters()
    for key, parameter in model.named_parameters():
        if key.startswith('decoder') or (key.endswith('weight')
                                         and 'norm' not in key):
            assert not (parameter == first[key]).any(), key
    torch.manual_seed(1)
    model.reset_parameters()
    for key, value in model.state_dict().items():
        assert torch.equal(value, first[key]), key
    assert torch.equal(model.scaling.scale, scale)  # Units are no weights.


def test_parts_can_be_replaced(make_system):
    model = FNRI(4, 6, [2, 2], hidden_channels=8, drop_null=True)
    x = make_system(50).x
    scaling = StandardScaling(4).fit(x)
    step = LinearStep(4).fit(scaling(x))
    model = RelationalAutoEncoder(
        ResidualEncoder(MLPEncoder(8, 5, 4, hidden_channels=8), step),
        model.latent, model.decoder, scaling)
    model.decoder.layer = OverLinearStep(model.decoder.layer, step)
    data = make_system()
    assert model.predict(data).shape == (20, 2)
    assert model.predict_trajectory(data, 3).shape == (5, 3, 4)
    other = pickle.loads(pickle.dumps(model))
    assert torch.equal(other.predict_trajectory(data, 3),
                       model.predict_trajectory(data, 3))


def test_convolutions_over_what_a_linear_step_leaves(make_system):
    data = make_system(num_steps=20)
    step = LinearStep(4).fit(make_system(50).x)
    encoder = ResidualEncoder(CNNEncoder(8, 3, hidden_channels=8), step).eval()
    assert encoder(data.x, data.edge_index).shape == (20, 3)
    # One frame fewer for the encoder within.
    assert encoder(data.x[:, :15], data.edge_index).shape == (20, 3)
    with pytest.raises(ValueError, match='at least 14 frames'):
        encoder(data.x[:, :14], data.edge_index)


# Bad input ###################################################################


@pytest.mark.parametrize('change, error, message', [
    (lambda d: d.update({'x': d.x[:, :5]}), ValueError,
     r'\[num_nodes, 6, 4\].*SplitTrajectory\(6\)'),
    (lambda d: d.update({'x': d.x[..., :3]}), ValueError,
     'Expected 4 features'),
    (lambda d: d.update({'x': d.x[..., :1]}), ValueError,
     'Expected 4 features'),
    (lambda d: d.update({'x': d.x[:, 0]}), ValueError,
     r'\[num_nodes, num_steps, num_features\].*got \[5, 4\]'),
    (lambda d: d.update({'x': d.x[:, :0]}), ValueError,
     r'\[num_nodes, num_steps, num_features\].*got \[5, 0, 4\]'),
    (lambda d: d.update({'x': d.x.double()}), TypeError, 'torch.float64'),
    (lambda d: d.update({'x': d.x.long()}), TypeError, 'torch.int64'),
    (lambda d: d.update({'x': d.x / 0}), ValueError, 'NaN or infinite'),
    (lambda d: d.update({'x': d.x * float('nan')}), ValueError,
     'NaN or infinite'),
    (lambda d: d.update({'x': None}), ValueError, 'it has no x'),
    (lambda d: d.update({'edge_index': None}), ValueError,
     'it has no edge_index'),
    (lambda d: d.update({'edge_index': d.edge_index + 1}), IndexError,
     'indices'),
    (lambda d: d.update({'edge_index': d.edge_index.float()}), ValueError,
     'integer type'),
])
def test_systems_that_do_not_fit(model, make_system, change, error, message):
    data = make_system()
    change(data)
    with pytest.raises(error, match=message):
        model.predict(data)
    with pytest.raises(error, match=message):
        model.posterior(data)
    with pytest.raises(error, match=message):
        model.predict_trajectory(data, 3)


def test_weights_that_are_not_finite_give_no_graph(model, make_system):
    model.encoder.lin.bias.data[0] = float('nan')
    with pytest.raises(ValueError, match='logits .* not finite'):
        model.predict(make_system())


def test_graphs_that_do_not_fit(model, make_system):
    data = make_system()
    edge_type = model.predict(data)
    with pytest.raises(ValueError, match='Expected edge types of shape'):
        model.predict_trajectory(data, 3, torch.cat([edge_type] * 2, -1))
    with pytest.raises(ValueError, match='got 19 rows for 20 edges'):
        model.predict_trajectory(data, 3, edge_type[1:])
    with pytest.raises(ValueError, match='Layer-graph 0 has types'):
        model.predict_trajectory(data, 3, edge_type + 9)


@pytest.mark.parametrize('num_steps', [0, -2])
def test_no_steps_to_predict(model, make_system, num_steps):
    with pytest.raises(ValueError, match=f'num_steps .* got {num_steps}'):
        model.predict_trajectory(make_system(), num_steps)


def test_particle_alone(model):
    # It needs no graph to go on.
    data = Data(x=torch.randn(1, 6, 4),
                edge_index=torch.empty(2, 0, dtype=torch.long))
    assert model.predict(data).size(0) == 0
    assert model.predict_trajectory(data, 3).isfinite().all()
    with pytest.raises(ValueError, match='at least 2 particles'):
        fully_connected(1)
