"""The paper's simulated particle systems, and others of their kind."""
import inspect
import operator
import os
import os.path as osp
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from pyg_fnri.data import from_trajectory, fully_connected
from pyg_fnri.simulation import (
    Charge,
    FiniteSpring,
    Force,
    Spring,
    Trajectories,
    simulate,
)

from .fingerprint import describe, digest
from .storage import save_once

FORCES: dict[str, tuple[Force, ...]] = {
    'springs_charges': (Spring(), Charge()),
    'springs_charges_fsprings': (Spring(), Charge(), FiniteSpring()),
}
SPLITS = ('train', 'val', 'test')

#: A part of every data set's digest. Raise it whenever the simulation or the
#: stored format changes, so that no old file is served for a new recipe.
VERSION = 1


class ParticleSystems(InMemoryDataset):
    r"""Simulated systems of particles that interact by pairwise forces, with
    the true interaction graph of every force (section "Simulations" of the
    paper: *I+C* is `'springs_charges'`, *I+C+F* is
    `'springs_charges_fsprings'`).

    Each split is simulated when it is first asked for (the paper's sizes take
    well under a minute) and kept in `root/name`, in a folder named after a
    digest of all that the data depend on: a changed argument, or a force whose
    code has changed, never finds old data. The random numbers of a split
    depend on `seed` and the split alone, so that another number of training
    systems leaves the test split as it is, and a smaller split holds the first
    systems of a larger one.

    A system is a plain :class:`~torch_geometric.data.Data` with

    - `x`: positions in metre and velocities in metre per second at 0.1 s,
      0.2 s, ..., 9.9 s, `[num_particles, 99, 4]`,
    - `edge_index`: all ordered pairs, sorted by receiver, `[2, E]`,
    - `edge_label`: whether sender and receiver interact by force `l`, 0 or 1,
      in column `l`, `[E, L]`.

    .. code-block:: python

        train = ParticleSystems('datasets', 'springs_charges', 'train',
                                transform=SplitTrajectory(49))

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        name (str, optional): `'springs_charges'` or
            `'springs_charges_fsprings'`. With `forces`, a name of your own.
            (default: `'springs_charges'`, or `'custom'` with `forces`)
        split (str): `'train'`, `'val'` or `'test'`. (default: `'train'`)
        num_particles (int): Particles in each system. (default: 5)
        num_systems (tuple of int): Systems in the training, validation and
            test split. (default: the paper's 50,000, 10,000 and 10,000)
        seed (int): Seed of all randomness. (default: 0)
        forces (sequence of Force, optional): Your own forces instead of those
            that `name` stands for; one layer of the interaction graph each.
        transform (callable, optional): Applied to a system on each access.
        pre_transform (callable, optional): Applied once, before saving.
        pre_filter (callable, optional): Which systems to keep.
        force_reload (bool): Whether to simulate again. (default: `False`)

    Raises:
        TypeError: If an argument is of the wrong type.
        ValueError: If an argument is out of range or unknown.
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
        transform: Optional[Callable] = None,
        pre_transform: Optional[Callable] = None,
        pre_filter: Optional[Callable] = None,
        force_reload: bool = False,
    ) -> None:
        if split not in SPLITS:
            raise ValueError(f"split is {split!r}, but must be 'train', 'val' "
                             f"or 'test'.")
        self.name, self.forces = _check_forces(name, forces)
        self.split = split
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
    def names(self) -> list[str]:
        """The name of each layer of the interaction graph, after its force:
        `['spring', 'charge']`."""
        names = [
            re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_',
                   type(force).__name__).lower() for force in self.forces
        ]
        return [
            name if names.count(name) == 1 else
            f'{name}_{names[:layer].count(name) + 1}'
            for layer, name in enumerate(names)
        ]

    @property
    def num_layer_graphs(self) -> int:
        """The number `L` of forces."""
        return len(self.forces)

    @property
    def num_edge_types(self) -> list[int]:
        """The number of edge types in each layer: without and with force."""
        return [2] * len(self.forces)

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
        # float32 frames; int64 sender, receiver and labels.
        system_bytes = (4 * self.num_particles * 99 * 4 + 8 * num_edges *
                        (2 + len(self.forces)))
        save_once(osp.join(self.processed_dir, 'recipe.txt'), self._save_recipe)
        save_once(path, self._save_systems,
                  num_bytes=self._split_size * system_bytes,
                  overwrite=self.force_reload)

    def __repr__(self) -> str:
        return (f'{self.__class__.__name__}({len(self)}, name={self.name!r}, '
                f'split={self.split!r}, num_particles={self.num_particles}, '
                f'seed={self.seed})')

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
        constants = {
            key: parameter.default
            for key, parameter in inspect.signature(
                simulate).parameters.items()
            if parameter.default is not inspect.Parameter.empty and key not in (
                'seed', 'num_particles', 'num_threads', 'progress')
        }
        lines = [
            f'version: {VERSION}',
            f'split: {self.split}',
            f'num_systems: {self._split_size}',
            f'num_particles: {self.num_particles}',
            f'seed: {self.seed}',
            f'simulate: {constants}',
            *(f'force: {_describe_force(force)}' for force in self.forces),
            f'pre_transform: {describe(self.pre_transform)}',
            f'pre_filter: {describe(self.pre_filter)}',
        ]
        return '\n'.join(lines) + '\n'

    def _save_recipe(self, path: str) -> None:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(self.recipe)

    def _save_systems(self, path: str) -> None:
        # A stream of random numbers for each split.
        stream = np.random.SeedSequence(self.seed,
                                        spawn_key=(SPLITS.index(self.split), ))
        trajectories = simulate(
            self.forces,
            self._split_size,
            self.num_particles,
            seed=int(stream.generate_state(1, np.uint64)[0]),
            progress=sys.stderr.isatty(),
        )
        if self.pre_transform is None and self.pre_filter is None:
            data, slices = join_systems(trajectories)
        else:
            data, slices = self.collate(self._prepare(trajectories))
        try:
            with open(path, 'wb') as file:
                torch.save((data.to_dict(), slices, type(data)), file)
        except RuntimeError as error:  # How torch reports a failed write.
            raise OSError(str(error)) from error

    def _prepare(self, trajectories: Trajectories) -> list[Data]:
        systems = []
        for position, velocity, interactions in zip(*trajectories[:3]):
            x = np.concatenate([position, velocity], axis=-1)
            data = from_trajectory(x, interactions)
            if self.pre_filter is not None and not self.pre_filter(data):
                continue
            if self.pre_transform is not None:
                data = self.pre_transform(data)
            systems.append(data)
        if not systems:
            raise ValueError('pre_filter keeps none of the systems; keep at '
                             'least one.')
        return systems


def join_systems(
    trajectories: Trajectories, ) -> tuple[Data, Optional[dict[str, Tensor]]]:
    """Joins simulated systems as `InMemoryDataset.collate` would, at once.

    Args:
        trajectories (Trajectories): `num_systems` systems of one size.

    Returns:
        The joined systems, and where each begins in each tensor.
    """
    num_systems, num_particles, num_steps, _ = trajectories.position.shape
    x = np.concatenate([trajectories.position, trajectories.velocity], axis=-1)
    edge_index = fully_connected(num_particles)
    sender, receiver = edge_index.numpy()
    edge_label = trajectories.interactions[:, :, receiver, sender]
    edge_label = edge_label.transpose(0, 2, 1).astype(np.int64)  # [S, E, L]
    num_edges, num_layers = edge_label.shape[1:]
    data = Data(
        x=torch.from_numpy(x).view(-1, num_steps, x.shape[-1]),
        edge_index=edge_index.repeat(1, num_systems),
        edge_label=torch.from_numpy(edge_label).reshape(-1, num_layers),
    )
    if num_systems == 1:
        return data, None
    start = torch.arange(num_systems + 1)
    return data, {
        'x': start * num_particles,
        'edge_index': start * num_edges,
        'edge_label': start * num_edges,
    }


def _check_forces(
    name: Optional[str],
    forces: Optional[Sequence[Force]],
) -> tuple[str, tuple[Force, ...]]:
    if forces is None:
        name = 'springs_charges' if name is None else name
        if name not in FORCES:
            raise ValueError(f'name is {name!r}, but must be one of '
                             f'{list(FORCES)}; pass forces for other systems.')
        return name, FORCES[name]
    if not isinstance(forces, Sequence):
        raise TypeError(f'forces must be a sequence of Force objects such as '
                        f'[Spring()], not {forces!r}.')
    forces = tuple(forces)
    if not forces:
        raise ValueError('forces is empty; pass at least one, or leave it '
                         'out.')
    for force in forces:
        if not isinstance(force, Force):
            raise TypeError(f'forces must hold Force objects such as '
                            f'Spring(), not {force!r}.')
    name = 'custom' if name is None else name
    if not isinstance(name, str) or not re.fullmatch(r'\w[\w.+-]*', name):
        raise ValueError(f'name is {name!r}, but it is to name a folder; use '
                         f'letters, digits, "_", "-", "+" and "." only.')
    if name in FORCES and forces != FORCES[name]:
        raise ValueError(f'name {name!r} stands for the forces '
                         f'{list(FORCES[name])}; give your own forces another '
                         f'name.')
    return name, forces


def _integer(name: str, value: Any, least: int) -> int:
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(
            f'{name} must be a whole number, not {value!r}.') from None
    if value < least:
        raise ValueError(f'{name} must be at least {least}, not {value}.')
    return value


def _describe_force(force: Force) -> str:
    """What makes a force: constants, code, and the values that it takes."""
    try:  # Values as well, since code may use what is defined elsewhere.
        values = [
            f'{float(force.magnitude(distance)):.9g}'
            for distance in np.geomspace(0.05, 14, 16).tolist()
        ]
    except Exception:  # `simulate` tells better what is wrong with a force.
        values = []
    return ' '.join([describe(force), *values])
