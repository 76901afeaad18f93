"""From trajectories to interaction graphs, in one call."""
import copy
import inspect
import os
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any, Optional, Union, cast

import networkx as nx
import numpy as np
import pandas as pd
import rich
import torch
from matplotlib.figure import Figure
from rich.progress import track
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import scatter

from pyg_fnri.convert import to_changes, to_networkx, to_pandas
from pyg_fnri.datasets.particle_systems import find_system
from pyg_fnri.datasets.spec import (MOST_OBSERVED, OWN_UNIT, Systems, UserData,
                                    first_half, frame_interval,
                                    remembered_reading)
from pyg_fnri.datasets.stored import (check_choice, check_writable, loaded,
                                      one_line, put_in_place, write_table,
                                      write_tensors, write_text,
                                      written_together)
from pyg_fnri.evaluation.law_curves import LawCurves, law_curves
from pyg_fnri.evaluation.page import describe, make_page, make_summary
from pyg_fnri.evaluation.report import draw_rollouts
from pyg_fnri.inference import Refined, infer_graph, shared_graph
from pyg_fnri.laws import LawCheck
from pyg_fnri.loader import SystemLoader
from pyg_fnri.metrics import type_confidence
from pyg_fnri.nn import ForceLawDecoder, Scaling
from pyg_fnri.nn.scaling import split_quantities
from pyg_fnri.plot import plot_adjacency, plot_changes, plot_multiplex
from pyg_fnri.selection import compare_errors, select_layers
from pyg_fnri.training import (Config, RelationalInference, load_checkpoint,
                               save_checkpoint)
from pyg_fnri.training.config import find_networks
from pyg_fnri.transforms import SplitTrajectory

METHODS = ('auto', 'laws', 'networks')
#: Types of each layer, from which `layers='auto'` chooses.
CANDIDATES = ((2, ), (2, 2), (2, 2, 2))
#: Frames that a score is of, at the most.
HORIZON = 10
#: Held-out systems that a score is of, those that are kept, and those drawn.
NUM_SCORED, NUM_KEPT, NUM_DRAWN = 1_000, 50, 4
#: Systems that graphs are inferred of at once.
BATCH_SIZE = 100
#: Candidate edges in a batch that networks are trained on.
NUM_EDGES = 2_560
#: How many times larger or smaller trajectories may be than those fitted.
MAX_RATIO = 20.
#: The files of a result, all that there can be.
MODEL, SYSTEMS = 'model.ckpt', 'systems.pt'
RESULTS = (MODEL, SYSTEMS, 'edges.csv', 'graphs.graphml', 'laws.csv',
           'changes.csv', 'graph.png', 'heatmap.png', 'laws.png',
           'trajectories.png', 'changes.png', 'summary.txt', 'report.html')


def infer(data: Any, layers: Union[str, Sequence[int]] = 'auto',
          **options: Any) -> 'GraphEstimator':
    """Infers the interaction graph of each system from trajectories alone, and
    the laws by which particles act on each other.

    Args:
        data: A file or folder, a DataFrame, an array, an `xarray` data set, a
            PyG data set, or a list of PyG's `Data` with `x` `[N, T, F]`; see
            :class:`~pyg_fnri.datasets.TrajectoryTable`.
        layers: The number of types of each layer, or `'auto'`.
        **options: Of :class:`GraphEstimator`, and of how the data are read, as
            for :meth:`GraphEstimator.fit`.
    """
    own: dict[str, Any] = {'layers': layers}
    for name in [*options]:
        if name in inspect.signature(GraphEstimator).parameters:
            own[name] = options.pop(name)
    return GraphEstimator(**own).fit(data, **options)


def load(path: Union[str, os.PathLike[str]]) -> 'GraphEstimator':
    """Opens what :meth:`GraphEstimator.save` wrote; or a checkpoint, to infer
    graphs of other systems by."""
    if not os.path.isdir(path):
        return GraphEstimator()._of(load_checkpoint(os.fspath(path)))
    put_in_place(os.fspath(path), RESULTS)
    module = load_checkpoint(os.path.join(path, MODEL))
    with loaded(os.path.join(path, SYSTEMS), 'infer graphs again') as stored:
        out = GraphEstimator(**stored['settings'])._of(module)
        out.data, out.held_out = ([Data.from_dict(of) for of in stored[name]]
                                  for name in ('data', 'held_out'))
        out.systems, out.particles = stored['systems'], stored['particles']
        out.about = stored['about']
    return out


