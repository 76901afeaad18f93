"""Simulated particle systems: the paper's, NRI's, and others."""
import functools
import operator
import os
import os.path as osp
import sys
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np
import torch
from torch_geometric.data import Data, InMemoryDataset

from pyg_fnri.data import from_trajectory
from pyg_fnri.simulation import Force, System
from pyg_fnri.simulation.checks import edge_types as check_edge_types
from pyg_fnri.simulation.checks import features as check_features

from .fingerprint import describe, digest
from .graph_split import GraphSplit
from .joined import join
from .named_systems import find_system
from .storage import save_once
from .system_recipe import describe_system

SPLITS = ('train', 'val', 'test')

#: A part of every data set's digest. Raise it whenever the simulation or the
#: stored format changes, so that no old file is served for a new recipe.
VERSION = 1


class ParticleSystems(InMemoryDataset):
    r"""Simulated systems of interacting particles, with the true interaction
    graph of each.

    ============================ =============================== ============
    name                         systems                         layers
    ============================ =============================== ============
    `'springs_charges'`          the paper's I+C                 2, 2 types
    `'springs_charges_fsprings'` the paper's I+C+F               2, 2, 2 types
    `'nri_springs'`              NRI's springs                   2 types
    `'nri_charged'`              NRI's charges, of either sign   3 types
    `'kuramoto'`                 NRI's phase-coupled oscillators 2 types
    ============================ =============================== ============

    Any mix of forces (see :class:`~pyg_fnri.simulation.Force`) and systems of
    your own (see :class:`~pyg_fnri.simulation.System`) can be simulated too.

    Each split is simulated when it is first asked for (the paper's sizes take
    well under a minute on two cores, charges and oscillators a minute or two)
    and kept in `root/name`, in a folder named after a digest of all that the
    data depend on: a changed argument, or a force whose code has changed,
    never finds old data. The random numbers of a split depend on `seed` and
    the split alone, so that another number of training systems leaves the test
    split as it is, and a smaller split holds the first systems of a larger
    one.

    A system is a plain :class:`~torch_geometric.data.Data` with

    - `x`: positions in metre and velocities in metre per second (of
      oscillators, see :class:`~pyg_fnri.simulation.Kuramoto`) at 0.1 s,
      0.2 s, ..., 9.9 s, `[num_particles, 99, 4]`,
    - `edge_index`: all ordered pairs, sorted by receiver, `[2, E]`,
    - `edge_label`: the type of the interaction of sender and receiver in each
      layer, 0 if there is none, `[E, L]`. A force is a layer of the types 0
      and 1.

    .. code-block:: python

        train = ParticleSystems('datasets', 'springs_charges', 'train',
                                transform=SplitTrajectory(49))

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        name (str, optional): One of the table above. With `forces` or a
            `system`, a name of your own. (default: `'springs_charges'`, or
            `'custom'` with one of those)
        split (str): `'train'`, `'val'` or `'test'`. (default: `'train'`)
        num_particles (int): Particles in each system. (default: 5)
        num_systems (tuple of int): Systems in the training, validation and
            test split. (default: the paper's 50,000, 10,000 and 10,000)
        seed (int): Seed of all randomness. (default: 0)
        forces (sequence of Force, optional): Your own forces instead of those
            that `name` stands for; one layer of the interaction graph each.
        system (System, optional): Your own system instead, with constants or
            a motion of its own.
        split_by (str): `'system'`, or `'graph'` for splits that share no
            interaction graph, all layers together, up to relabelling of
            particles: a model never sees a test graph in training (see
            :class:`~.graph_split.GraphSplit`). With few particles, random
            splits share nearly all of them. (default: `'system'`)
        transform (callable, optional): Applied to a system on each access.
        pre_transform (callable, optional): Applied once, before saving.
        pre_filter (callable, optional): Which systems to keep.
        force_reload (bool): Whether to simulate again. (default: `False`)

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument is out of range or unknown, or there are too
            few different graphs to split by them.
        OSError: If `root` cannot be written to, or has no room.
        RuntimeError: If the stored file cannot be loaded.
    """
    def __init__(
        self,
        root: str,
        name: Optional[str] = None,
        split: str = 'train',
        num_particles: int = 5,
        num_systems: Sequence[int] = (50_000, 10_000, 10_000),
        seed: int = 0,
        forces: Optional[Sequence[Force]] = None,
        system: Optional[System] = None,
        split_by: str = 'system',
        transform: Optional[Callable] = None,
        pre_transform: Optional[Callable] = None,
        pre_filter: Optional[Callable] = None,
        force_reload: bool = False,
    ) -> None:
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}, but must be 'train', 'val' "
                             f"or 'test'.")
        if split_by not in ('system', 'graph'):
            raise ValueError(f"split_by is {split_by!r}, but must be 'system' "
                             f"or 'graph'.")
        self.name, self.system = find_system(name, forces, system)
        self.split, self.split_by = split, split_by
        self.num_particles = _integer('num_particles', num_particles, 2)
        if isinstance(num_systems, (int, str)) or len(num_systems) != 3:
            raise ValueError(f'num_systems is {num_systems!r}, but must be '
                             f'three numbers: of training, validation and '
                             f'test systems.')
        self.num_systems = tuple(
            _integer('num_systems', number, 1) for number in num_systems)
        self.seed = _integer('seed', seed, 0)
        self.pre_transform, self.pre_filter = pre_transform, pre_filter
        self.recipe = self._recipe()
        super().__init__(os.fspath(root), transform, pre_transform, pre_filter,
                         force_reload=force_reload)
        try:
            self.load(self.processed_paths[0])
        except Exception as error:  # Damage shows in many ways.
            raise RuntimeError(
                f'Cannot load {self.processed_paths[0]!r} ({error}); if it is '
                f'damaged, delete it, or pass force_reload=True to simulate '
                f'again.') from error

    @property
    def forces(self) -> tuple[Force, ...]:
        """The force of each layer, where a layer stands for one."""
        return tuple(getattr(self.system, 'forces', ()))

    @property
    def names(self) -> list[str]:
        """The name of each layer of the interaction graph:
        `['spring', 'charge']`."""
        return list(self.system.layers)

    @property
    def num_layer_graphs(self) -> int:
        """The number `L` of layers."""
        return len(self.system.layers)

    @property
    def num_edge_types(self) -> list[int]:
        """The number of edge types in each layer, type 0 (no interaction)
        among them."""
        return self.system.num_edge_types

    @property
    def frame_interval(self) -> float:
        """The time from one frame to the next in second."""
        return self.system.frame_interval

    @property
    def processed_dir(self) -> str:
        return osp.join(self.root, self.name,
                        f'{self.split}-{digest(self.recipe)}')

    @property
    def processed_file_names(self) -> str:
        return 'systems.pt'

    def process(self) -> None:
        """Simulates the split, unless another process has just done so."""
        path, = self.processed_paths
        num_edges = self.num_particles * (self.num_particles - 1)
        # 99 float32 frames, of most systems; int64 sender, receiver and labels.
        system_bytes = (4 * self.num_particles * 99 * 4 + 8 * num_edges *
                        (2 + self.num_layer_graphs))
        save_once(osp.join(self.processed_dir, 'recipe.txt'), self._save_recipe)
        save_once(path, self._save_systems,
                  num_bytes=self._split_size * system_bytes,
                  overwrite=self.force_reload)

    def __repr__(self) -> str:
        by_graph = ", split_by='graph'" if self.split_by == 'graph' else ''
        return (f'{self.__class__.__name__}({len(self)}, name={self.name!r}, '
                f'split={self.split!r}, num_particles={self.num_particles}, '
                f'seed={self.seed}{by_graph})')

    def _process(self) -> None:
        # PyG would store the representations of `pre_transform` and
        # `pre_filter` as well, outside the lock; the digest holds them.
        if self.force_reload or not osp.exists(self.processed_paths[0]):
            self.process()

    @property
    def _split_size(self) -> int:
        return self.num_systems[SPLITS.index(self.split)]

    def _recipe(self) -> str:
        """All that the data of this split depend on, a line each."""
        lines = [
            f'version: {VERSION}',
            f'split: {self.split}',
            f'num_systems: {self._split_size}',
            f'num_particles: {self.num_particles}',
            f'seed: {self.seed}',
            *describe_system(self.system),
            *(['split_by: graph'] if self.split_by == 'graph' else []),
            f'pre_transform: {describe(self.pre_transform)}',
            f'pre_filter: {describe(self.pre_filter)}',
        ]
        return '\n'.join(lines) + '\n'

    def _save_recipe(self, path: str) -> None:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(self.recipe)

    def _save_systems(self, path: str) -> None:
        # A stream of random numbers for each split.
        seed = self._stream(SPLITS.index(self.split))
        progress = sys.stderr.isatty()
        edge_types = self._draw_edge_types(seed, progress)
        x = check_features(
            f'the result of {type(self.system).__name__}.simulate',
            self.system.simulate(edge_types, seed, progress=progress),
            *edge_types.shape[::2])
        if self.pre_transform is None and self.pre_filter is None:
            data, slices = join(x, edge_types)
        else:
            data, slices = self.collate(self._prepare(x, edge_types))
        try:
            with open(path, 'wb') as file:
                torch.save((data.to_dict(), slices, type(data)), file)
        except RuntimeError as error:  # How torch reports a failed write.
            raise OSError(str(error)) from error

    def _draw_edge_types(self, seed: int, progress: bool) -> np.ndarray:
        def draw(num_systems: int, seed: int = seed) -> np.ndarray:
            return check_edge_types(
                f'the result of {type(self.system).__name__}.draw_edge_types',
                self.system.draw_edge_types(seed, num_systems,
                                            self.num_particles),
                self.num_edge_types, num_systems, self.num_particles)

        if self.split_by == 'system':
            return draw(self._split_size)
        # The same for all splits, of graphs that are in none.
        shown = functools.partial(draw, seed=self._stream(len(SPLITS)))
        return GraphSplit(shown, self.seed).draw(draw, self.split,
                                                 self._split_size, progress)

    def _stream(self, number: int) -> int:
        stream = np.random.SeedSequence(self.seed, spawn_key=(number, ))
        return int(stream.generate_state(1, np.uint64)[0])

    def _prepare(self, x: np.ndarray, edge_types: np.ndarray) -> list[Data]:
        systems = []
        for trajectory, graphs in zip(x, edge_types):
            data = from_trajectory(trajectory, graphs)
            if self.pre_filter is not None and not self.pre_filter(data):
                continue
            if self.pre_transform is not None:
                data = self.pre_transform(data)
            systems.append(data)
        if not systems:
            raise ValueError('pre_filter keeps none of the systems; keep at '
                             'least one.')
        return systems


def _integer(name: str, value: Any, least: int) -> int:
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(
            f'{name} must be a whole number, not {value!r}.') from None
    if value < least:
        raise ValueError(f'{name} must be at least {least}, not {value}.')
    return value
