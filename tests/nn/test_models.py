import pickle

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_fnri.nn import (
    FNRI,
    NRI,
    SFNRI,
    CNNEncoder,
    RecurrentConv,
    RecurrentDecoder,
)


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


@pytest.mark.parametrize('num_edge_types, error', [
    ([], ValueError),
    ([2, 1], ValueError),
    ([4, 0.5], TypeError),
    (2, TypeError),
])
def test_impossible_edge_types(model_class, num_edge_types, error):
    with pytest.raises(error, match=r'such as \[2, 2\], but got'):
        model_class(4, 6, num_edge_types)


def test_unknown_options():
    with pytest.raises(TypeError, match="'drop_null'"):
        SFNRI(4, 6, [2, 2], drop_null=True)
