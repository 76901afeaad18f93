import copy
import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.nn import (
    FNRI,
    NRI,
    SFNRI,
    CNNEncoder,
    LinearStep,
    MinMaxScaling,
    MLPEncoder,
    OverLinearStep,
    RecurrentConv,
    RecurrentDecoder,
    RelationalAutoEncoder,
    ResidualEncoder,
    StandardScaling,
)


@pytest.fixture(params=[NRI, FNRI, SFNRI])
def model_class(request):
    return request.param


def num_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize('model_class, layers, encoder, decoder', [
    (NRI, [2, 2], 710_660, 406_020),
    (FNRI, [2, 2], 710_660, 406_020),
    (SFNRI, [2, 2], 710_146, 269_828),
    (NRI, [2, 2, 2], 711_688, 678_404),
    (FNRI, [2, 2, 2], 711_174, 542_212),
    (SFNRI, [2, 2, 2], 710_403, 337_924),
])
def test_numbers_of_parameters_are_those_of_table_3(model_class, layers,
                                                    encoder, decoder):
    model = model_class(in_channels=4, num_steps=49, num_edge_types=layers)
    assert num_parameters(model.encoder) == encoder
    assert num_parameters(model.decoder) == decoder
    assert num_parameters(model) == encoder + decoder


@pytest.mark.parametrize('model_class, kwargs, types, num_logits, num_channels',
                         [
                             (NRI, {}, [6], 6, 6),
                             (FNRI, {}, [2, 3], 5, 5),
                             (SFNRI, {}, [2, 3], 3, 3),
                         ])
def test_models_differ_in_their_latent_graph(model_class, kwargs, types,
                                             num_logits, num_channels):
    model = model_class(4, 6, [2, 3], hidden_channels=8, **kwargs)
    assert model.latent.num_edge_types == types
    assert model.encoder.out_channels == num_logits
    assert model.decoder.layer.edge_dim == num_channels
    if model_class is not SFNRI:
        dropped = model_class(4, 6, [2, 3], hidden_channels=8, drop_null=True,
                              **kwargs)
        assert dropped.encoder.out_channels == num_logits
        assert dropped.decoder.layer.edge_dim == num_channels - len(types)


def test_prior_of_combinations_or_of_each_interaction():
    model = NRI(4, 6, [2, 3], hidden_channels=8, prior=[[0.8, 0.2],
                                                        [0.5, 0.3, 0.2]])
    joint, = model.latent.prior
    assert joint == pytest.approx([0.4, 0.24, 0.16, 0.1, 0.06, 0.04])
    same = NRI(4, 6, [2, 3], hidden_channels=8, prior=[joint])
    assert same.latent.prior == [joint]
    with pytest.raises(ValueError, match=r'of lengths \[2, 3\], but got'):
        NRI(4, 6, [2, 3], prior=[[0.5, 0.3, 0.2], [0.8, 0.2]])


def test_equals_the_authors_from_end_to_end(reference):
    model = reference.model()
    data = Data(x=reference.x, edge_index=reference.edge_index)
    posterior = torch.cat(model.posterior(data), dim=-1)
    expected = reference.flat('edge_attr')
    if not reference.has('kl_with_constant'):
        # sfNRI's edges are sigmoids, with the rest for the null type.
        expected = torch.stack([1 - expected, expected], -1).flatten(1)
    torch.testing.assert_close(posterior, expected, atol=1e-5, rtol=0)

    edge_attr = model.latent.channels(model.posterior(data))
    for pred_steps in (1, 5, 10, 12):
        out = model.decode(data.x, data.edge_index, edge_attr, pred_steps)
        torch.testing.assert_close(out, reference.flat(f'rollout_{pred_steps}'),
                                   atol=1e-5, rtol=0)


@pytest.mark.parametrize('hard', [False, True])
def test_training_reaches_every_weight(model_class, hard, make_system):
    model = model_class(4, 6, [2, 2], hidden_channels=8)
    batch = Batch.from_data_list([make_system(), make_system()])
    _, out = model(batch.x, batch.edge_index, pred_steps=2, hard=hard)
    out.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_undirected_models_give_symmetric_graphs(model_class, make_system,
                                                 shake):
    model = shake(model_class(4, 6, [2, 3], hidden_channels=8, undirected=True))
    batch = Batch.from_data_list([make_system(4), make_system(3)])
    edges = batch.edge_index.t().tolist()
    reverse = [edges.index([i, j]) for j, i in edges]
    for q in model.posterior(batch):
        # But for rounding: products of particles add up in another order.
        torch.testing.assert_close(q, q[reverse], rtol=1e-6, atol=1e-7)
    edge_type = model.predict(batch)
    assert torch.equal(edge_type, edge_type[reverse])
    model.latent.undirected = False
    assert not torch.allclose(q, model.posterior(batch)[-1])


