"""Simulated systems, and models that start from a given guess."""
import itertools
from functools import cache

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.paths import hermite_path
from pyg_fnri.inference.search import GraphSearch
from pyg_fnri.nn import (CategoricalLatent, ForceLaw, ForceLawDecoder,
                         MultiplexConv, RelationalAutoEncoder, RolloutDecoder,
                         SigmoidLatent, StandardScaling, UniformEncoder, Walls)
from pyg_fnri.nn.rate_law import rate_laws
from pyg_fnri.simulation import Charge, Spring, simulate
from pyg_fnri.transforms import SplitTrajectory

SPRING, CHARGE = Spring().magnitude, Charge().magnitude
# The law of each channel, in the three families.
LAWS = {
    'nri': [CHARGE, SPRING, lambda r: SPRING(r) + CHARGE(r)],
    'fnri': [SPRING, CHARGE],
    'sfnri': [SPRING, CHARGE]
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@cache
def batches(kind, num_systems=32):
    """Systems of a kind to fit laws to, and others."""
    return tuple(kind.systems(num_systems, seed, 0.0) for seed in (1, 2))


def second_order(trajectories, choices, interval, half_width=None, mass=None):
    """Transitions of positions and velocities, in a box if it has a width."""
    walls = Walls(trajectories[0].size(-1)).to(trajectories[0])
    if half_width is not None:
        walls.lower.fill_(-half_width)
        walls.upper.fill_(half_width)
    return Transitions(hermite_path(trajectories, interval, walls), choices,
                       mass)


class Guess(torch.nn.Module):
    """An encoder that always gives the same logits."""
    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, x, edge_index):
        return self.logits.to(x.dtype)


def overdamped(num_systems, seed=0):
    """Springs without inertia, every 0.1 s: velocities follow from positions,
    of which they are differences."""
    rng, frames = np.random.default_rng(seed), []
    z = rng.random((num_systems, 5, 5)) < 0.5
    z = np.tril(z, -1) | np.tril(z, -1).swapaxes(1, 2)
    r = rng.normal(size=(num_systems, 5, 2))
    for step in range(990):
        if step % 10 == 0:
            frames.append(r)
        pull = z[..., None] * (r[:, None] - r[:, :, None])
        r = r + 0.01 * 0.1 * pull.sum(2)
    r = np.stack(frames, axis=2)
    x = np.concatenate([r, np.gradient(r, 0.1, axis=2)], -1).astype(np.float32)
    split = SplitTrajectory(49)
    return Batch.from_data_list([
        split(from_trajectory(*system))
        for system in zip(x, z[:, None].astype(np.int64))
    ])


def of_first_order(system, num_systems, num_features, num_particles=4,
                   **options):
    """Some systems, and a model without laws, of directed graphs."""
    graphs = system.draw_edge_types(0, num_systems, num_particles)
    x = system.simulate(graphs, 0)[..., :num_features]
    data = Batch.from_data_list(list(map(from_trajectory, x, graphs)))
    latent = CategoricalLatent([2], drop_null=True)
    scaling = StandardScaling(num_features).fit(data.x)
    layer = rate_laws(1, scaling, interval=0.1, **options)
    model = RelationalAutoEncoder(UniformEncoder(latent.num_logits), latent,
                                  RolloutDecoder(layer), scaling)
    return model, data


@pytest.fixture(scope='session')
def systems(tiny_systems):
    """Some hundred systems of springs and charges: Data with the first and
    the last 49 of 99 frames."""
    return [data for split in ('train', 'val')
            for data in tiny_systems(split)][:96]


@pytest.fixture(scope='session')
def batch(systems):
    """A third of them at once."""
    return Batch.from_data_list(systems[:32])


@pytest.fixture(scope='session')
def simulate_systems():
    """Makes systems of any size, of 49 frames."""
    def make(num_systems, num_particles, seed=1, **kwargs):
        # Always 64, for which the simulation has been compiled already.
        run = simulate([Spring(), Charge()], 64, num_particles, seed=seed,
                       num_steps=5_000, **kwargs)
        x = np.concatenate([run.position, run.velocity], -1)[:num_systems]
        return list(map(from_trajectory, x, run.interactions))

    return make


@pytest.fixture
def to_types():
    """Labels of springs and charges as edge types of a family."""
    def convert(label, family):
        return label @ torch.tensor([[2], [1]]) if family == 'nri' else label

    return convert


