"""Simulated systems, and models that start from a given guess."""
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from pyg_fnri.data import from_trajectory
from pyg_fnri.nn import (
    CategoricalLatent,
    ForceLaw,
    ForceLawDecoder,
    MultiplexConv,
    RelationalAutoEncoder,
    RolloutDecoder,
    SigmoidLatent,
    StandardScaling,
)
from pyg_fnri.simulation import Charge, Spring, simulate

SPRING, CHARGE = Spring().magnitude, Charge().magnitude
# The law of each channel, in the three families.
LAWS = {
    'nri': [CHARGE, SPRING, lambda r: SPRING(r) + CHARGE(r)],
    'fnri': [SPRING, CHARGE],
    'sfnri': [SPRING, CHARGE],
}


class Guess(torch.nn.Module):
    """An encoder that always gives the same logits."""
    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, x, edge_index):
        return self.logits.to(x.dtype)


@pytest.fixture(scope='session')
def systems(tiny_systems):
    """Some hundred systems of springs and charges: Data with the first and
    the last 49 of 99 frames."""
    return [data for split in ('train', 'val')
            for data in tiny_systems(split)][:96]


@pytest.fixture(scope='session')
def batch(systems):
    """Half of them at once."""
    return Batch.from_data_list(systems[:48])


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
def make_latent():
    """A latent graph of springs and charges, without null channels."""
    def make(family='fnri', undirected=True):
        if family == 'sfnri':
            return SigmoidLatent([2, 2], undirected)
        types = [4] if family == 'nri' else [2, 2]
        return CategoricalLatent(types, drop_null=True, undirected=undirected)

    return make


@pytest.fixture
def to_types():
    """Labels of springs and charges as edge types of a family."""
    def convert(edge_label, family):
        return edge_label @ torch.tensor([[2], [1]]) if family == 'nri' else (
            edge_label)

    return convert


@pytest.fixture
def make_model(make_latent, to_types):
    """A model whose encoder guesses given labels of springs and charges, with
    odds of `exp(confidence)` for each edge and layer-graph, and whose decoder
    has the true laws, or none (`laws=False`), or is the paper's
    (`laws=None`)."""
    def make(edge_label, family='fnri', confidence=2.0, undirected=True,
             laws=True, half_width=5.0):
        latent = make_latent(family, undirected)
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
        sender, receiver = edge_index
        number = receiver * (int(edge_index.max()) + 1) + sender
        pair = torch.minimum(number,
                             sender * (int(edge_index.max()) + 1) + receiver)
        _, pair = pair.unique(return_inverse=True)
        wrong = torch.rand(int(pair.max()) + 1, edge_label.size(1)) < share
        return edge_label ^ wrong[pair].long()

    return flip


@pytest.fixture
def assert_changes_agree():
    """Asserts that trying options for a round's choices gives the errors of
    the graphs so changed, and that these change nothing else."""
    def check(evidence, choices, options):
        num_choices = choices.edge.numel()
        assert num_choices > 0
        channels = options[torch.randint(options.size(0), (num_choices, ))]
        errors = evidence.errors(channels)
        for members in choices.rounds:
            at_receiver, at_sender = evidence.changed_errors(
                errors, channels, members, options)
            for place, c in enumerate(members.tolist()):
                for m, option in enumerate(options):
                    changed = channels.clone()
                    changed[c] = option
                    expected = errors.clone()
                    i, j = choices.receiver[c], choices.sender[c]
                    expected[i] = at_receiver[place, m]
                    if choices.mutual[c]:
                        expected[j] = at_sender[place, m]
                    torch.testing.assert_close(evidence.errors(changed),
                                               expected, atol=1e-4, rtol=1e-4)

    return check


@pytest.fixture(params=['complete', 'mixed sizes', 'subset'])
def some_graph(request, make_system):
    """Random trajectories and candidate edges."""
    if request.param == 'complete':
        data = make_system(4, 5)
    elif request.param == 'mixed sizes':
        data = Batch.from_data_list([make_system(n, 5) for n in (2, 4, 3)])
    else:
        data = make_system(5, 5)
        kept = torch.randperm(20)[:11]  # Some of them without a reverse.
        data.edge_index = data.edge_index[:, kept]
    return data.x, data.edge_index
