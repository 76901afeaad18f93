import itertools
from types import SimpleNamespace

import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.inference.evidence import all_types
from pyg_fnri.laws.alignment import align
from pyg_fnri.laws.law_fit import LawFit, State
from pyg_fnri.nn import CategoricalLatent, SigmoidLatent


def make_search(latent, log_posterior):
    """What is known of choices with given log-probabilities, by layer."""
    types = all_types(latent)
    return SimpleNamespace(types=types, options=latent.encode_types(types),
                           log_posterior=log_posterior)


def random_posterior(latent, num_choices=30):
    return [
        torch.randn(num_choices, k).log_softmax(-1)
        for k in latent.num_edge_types
    ]


def random_state(search, num_choices=30):
    """Laws that tell which they are, and graphs."""
    num_options, num_channels = search.options.size()
    return State(
        torch.arange(1., 1 + num_channels).unsqueeze(1),
        torch.randint(num_options, (num_choices, )))


def score(search, choice):
    return sum(
        log_q.double().gather(1, types.unsqueeze(1)).sum().item()
        for log_q, types in zip(search.log_posterior, search.types[choice].t()))


def try_all(search, state):
    """The first of the best orders of channels, one after the other."""
    options, best = search.options, None
    for order in itertools.permutations(range(options.size(1))):
        least, option = torch.cdist(options[:, order], options).min(dim=1)
        if least.any():
            continue
        found = State(state.laws[list(order)], option[state.choice])
        if best is None or score(
                search, found.choice) > score(search, best.choice) + 1e-4:
            best = found
    return best


@pytest.mark.parametrize('latent', [
    CategoricalLatent([2, 2], drop_null=True),
    CategoricalLatent([2, 2, 2], drop_null=True),
    CategoricalLatent([3], drop_null=True),
    CategoricalLatent([3, 2, 3], drop_null=True),
    CategoricalLatent([4], drop_null=True),
    CategoricalLatent([2, 3]),
    SigmoidLatent([2, 3]),
], ids=repr)
@pytest.mark.parametrize('same', [False, True])
def test_the_best_of_all_orders(latent, same):
    posterior = random_posterior(latent)
    if same:  # Of all choices, and of like layers: many orders are as good.
        posterior = [
            torch.linspace(-3, -1, q.size(1)).repeat(30, 1) for q in posterior
        ]
    search = make_search(latent, posterior)
    state = random_state(search)
    out, expected = align(search, state), try_all(search, state)
    assert torch.equal(out.laws, expected.laws)
    assert torch.equal(out.choice, expected.choice)


@pytest.mark.parametrize('sizes', [[16], [3] * 4, [2] * 8])
@pytest.mark.parametrize('drop_null', [False, True])
def test_many_channels(sizes, drop_null):
    latent = CategoricalLatent(sizes, drop_null)
    num_choices = 400
    truth = torch.stack([torch.randint(k, (num_choices, )) for k in sizes], -1)
    search = make_search(latent,
                         [(0.1 + torch.nn.functional.one_hot(t, k)).log()
                          for t, k in zip(truth.t(), sizes)])
    # Layers and types in another order, types without a channel apart.
    found = truth.roll(1, 1)
    null = int(drop_null)
    for layer, k in enumerate(sizes):
        new = torch.cat([torch.arange(null), null + torch.randperm(k - null)])
        found[:, layer] = new[found[:, layer]]
    choice = (found.unsqueeze(1) == search.types).all(-1).long().argmax(-1)
    laws = random_state(search).laws
    out = align(search, State(laws, choice))
    assert torch.equal(search.types[out.choice], truth)
    # It is the same force everywhere.
    assert torch.equal(search.options[out.choice] @ out.laws,
                       search.options[choice] @ laws)


def test_where_nothing_is_known_all_stays():
    latent = CategoricalLatent([3, 3, 2, 2], drop_null=True)
    search = make_search(latent, [torch.zeros(30, k) for k in (3, 3, 2, 2)])
    state = random_state(search)
    out = align(search, state)
    assert torch.equal(out.laws, state.laws)
    assert torch.equal(out.choice, state.choice)


def test_types_that_share_a_channel_stay():
    # Of a latent graph with a sign, types 1 and 2 cannot change places.
    search = make_search(CategoricalLatent([3], drop_null=True),
                         [torch.tensor([[-9., -9., 0.]]).repeat(30, 1)])
    search.options = torch.tensor([[0.], [1.], [-1.]])
    state = State(torch.ones(1, 1), torch.ones(30, dtype=torch.long))
    assert align(search, state) is state


def test_order_of_the_layers_is_the_encoders(systems, make_model, flip):
    # An encoder that is right in most cases, and swaps the layers.
    batch = Batch.from_data_list(systems[:24])
    swapped = batch.edge_label.flip(1)
    search = LawFit(make_model(flip(swapped, batch.edge_index, 0.2)),
                    batch).search
    truth = LawFit(make_model(batch.edge_label), batch).state
    out = align(search, truth)
    assert torch.equal(out.laws, truth.laws.flip(0))
    expected = LawFit(make_model(swapped), batch).search.choice
    assert torch.equal(out.choice, expected)
    # And back again.
    same = LawFit(make_model(batch.edge_label), batch).search
    assert torch.equal(align(same, out).laws, truth.laws)


def test_types_of_a_layer_stay_together(make_model, batch):
    latent = make_model(batch.edge_label, 'nri')
    search = LawFit(latent, batch).search
    laws = torch.arange(3.).unsqueeze(1).expand(3, 26)
    # What it takes for types 1, 2, 3 is found as 3, 1, 2.
    choice = torch.tensor([0, 3, 1, 2])[search.choice]
    out = align(search, State(laws, choice))
    assert torch.equal(out.choice, search.choice)
    assert out.laws[:, 0].tolist() == [2, 0, 1]