class GraphEstimator:
    """Infers interaction graphs from trajectories alone, in scikit-learn's
    manner: settings, then :meth:`fit`. Labels are never looked at.

    Force laws are fitted first, of first or second order, from scratch. A check
    asks held-out frames whether they hold. Where they do not, networks are
    trained as well, and taken if they predict held-out frames better.

    Args:
        layers: The number of types of each layer, no interaction included, as
            `[2, 2]`. With `'auto'`, the fewest layers, up to three of two types
            each, by which laws hold; if they never do, by which held-out errors
            are lowest, to one standard error.
        method: `'laws'`, `'networks'` (the recipe `quick`), or `'auto'`.
        terms: What may be added to central laws, see
            :func:`~pyg_fnri.laws.discover_force_laws`.
        directed: Whether each direction of a pair is of a type of its own from
            the start.
        shared: Whether all systems, which have the same particles, share one
            graph.
        max_steps: Of the training of networks.
        seed: Of all randomness.

    Attributes:
        module: What was fitted, with `module.model`.
        data: A `Data` for each system: `x` `[N, T, F]`, `edge_index` `[2, E]`,
            types `edge_type` `[E, L]`, and `edge_attr` `[E, C]`, of all layers
            the probability of each type but no interaction.
        held_out: The first systems that nothing was fitted to, observed `x`,
            then `y`, and the `prediction` of all but its first frame.
        systems, particles: Names of systems, and of the particles of each.
        about: What was done, in plain values.
    """
    module: RelationalInference
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
            **options: Any) -> 'GraphEstimator':
        """Fits laws, or networks, and infers the graph of each system. Systems
        are held out; if there are few, the last frames of each.

        Args:
            data: As for :func:`infer`.
            y: Not used.
            **options: Of :class:`~pyg_fnri.datasets.options.SourceOptions`.
        """
        check_choice('method', self.method, METHODS)
        with tempfile.TemporaryDirectory() as root:
            source = UserData.of(data, root, self.directed, self.seed, options)
            train, val, test = _open_splits(source)
            self._of(self._fit(train, val, test, source))
            self.about |= dict(source=source.name,
                               split=[*map(len, (train, val, test))],
                               tracks=train.facts.get('tracks'))
            self._foresee(test)
            frames = train._data.x.size(1)
            whole = source.open_whole(frames)
            shared = self.shared or len(whole) == 1
            if (self._frames() and whole[0].x.size(1) > frames
                    and 'folder' not in source.description['files']):
                whole = source.open('all', window=frames)  # As in training.
            with nullcontext() if shared else self._apart():
                self._infer(whole, shared)
        return self

    def _fit(self, train: Systems, val: Systems, test: Systems,
             source: UserData) -> RelationalInference:
        """The laws that hold, or what predicts held-out systems best."""
        interval = frame_interval(source.description, train) or 1.0
        # Who cuts windows asks for the graph of each.
        one_graph = self.shared or (source.description['window'] is None
                                    and _are_windows_of_one(train, val, test))
        shared = dict[str, Any](undirected=not self.directed, shared=one_graph)
        config = Config(
            train.num_node_features, train[0].x.size(1), [2], recipe='laws',
            seed=self.seed, data=dict(source.description, time_step=interval),
            options=dict(shared, interval=interval, terms=self.terms))
        candidates: Sequence[Sequence[int]] = CANDIDATES
        if not isinstance(self.layers, str):
            candidates = (tuple(self.layers), )
        module = None
        if self.method != 'networks':
            try:
                found = select_layers(config, candidates, train, val, test,
                                      os.path.join(source.root, 'laws'),
                                      [self.seed])
            except ValueError:  # There were no interactions to fit laws to.
                if self.method == 'laws':
                    raise
            else:
                laws, module = found, found.module
                candidates = (found.recommended, )
                self.about = {'method': 'laws', 'warnings': found.warnings}
                if self.method == 'laws' or module.check and module.check.holds:
                    return module
        edges = 1 + train._data.edge_index.size(1) // len(train)
        batch_size = max(1, min(64, NUM_EDGES // edges, len(train) // 2))
        # The equivariant decoder is like laws, which do not hold.
        shared |= dict(max_steps=self.max_steps, batch_size=batch_size,
                       encoder=find_networks(train, interval), decoder='mlp')
        config = replace(config, recipe='quick', options=shared)
        try:
            found = select_layers(config, candidates, train, val, test,
                                  os.path.join(source.root, 'networks'),
                                  [self.seed])
        except (RuntimeError, ValueError) as failure:
            if module is None:
                raise
            self.about['warnings'] += [f'Networks failed: {one_line(failure)}']
            return module
        if module is not None:
            ahead, error = compare_errors(found, laws)
            if ahead > -2 * error:
                return module
            found.module.check = module.check
        self.about = {'method': 'networks', 'warnings': found.warnings}
        return found.module

    def infer(self, data: Any, **options: Any) -> 'GraphEstimator':
        """The graphs of other systems, by what was fitted here. They are read
        as those were, where options do not say otherwise."""
        self.module.require('encoder')
        source, dataset = self._open(data, options)
        out = copy.copy(self)
        out.about = {**self.about, 'source': source.name, 'split': None}
        with out._apart():
            return out._foresee(dataset)._infer(dataset, self.shared)

    def _open(self, data: Any, options: dict[str,
                                             Any]) -> tuple[UserData, Systems]:
        """Other systems, read as those that were fitted, and understood."""
        config = self.module.config
        if isinstance(data, (str, os.PathLike)):
            remembered = remembered_reading(config.data, os.fspath(data))
            if 'position' in options:  # Velocities are those of others.
                remembered.pop('velocity', None)
            options = {**remembered, **options}
        mass = config.data.get('reading', {}).get('mass')
        if mass is not None and options.get('mass') is None:
            # All particles would be taken for alike, and forces be wrong.
            raise ValueError(
                f"The model was trained on particles whose masses "
                f"are known, by mass={mass}, and those of '{data}' "
                f"are not; say by mass=NAME which feature holds "
                f"them.")
        for name in ('neighbours', 'radius'):
            if config.data.get(name) is not None:
                options.setdefault(name, config.data[name])
        with tempfile.TemporaryDirectory() as root:
            source = UserData.of(data, root, config.data.get('directed', False),
                                 self.seed, options)
            dataset = source.open_whole(config.num_observed)
        _check_features(config, source, dataset)
        _check_sizes(self.module.units, dataset._data.x)
        return source, dataset

    @property
    def check(self) -> Optional[LawCheck]:
        """Whether the force laws hold, if that was asked."""
        return self.module.check

    @cached_property
    def graph(self) -> pd.DataFrame:
        """A row for each candidate edge and layer: `system`, `sender`,
        `receiver`, `layer`, `type`, and the `probability` of that type."""
        return to_pandas(**self._joined())

    def network(self) -> nx.MultiGraph:
        """The interactions as a graph, see :mod:`pyg_fnri.convert`."""
        undirected = self.module.model.latent.undirected
        return to_networkx(**self._joined(), undirected=undirected)

    def changes(self, stay: float = 0.5) -> pd.DataFrame:
        """Of windows, which interactions come and go, see
        :func:`~pyg_fnri.convert.to_changes`."""
        interacts = torch.stack(
            [1 - q[:, 0] for q in self._joined()['probability']], dim=-1)
        table = self.graph.assign(type=1, probability=interacts.flatten())
        return to_changes(table, stay)

    @cached_property
    def laws(self) -> Optional[LawCurves]:
        """The force laws, at the distances of pairs that interact in held-out
        systems; None of networks, or of a checkpoint alone."""
        layer: Any = self.module.model.decoder.layer
        if not self.held_out or not self._has_laws():
            return None
        encode = self.module.model.latent.encode_types
        edge_attr = encode(torch.cat([of.edge_type for of in self.held_out]))
        return law_curves(layer, self.held_out, edge_attr=edge_attr)

    def predict(self, num_steps: int) -> list[np.ndarray]:
        """The next states of each system, `[N, num_steps, F]`."""
        self.module.require('decoder')
        predict = self.module.model.predict_trajectory
        return [
            predict(of, num_steps, of.edge_type).numpy() for of in self.data
        ]

    def score(self, data: Any = None, y: None = None, **options: Any) -> float:
        """R² of predictions of up to ten steps, against no change at all, in
        the median of systems held out, or of others; by the graphs of frames
        before."""
        if data is None:
            if 'score' not in self.about:
                raise ValueError('No frames are left to be predicted; give '
                                 'longer trajectories.')
            return cast(float, self.about['score'])
        _, dataset = self._open(data, options)
        with self._apart():
            return copy.copy(self)._foresee(dataset).score()

    def pictures(self, stay: float = 0.5) -> dict[str, Figure]:
        """The graph of the first system, how probable its interactions are,
        force laws, and predictions of held-out systems; by name."""
        self._require_data()
        first, out = self.data[0], dict[str, Figure]()
        if first.num_edges:
            posterior = self._posterior(first)
            out['graph'] = plot_multiplex(
                first.edge_index, first.edge_type,
                probability=type_confidence(first.edge_type, posterior),
                particles=self.particles[0])
            interacts = torch.stack([1 - q[:, 0] for q in posterior], dim=-1)
            out['heatmap'] = plot_adjacency(first.edge_index,
                                            interacts.clamp(0, 1),
                                            self.particles[0])
        if (laws := self.laws) is not None:
            out['laws'] = laws.plot()
        drawn = self.held_out[:NUM_DRAWN]
        if drawn and drawn[0].x.size(2) >= 4:
            out['trajectories'] = draw_rollouts(
                [of.prediction for of in drawn], [of.y for of in drawn],
                observed=[of.x for of in drawn],
                particles=self.about['held_out'], unit=OWN_UNIT)
        if self._are_windows():
            out['changes'] = plot_changes(self.changes(stay))
        return out

    def plot(self, kind: str = 'graph') -> Figure:
        """One of :meth:`pictures`."""
        pictures = self.pictures()
        check_choice('kind', kind, [*pictures])
        return pictures[kind]

    def report(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes one HTML page that needs no other file, to show to others."""
        write_text(os.fspath(path), make_page(self))

    def save(self, out: Union[str, os.PathLike[str]],
             stay: float = 0.5) -> None:
        """Writes tables, pictures, the report, and what :func:`load` opens,
        into a folder, which is made if need be; :obj:`stay` as for
        :meth:`changes`."""
        check_writable(out := os.fspath(out))
        tables, pictures = {'edges.csv': self.graph}, self.pictures(stay)
        if self._are_windows():
            tables['changes.csv'] = self.changes(stay)
        with written_together(out, RESULTS) as folder:

            def place(name: str) -> str:
                return os.path.join(folder, name)

            save_checkpoint(self.module, place(MODEL))
            write_tensors(place(SYSTEMS), self._stored())
            for name, table in tables.items():
                write_table(place(name), table)
            nx.write_graphml(self.network(), place('graphs.graphml'),
                             edge_id_from_attribute='id')
            if (laws := self.laws) is not None:
                laws.save(place('laws.csv'))
            for name, figure in pictures.items():
                figure.savefig(place(f'{name}.png'))
            write_text(place('summary.txt'), f'{self}\n')
            write_text(place('report.html'), make_page(self, pictures))

    def __repr__(self) -> str:
        if not hasattr(self, 'module'):
            settings = ', '.join(f'{k}={v!r}'
                                 for k, v in self.get_params().items())
            return f'{type(self).__name__}({settings})'
        return '\n'.join(describe(self))

    def _repr_html_(self) -> str:
        return make_summary(self)

    def _require_data(self) -> None:
        if not self.data:
            raise ValueError('There are no graphs yet; infer(data) gives '
                             'those of other systems.')

    def _has_laws(self) -> bool:
        return isinstance(self.module.model.decoder.layer, ForceLawDecoder)

    def _apart(self) -> AbstractContextManager[None]:
        """Others have a graph each, unless all are to share one."""
        latent = self.module.model.latent
        return nullcontext() if self.shared else latent.apart()

    def _frames(self) -> Optional[int]:
        """How many frames the encoder takes; None without one."""
        config = self.module.config
        return None if config.recipe == 'laws' else config.num_observed

    def _are_windows(self) -> bool:
        return len(self.data) > 1 and self.about.get('windows', False)

    def _of(self, module: RelationalInference) -> 'GraphEstimator':
        self.module, self.data, self.held_out = module, [], []
        self.systems, self.particles = [], []
        self.about = {**self.__dict__.get('about', {})}
        self.__dict__.pop('laws', None)
        return self

    def _foresee(self, dataset: Systems) -> 'GraphEstimator':
        """Predicts the last frames of systems that nothing was fitted to, by
        the graphs of the first."""
        model, units = self.module.model, self.module.units
        dataset = copy.copy(dataset)
        dataset.transform = None
        batch = next(iter(SystemLoader(dataset, NUM_SCORED)))
        num_frames = batch.x.size(1)
        observed = self._frames() or min(MOST_OBSERVED, (num_frames + 1) // 2)
        trained = self.module.is_trained('decoder')
        self.about = {**self.about}  # Of these systems, not of others.
        self.about.pop('score', None)
        if observed >= num_frames or not trained:
            return self
        batch.x, batch.y = batch.x[:, :observed], batch.x[:, observed - 1:]
        graph = infer_graph(model, batch)
        if graph.mass is not None:
            batch.mass = graph.mass
        found = model.predict_trajectory(batch,
                                         batch.y.size(1) - 1, graph.edge_type)
        steps = min(found.size(1), HORIZON)
        start, true = units(batch.y[:, :1 + steps]).tensor_split([1], dim=1)
        near = units(found[:, :steps])
        left, moved = (scatter((true - other).square().sum((1, 2)), batch.batch)
                       for other in (near, start))
        score = (1 - left / moved.clamp(min=1e-30)).median().item()
        self.about = dict(self.about, score=score, horizon=steps,
                          held_out=dataset.particle_names[:NUM_DRAWN])
        self.__dict__.pop('laws', None)
        self.held_out = _systems_of(batch, graph, y=batch.y,
                                    prediction=found)[:NUM_KEPT]
        return self

    def _infer(self, dataset: Systems, shared: bool) -> 'GraphEstimator':
        model, frames = self.module.model, self._frames()
        self.systems, self.particles = (dataset.system_names,
                                        dataset.particle_names)
        self.about['windows'] = dataset.facts.get('windows', False)
        quiet = (len(dataset) <= BATCH_SIZE
                 or not rich.get_console().is_terminal)
        batches = (_observed(batch, frames) for batch in track(
            SystemLoader(dataset, BATCH_SIZE), 'inferring graphs',
            transient=True, disable=quiet))
        self.__dict__.pop('graph', None)
        self.data = []
        if shared and len(dataset) > 1:
            _check_particles(self.systems, self.particles)
            graph = shared_graph(model, batches, self._has_laws(), self.systems)
            self.systems, self.particles = ['all'], self.particles[:1]
            first = Batch.from_data_list([_observed(dataset[0], frames)])
            self.data = _systems_of(first, graph)
        else:
            for batch in batches:
                self.data += _systems_of(batch, infer_graph(model, batch))
        return self

    def _posterior(self, data: Data) -> list[Tensor]:
        """Of each layer, `[E, K]`, of `edge_attr`."""
        sizes = [size - 1 for size in self.module.model.latent.num_edge_types]
        return [
            torch.cat([1 - some.sum(-1, keepdim=True), some], dim=-1)
            for some in data.edge_attr.split(sizes, dim=-1)
        ]

    def _joined(self) -> dict[str, Any]:
        """Arguments of :mod:`pyg_fnri.convert`."""
        self._require_data()
        batch = Batch.from_data_list([
            Data(edge_index=of.edge_index, edge_type=of.edge_type,
                 edge_attr=of.edge_attr, num_nodes=of.num_nodes)
            for of in self.data
        ])
        return dict(data=batch, edge_type=batch.edge_type,
                    probability=self._posterior(batch), systems=self.systems,
                    particles=self.particles)

    def _stored(self) -> dict[str, Any]:
        return dict(settings=self.get_params(),
                    data=[of.to_dict() for of in self.data],
                    held_out=[of.to_dict()
                              for of in self.held_out], systems=self.systems,
                    particles=self.particles, about=self.about)


def present_results(out: str) -> list[str]:
    """The files of a result that are in a folder."""
    put_in_place(out, RESULTS)
    return [name for name in RESULTS if os.path.exists(os.path.join(out, name))]


def _open_splits(source: UserData) -> tuple[Systems, Systems, Systems]:
    """Training, validation and test systems, observed, then to be predicted;
    cut in time, if there are too few for a check."""
    train = source.open('train')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # They were heard before.
        val = source.open('val')
        if len(val) < 2 and 'folder' not in source.description['files']:
            source.description['split_by'] = 'time'
            train, val = source.open('train'), source.open('val')
        test = source.open('test')
    for part in (train, val, test):
        part.transform = SplitTrajectory(first_half(part))
    return train, val, test


def _are_windows_of_one(*splits: Systems) -> bool:
    """Whether all are windows of one recording, of the same particles."""
    names = [name for part in splits for name in part.system_names]
    particles = [of for part in splits for of in part.particle_names]
    recordings = {str(name).rpartition('/')[0] for name in names}
    return len(recordings) == 1 and all(of == particles[0]
                                        for of in particles) and all(
                                            part.facts.get('windows')
                                            for part in splits)


def _observed(data: Any, frames: Optional[int]) -> Any:
    data.x = data.x[:, :frames]
    return data


def _systems_of(batch: Batch, graph: Refined, **rows: Any) -> list[Data]:
    """The systems of a batch, each with its part of a graph, and of rows of
    particles."""
    number = batch.batch[batch.edge_index[1]].bincount(
        minlength=batch.num_graphs).tolist()
    sizes = batch.batch.bincount().tolist()
    edge_attr = torch.cat([q[:, 1:] for q in graph.posterior], dim=-1)
    out: list[Data] = batch.to_data_list()
    for of, types, attr in zip(out, graph.edge_type.split(number),
                               edge_attr.split(number)):
        of.edge_type, of.edge_attr = types, attr
    if graph.mass is not None:
        rows['mass'] = graph.mass
    for name, values in rows.items():
        for of, own in zip(out, values.split(sizes)):
            of[name] = own
    return out


def _check_particles(systems: Sequence[Any],
                     particles: Sequence[Sequence[Any]]) -> None:
    for name, own in zip(systems, particles):
        if own != particles[0]:
            odd = [p for p in own if p not in particles[0]]
            odd += [p for p in particles[0] if p not in own]
            raise ValueError(f"Systems that share a graph have the same "
                             f"particles, but {odd[0]!r} is in only one of the "
                             f"systems {systems[0]!r} and {name!r}; infer a "
                             f"graph for each.")


def _check_features(config: Config, source: UserData, dataset: Systems) -> None:
    """Makes sure that a model understands other systems."""
    num_steps, num_features = dataset[0].x.shape[1:]
    if num_features != config.in_channels:
        raise ValueError(f"The model was trained on {config.in_channels} "
                         f"features of a particle, positions and velocities, "
                         f"but '{source.name}' has {num_features}.")
    if config.recipe != 'laws' and num_steps < config.num_observed:
        raise ValueError(f"The model looks at {config.num_observed} frames, "
                         f"but the systems in '{source.name}' have "
                         f"{num_steps}.")
    # Frames further apart look like faster particles, and nothing would fail.
    trained = config.data.get('time_step')
    if 'num_systems' in config.data:
        trained = find_system(config.data.get('name'))[1].frame_interval
    found = frame_interval(source.description, dataset)
    if trained and found and abs(found - trained) > 0.05 * trained:
        raise ValueError(f"Frames of '{source.name}' are {found:g} apart, but "
                         f"those that the model was trained on {trained:g}; "
                         f"resample the trajectories.")


def _check_sizes(units: Scaling, x: Tensor) -> None:
    """Warns of trajectories :obj:`[num_nodes, T, F]` far larger or smaller
    than those of training: they may be in another unit, and graphs wrong."""
    parts = split_quantities(units(x))
    names = ['Positions', 'Velocities']
    if len(parts) != 2:
        names = [f'Feature {i}' for i in range(len(parts))]
    for name, values in zip(names, parts):
        some = values.flatten()[::max(1, values.numel() // 1_000_000)]
        low, high = some.quantile(torch.tensor([0.01, 0.99])).tolist()
        ratio = (high - low) / 2  # Of those of training, -1 to 1.
        if not 1 / MAX_RATIO <= ratio <= MAX_RATIO:
            warnings.warn(
                f"{name} spread {ratio:.3g} times as far as those that the "
                f"model was trained on; if they are in another unit, its "
                f"graphs are wrong: convert the data.", stacklevel=3)
