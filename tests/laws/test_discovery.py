import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from known_laws import LAWS, generator, of_first_order, share_in_any_order
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference import AnnealingStep, refine
from pyg_fnri.laws import discover_force_laws
from pyg_fnri.laws.fit import LawFit, State
from pyg_fnri.laws.starts import Pilot, align, held_out_scores
from pyg_fnri.nn import (CategoricalLatent, ForceLaw, ForceLawDecoder,
                         RelationalAutoEncoder, RolloutDecoder, SigmoidLatent,
                         StandardScaling, UniformEncoder)
from pyg_fnri.nn.latent import all_joint_types
from pyg_fnri.simulation import (Charge, Kuramoto, LinearNetwork, Spring,
                                 simulate)
from pyg_fnri.transforms import SplitTrajectory


def clueless(x, edge_index):
    """An encoder that favours the same type everywhere."""
    return torch.tensor([0.2, 0., 0., 0.1]).expand(edge_index.size(1), -1)


def near_and_far(x, edge_index):
    """One that knows little, of each edge by itself."""
    sender, receiver = edge_index
    near = (x[receiver, :, :2] - x[sender, :, :2]).norm(dim=-1).mean(-1)
    zero = torch.zeros_like(near)
    return torch.stack([zero, 2 - near, zero, near - 1], -1)


@pytest.mark.parametrize(
    'swapped', [False, pytest.param(True, marks=pytest.mark.slow)])
def test_laws_and_graphs_from_scratch(systems, make_model, swapped):
    batch = Batch.from_data_list(systems[:24])
    layers = [2, 3, 0, 1] if swapped else [0, 1, 2, 3]
    model = make_model(batch.edge_label, laws=False)
    model.encoder.forward = lambda *args: clueless(*args)[:, layers]
    starts, history = [], []
    found = discover_force_laws(model, batch, generator(), num_pilot=12,
                                on_start=starts.append,
                                on_iteration=history.append)
    # The encoder's graphs lack a type in each layer: no start from these.
    assert [s.number for s in found.starts] == list(range(1, len(starts) + 1))
    assert starts == found.starts and found.confirmed
    # The encoder's order of layers makes laws lack nothing.
    assert not found.steps
    # Entangled laws leave over a third wrong.
    for found in (history[-1], refine(model, batch)):
        assert share_in_any_order(found.edge_type, batch.edge_label) > 0.98
    distance = torch.linspace(0.4, 4.0, 30)
    laws = model.decoder.layer.law(distance)
    if laws[0, 0] > laws[1, 0]:  # A charge's force is the stronger one there.
        laws = laws.flip(0)
    true = torch.stack([law(distance) for law in LAWS['fnri']])
    assert ((laws - true).abs().sum(1) < 0.03 * true.abs().sum(1)).all()


def test_the_encoders_graphs_are_the_first_start(systems, make_model):
    batch = Batch.from_data_list(systems[:4])
    model = make_model(batch.edge_label, laws=False)
    model.encoder.forward = near_and_far
    found = discover_force_laws(model, batch, generator(),
                                [AnnealingStep(0.1, 0.5)], max_starts=1,
                                max_rounds=0, terms=())
    assert [start.number for start in found.starts] == [0]


def test_masses_that_are_given_stay_while_laws_are_judged(systems, make_model):
    batch = Batch.from_data_list(systems[:4])
    batch.mass = torch.linspace(0.5, 2.0, batch.num_nodes)
    judge = LawFit(make_model(batch.edge_label), batch)
    held_out_scores(judge, generator())
    assert torch.equal(judge.transitions.mass, batch.mass)


def test_held_out_systems_judge_laws(systems, make_model):
    batch, costs = Batch.from_data_list(systems[:8]), []
    for factor in (1.0, 1.1, 0.0):
        model = make_model(batch.edge_label)
        model.decoder.layer.law.value.data *= factor
        costs.append(held_out_scores(LawFit(model, batch), generator()).cost)
    assert costs == sorted(costs) and costs[0] < 0.1 * costs[-1]


def test_graphs_come_from_other_frames_than_the_cost(systems, make_model):
    batch = Batch.from_data_list(systems[:5])

    def judge(**change):
        data = batch.clone()
        for key, value in change.items():
            data[key] = value
        fit = LawFit(make_model(batch.edge_label), data)
        return held_out_scores(fit, generator()).cost, fit.search.choice

    cost, graphs = judge()
    other_cost, other_graphs = judge(y=batch.y.flip(1))
    assert torch.equal(graphs, other_graphs) and cost != other_cost
    # Frames without a gap are halved.
    assert judge(x=batch.x[:, :1])[0] < -1
    with pytest.raises(ValueError, match='takes two'):
        judge(x=batch.x[:, :2], y=None)


