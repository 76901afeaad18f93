"""Simulated particle systems: the paper's, NRI's, and others."""
import functools
import os.path as osp
import sys
from collections.abc import Callable, Sequence
from typing import Optional

import numpy as np

from pyg_fnri.data import from_trajectory
from pyg_fnri.datasets.fingerprint import describe
from pyg_fnri.datasets.graph_split import GraphSplit
from pyg_fnri.datasets.joined import join
from pyg_fnri.datasets.named_systems import find_system
from pyg_fnri.datasets.splits import SPLITS
from pyg_fnri.datasets.storage import save_once
from pyg_fnri.datasets.stored_systems import (
    StoredSystems,
    save_systems,
    save_text,
)
from pyg_fnri.datasets.system_recipe import describe_system
from pyg_fnri.datasets.whole_numbers import whole
from pyg_fnri.simulation import (
    Force,
    System,
    check_edge_types,
    check_features,
)

#: A part of every data set's digest. Raise it whenever the simulation or the
#: stored format changes, so that no old file is served for a new recipe.
VERSION = 1


class ParticleSystems(StoredSystems):
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
    again = 'simulate again'

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
        name, self.system = find_system(name, forces, system)
        self.split_by = split_by
        self.num_particles = whole('num_particles', num_particles, 2)
        if isinstance(num_systems, (int, str)) or len(num_systems) != 3:
            raise ValueError(f'num_systems is {num_systems!r}, but must be '
                             f'three numbers: of training, validation and '
                             f'test systems.')
        self.num_systems = tuple(
            whole('num_systems', number, 1) for number in num_systems)
        self.seed = whole('seed', seed, 0)
        lines = [
            f'version: {VERSION}',
            f'split: {split}',
            f'num_systems: {self.num_systems[SPLITS.index(split)]}',
            f'num_particles: {self.num_particles}',
            f'seed: {self.seed}',
            *describe_system(self.system),
            *(['split_by: graph'] if split_by == 'graph' else []),
            f'pre_transform: {describe(pre_transform)}',
            f'pre_filter: {describe(pre_filter)}',
        ]
        super().__init__(root, name, split, '\n'.join(lines) + '\n', transform,
                         pre_transform, pre_filter, force_reload)

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
    def num_edge_types(self) -> list[int]:
        """The number of edge types in each layer, type 0 (no interaction)
        among them."""
        return self.system.num_edge_types

    @property
    def frame_interval(self) -> float:
        """The time from one frame to the next in second."""
        return self.system.frame_interval

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
        save_once(osp.join(self.processed_dir, 'recipe.txt'),
                  functools.partial(save_text, self.recipe))
        save_once(path, self._save_systems,
                  num_bytes=self._split_size * system_bytes,
                  overwrite=self.force_reload)

    def __repr__(self) -> str:
        by_graph = ", split_by='graph'" if self.split_by == 'graph' else ''
        return (f'{self.__class__.__name__}({len(self)}, name={self.name!r}, '
                f'split={self.split!r}, num_particles={self.num_particles}, '
                f'seed={self.seed}{by_graph})')

    @property
    def _split_size(self) -> int:
        return self.num_systems[SPLITS.index(self.split)]

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
            joined = join(x, edge_types)
        else:
            joined, _ = self.prepare(
                [from_trajectory(*system) for system in zip(x, edge_types)])
        save_systems(joined, path)

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
