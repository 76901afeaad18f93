import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from outside_assumptions import UnequalMasses
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets import TrajectoryTable
from pyg_fnri.inference import (
    pool_posteriors,
    refine,
    shared_candidates,
    shared_graph,
)
from pyg_fnri.loader import SystemLoader
from pyg_fnri.nn import FNRI, CategoricalLatent, SigmoidLatent
from pyg_fnri.simulation.sampling import in_streams


def random_logs(*sizes):
    return [torch.randn(size).log_softmax(-1) for size in sizes]


@pytest.fixture
def make_fnri(shake):
    def make(num_edge_types=(2, 3), **kwargs):
        return shake(FNRI(4, 6, num_edge_types, hidden_channels=8, **kwargs))

    return make


@pytest.fixture
def repeated(make_system):
    """Ten systems of the same four particles."""
    return [make_system(4) for _ in range(10)]


def test_pooling_is_bayes_rule():
    likelihood = torch.rand(3, 5, 4) + 0.1  # Systems, edges, types.
    prior = torch.tensor([0.7, 0.1, 0.15, 0.05])
    each = (likelihood * prior).log().log_softmax(-1)
    expected = likelihood.prod(0) * prior
    expected = expected / expected.sum(-1, keepdim=True)
    pooled, = pool_posteriors([each.flatten(0, 1)], 3, [prior.tolist()])
    torch.testing.assert_close(pooled.exp(), expected.double())
    # Which prior it is matters, but not its scale.
    scaled, = pool_posteriors([each.flatten(0, 1)], 3, [(8 * prior).tolist()])
    torch.testing.assert_close(scaled, pooled)
    uniform, = pool_posteriors([each.flatten(0, 1)], 3)
    assert (uniform - pooled).abs().max() > 0.1


def test_one_system_is_its_own_pool():
    logs = random_logs((6, 2), (6, 3))
    for pooled, log_q in zip(pool_posteriors(logs, 1, [[.9, .1], [.2, .3, .5]]),
                             logs):
        torch.testing.assert_close(pooled, log_q.double())


def test_odds_of_sigmoids_multiply():
    logits = torch.randn(3 * 4, 3)
    latent = SigmoidLatent([2, 3])
    pooled = pool_posteriors(latent.log_posterior(logits), 3)
    odds = torch.cat([q[:, 1:] - q[:, :1] for q in pooled], dim=-1)
    torch.testing.assert_close(odds, logits.double().view(3, 4, 3).sum(0))


def test_systems_without_edges_pool_to_none():
    assert pool_posteriors([torch.empty(0, 2)], 3)[0].size() == (0, 2)


@pytest.mark.parametrize('num_systems, prior, message', [
    (0, None, 'same edges in each of 0 systems'),
    (4, None, r'each of 4 systems, but they are of \[6, 6\] edges'),
    (3, [[0.5, 0.5]], r'of lengths \[2, 3\]'),
    (3, [[1.0, 0.0], [1, 1, 1]], 'numbers above 0'),
])
def test_what_cannot_be_pooled_is_refused(num_systems, prior, message):
    with pytest.raises(ValueError, match=message):
        pool_posteriors(random_logs((6, 2), (6, 3)), num_systems, prior)


def test_candidates_are_those_of_each_system(make_system, repeated):
    batch = Batch.from_data_list(repeated)
    assert shared_candidates(batch).equal(repeated[0].edge_index)
    some = repeated[0].edge_index[:, 2:7]
    for data in repeated:
        data.edge_index = some
    assert shared_candidates(Batch.from_data_list(repeated)).equal(some)
    assert shared_candidates(repeated[0]).equal(some)


def test_the_first_system_that_differs_is_named(make_system, repeated):
    larger = Batch.from_data_list([*repeated[:2], make_system(5)])
    with pytest.raises(ValueError, match="'a' has 4 part.* 'c' has 5"):
        shared_candidates(larger, ['a', 'b', 'c'])
    with pytest.raises(ValueError, match='system 0 has 4 part.* 2 has 5'):
        shared_candidates(larger)
    edge_index = repeated[0].edge_index
    for changed, message in ((edge_index[:, 1:], '1 has 11'),
                             (edge_index.flip(1), 'system 1 are not those')):
        repeated[1].edge_index = changed
        with pytest.raises(ValueError, match=message):
            shared_candidates(Batch.from_data_list(repeated))


def test_models_pool_what_they_see_in_each_system(make_fnri, repeated):
    prior = [[0.8, 0.2], [0.5, 0.25, 0.25]]
    model = make_fnri(prior=prior)
    batch = Batch.from_data_list(repeated)
    edge_type, posterior = shared_graph(model, [batch])
    assert edge_type.size() == (12, 2)
    logs = [q.log() for q in model.posterior(batch)]
    for layer, log_q in enumerate(pool_posteriors(logs, 10, prior)):
        torch.testing.assert_close(posterior[layer], log_q.exp().float())
        assert posterior[layer].argmax(-1).equal(edge_type[:, layer])
    # However they are batched, a single one as it is.
    parts = [
        Batch.from_data_list(repeated[:4]), repeated[4],
        Batch.from_data_list(repeated[5:])
    ]
    for q, expected in zip(shared_graph(model, parts).posterior, posterior):
        torch.testing.assert_close(q, expected, atol=1e-5, rtol=1e-4)


