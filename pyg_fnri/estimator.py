"""From trajectories to interaction graphs, in one call."""
import copy
import inspect
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Optional, Union

import networkx as nx
import numpy as np
import pandas as pd
import torch
from rich.progress import track
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset

from pyg_fnri.convert import to_changes, to_networkx, to_pandas
from pyg_fnri.datasets import NRIFolder, TrajectoryTable
from pyg_fnri.datasets.reading import Reading
from pyg_fnri.datasets.spec import (Systems, describe_files, frame_interval,
                                    open_dataset)
from pyg_fnri.datasets.stored import SPLITS, check_choice, write_text
from pyg_fnri.evaluation.law_curves import LawCurves, law_curves
from pyg_fnri.inference import Refined, infer_graph, shared_graph
from pyg_fnri.laws import LawCheck
from pyg_fnri.loader import SystemLoader
from pyg_fnri.nn import ForceLawDecoder, Scaling
from pyg_fnri.nn.scaling import split_quantities
from pyg_fnri.selection import compare_errors, select_layers
from pyg_fnri.training import (Config, RelationalInference, fit,
                               load_checkpoint, save_checkpoint)
from pyg_fnri.transforms import SplitTrajectory

METHODS = ('auto', 'laws', 'networks')
#: Types of each layer, from which `layers='auto'` chooses.
CANDIDATES = ((2, ), (2, 2), (2, 2, 2))
#: Steps of predictions of held-out frames, and such systems kept, at the most.
HORIZON, NUM_DRAWN = 10, 4
#: Frames that are observed of held-out systems, at the most.
MOST_OBSERVED = 49
#: How many times larger or smaller trajectories may be than those fitted.
MAX_RATIO = 20.
#: Options of a source, beside those of how it is read.
SOURCE = ('edges', 'interactions', 'window', 'stride', 'neighbours', 'radius')
#: The files of a result.
MODEL, DATA = 'model.ckpt', 'systems.pt'


def infer(data: Any, layers: Union[str, Sequence[int]] = 'auto',
          **options: Any) -> 'GraphEstimator':
    """Infers the interaction graph of each system from trajectories alone, and
    the laws by which particles act on each other.

    Args:
        data: A file or folder, a DataFrame, an array, an `xarray` data set, a
            PyG data set, or a list of PyG's `Data` with `x` `[N, T, F]`; see
            :class:`~pyg_fnri.datasets.TrajectoryTable`.
        layers, **options: Those of :class:`GraphEstimator`; others are of how
            the data are read, as for :meth:`GraphEstimator.fit`.
    """
    own = {'layers': layers}
    for name in [*options]:
        if name in inspect.signature(GraphEstimator).parameters:
            own[name] = options.pop(name)
    return GraphEstimator(**own).fit(data, **options)


def load(path: Union[str, os.PathLike]) -> 'GraphEstimator':
    """Opens what :meth:`GraphEstimator.save` wrote, or a checkpoint alone,
    which knows no graphs yet."""
    folder = os.path.isdir(path)
    module = load_checkpoint(os.path.join(path, MODEL) if folder else path)
    if not folder:
        return GraphEstimator()._adopt(module)
    stored = torch.load(os.path.join(path, DATA), weights_only=True)
    out = GraphEstimator(**stored['settings'])._adopt(module)
    for name in ('data', 'held_out'):
        setattr(out, name, [Data.from_dict(of) for of in stored[name]])
    for name in ('systems', 'particles', 'about'):
        setattr(out, name, stored[name])
    return out


