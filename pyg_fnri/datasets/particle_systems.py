"""Simulated particle systems: the paper's, NRI's, and others."""
import functools
import hashlib
import inspect
import operator
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Optional

import numpy as np
import torch
from torch_geometric.data import Data

from pyg_fnri.data import from_trajectory, fully_connected
from pyg_fnri.datasets.stored import (SPLITS, Joined, StoredSystems,
                                      check_choice, is_ours)
from pyg_fnri.datasets.tables import report_one_way
from pyg_fnri.simulation import (Charge, FiniteSpring, Force, Kuramoto,
                                 LinearNetwork, Newtonian, NRICharged,
                                 NRISprings, SignedCharges, Spring, System,
                                 graph_keys)

#: All systems that have a name: the paper's I+C and I+C+F, NRI's, and one of
#: first order.
SYSTEMS: dict[str, System] = {
    'springs_charges': Newtonian((Spring(), Charge())),
    'springs_charges_fsprings': Newtonian((Spring(), Charge(), FiniteSpring())),
    'nri_springs': NRISprings(),
    'nri_charged': SignedCharges(),
    'nri_charged_clamped': NRICharged(),
    'kuramoto': Kuramoto(),
    'linear_network': LinearNetwork()
}

#: Graphs that show how frequent each class is, and the share of validation and
#: of test. A part of what a seed means.
NUM_SHOWN = 10_000
SHARE = 0.1


class ParticleSystems(StoredSystems):
    """Simulated systems of interacting particles, with the true interaction
    graph of each.

    ============================ =============================== ============
    name                         systems                         layers
    ============================ =============================== ============
    `'springs_charges'`          the paper's I+C                 2, 2 types
    `'springs_charges_fsprings'` the paper's I+C+F               2, 2, 2 types
    `'nri_springs'`              NRI's springs                   2 types
    `'nri_charged'`              NRI's charges, of either sign   3 types
    `'nri_charged_clamped'`      the same, forces clamped        3 types
    `'kuramoto'`                 NRI's phase-coupled oscillators 2 types
    `'linear_network'`           directed, of first order        2 types
    ============================ =============================== ============

    A split is simulated when first asked for, which takes a minute or two at
    the paper's sizes. A smaller split holds the first systems of a larger one.

    A system has `x` `[num_particles, 99, 4]`, positions in metre and velocities
    in metre per second (but see :class:`~pyg_fnri.simulation.Kuramoto`) at
    0.1 s, 0.2 s, ..., 9.9 s; all ordered pairs as `edge_index`; and
    `edge_label` `[E, L]`, 0 for no interaction.

    Args:
        root (str): Where data sets are kept; this one goes to `root/name`.
        name (str, optional): One above; with `forces` or `system`, your own.
            (default: `'springs_charges'`, or `'custom'`)
        split (str): `'train'`, `'val'` or `'test'`.
        num_systems (tuple of int): Training, validation and test systems.
        forces (sequence of Force, optional): Your own forces, a layer each.
        system (System, optional): Your own constants or motion.
        split_by (str): `'system'`, or `'graph'` for splits that share no
            graph, see :class:`~.particle_systems.GraphSplit`.
        **options: `transform`, `pre_transform`, `pre_filter`, `force_reload`.
    """
    def __init__(self, root: str, name: Optional[str] = None,
                 split: str = 'train', num_particles: int = 5,
                 num_systems: Sequence[int] = (50_000, 10_000, 10_000),
                 seed: int = 0, forces: Optional[Sequence[Force]] = None,
                 system: Optional[System] = None, split_by: str = 'system',
                 **options: Any) -> None:
        check_choice('split', split, SPLITS)
        check_choice('split_by', split_by, ('system', 'graph'))
        name, self.system = find_system(name, forces, system)
        self.split_by = split_by
        self.num_particles = operator.index(num_particles)
        train, val, test = map(operator.index, num_systems)
        self.num_systems = (train, val, test)
        if min(self.num_systems) < 1 or self.num_particles < 2:
            raise ValueError(f'Each split takes a system and each system two '
                             f'particles, but num_systems is {num_systems} and '
                             f'num_particles {num_particles}.')
        self.seed = operator.index(seed)
        recipe = dict(split=split, split_by=split_by,
                      num_systems=self.num_systems[SPLITS.index(split)],
                      num_particles=self.num_particles, seed=self.seed,
                      system=_describe(self.system, self.num_particles))
        super().__init__(root, name, split, recipe, **options)

    @property
    def forces(self) -> tuple[Force, ...]:
        """The force of each type of interaction, where types stand for one."""
        return tuple(getattr(self.system, 'forces', ()))

    @property
    def names(self) -> list[str]:
        return list(self.system.layers)

    @property
    def num_edge_types(self) -> list[int]:
        return self.system.num_edge_types

    @property
    def frame_interval(self) -> float:
        return self.system.frame_interval

    def make(self) -> tuple[Joined, dict[str, Any]]:
        number = SPLITS.index(self.split)
        # A stream for each split, and one of graphs that are in none.
        seed, shown_seed = (int(
            np.random.SeedSequence(self.seed, spawn_key=(key, )).generate_state(
                1, np.uint64)[0]) for key in (number, len(SPLITS)))

        def draw(num_systems: int, seed: int = seed) -> np.ndarray:
            return self.system.draw_edge_types(seed, num_systems,
                                               self.num_particles)

        if self.split_by == 'system':
            edge_types = draw(self.num_systems[number])
        else:
            split = GraphSplit(functools.partial(draw, seed=shown_seed),
                               self.seed)
            edge_types = split.draw(draw, self.split, self.num_systems[number])
        x = self.system.simulate(edge_types, seed, progress=sys.stderr.isatty())
        facts = {}
        if (edge_types != edge_types.swapaxes(2, 3)).any():
            facts['one_way'] = report_one_way([*edge_types],
                                              range(len(edge_types)))
        if is_ours(self.system):
            return join(x, edge_types), facts
        for layer, num_types in enumerate(self.num_edge_types):
            if edge_types[:, layer].max() >= num_types:
                raise ValueError(f'Layer {layer} of {self.system} has edge '
                                 f'types beyond the {num_types} it names.')
        return self.collate([
            from_trajectory(*system, axes='NTF')
            for system in zip(x, edge_types, strict=True)
        ]), facts


