"""Candidates: numbers of layers and types that are compared with each other."""
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A number of layer-graphs, with a number of types each.

    Args:
        num_edge_types: Number of types of each layer, no interaction included.

    Raises:
        ValueError: If there is no layer, or one of fewer than two types.
    """
    num_edge_types: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.num_edge_types or min(self.num_edge_types) < 2:
            raise ValueError(f"A candidate has at least one layer, each of at "
                             f"least 2 types, no interaction included, but got "
                             f"'{self.name}'.")

    @classmethod
    def from_name(cls, name: str) -> 'Candidate':
        """The candidate of that name, such as `2,3`.

        Raises:
            ValueError: If there is none.
        """
        parts = name.split(',')
        if not all(part.isdecimal() for part in parts):
            raise ValueError(f"Expected the types of each layer, with commas "
                             f"and without spaces, such as 2,3 for one layer "
                             f"of 2 types and one of 3, but got '{name}'.")
        return cls(tuple(map(int, parts)))

    @property
    def name(self) -> str:
        """Such as `2,3`."""
        return ','.join(map(str, self.num_edge_types))

    @property
    def size(self) -> tuple[int, int]:
        """What candidates are ordered by, the smallest first: the number of
        types that stand for an interaction, each of which the decoder has to
        learn; then the number of combinations of types."""
        types = self.num_edge_types
        return sum(types) - len(types), math.prod(types)
