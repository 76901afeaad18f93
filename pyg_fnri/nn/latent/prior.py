"""Prior probabilities of types."""
from collections.abc import Sequence
from typing import Optional


def check_prior(prior: Optional[Sequence[Sequence[float]]],
                sizes: Sequence[int]) -> list[list[float]]:
    """A prior for each layer-graph as plain numbers, uniform if None.

    Args:
        prior: Probability of each type, for each layer-graph.
        sizes: Number of types of each layer-graph.

    Raises:
        ValueError: If the prior does not fit the types or is no distribution.
    """
    if prior is None:
        prior = [[1 / k] * k for k in sizes]
    if not _is_prior(prior, sizes):
        raise ValueError(
            f"Expected a prior of positive probabilities that sum to 1 for "
            f"each layer-graph, of lengths {list(sizes)}, but got {prior}.")
    return [[float(p) for p in layer] for layer in prior]


def _is_prior(prior: Sequence[Sequence[float]], sizes: Sequence[int]) -> bool:
    try:
        lengths = [len(layer) for layer in prior]
    except TypeError:  # Flat: one number where a layer-graph's belong.
        return False
    return lengths == list(sizes) and all(
        all(p > 0 for p in layer) and abs(sum(layer) - 1) <= 1e-6
        for layer in prior)