class GraphEstimator:
    """Infers interaction graphs from trajectories alone, in scikit-learn's
    manner: settings, then :meth:`fit`. Labels are never looked at.

    Force laws are fitted first, of first or second order, from scratch. A check
    asks frames held out whether they hold. Where they do not, networks are
    trained as well, and taken where they predict held-out frames better.

    Args:
        layers: The number of types of each layer, no interaction included, as
            `[2, 2]`. With `'auto'`, the fewest layers, up to three of two types
            each, by which laws hold; if they never do, by which held-out errors
            are lowest, to one standard error.
        method: `'laws'`, `'networks'` (the recipe `quick`), or `'auto'`.
        terms: What may be added to central laws, see
            :func:`~pyg_fnri.laws.discover_force_laws`.
        directed: Whether each direction of a pair may be of a type of its own
            from the start.
        shared: Whether all systems, which have the same particles, share one
            graph.
        max_steps: Of the training of networks.
        seed: Of all randomness.

    Attributes:
        module: The trained module, with :attr:`module.model`.
        data: A `Data` for each system: `x` `[N, T, F]`, `edge_index` `[2, E]`,
            types `edge_type` `[E, L]`, and `edge_attr`, the probability of each
            type but no interaction, of all layers, `[E, C]`.
        held_out: The first of the systems that nothing was fitted to, with
            `prediction` over the frames `y`.
        systems, particles: Names of systems, and of the particles of each.
        about: What was done, in plain values.
    """
    data: list[Data]
    held_out: list[Data]
    systems: list[Any]
    particles: list[list[Any]]
    about: dict[str, Any]

    def __init__(self, layers: Union[str, Sequence[int]] = 'auto', *,
                 method: str = 'auto', terms: Sequence[str] = ('auto', ),
                 directed: bool = False, shared: bool = False,
                 max_steps: int = 3_000, seed: int = 0) -> None:
        self.layers, self.method, self.terms = layers, method, terms
        self.directed, self.shared = directed, shared
        self.max_steps, self.seed = max_steps, seed

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, as scikit-learn asks for them."""
        names = inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> 'GraphEstimator':
        for name, value in params.items():
            check_choice('a setting', name, [*self.get_params()])
            setattr(self, name, value)
        return self

    def fit(self, data: Any, y: None = None,
            **reading: Any) -> 'GraphEstimator':
        """Fits laws or networks, and infers the graph of each system.

        Of few systems, each is split in time; of many, some are held out.

        Args:
            data: As for :func:`infer`.
            y: Not used.
            **reading: Options of :class:`~pyg_fnri.datasets.reading.Reading`,
                and `edges`, `window`, `stride`, `neighbours`, `radius`.
        """
        check_choice('method', self.method, METHODS)
        with tempfile.TemporaryDirectory() as root:
            source = Source.of(data, self, reading, root)
            train, val, test = (source.open(split) for split in SPLITS)
            half = min(MOST_OBSERVED, train[0].x.size(1) // 2)
            for part in (train, val, test):
                part.transform = SplitTrajectory(half)
            module = self._fit(train, val, test, source.description, root)
            self._adopt(module)
            self.about |= {
                'source': source.name,
                'split': [len(train), len(val), len(test)],
                'tracks': train.facts.get('tracks')
            }
            self._foresee(test)
            self._infer(source)
        return self

    def _fit(self, train: Systems, val: Systems, test: Systems,
             description: dict[str, Any], root: str) -> RelationalInference:
        """The laws that hold, or what predicts held-out systems best."""
        interval = frame_interval(description, train) or 1.0
        observed = train[0].x.size(1)
        options = dict(undirected=not self.directed)
        config = Config(
            train.num_node_features, observed, [2], recipe='laws',
            seed=self.seed, options={
                **options, 'interval': interval,
                'terms': list(self.terms)
            }, data={
                **description, 'time_step': interval
            })
        types = self.layers
        candidates = CANDIDATES if isinstance(types, str) else [tuple(types)]
        found = None
        if self.method != 'networks':
            found = select_layers(config, candidates, train, val, test,
                                  os.path.join(root, 'laws'), [self.seed])
            module = found.module
            self.about = {'choice': found.reason}
            if self.method == 'laws' or module.check and module.check.holds:
                return module
        if found is not None:
            candidates = [found.recommended]
        batch = min(64, max(1, len(train) // 2))
        config = replace(
            config, recipe='quick', options={
                **options, 'max_steps': self.max_steps,
                'batch_size': batch
            })
        networks = select_layers(config, candidates, train, val, test,
                                 os.path.join(root, 'networks'), [self.seed])
        if found is None:
            self.about = {'choice': networks.reason}
            return networks.module
        ahead, error = compare_errors(networks.module, module, test)
        if ahead + 2 * error < 0:
            ratio = np.exp(-ahead)
            self.about['choice'] = (
                f'networks, as force laws do not hold, and have {ratio:.3g} '
                f'times their error on held-out frames')
            networks.module.check = module.check
            return networks.module
        self.about['choice'] += ('; networks predict held-out frames no better')
        return module

    def _adopt(self, module: RelationalInference) -> 'GraphEstimator':
        self.module, self.data, self.held_out = module, [], []
        self.systems, self.particles = [], []
        self.about = {**getattr(self, 'about', {})}
        self.__dict__.pop('laws', None)
        return self
