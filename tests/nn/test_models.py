import copy
import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.data import fully_connected
from pyg_fnri.nn import (FNRI, NRI, SFNRI, CNNEncoder, EquivariantConv,
                         ForceLaw, ForceLawDecoder, LinearStep, MLPEncoder,
                         MultiplexConv, OverLinearStep, RecurrentConv,
                         RecurrentDecoder, ResidualEncoder, RolloutDecoder,
                         UniformEncoder)
from pyg_fnri.nn.latent import most_probable


def test_null_types_and_priors_of_combinations():
    model = NRI(4, 6, [2, 3], 8, drop_null=True, prior=[[0.8, 0.2],
                                                        [0.5, 0.3, 0.2]])
    assert model.encoder.out_channels == 6
    assert model.decoder.layer.edge_dim == 5
    joint, = model.latent.prior
    assert joint == pytest.approx([0.4, 0.24, 0.16, 0.1, 0.06, 0.04])
    assert NRI(4, 6, [2, 3], prior=[joint]).latent.prior == [joint]


def test_posterior_equals_the_authors(reference):
    model = reference.model()
    data = Data(x=reference.x, edge_index=reference.edge_index)
    posterior = torch.cat(model.posterior(data), dim=-1)
    expected = reference.flat('edge_attr')
    if reference.name == 'sfnri':
        # sfNRI's edges are sigmoids, with the rest for the null type.
        expected = torch.stack([1 - expected, expected], -1).flatten(1)
    torch.testing.assert_close(posterior, expected, atol=1e-5, rtol=0)


# What all encoders, latent graphs and decoders do together ##################

NUM_STEPS = 16


def make(name):
    """A model of one of the classes, or fNRI made of other parts."""
    classes = {'nri': NRI, 'fnri': FNRI, 'sfnri': SFNRI}
    model = classes.get(name, FNRI)(4, NUM_STEPS, [2, 3], hidden_channels=8)
    if name == 'recurrent':
        model.encoder = CNNEncoder(4, 5, hidden_channels=8)
        layer = RecurrentConv(4, 4, 5, hidden_channels=8)
        model.decoder = RecurrentDecoder(layer, burn_in=2)
    elif name == 'residual':
        step = LinearStep(4).fit(torch.randn(50, NUM_STEPS, 4))
        encoder = MLPEncoder(8, NUM_STEPS - 1, 5, hidden_channels=8)
        layer = MultiplexConv(4, 4, 5, hidden_channels=8)
        model.encoder = ResidualEncoder(encoder, step)
        model.decoder = RolloutDecoder(OverLinearStep(layer, step))
    elif name == 'laws':
        model.encoder = CNNEncoder(4, 5, hidden_channels=8)
        layer = ForceLawDecoder(ForceLaw(5), model.scaling)
        torch.nn.init.normal_(layer.law.value)
        model.decoder = RolloutDecoder(layer)
    return model


@pytest.fixture(
    params=['nri', 'fnri', 'sfnri', 'recurrent', 'residual', 'laws'])
def model(request, shake):
    """Each model, as if trained, in units unlike the physical ones."""
    model = make(request.param)
    x = 5 + 3 * torch.randn(10, NUM_STEPS, 4)
    x[..., 2:] *= 0.1
    model.scaling.fit(x)
    return shake(model)


@pytest.fixture
def data():
    """Nobody acts on particle 2; the order of edges is none in particular."""
    edge_index = torch.tensor([[3, 0, 2, 4, 1, 2], [0, 1, 0, 3, 4, 4]])
    return Data(x=torch.randn(5, NUM_STEPS, 4), edge_index=edge_index)


def test_batch_of_mixed_sizes_equals_systems_one_by_one(model, make_system):
    systems = [make_system(n, num_steps=NUM_STEPS) for n in (2, 5, 3)]
    batch = Batch.from_data_list(systems)
    edge_type, posterior = model.infer(batch)
    assert edge_type.shape == (28, model.latent.num_layers)
    assert edge_type.dtype == torch.int64
    assert torch.equal(edge_type, torch.cat([*map(model.predict, systems)]))
    for q, *expected in zip(posterior, *map(model.posterior, systems)):
        torch.testing.assert_close(q, torch.cat(expected))
    expected = [model.predict_trajectory(data, 4) for data in systems]
    out = model.predict_trajectory(batch, 4)
    torch.testing.assert_close(out, torch.cat(expected), atol=1e-4, rtol=1e-4)
    assert out.shape == (10, 4, 4) and not out.requires_grad


