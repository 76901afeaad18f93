"""Means over held-out systems and seeds, and how sure they are."""
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Optional, TypeVar

import numpy as np

from pyg_fnri.inference.likelihood import Estimate

Key = TypeVar('Key', bound=Hashable)


def difference(values: np.ndarray,
               others: Optional[np.ndarray] = None) -> Estimate:
    r"""The mean of values, or of their difference from others on the same
    systems.

    Systems differ much more from each other than models do on the same one,
    so differences are taken by system, :math:`d_s` of means over seeds. What
    another choice of systems and what other seeds would change adds up:

    .. math::
        \mathrm{SE}^2 = \frac{\mathrm{Var}_s(d_s)}{S}
        + \frac{\mathrm{Var}_r(\bar{v}_r)}{R}
        + \frac{\mathrm{Var}_r(\bar{o}_r)}{R_o}

    Of a single seed, nothing is known about other ones: its term is left out.

    Args:
        values: A row for each seed, a column for each system, :obj:`[R, S]`.
        others: Likewise, :obj:`[R_o, S]`. (default: 0)

    Returns:
        The mean and its standard error; where a value is not finite, as of a
        rollout that diverged, infinity and NaN.

    Raises:
        ValueError: If shapes do not fit, or there are fewer than two systems.
    """
    if others is None:
        others = np.zeros((1, values.shape[-1]))
    if (values.ndim != 2 or others.ndim != 2 or not len(values)
            or not len(others) or values.shape[1] != others.shape[1]):
        raise ValueError(f'Expected values [num_seeds, num_systems] of the '
                         f'same systems, but got {list(values.shape)} and '
                         f'{list(others.shape)}.')
    num_systems = values.shape[1]
    if num_systems < 2:
        raise ValueError(f'A standard error takes at least 2 held-out systems, '
                         f'but there is {num_systems}; record more systems, '
                         f'or cut recordings into more windows with --window.')
    if not (np.isfinite(values).all() and np.isfinite(others).all()):
        return Estimate(math.inf, math.nan)
    by_system = values.mean(0) - others.mean(0)
    variance = (by_system.var(ddof=1) / num_systems + _of_seeds(values) +
                _of_seeds(others))
    return Estimate(float(by_system.mean()), math.sqrt(variance))


def smallest_within_one_error(
    values: Mapping[Key, np.ndarray],
    by_size: Sequence[Key],
) -> tuple[Key, Key]:
    """The one-standard-error rule: of all candidates that are worse than the
    best one by at most one standard error of the difference, the smallest.

    Args:
        values: What is better when lower, :obj:`[num_seeds, num_systems]` of
            each candidate, on the same systems.
        by_size: The candidates, the smallest first.

    Returns:
        The choice, and the best one.

    Raises:
        ValueError: If no candidate has finite values, or as
            :func:`difference`.
    """
    mean = {key: difference(values[key]).mean for key in by_size}
    best = min(by_size, key=lambda key: mean[key])
    if not math.isfinite(mean[best]):
        raise ValueError('The rollouts of every candidate diverged in some '
                         'held-out system, so none can be recommended; train '
                         'longer with --max-steps, or at a lower '
                         '--learning-rate.')
    for key in by_size:
        behind = difference(values[key], values[best])
        if key == best or behind.mean <= behind.error:
            return key, best
    raise AssertionError  # The best one is among them.


def _of_seeds(values: np.ndarray) -> float:
    """The squared standard error of the mean over seeds."""
    if len(values) == 1:
        return 0.
    return float(values.mean(1).var(ddof=1)) / len(values)
