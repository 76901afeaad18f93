"""Splits that share no interaction graph, up to relabelling of particles."""
import hashlib
from collections.abc import Callable
from typing import Optional

import numpy as np
from rich.console import Console
from rich.progress import Progress

from pyg_fnri.simulation import graph_keys

Draw = Callable[[int], np.ndarray]

#: Graphs that show how frequent each class is, and the share of them that
#: validation and test shall have. A part of what a seed means.
NUM_SHOWN = 10_000
SHARE = 0.1


class GraphSplit:
    r"""Classes of isomorphic graphs, dealt out to three splits.

    Classes are put in a random order. The first ones are for testing, the next
    ones for validation, each until they hold about a tenth of all systems and
    at least one class; the others are for training. A random split by system
    has nearly every class of small graphs in every split: with five particles,
    a model may know each test graph from training.

    Args:
        draw (callable): Given a number of systems, draws that many graphs,
            `[S, L, N, N]`, to find out how frequent each class is.
        seed (int): Seed of the order.

    Raises:
        ValueError: If there are fewer than three classes.
    """
    def __init__(self, draw: Draw, seed: int) -> None:
        self.seed = seed
        place = np.sort(self._place(graph_keys(draw(NUM_SHOWN))))
        last = np.flatnonzero(np.diff(place, append=2.0))  # Of each class.
        if len(last) < 3:
            raise ValueError(
                f'The graphs of these systems are of {len(last)} kind'
                f'{"s"[:len(last) - 1]} up to relabelling of particles, but '
                f'three splits need at least 3: have more particles, or split '
                f'by system.')
        mass = (last + 1) / len(place)
        # Where the mass is nearest to what it should be.
        test = int(np.abs(mass[:-2] - SHARE).argmin())
        rest = np.abs(mass[test + 1:-1] - mass[test] - SHARE)
        val = test + 1 + int(rest.argmin())
        self._ends = place[last[[test, val]]]
        #: The share of all systems that fall to each split, about.
        self.shares = {
            'train': 1 - mass[val],
            'val': mass[val] - mass[test],
            'test': mass[test],
        }

    def splits(self, edge_types: np.ndarray) -> np.ndarray:
        """The name of the split of each graph, `[S]`."""
        place = self._place(graph_keys(edge_types))
        return np.array(['test', 'val',
                         'train'])[np.searchsorted(self._ends, place)]

    def draw(self, draw: Draw, split: str, num_systems: int,
             progress: bool = False) -> np.ndarray:
        """Draws graphs until so many are of a split.

        Args:
            draw (callable): Draws a number of graphs; more begin with those
                that fewer would be.
            split (str): `'train'`, `'val'` or `'test'`.
            num_systems (int): The number of graphs.
            progress (bool): Whether to show a progress bar on standard error.

        Raises:
            ValueError: If graphs of this split are too rare.
        """
        most = 30 * num_systems + 100_000
        size = int(1.05 * num_systems / self.shares[split]) + 100
        kept: Optional[np.ndarray] = None
        with Progress(console=Console(stderr=True),
                      disable=not progress) as bar:
            task = bar.add_task('Choosing graphs', total=num_systems)
            while size <= most:
                graphs = draw(size)
                done = 0 if kept is None else len(kept)
                more = self.splits(graphs[done:]) == split
                kept = more if kept is None else np.concatenate([kept, more])
                bar.update(task, completed=min(kept.sum(), num_systems))
                if kept.sum() >= num_systems:
                    return graphs[kept][:num_systems]
                size += size // 2
        raise ValueError(
            f'Graphs of the {split} split are too rare to find {num_systems} '
            f'of them: they are {self.shares[split]:.2%} of all. Take another '
            f'seed, more particles, or fewer systems, or split by system.')

    def _place(self, keys: np.ndarray) -> np.ndarray:
        """Where in the order, from 0 to 1, the class of each key is."""
        unique, inverse = np.unique(keys, return_inverse=True)
        places = [
            int.from_bytes(
                hashlib.sha256(f'{self.seed} {key}'.encode()).digest()[:6],
                'big') / 2**48 for key in unique.tolist()
        ]
        return np.array(places)[inverse]