def test_numbering_of_particles_and_edges_does_not_matter(model, data):
    node, edge = torch.randperm(5), torch.randperm(6)
    other = Data(x=data.x[node],
                 edge_index=node.argsort()[data.edge_index[:, edge]])
    for q, expected in zip(model.posterior(other), model.posterior(data)):
        torch.testing.assert_close(q, expected[edge])
    torch.testing.assert_close(model.predict_trajectory(other, 3),
                               model.predict_trajectory(data, 3)[node],
                               atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize('num_particles', [1, 5])
def test_no_candidate_edges(model, num_particles):
    data = Data(x=torch.randn(num_particles, NUM_STEPS, 4),
                edge_index=torch.empty(2, 0, dtype=torch.long))
    assert model.predict(data).shape == (0, model.latent.num_layers)
    out = model.predict_trajectory(data, 3)
    assert out.shape == (num_particles, 3, 4) and out.isfinite().all()
    with pytest.raises(ValueError, match='at least two'):
        model.train()(data.x, data.edge_index)


def test_trajectory_goes_on_with_the_graph(model, data):
    edge_type = model.predict(data)
    out = model.predict_trajectory(data, 4)
    assert torch.equal(model.predict_trajectory(data, 4, edge_type), out)
    # One rollout after the last frame.
    edge_attr = model.latent.encode_types(edge_type)
    x = torch.cat([data.x, data.x[:, -4:]], dim=1)
    if isinstance(model.decoder, RecurrentDecoder):
        model.decoder.burn_in = NUM_STEPS
    else:
        x = x[:, NUM_STEPS - 1:]
    expected = model.decode(x, data.edge_index, edge_attr, pred_steps=4)
    torch.testing.assert_close(out, expected[:, -4:])
    # Another graph, another future.
    k = model.latent.num_edge_types[0]
    other = model.predict_trajectory(data, 4, (edge_type + 1) % k)
    assert not torch.allclose(other, out)


def test_forward_is_encode_sample_and_decode(model, data):
    y = torch.randn(5, 9, 4)
    logits, out = model(data.x, data.edge_index, y, pred_steps=3, tau=0.7,
                        hard=True, generator=torch.Generator().manual_seed(0))
    expected = model.encode(data.x, data.edge_index)
    edge_attr = model.latent.sample(expected, 0.7, True,
                                    torch.Generator().manual_seed(0))
    assert torch.equal(logits, expected)
    assert torch.equal(out, model.decode(y, data.edge_index, edge_attr, 3))
    assert out.shape == (5, 8, 4)
    assert model(data.x, data.edge_index)[1].shape == (5, NUM_STEPS - 1, 4)


@pytest.mark.parametrize('dtype', [torch.half, torch.double])
def test_dtype_is_the_models(model, data, dtype):
    data.x, model = data.x.to(dtype), model.to(dtype)
    assert model.predict_trajectory(data, 3).dtype == dtype


@pytest.mark.parametrize('hard', [False, True])
def test_training_reaches_every_weight(model, hard):
    x, edge_index = torch.randn(5, NUM_STEPS, 4), fully_connected(5)
    _, out = model.train()(x, edge_index, pred_steps=2, hard=hard)
    out.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().sum() > 0, name


def test_undirected_models_give_symmetric_graphs(make_system, shake):
    model = shake(NRI(4, 6, [2, 3], hidden_channels=8, undirected=True))
    data = make_system(4)
    edges = data.edge_index.t().tolist()
    reverse = [edges.index([i, j]) for j, i in edges]
    q, = model.posterior(data)
    torch.testing.assert_close(q, q[reverse])


def test_inference_restores_the_mode_of_every_part(model, data):
    model.train()
    model.decoder.eval()  # A part that is to stay as it is.
    state = copy.deepcopy(model.state_dict())
    modes = [part.training for part in model.modules()]
    model.infer(data)
    model.predict_trajectory(data, 3)
    assert [part.training for part in model.modules()] == modes
    assert torch.is_grad_enabled()
    # In training mode, the statistics of batch norm would have moved.
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key]), key


def test_copies_are_equal_and_independent(model, data, request):
    expected = model.predict_trajectory(data, 3)
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    copies.append(make(request.node.callspec.params['model']).eval())
    copies[-1].load_state_dict(model.state_dict())
    states = []
    for _ in range(2):  # The seed settles all that is drawn again.
        model.train().encode(data.x, data.edge_index)  # Moves statistics.
        torch.manual_seed(1)
        model.reset_parameters()
        states.append(copy.deepcopy(model.state_dict()))
    for key, value in states[0].items():
        assert torch.equal(value, states[1][key]), key
    for other in copies:
        assert torch.equal(other.predict_trajectory(data, 3), expected)


@pytest.mark.parametrize('change, message',
                         [(lambda x: x[:, :5], r'SplitTrajectory\(16\)'),
                          (lambda x: x[..., :1], '4 features'),
                          (lambda x: x[:, 0], 'num_nodes'),
                          (lambda x: x / 0, 'not finite')])
def test_systems_that_do_not_fit(data, change, message):
    data.x = change(data.x)
    with pytest.raises(ValueError, match=message):
        make('fnri').predict_trajectory(data, 3)


def test_messages_tell_the_graphs_that_they_have_moved_particles_over():
    model = make('residual')
    assert model.relax(posterior := [torch.ones(1, 2)], None) is posterior
    model.latent.undirected = True
    layer = EquivariantConv(4, 4, 5, hidden_channels=8)
    layer.lin.weight.data *= 30
    model.decoder.layer.layer = layer
    data = Batch.from_data_list([
        Data(x=torch.randn(5, NUM_STEPS, 4), edge_index=fully_connected(5),
             mass=0.5 + torch.rand(5)) for _ in range(20)
    ])
    logits = model.latent.tie(torch.randn(400, 5), data.edge_index)
    truth = model.latent.predict(logits)
    edge_attr = model.weights(truth, data)
    state = model.scaling(data.x)
    target = model.decoder.step(state, data.edge_index, edge_attr).detach()
    uniform = model.latent.posterior(torch.zeros(400, 5))
    found = most_probable(model.relax(uniform, data, (state, target)))
    assert (found == truth).all(-1).double().mean() > 0.9
    # The frames themselves, at random, tell others.
    found = model.predict(data)
    assert not found.equal(model.one_pass(data)[0])
    assert (found == truth).all(-1).double().mean() < 0.5
    layer.lin.weight.data.fill_(torch.nan)
    with pytest.raises(ValueError, match='not finite'):
        model.predict(data)


def test_force_laws_do_not_infer_graphs_by_an_encoder(data):
    model = make('fnri')
    model.encoder = UniformEncoder(model.latent.num_logits)
    posterior = torch.cat(model.posterior(data), dim=-1)
    assert ((posterior > 0) & (posterior < 1)).all()
    for infer in (model.predict, model.infer,
                  lambda data: model.predict_trajectory(data, 3)):
        with pytest.raises(ValueError, match='inference.refine'):
            infer(data)