def test_every_latent_graph_takes_other_encoders_and_decoders(
        model_class, make_system):
    model = model_class(4, 49, [2, 3], hidden_channels=8)
    model.encoder = CNNEncoder(4, model.latent.num_logits, hidden_channels=8)
    model.decoder = RecurrentDecoder(
        RecurrentConv(4, 4, model.latent.num_channels, hidden_channels=8),
        burn_in=2)
    batch = Batch.from_data_list([make_system(n, num_steps=18) for n in (3, 5)])
    logits, out = model(batch.x, batch.edge_index, pred_steps=4)
    assert logits.shape == (26, model.latent.num_logits)
    assert out.shape == (8, 17, 4)
    out.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name
    edge_type = model.predict(batch)
    assert edge_type.shape == (26, model.latent.num_layers)
    future = model.predict_trajectory(batch, 3)
    assert future.shape == (8, 3, 4)

    # The whole history counts, not only the last frame.
    batch.x = batch.x.clone()
    batch.x[:, :-1] += 1
    other = model.predict_trajectory(batch, 3, edge_type)
    assert not torch.allclose(other, future)
    copied = pickle.loads(pickle.dumps(model))
    assert torch.equal(copied.predict_trajectory(batch, 3, edge_type), other)


# What all models do #########################################################


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


def test_single_system_as_a_batch(model, make_system):
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
                                    torch.Generator().manual_seed(0))
    assert torch.equal(logits, expected)
    assert torch.equal(out, model.decode(y, data.edge_index, edge_attr, 3))
    assert out.shape == (5, 8, 4)

    logits, out = model(data.x, data.edge_index)
    assert out.shape == (5, 5, 4)


def test_inference_restores_the_mode_of_every_part(model, make_system):
    data = make_system()
    model.train()
    model.decoder.eval()  # A part that is to stay as it is.
    statistics = copy.deepcopy(model.state_dict())
    modes = [part.training for part in model.modules()]
    model.posterior(data)
    model.predict(data)
    model.predict_trajectory(data, 3)
    with pytest.raises(RuntimeError):
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


# The border #################################################################


@pytest.mark.parametrize('change, message', [
    (lambda d: d.update({'x': d.x[:, :5]}), r'SplitTrajectory\(6\)'),
    (lambda d: d.update({'x': d.x[..., :1]}), '4 features'),
    (lambda d: d.update({'x': d.x[:, 0]}), 'num_nodes'),
    (lambda d: d.update({'x': d.x * float('nan')}), 'not finite'),
    (lambda d: d.update({'x': d.x / 0}), 'not finite'),
])
def test_systems_that_do_not_fit(model, make_system, change, message):
    data = make_system()
    change(data)
    for method in (model.predict, model.posterior,
                   lambda data: model.predict_trajectory(data, 3)):
        with pytest.raises(ValueError, match=message):
            method(data)


def test_graphs_that_do_not_fit(model, make_system):
    data = make_system()
    edge_type = model.predict(data)
    for other in (torch.cat([edge_type] * 2, -1), edge_type[1:], edge_type + 9):
        with pytest.raises((ValueError, RuntimeError)):
            model.predict_trajectory(data, 3, other)


@pytest.mark.parametrize('num_particles', [1, 5])
def test_no_candidate_edges(model, num_particles):
    data = Data(x=torch.randn(num_particles, 6, 4),
                edge_index=torch.empty(2, 0, dtype=torch.long))
    assert model.predict(data).shape == (0, model.latent.num_layers)
    out = model.predict_trajectory(data, 3)
    assert out.shape == (num_particles, 3, 4) and out.isfinite().all()


def test_options_that_a_model_does_not_have():
    with pytest.raises(TypeError, match='drop_null'):
        SFNRI(4, 6, [2, 2], drop_null=True)
