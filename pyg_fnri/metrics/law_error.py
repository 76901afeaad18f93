"""How far learned force laws are from the true ones."""
from typing import Any, Optional

import numpy as np
import torch

# The share of distances that supports a law. Without it a handful of close
# encounters would decide the error of a law that diverges there.
SUPPORT = (0.01, 0.99)


def relative_law_error(
    distance: Any,
    learned: Any,
    true: Any,
    seen: Any,
) -> np.ndarray:
    r"""The relative error of each force law at the distances that were seen,

    .. math::
        \frac{\sum_r |f_k(r) - f^*_k(r)|}{\sum_r |f^*_k(r)|}

    with the learned law :math:`f_k`, the true one :math:`f^*_k` and the sum
    over the seen distances from the 1 % to the 99 % quantile, see
    :func:`supported_distances`.

    Args:
        distance (numpy.ndarray or torch.Tensor): Where the laws are given, in
            metre, increasing, :obj:`[K]`. They are interpolated linearly.
        learned (numpy.ndarray or torch.Tensor): The learned laws, forces per
            unit mass in m/s^2, positive where repulsive, :obj:`[C, K]`.
        true (numpy.ndarray or torch.Tensor): The true laws, row for row,
            :obj:`[C, K]`.
        seen (numpy.ndarray or torch.Tensor): Distances of pairs in the data,
            in metre, :obj:`[num_seen]`.

    Returns:
        The errors, :obj:`[C]`; 0.01 is one percent.

    Raises:
        TypeError: If an argument holds anything but real numbers.
        ValueError: If shapes do not fit together, a value is not finite, the
            distances are not positive and increasing, or do not cover those
            seen, or a true law is zero at all of these.
    """
    distance = check_distance(distance)
    learned = check_laws('learned', learned, len(distance))
    true = check_laws('true', true, len(distance), len(learned))
    at = supported_distances(distance, seen)
    error = np.abs(interpolate(distance, learned - true, at)).sum(axis=-1)
    size = np.abs(interpolate(distance, true, at)).sum(axis=-1)
    if not size.all():
        raise ValueError(f'The true law of channel {int(size.argmin())} is '
                         f'zero at all seen distances: it has no relative '
                         f'error. Leave the channel out.')
    return error / size


def supported_distances(distance: np.ndarray, seen: Any) -> np.ndarray:
    """The seen distances at which a law can be judged: from the 1 % to the
    99 % quantile, and where the laws are given.

    Args:
        distance: Where the laws are given, checked, :obj:`[K]`.
        seen: Distances of pairs in the data, :obj:`[num_seen]`.

    Raises:
        ValueError: If there are none.
    """
    seen = check_seen(seen)
    low = np.quantile(seen, SUPPORT[0], method='lower')
    high = np.quantile(seen, SUPPORT[1], method='higher')
    within = seen[(seen >= max(low, distance[0]))
                  & (seen <= min(high, distance[-1]))]
    if not within.size:
        raise ValueError(f'The laws are given at distances from '
                         f'{distance[0]:.3g} to {distance[-1]:.3g}, but those '
                         f'seen are from {low:.3g} to {high:.3g}: expected '
                         f'ranges that overlap, both in metre.')
    return within


def interpolate(distance: np.ndarray, laws: np.ndarray,
                at: np.ndarray) -> np.ndarray:
    """Laws :obj:`[C, K]` at other distances :obj:`[Q]`: :obj:`[C, Q]`."""
    return np.stack([np.interp(at, distance, law) for law in laws])


def check_distance(distance: Any) -> np.ndarray:
    """At least two distances, positive and increasing, :obj:`[K]`."""
    array = _finite('distance', distance, 1, '[num_distances]')
    if len(array) < 2 or array[0] <= 0 or (np.diff(array) <= 0).any():
        raise ValueError('distance must hold at least two distances in '
                         'metre, positive and increasing.')
    return array


def check_laws(
    name: str,
    laws: Any,
    num_distances: int,
    num_channels: Optional[int] = None,
) -> np.ndarray:
    """Laws at as many distances, a row per channel, :obj:`[C, K]`."""
    channels = 'num_channels' if num_channels is None else num_channels
    layout = f'[{channels}, {num_distances}]'
    array = _finite(name, laws, 2, layout)
    if (not array.size or array.shape[1] != num_distances
            or num_channels not in (None, len(array))):
        raise ValueError(f'{name} has shape {list(array.shape)}, expected '
                         f'{layout}: a row per channel, a column per '
                         f'distance.')
    return array


def check_seen(seen: Any) -> np.ndarray:
    """At least one distance, none negative, :obj:`[num_seen]`."""
    array = _finite('seen', seen, 1, '[num_seen]')
    if not array.size or array.min() < 0:
        raise ValueError('seen must hold at least one distance in metre, none '
                         'negative.')
    return array


def _finite(name: str, values: Any, ndim: int, layout: str) -> np.ndarray:
    tensor = torch.as_tensor(values).detach().cpu()
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f'{name} must hold real numbers, got {tensor.dtype}.')
    array = tensor.double().numpy()
    if array.ndim != ndim:
        raise ValueError(f'{name} has shape {list(array.shape)}, expected '
                         f'{layout}.')
    if not np.isfinite(array).all():
        raise ValueError(f'{name} holds NaN or infinite values: expected '
                         f'finite numbers.')
    return array
