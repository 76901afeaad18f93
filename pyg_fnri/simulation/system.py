"""What makes a kind of system: its layers, its random graphs, its motion."""

from abc import ABC, abstractmethod
from typing import List, Mapping, Optional

import numpy as np

from pyg_fnri.simulation.initial_state import draw_edge_types


class System(ABC):
    """A kind of system of interacting particles.

    A new kind is a frozen dataclass of its constants with its ``layers`` and
    one method, :meth:`simulate`:

    .. code-block:: python

        @dataclass(frozen=True)
        class Walkers(System):
            pull: float = 0.1
            layers = {'friendship': 2}

            def simulate(self, edge_types, seed, num_threads=None,
                         progress=False):
                rng = np.random.default_rng(seed)
                friends = edge_types[:, 0]  # [S, N, N]
                x = rng.normal(size=friends.shape[:2] + (2, ))  # [S, N, 2]
                frames = []
                for _ in range(99):
                    to_friends = (friends @ x -
                                  friends.sum(-1, keepdims=True) * x)
                    x = x + self.pull * 0.1 * to_friends
                    frames.append(np.concatenate([x, to_friends], -1))
                return np.stack(frames, axis=2).astype(np.float32)

    Graphs are drawn first and motion is simulated on them, so that graphs can
    be chosen by what they are.
    """
    @property
    @abstractmethod
    def layers(self) -> Mapping[str, int]:
        """The name of each layer of the interaction graph, and its number of
        edge types. Type 0 means no interaction."""

    @property
    def num_edge_types(self) -> List[int]:
        """The number of edge types in each layer."""
        return list(self.layers.values())

    @property
    def frame_interval(self) -> float:
        """The time from one frame to the next in second."""
        return 0.1

    def draw_edge_types(self, seed: int, num_systems: int,
                        num_particles: int) -> np.ndarray:
        """Draws interaction graphs; by default, each pair has any of the types
        with the same probability, whatever the other pairs have.

        The first of many graphs are those that fewer would be.

        Args:
            seed (int): Seed of all randomness.
            num_systems (int): Number of systems :math:`S`.
            num_particles (int): Number of particles :math:`N` in each.

        Returns:
            Edge types, int64, ``[S, L, N, N]``: row the receiver, column the
            sender, zero on the diagonal.
        """
        return draw_edge_types(seed, self.num_edge_types, num_systems,
                               num_particles)

    @abstractmethod
    def simulate(self, edge_types: np.ndarray, seed: int,
                 num_threads: Optional[int] = None,
                 progress: bool = False) -> np.ndarray:
        """Simulates one system on each graph.

        Args:
            edge_types (numpy.ndarray): Edge types, ``[S, L, N, N]``.
            seed (int): Seed of all randomness.
            num_threads (int, optional): Number of threads, which never
                changes the result. If absent, all processors.
            progress (bool): Whether to show a progress bar on standard error.

        Returns:
            The features of each particle in each frame, float32,
            ``[S, N, T, F]``: position then velocity, or what takes their
            places. Models scale each half of the features as one quantity.
        """