class GraphSplit:
    """Classes of isomorphic graphs, dealt out to three splits in a random
    order, until test and validation hold about a tenth of all systems and at
    least one class each; `draw` gives a number of graphs `[S, L, N, N]`."""
    def __init__(self, draw: Callable[[int], np.ndarray], seed: int) -> None:
        self.seed = seed
        place = np.sort(self._place(draw(NUM_SHOWN)))
        last = np.flatnonzero(np.diff(place, append=2.0))  # Of each class.
        if len(last) < 3:
            raise ValueError(
                f'Up to relabelling of particles, graphs are of {len(last)} '
                f'kinds, but three splits need 3; have more particles.')
        mass = (last + 1) / len(place)
        # Where the mass is nearest to what it should be.
        test = int(np.abs(mass[:-2] - SHARE).argmin())
        rest = np.abs(mass[test + 1:-1] - mass[test] - SHARE)
        val = test + 1 + int(rest.argmin())
        self._ends = place[last[[test, val]]]
        #: The share of all systems that fall to each split, about.
        self.shares = dict(train=1 - mass[val], val=mass[val] - mass[test],
                           test=mass[test])

    def splits(self, edge_types: np.ndarray) -> np.ndarray:
        part = np.searchsorted(self._ends, self._place(edge_types))
        return np.array(['test', 'val', 'train'])[part]

    def draw(self, draw: Callable[[int], np.ndarray], split: str,
             num_systems: int) -> np.ndarray:
        size = int(1.05 * num_systems / self.shares[split]) + 100
        kept = np.zeros(0, dtype=bool)
        while size <= 30 * num_systems + 100_000:
            graphs = draw(size)
            more = self.splits(graphs[len(kept):]) == split
            kept = np.concatenate([kept, more])
            if kept.sum() >= num_systems:
                return graphs[kept][:num_systems]
            size += size // 2
        raise ValueError(f'Graphs of the {split} split are too rare, '
                         f'{self.shares[split]:.2%} of all; take another seed '
                         f'or more particles.')

    def _place(self, edge_types: np.ndarray) -> np.ndarray:
        """Where in the order, from 0 to 1, the class of each graph is."""
        unique, inverse = np.unique(graph_keys(edge_types), return_inverse=True)
        places = [
            hashlib.sha256(f'{self.seed} {key}'.encode()).digest()[:6]
            for key in unique.tolist()
        ]
        return np.array(
            [int.from_bytes(place, 'big') / 2**48 for place in places])[inverse]


def find_system(name: Optional[str] = None,
                forces: Optional[Sequence[Force]] = None,
                system: Optional[System] = None) -> tuple[str, System]:
    """The system that arguments name, and the name of its data set."""
    if forces is not None:
        if system is not None:
            raise ValueError('A system has its own forces; leave forces out.')
        system = Newtonian(tuple(forces))
    if system is None:
        name = name or 'springs_charges'
        check_choice('name', name, [*SYSTEMS])
        return name, SYSTEMS[name]
    name = name or 'custom'
    if name in SYSTEMS and system != SYSTEMS[name]:
        raise ValueError(f'name {name!r} stands for {SYSTEMS[name]}; give your '
                         f'own system another name.')
    return name, system


def join(x: np.ndarray, edge_types: np.ndarray) -> Joined:
    """Does as `InMemoryDataset.collate`, of all systems at once."""
    num_systems, num_particles = x.shape[:2]
    edge_index = fully_connected(num_particles)
    sender, receiver = edge_index.numpy()
    edge_label = edge_types[:, :, receiver, sender]
    edge_label = edge_label.transpose(0, 2, 1).astype(np.int64)  # [S, E, L]
    num_edges, num_layers = edge_label.shape[1:]
    data = Data(x=torch.from_numpy(x).view(-1, *x.shape[2:]),
                edge_index=edge_index.repeat(1, num_systems),
                edge_label=torch.from_numpy(edge_label).reshape(-1, num_layers))
    if num_systems == 1:
        return data, None
    start = torch.arange(num_systems + 1)
    return data, dict(x=start * num_particles, edge_index=start * num_edges,
                      edge_label=start * num_edges)


def _describe(system: System, num_particles: int) -> str:
    """Constants and, of a user's code, its source and a few values it gives."""
    out = [repr(system)]
    for part in (system, *getattr(system, 'forces', ())):
        if is_ours(part):
            continue
        for cls in type(part).__mro__:
            with suppress(OSError, TypeError):  # Typed into an interpreter.
                out.append(inspect.getsource(cls))
        if isinstance(part, Force):
            distances = np.geomspace(0.05, 14, 16).tolist()
            out.append(str([f'{part.magnitude(r):.9g}' for r in distances]))
            shown: Any = part.sample_interactions(np.random.default_rng(0), 4,
                                                  num_particles)
        else:
            graphs = part.draw_edge_types(0, 1, num_particles)
            shown = [*graphs.flat, *np.ravel(part.simulate(graphs, 0))]
        out.append(hashlib.sha256(np.asarray(shown).tobytes()).hexdigest())
    # Addresses differ from run to run.
    return re.sub(r' at 0x[0-9a-fA-F]+', '', '\n'.join(out))
