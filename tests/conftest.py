"""Fixtures that several test files share."""
import io
import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import pyg_fnri.laws
import pyg_fnri.training.em
from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets import ParticleSystems
from pyg_fnri.nn.reference import from_reference_checkpoint
from pyg_fnri.simulation import systems
from pyg_fnri.transforms import SplitTrajectory

REFERENCE = Path(__file__).parent / 'reference'
#: The module, which the function of its name hides.
REFINE = import_module('pyg_fnri.inference.refine')
#: Pictures that have been drawn, of :func:`pictures_drawn_once`.
DRAWN = set()


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(12345)


@pytest.fixture
def make_system():
    def make(num_particles=5, num_steps=6, num_features=4, **kwargs):
        x = torch.randn(num_particles, num_steps, num_features)
        return from_trajectory(x, **kwargs)

    return make


@pytest.fixture
def shake():
    """Gives batch norms statistics and weights as if they had been trained."""
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
    monkeypatch.setattr(systems, '_oscillate', systems._oscillate.py_func)


@pytest.fixture(scope='session', autouse=True)
def pictures_drawn_once():
    """Writes a picture of a name blank from its second time on: drawing takes
    longer than all else that a tiny run does."""
    savefig = Figure.savefig

    def save(figure, path, **kwargs):
        name = 'of a page'  # Which is no file.
        if isinstance(path, (str, os.PathLike)):
            name = os.path.basename(path).removesuffix('.part')
        if name in DRAWN:
            figure = Figure(figsize=(1, 1))
        DRAWN.add(name)
        savefig(figure, path, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, 'savefig', save)
        yield


@pytest.fixture(scope='module')
def laws_sought_briefly():
    """Laws from scratch take few steps, and graphs few restarts: tests/laws
    says how good they are."""
    discover = pyg_fnri.laws.discover_force_laws

    def brief(*args, num_pilot=8, max_starts=2, **kwargs):
        kwargs |= dict(annealing=pyg_fnri.laws.EM_ANNEALING[::3], terms=())
        return discover(*args, num_pilot=min(num_pilot, 8), max_rounds=0,
                        max_starts=min(max_starts, 2), **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        for name, value in dict(MAX_SEARCHES=1, MAX_REFITTED=0,
                                LEAST_CHANGES=800,
                                ENOUGH_CHANGES=4_000).items():
            patch.setattr(pyg_fnri.laws.fit, name, value)
        for module in (pyg_fnri.laws.fit, pyg_fnri.laws.starts,
                       pyg_fnri.laws.check):
            patch.setattr(module, 'NUM_RESTARTS', 2)
        patch.setattr(REFINE, 'WIDENING', (10.0, 3.0, 1.0))
        for module in (pyg_fnri.laws, pyg_fnri.training.em):
            patch.setattr(module, 'discover_force_laws', brief)
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
    batch of graphs."""
    name: str
    arrays: dict

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

    def model(self, **kwargs):
        """Our model with their weights, read from files like theirs."""
        files = []
        for part in ('encoder/', 'decoder/'):
            files.append(io.BytesIO())
            torch.save(
                {
                    key.removeprefix(part): self[key]
                    for key in self.arrays if key.startswith(part)
                }, files[-1])
            files[-1].seek(0)
        return from_reference_checkpoint(*files, self['layers'].tolist(),
                                         self.name, **kwargs)


@pytest.fixture(params=[
    'nri', 'nri_three_layers', 'fnri', 'fnri_three_layers', 'sfnri',
    'sfnri_three_layers'
])
def reference(request):
    """Each of the authors' three models, with two layers and with three."""
    with np.load(REFERENCE / f'{request.param}.npz') as arrays:
        return Reference(request.param.split('_')[0], dict(arrays))