def make_search(latent, log_posterior):
    types = all_joint_types(latent.num_edge_types)
    return SimpleNamespace(types=types, options=latent.encode_types(types),
                           log_posterior=log_posterior)


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
        found = state._replace(laws=state.laws[list(order)],
                               choice=option[state.choice])
        if best is None or score(
                search, found.choice) > score(search, best.choice) + 1e-4:
            best = found
    return best


@pytest.mark.parametrize('latent', [
    CategoricalLatent([2, 2], drop_null=True),
    CategoricalLatent([3, 2, 3], drop_null=True),
    CategoricalLatent([2, 3]),
    SigmoidLatent([2, 3])
], ids=repr)
@pytest.mark.parametrize('same', [False, True])
def test_the_best_of_all_orders(latent, same):
    # The same for all pairs, and of like layers: many orders are as good.
    posterior = [
        torch.linspace(-3, -1, k).repeat(30, 1)
        if same else torch.randn(30, k).log_softmax(-1)
        for k in latent.num_edge_types
    ]
    search = make_search(latent, posterior)
    num_options, num_channels = search.options.size()
    state = State(
        torch.arange(1., 1 + num_channels).unsqueeze(1),
        torch.randint(num_options, (30, )), torch.empty(0), torch.empty(0))
    out, expected = align(search, state), try_all(search, state)
    assert torch.equal(out.laws, expected.laws)
    assert torch.equal(out.choice, expected.choice)


def test_phases_alone_tell_who_is_coupled():
    model, data = of_first_order(Kuramoto(num_frames=50), 16, 2, circle=True,
                                 terms=['own-rate'])
    discover_force_laws(model, data, generator(), num_pilot=8, max_starts=2,
                        terms=())
    law = model.decoder.layer.law
    assert (law(law.knots) + law.knots.sin()).abs().max() < 0.03
    assert torch.equal(refine(model, data).edge_type, data.edge_label)


def test_laws_put_aside_keep_their_distances():
    model, data = of_first_order(LinearNetwork(num_frames=20), 8, 1)
    pilot = Pilot(model, data, 4, generator())
    pilot.add('input')
    law = pilot.fit.layer.laws['input']
    law.stretch(2 * law.max_distance)  # As if fitted to other systems.
    law.value.data.copy_(0.4 * law.knots)
    pilot.adopt(pilot.judged())
    distance = torch.linspace(0.1, 1.0, 10)
    law = pilot.fit.layer.laws['input']
    torch.testing.assert_close(law(distance)[0], 0.4 * distance)


def test_terms_that_are_not_known(batch, make_model):
    model = make_model(batch.edge_label, laws=False)
    model.encoder.forward = clueless
    with pytest.raises(ValueError, match='take auto, or some of transverse'):
        discover_force_laws(model, batch, generator(), terms=['friction'])


def recording(forces, num_windows, seed):
    """Noisy windows of eight frames of five particles, one graph in all: five
    pairs under each force."""
    rng = np.random.default_rng(100 + seed)
    z = np.zeros((1, len(forces), 5, 5), bool)
    for layer in z[0]:
        i, j = np.tril_indices(5, -1)
        chosen = rng.permutation(10)[:5]
        layer[i[chosen], j[chosen]] = layer[j[chosen], i[chosen]] = True
    run = simulate(forces, 1, 5, seed=seed, interactions=z,
                   num_steps=100 * (8 * num_windows + 1))
    x = np.concatenate([run.position, run.velocity], -1)[0]
    x += 0.02 * x.std((0, 1)) * rng.normal(size=x.shape)
    split = SplitTrajectory(4)
    return Batch.from_data_list([
        split(from_trajectory(part, z[0].astype(int)))
        for part in np.split(x[:, :8 * num_windows], num_windows, 1)
    ])


@pytest.mark.slow
@pytest.mark.parametrize('forces, num_windows, seed',
                         [([Spring()], 32, 1), ([Spring(), Charge()], 48, 1)],
                         ids=['springs', 'both'])
def test_windows_that_share_a_graph_tell_it(forces, num_windows, seed):
    data = recording(forces, num_windows, seed)
    share = {}
    for shared in (True, False):
        latent = CategoricalLatent([2] * len(forces), drop_null=True,
                                   undirected=True, shared=shared)
        layer = ForceLawDecoder(ForceLaw(len(forces)),
                                StandardScaling(4).fit(data.x), half_width=5.0)
        model = RelationalAutoEncoder(UniformEncoder(latent.num_logits), latent,
                                      RolloutDecoder(layer), layer.scaling)
        history = []
        discover_force_laws(model, data, generator(), terms=(),
                            on_iteration=history.append)
        share[shared] = share_in_any_order(history[-1].edge_type,
                                           data.edge_label)
    assert share[True] == 1 and share[False] < 0.95
