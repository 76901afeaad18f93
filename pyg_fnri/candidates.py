"""Candidate graphs: which pairs of particles may interact at all.

Every ordered pair, :func:`~pyg_fnri.data.fully_connected`, is the default and
grows with the square of the number of particles. Where interactions are known
to be short-ranged, the graphs here leave out the pairs that never come close.
"""
from typing import Optional

import torch
from torch import Tensor


def nearest_neighbours(
    x: Tensor,
    num_neighbours: int,
    num_observed: Optional[int] = None,
    num_dims: Optional[int] = None,
    force_undirected: bool = False,
) -> Tensor:
    """Joins each receiver to the particles that come closest to it.

    The distance of two particles is the smallest one of all frames looked at
    (:func:`closest_approach`); of equally close ones the first are taken.
    Systems of fewer particles are fully connected.

    Args:
        x (Tensor): Trajectories, `[N, T, F]`, positions first.
        num_neighbours (int): The number of senders of each receiver, at least
            1; or :math:`N - 1`, whichever is lower.
        num_observed (int, optional): Frames to look at, from the first on.
            Leave the frames out that are to be predicted. (default: all)
        num_dims (int, optional): The number of features that are positions.
            (default: the first half of them)
        force_undirected (bool): Whether to add the reverse of each edge, so
            that two particles are joined if either is among the closest to
            the other. (default: `False`)

    Returns:
        `edge_index`, `[2, E]` int64, sorted by receiver, then by sender.

    Raises:
        ValueError: If an argument is out of range or a shape does not fit.
    """
    if num_neighbours < 1:
        raise ValueError(f'num_neighbours must be at least 1, not '
                         f'{num_neighbours}.')
    distance = closest_approach(x, num_observed, num_dims)
    num_neighbours = min(num_neighbours, distance.size(0) - 1)
    # Stable: ties go to the lower number, on any machine.
    order = distance.sort(dim=1, stable=True).indices
    joined = torch.zeros_like(distance, dtype=torch.bool)
    joined.scatter_(1, order[:, :num_neighbours], True)
    return _edges(joined | joined.t() if force_undirected else joined)


def within_radius(
    x: Tensor,
    radius: float,
    num_observed: Optional[int] = None,
    num_dims: Optional[int] = None,
) -> Tensor:
    """Joins the particles that come within a radius of each other.

    Two particles are joined, in both directions, if their distance is at most
    `radius` in any frame looked at (:func:`closest_approach`). A particle
    that stays away from all others has no edges.

    Args:
        x (Tensor): Trajectories, `[N, T, F]`, positions first.
        radius (float): The radius, above 0, in the unit of the positions.
        num_observed (int, optional): Frames to look at, from the first on.
            Leave the frames out that are to be predicted. (default: all)
        num_dims (int, optional): The number of features that are positions.
            (default: the first half of them)

    Returns:
        `edge_index`, `[2, E]` int64, sorted by receiver, then by sender.

    Raises:
        ValueError: If an argument is out of range or a shape does not fit.
    """
    if not radius > 0:
        raise ValueError(f'radius must be above 0, not {radius}.')
    return _edges(closest_approach(x, num_observed, num_dims) <= radius)


def closest_approach(
    x: Tensor,
    num_observed: Optional[int] = None,
    num_dims: Optional[int] = None,
) -> Tensor:
    """The smallest distance of each two particles over the frames looked at:
    an interaction that fades with distance is strongest there.

    Args:
        x (Tensor): Trajectories, `[N, T, F]`, positions first.
        num_observed (int, optional): Frames to look at, from the first on.
            (default: all)
        num_dims (int, optional): The number of features that are positions.
            (default: the first half of them)

    Returns:
        Distances, `[N, N]`, infinite on the diagonal.

    Raises:
        ValueError: If an argument is out of range or a shape does not fit.
    """
    if x.dim() != 3 or x.size(0) < 2:
        raise ValueError(f'x must be [num_particles, num_steps, num_features] '
                         f'of at least 2 particles, but its shape is '
                         f'{list(x.shape)}.')
    num_steps, num_features = x.shape[1:]
    if num_observed is None:
        num_observed = num_steps
    if not 1 <= num_observed <= num_steps:
        raise ValueError(f'num_observed must be from 1 to the {num_steps} '
                         f'frames of x, not {num_observed}.')
    if num_dims is None:
        if num_features % 2 == 1:
            raise ValueError(
                f'x has {num_features} features, which are not positions and '
                f'as many velocities; say with num_dims how many of them, '
                f'from the first on, are positions.')
        num_dims = num_features // 2
    if not 1 <= num_dims <= num_features:
        raise ValueError(f'num_dims must be from 1 to the {num_features} '
                         f'features of x, not {num_dims}.')
    position = x[:, :num_observed, :num_dims]
    if not bool(position.isfinite().all()):
        raise ValueError('The positions in x must be finite numbers.')
    num_particles = x.size(0)
    closest = x.new_full((num_particles, num_particles), float('inf'))
    for frame in position.unbind(1):  # [N, D]: no more than N x N at a time.
        # Plain differences: by products, near distances lose their digits.
        distance = torch.cdist(frame, frame,
                               compute_mode='donot_use_mm_for_euclid_dist')
        closest = torch.minimum(closest, distance)
    return closest.fill_diagonal_(float('inf'))


def _edges(joined: Tensor) -> Tensor:
    """Edges of a matrix `[N, N]` of receivers (rows) and senders (columns)."""
    receiver, sender = joined.nonzero(as_tuple=True)
    return torch.stack([sender, receiver])