def test_batches_of_other_candidates_are_refused(make_fnri, make_system,
                                                 repeated):
    parts = [Batch.from_data_list(repeated), make_system(3)]
    with pytest.raises(ValueError, match='system 10 are not those of system 0'):
        shared_graph(make_fnri(), parts)
    names = [f's{k}' for k in range(11)]
    with pytest.raises(ValueError, match="'s10' are not those of system 's0'"):
        shared_graph(make_fnri(), parts, systems=names)
    with pytest.raises(ValueError, match='no systems'):
        shared_graph(make_fnri(), [])


def test_together_systems_tell_what_each_one_only_hints_at(
        make_model, make_system):
    systems = [make_system(5) for _ in range(60)]
    truth = torch.randint(2, (20, 2))
    batch = Batch.from_data_list(systems)
    model = make_model(truth.repeat(60, 1), confidence=1.0, undirected=False)
    model.encoder.logits += torch.randn_like(model.encoder.logits)
    alone = model.predict(batch) == truth.repeat(60, 1)
    assert alone.double().mean() < 0.85
    edge_type, posterior = shared_graph(model, [batch])
    assert edge_type.equal(truth)
    assert min(q.max(-1).values.min() for q in posterior) > 0.99


def test_no_system_outvotes_all_others(make_model, make_system):
    batch = Batch.from_data_list([make_system(3) for _ in range(4)])
    truth = torch.ones(6, 2, dtype=torch.long)
    model = make_model(truth.repeat(4, 1), confidence=8.0)
    model.encoder.logits[:6] *= -10  # Sure, and wrong: odds of exp(80).
    assert (model.predict(batch)[:6] == 0).all()
    assert shared_graph(model, [batch]).edge_type.equal(truth)


def test_refined_posteriors_hold_little_of_the_prior(make_fnri, repeated):
    model = make_fnri([2, 2], prior=[[0.9, 0.1], [0.6, 0.4]])
    assert isinstance(model.latent, CategoricalLatent)
    batch = Batch.from_data_list(repeated)
    logs = [q.clamp(min=1e-6).log() for q in refine(model, batch).posterior]
    # The last look at a pair lets the encoder have a tenth of its say.
    held = [[math.pow(p, 0.1) for p in layer] for layer in model.latent.prior]
    found = shared_graph(model, [batch], refined=True)
    for q, log_q in zip(found.posterior, pool_posteriors(logs, 10, held)):
        torch.testing.assert_close(q, log_q.exp().float())


@pytest.fixture
def weighed(tmp_path):
    """A table of particles of unequal mass, other masses in each system, and
    the graph that all systems share."""
    num_systems, seed = 8, 4
    system = replace(UnequalMasses(), step_size=1e-2, sample_every=10,
                     num_steps=500)
    graph = system.draw_edge_types(seed, 1, 5)
    paths = system.simulate(np.repeat(graph, num_systems, axis=0), seed)
    trait = in_streams(lambda rng, size: rng.random((size, 5)), seed, 100,
                       num_systems)
    rows = [(s, p, t, 0.5 * 4**trait[s, p], *state)
            for s, of_system in enumerate(paths)
            for p, path in enumerate(of_system)
            for t, state in enumerate(path.tolist())]
    columns = ['system', 'particle', 'time', 'weight', 'x', 'y', 'vx', 'vy']
    table = pd.DataFrame(rows, columns=columns).sample(frac=1, random_state=0)
    table.to_csv(tmp_path / 'weighed.csv', index=False)
    return tmp_path / 'weighed.csv', from_trajectory(paths[0], graph[0])


def test_graphs_of_unequal_masses_are_found_where_masses_are_known(
        weighed, make_model, tmp_path):
    path, true = weighed
    truth = true.edge_label.repeat(8, 1)
    right = {}
    for mass in ('weight', None):
        dataset = TrajectoryTable(tmp_path, path, mass=mass)
        batch, = SystemLoader(dataset, batch_size=8)
        assert batch.x[:5].equal(true.x) and ('mass' in batch) == bool(mass)
        # An encoder that knows nothing.
        model = make_model(truth, confidence=0.0, half_width=None)
        each = refine(model, batch).edge_type
        shared = shared_graph(model, [batch], refined=True).edge_type
        right[mass] = [(found == label).all(-1).double().mean().item()
                       for found, label in ((each, truth), (shared,
                                                            true.edge_label))]
    assert right['weight'] == [1.0, 1.0]
    assert right[None][0] < 0.95