@pytest.fixture
def make_model(to_types):
    """A model whose encoder guesses given labels of springs and charges, with
    odds of `exp(confidence)` for each edge and layer-graph, and whose decoder
    has the true laws, or none (`laws=False`), or is the paper's
    (`laws=None`)."""
    def make(edge_label, family='fnri', confidence=2.0, undirected=True,
             laws=True, half_width=5.0):
        latent = CategoricalLatent([4] if family == 'nri' else [2, 2],
                                   drop_null=True, undirected=undirected)
        if family == 'sfnri':
            latent = SigmoidLatent([2, 2], undirected)
        types = to_types(edge_label, family)
        logits = [
            confidence * torch.nn.functional.one_hot(t, k)
            for t, k in zip(types.t(), latent.num_edge_types)
        ]
        if family == 'sfnri':
            logits = [2 * part[:, 1:] - confidence for part in logits]
        scaling = StandardScaling(4)
        scaling.scale.copy_(torch.tensor([1.7, 1.7, 0.5, 0.5]))
        if laws is None:
            layer = MultiplexConv(4, 4, latent.num_channels, 8)
        else:
            law = ForceLaw(latent.num_channels)
            if laws:
                law.value.data.copy_(
                    torch.stack([f(law.knots) for f in LAWS[family]]))
            layer = ForceLawDecoder(law, scaling, half_width=half_width)
            layer.scale.copy_(torch.tensor([1e-3, 1e-3, 0.02, 0.02]))
        return RelationalAutoEncoder(Guess(torch.cat(logits, -1)), latent,
                                     RolloutDecoder(layer), scaling)

    return make


@pytest.fixture
def flip():
    """Labels of which some pairs are wrong in each layer-graph."""
    def flip(edge_label, edge_index, share):
        ends, num_nodes = edge_index.sort(dim=0).values, edge_index.max() + 1
        _, pair = (ends[0] * num_nodes + ends[1]).unique(return_inverse=True)
        wrong = torch.rand(int(pair.max()) + 1, edge_label.size(1)) < share
        return edge_label ^ wrong[pair].long()

    return flip


def share_right(edge_type, truth):
    """Edges of which all layer-graphs are right."""
    return (edge_type == truth).all(-1).double().mean().item()


def share_in_any_order(edge_type, truth):
    """The same in the best order of the layers."""
    orders = itertools.permutations(range(truth.size(1)))
    return max(share_right(edge_type[:, order], truth) for order in orders)


def search_problem(model, data, mass=None):
    """A search from the encoder's graphs, and the evidence of force laws."""
    search, layer = GraphSearch(model, data), model.decoder.layer
    transitions = Transitions(
        hermite_path([data.x], layer.interval, layer.walls), search.choices,
        mass)
    return search, ImpulseEvidence(transitions, layer)


@pytest.fixture(params=['masses', 'subset', 'walls', 'one way'])
def small_problem(request, simulate_systems, make_model):
    """That of small systems, seen shortly, in all sorts of worlds."""
    batch, mass = Batch.from_data_list(
        [data for n in (4, 2, 3) for data in simulate_systems(1, n)]), None
    batch.x = batch.x[:, :8]
    if request.param == 'masses':
        mass = 0.5 + 3 * torch.rand(batch.num_nodes)
    if request.param == 'subset':  # Some of them without a reverse.
        kept = torch.randperm(batch.num_edges)[:14]
        batch.edge_index = batch.edge_index[:, kept]
    model = make_model(torch.randint(2, (batch.num_edges, 2)),
                       undirected=request.param != 'one way',
                       half_width=0.8 if request.param == 'walls' else 5.0)
    search, evidence = search_problem(model, batch, mass)
    valid = evidence.transitions.valid
    assert bool(valid.all()) == (request.param != 'walls')
    return search, evidence


def assert_changes_agree(evidence, choices, options):
    """Trying options for a round's choices gives the errors of the graphs so
    changed, and these change nothing else."""
    channels = options[torch.randint(len(options), choices.edge.size())]
    errors = evidence.errors(channels)
    atol = 1e-5 * float(errors.abs().max())
    for members in choices.rounds:
        tried = evidence.changed_errors(errors, channels, members, options)
        for place, c in enumerate(members.tolist()):
            for m, option in enumerate(options):
                changed, expected = channels.clone(), errors.clone()
                changed[c] = option
                expected[choices.receiver[c]] = tried[0][place, m]
                if choices.mutual[c]:
                    expected[choices.sender[c]] = tried[1][place, m]
                torch.testing.assert_close(evidence.errors(changed), expected,
                                           atol=atol, rtol=1e-4)
