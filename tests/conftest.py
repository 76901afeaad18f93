"""Fixtures that several test files share."""
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.nn import FNRI, NRI, SFNRI
from pyg_fnri.simulation import kuramoto
from pyg_fnri.transforms import SplitTrajectory

REFERENCE = Path(__file__).parent / 'reference'
#: Pictures that have been drawn, of :func:`pictures_drawn_once`.
DRAWN = set()


@pytest.fixture(autouse=True)
def fixed_seed():
    """Every test draws the same numbers, alone or in the suite."""
    torch.manual_seed(12345)


@pytest.fixture
def make_system():
    """Makes a system of random trajectories."""
    def make(num_particles=5, num_steps=6, num_features=4, **kwargs):
        x = torch.randn(num_particles, num_steps, num_features)
        return from_trajectory(x, **kwargs)

    return make


@pytest.fixture
def shake():
    """Gives batch norms statistics and weights as if they had been trained,
    and sets evaluation mode: as new, they do next to nothing."""
    def shake(module):
        for part in module.modules():
            if isinstance(part, torch.nn.BatchNorm1d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2.0)
                part.weight.data.uniform_(0.5, 2.0)
                part.bias.data.normal_()
        return module.eval()

    return shake


@pytest.fixture
def assert_one_graph():
    """Asserts that `torch.compile` turns a function into one whole graph that
    gives the same."""
    def check(function, *args):
        graphs = []

        def backend(graph, example_inputs):
            graphs.append(graph)
            return graph.forward

        torch._dynamo.reset()
        # Raises at anything that would break the graph.
        compiled = torch.compile(function, backend=backend, fullgraph=True)
        torch.testing.assert_close(compiled(*args), function(*args))
        assert len(graphs) == 1

    return check


@pytest.fixture
def uncompiled_kuramoto(monkeypatch):
    """Takes the steps of oscillators in Python: the same numbers, without
    seconds of compiling. What a step is stays compiled."""
    monkeypatch.setattr(kuramoto, '_oscillate', kuramoto._oscillate.py_func)


@pytest.fixture(scope='module')
def pictures_drawn_once():
    """Writes a picture of a name and of so many panels blank from its second
    time on: drawing takes longer than all else that a tiny run does."""
    savefig = Figure.savefig

    def save(figure, path, **kwargs):
        name = os.path.basename(path).removesuffix('.part')
        picture = name, len(figure.axes), len(figure.legends)
        if picture in DRAWN:
            figure = Figure(figsize=(1, 1))
        DRAWN.add(picture)
        savefig(figure, path, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, 'savefig', save)
        yield


@pytest.fixture(scope='session')
def tiny_root(tmp_path_factory):
    """Where the tiny data set of springs and charges is, made once."""
    return str(tmp_path_factory.mktemp('tiny'))


@pytest.fixture(scope='session')
def tiny_systems(tiny_root):
    """Opens a split of the tiny data set, first and last frames apart."""
    def open_split(split):
        return ParticleSystems(tiny_root, split=split, num_systems=(64, 32, 32),
                               transform=SplitTrajectory(49))

    return open_split


@dataclass
class Reference:
    """Outputs of the authors' modules, and our model with their weights.

    Arrays are `[num_systems, N or E, ...]`; :meth:`flat` gives them as one
    batch of graphs.
    """
    model_class: type
    arrays: dict

    @property
    def layers(self):
        return self['layers'].tolist()

    @property
    def x(self):
        return self.flat('x')

    @property
    def edge_index(self):
        num_systems, num_particles = self['x'].shape[:2]
        shift = num_particles * torch.arange(num_systems)
        edges = self['edge_index'][:, None] + shift[None, :, None]
        return edges.flatten(1)

    def __getitem__(self, name):
        return torch.from_numpy(self.arrays[name])

    def flat(self, name):
        return self[name].flatten(0, 1)

    def has(self, name):
        return name in self.arrays

    def model(self, **kwargs):
        """Our model with their weights, in evaluation mode."""
        num_steps, num_features = self['x'].shape[2:]
        model = self.model_class(num_features, num_steps, self.layers,
                                 hidden_channels=8, **kwargs)
        state = model.state_dict()
        state.update(self._encoder())
        state.update(self._decoder(model.latent))
        model.load_state_dict(state)
        return model.eval()

    def _encoder(self):
        state = {}
        for ours, theirs in [('node_mlp1', 'mlp1'), ('edge_mlp1', 'mlp2'),
                             ('node_mlp2', 'mlp3'), ('edge_mlp2', 'mlp4')]:
            for part, name in [('lin1', 'fc1'), ('lin2', 'fc2'),
                               ('norm', 'bn')]:
                prefix = f'encoder/{theirs}.{name}.'
                for key in self.arrays:
                    if key.startswith(prefix):
                        key = key[len(prefix):]
                        state[f'encoder.{ours}.{part}.{key}'] = self[prefix +
                                                                     key]
        for key in ('weight', 'bias'):
            name = f'encoder/fc_out.0.{key}'  # sfNRI has one output layer.
            name = name if self.has(name) else f'encoder/fc_out.{key}'
            state[f'encoder.lin.{key}'] = self[name]
        return state

    def _decoder(self, latent):
        # Their message networks, one per type, also where the null type's is
        # skipped; ours, one per channel.
        channels = list(range(latent.num_logits))
        if getattr(latent, 'drop_null', False):
            start = np.cumsum([0] + latent.num_edge_types[:-1]).tolist()
            channels = [k for k in channels if k not in start]
        state = {}
        for i in (1, 2):
            name = f'decoder/msg_fc{i}'
            weight = [self[f'{name}.{k}.weight'].t() for k in channels]
            bias = [self[f'{name}.{k}.bias'] for k in channels]
            state[f'decoder.layer.weight{i}'] = torch.stack(weight)
            state[f'decoder.layer.bias{i}'] = torch.stack(bias)
        for ours, theirs in [(0, 1), (2, 2), (4, 3)]:
            for key in ('weight', 'bias'):
                state[f'decoder.layer.node_mlp.{ours}.{key}'] = self[
                    f'decoder/out_fc{theirs}.{key}']
        return state


def load_reference(name):
    model_class = {'nri': NRI, 'fnri': FNRI, 'sfnri': SFNRI}
    with np.load(REFERENCE / f'{name}.npz') as arrays:
        return Reference(model_class[name.split('_')[0]], dict(arrays))


CATEGORICAL = ['nri', 'nri_three_layers', 'fnri', 'fnri_three_layers']
SIGMOID = ['sfnri', 'sfnri_three_layers']


@pytest.fixture(params=CATEGORICAL + SIGMOID)
def reference(request):
    """Each of the authors' three models, with two layers and with three."""
    return load_reference(request.param)


@pytest.fixture(params=CATEGORICAL)
def categorical_reference(request):
    """Those that have null types and a divergence."""
    return load_reference(request.param)
