"""How particles go from frame to frame, and what of it forces explain."""
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.inference.likelihood import cauchy_width
from pyg_fnri.nn import RateLawDecoder, Walls
from pyg_fnri.nn.force_law import wrapped

#: Frames from the start of one trajectory to the next.
GAP = 1_000_000
#: Points of the quadrature between two frames.
NUM_POINTS = 3
#: The correlation of steps that is noise, and the least variance of a walk, as
#: a share of that seen.
ALTERNATING, LEAST_WALK = 0.05, 1e-3
#: How far the rate of change of positions may be from the velocities given.
MAX_SLIP = 0.1
#: What may be left of changes that are those by velocities, and how far the
#: radius of a circle may be from 1.
MAX_LEFT, ROUNDNESS = 0.5, 1e-3
#: Steps that both are summed over.
NUM_SUMMED = 8
#: The share of velocities that positions alone may leave, if dynamics may be of
#: first order; the ridge of that regression, and particles asked.
MAX_FOLLOWING, RIDGE, NUM_ASKED = 0.5, 1e-3, 60


class Path(NamedTuple):
    """How particles go from frame to frame, and what of it forces explain.

    Args:
        change: What they explain: Q numbers of each coordinate,
            :obj:`[num_nodes, T, Q * D]`.
        valid: Whether they can, :obj:`[num_nodes, T]`.
        frame: Its first frame, :obj:`[T]`; later recordings by :data:`GAP`.
        position, velocity: At P points, :obj:`[num_nodes, T, P, D]`.
        kernel: By how much a force at a point adds to each of the Q numbers,
            :obj:`[P, Q]`.
        circle: Whether positions are angles.
    """
    change: Tensor
    valid: Tensor
    frame: Tensor
    position: Tensor
    velocity: Tensor
    kernel: Tensor
    circle: bool = False


def rate_path(layer: RateLawDecoder, trajectories: Sequence[Tensor]) -> Path:
    r"""Of first order: rates where they are measured; else, along the cubic
    through the four nearest frames,

    .. math::
        \Delta \mathbf{x} = \int_0^h \dot{\mathbf{x}} \, dt.
    """
    if not all(bool(x.isfinite().all()) for x in trajectories):
        raise ValueError('Some values of trajectories are not finite.')
    parts: list[tuple[Tensor, ...]] = []
    for number, x in enumerate(trajectories):
        position, constants = layer.split(x)
        if layer.measured:
            kernel = x.new_ones(1, 1)
            part = layer.rate(x), position.unsqueeze(2), constants.unsqueeze(2)
        else:
            time, weight = _quadrature(x)
            kernel = (layer.interval * weight).unsqueeze(-1)
            change = layer.between(position[:, 1:], position[:, :-1])
            start = position[:, :1]
            position = torch.cat([start, start + change.cumsum(1)], dim=1)
            held = constants[:, :-1, None].expand(-1, -1, len(time), -1)
            part = change, _through_nearest(position, time), held
        frame = torch.arange(part[0].size(1), device=x.device)
        parts.append((*part, (number * GAP + frame).unsqueeze(0)))
    change, position, constants, frame = (torch.cat(all_of, dim=1)
                                          for all_of in zip(*parts))
    return Path(change, torch.ones_like(change[..., 0], dtype=torch.bool),
                frame[0], position, constants, kernel, layer.circle)


def _through_nearest(position: Tensor, time: Tensor) -> Tensor:
    """Positions :obj:`[num_nodes, T, D]` at times between each two frames, from
    0 to 1, :obj:`[num_nodes, T - 1, P, D]`, by Lagrange's polynomials."""
    num_frames = position.size(1)
    size = min(4, num_frames)
    before = torch.arange(num_frames - 1, device=position.device)
    first = (before - (size - 1) // 2).clamp(0, num_frames - size)
    place = (before - first).unsqueeze(-1) + time.double()  # [T - 1, P]
    node = torch.arange(size, device=position.device)
    same = torch.eye(size, dtype=torch.bool, device=node.device)
    factor = (place.unsqueeze(-1).unsqueeze(-1) -
              node) / (node.unsqueeze(-1) - node).masked_fill(same, 1)
    weight = factor.masked_fill(same, 1).prod(-1)  # [T - 1, P, size]
    nearest = position.unfold(1, size, 1)[:, first]  # [num_nodes, T - 1, D, _]
    return torch.einsum('ntds,tps->ntpd', nearest, weight.to(position))


def _quadrature(like: Tensor) -> tuple[Tensor, Tensor]:
    """Times from 0 to 1 and weights, of Gauss and Legendre."""
    points = np.polynomial.legendre.leggauss(NUM_POINTS)
    node, weight = (torch.from_numpy(part).to(like) for part in points)
    return (node + 1) / 2, weight / 2


def hermite_path(trajectories: Sequence[Tensor], interval: float,
                 walls: Optional[Walls] = None, num_windows: int = 1) -> Path:
    r"""Along the cubic through the states of both frames, shifts and impulses
    are (Gauss-Legendre)

    .. math::
        \Delta \mathbf{x} = \int_0^h (h - t) \, \mathbf{f} \, dt, \qquad
        \Delta \mathbf{v} = \int_0^h \mathbf{f} \, dt.

    Args:
        trajectories: Frames in m and m/s, each :obj:`[num_nodes, T, 2D]`.
        interval: Time :math:`h` between two frames, in s.
        walls: Transitions that may meet one say nothing about forces.
        num_windows: Of the same particles, in each trajectory one below the
            other; in the path, one after the other.
    """
    if not all(bool(x.isfinite().all()) for x in trajectories):
        raise ValueError('Some values of trajectories are not finite.')
    parts: list[tuple[Tensor, ...]] = []
    for x in trajectories:
        (x0, v0), (x1, v1) = x[:, :-1].chunk(2, -1), x[:, 1:].chunk(2, -1)
        m0, m1 = interval * v0, interval * v1
        valid = torch.ones_like(x0[..., 0], dtype=torch.bool)
        if walls is not None:
            high = torch.maximum(x0 + m0.abs(), x1 + m1.abs())
            low = torch.minimum(x0 - m0.abs(), x1 - m1.abs())
            valid = ((high < walls.upper) & (low > walls.lower)).all(-1)
        change = torch.cat([x1 - x0 - m0, v1 - v0], dim=-1)
        noise = noise_of_positions(x1 - x0 - (m0 + m1) / 2, valid)
        whole = (change, valid, x0 - noise[:, :-1], x1 - noise[:, 1:], v0, v1)
        parts += zip(*(value.chunk(num_windows) for value in whole))
    frame = torch.cat([
        number * GAP + torch.arange(part[0].size(1), device=part[0].device)
        for number, part in enumerate(parts)
    ])
    change, valid, x0, x1, v0, v1 = (torch.cat(all_of, dim=1)
                                     for all_of in zip(*parts))
    m0, m1 = interval * v0, interval * v1
    time, weight = _quadrature(x0)
    weight = interval * weight
    slip = x1 - x0 - (m0 + m1) / 2
    position, velocity = [], []
    for t in time.tolist():
        position.append((1 + 2 * t) * (1 - t)**2 * x0 + t * (1 - t)**2 * m0 +
                        t**2 * (3 - 2 * t) * x1 + t**2 * (t - 1) * m1)
        velocity.append((1 - t) * v0 + t * v1 + (6 * t *
                                                 (1 - t) / interval) * slip)
    return Path(change, valid, frame, torch.stack(position, dim=2),
                torch.stack(velocity, dim=2),
                torch.stack([weight * (1 - time) * interval, weight], dim=-1))


def noise_of_positions(slip: Tensor, valid: Tensor) -> Tensor:
    r"""The noise of positions, :obj:`[num_nodes, T + 1, D]`, in what they move
    beyond velocities, :obj:`[num_nodes, T, D]`: a random walk of variance
    :math:`q` seen with noise of variance :math:`r`, which in successive steps
    has opposite signs. The smoother of such walks solves
    :math:`(\mathbf{I} + \tfrac{r}{q} \mathbf{D}^T \mathbf{D}) \mathbf{e} =
    \tfrac{r}{q} \mathbf{D}^T \mathbf{s}`, with differences :math:`\mathbf{D}`.
    """
    noise = slip.new_zeros(len(slip), slip.size(1) + 1, slip.size(2))
    both = valid[:, 1:] & valid[:, :-1]
    if not bool(both.any()):
        return noise
    limit = 3 * 1.4826 * slip[valid].abs().median(0).values
    inside = slip.clamp(-limit, limit).double()
    variance = inside[valid].square().mean(0)
    covariance = (inside[:, 1:] * inside[:, :-1])[both].mean(0)
    r = torch.where(covariance < -ALTERNATING * variance, -covariance, 0.0)
    q = (variance - 2 * r).clamp(min=LEAST_WALK * variance)
    ratio = (r / q.clamp(min=torch.finfo(q.dtype).tiny)).to(slip)
    if not bool(ratio.any()):
        return noise
    link = ratio * valid.unsqueeze(-1)  # [num_nodes, T, D]
    pull = link * slip
    edge = torch.zeros_like(link[:, :1])
    right = torch.cat([edge, pull], 1) - torch.cat([pull, edge], 1)
    diagonal = 1 + torch.cat([edge, link], 1) + torch.cat([link, edge], 1)
    for t in range(1, diagonal.size(1)):  # Tridiagonal.
        share = link[:, t - 1] / diagonal[:, t - 1]
        diagonal[:, t] -= share * link[:, t - 1]
        right[:, t] += share * right[:, t - 1]
    for t in range(diagonal.size(1) - 1, -1, -1):
        if t + 1 < diagonal.size(1):
            right[:, t] += link[:, t] * noise[:, t + 1]
        noise[:, t] = right[:, t] / diagonal[:, t]
    return noise


def _slope(change: Tensor, expected: Tensor) -> tuple[float, float]:
    """The change over that expected, robustly, and the share of typical changes
    that this leaves."""
    # Over several steps, of which the noise of most frames is in none.
    size = min(NUM_SUMMED, change.size(1))
    change, expected = (value.double().unfold(1, size, 1).sum(-1)
                        for value in (change, expected))
    # Of about 1 in any unit, as widths and sums have floors.
    unit = torch.maximum(change.abs().mean(), expected.abs().mean())
    unit = unit.clamp(min=torch.finfo(unit.dtype).tiny)
    change, expected = change / unit, expected / unit
    slope = change.new_ones(())
    for _ in range(20):
        error = change - slope * expected
        weight = 1 / (1 + (error / cauchy_width(error)).square())
        normal = (weight * expected.square()).sum().clamp(min=1e-30)
        slope = (weight * expected * change).sum() / normal
    left = (change - slope * expected).abs().median() / change.abs().median()
    return slope.item(), left.item()


def find_motions(data: Data, interval: float,
                 num_windows: int = 1) -> list[dict[str, Any]]:
    """How features every :obj:`interval` s may move, the likeliest first, as
    arguments of a decoder of laws: none for positions and their velocities,
    which are of second order, but perhaps of first order, if velocities follow
    from positions. Others are of first order, see
    :class:`~pyg_fnri.nn.RateLawDecoder`; two with a sum of squares of 1 are an
    angle. Raises a :class:`ValueError` if the interval must be another one."""
    x = data.x
    if not bool(x.isfinite().all()):
        raise ValueError('Some values of trajectories are not finite.')
    moves = (x != x[:, :1]).flatten(0, 1).any(0).tolist()
    half = len(moves) // 2
    if len(moves) == 2 * half:  # The velocity of an axis that rests as well.
        moves[half:] = [
            own or not place for place, own in zip(moves, moves[half:])
        ]
    size = len(moves) - moves[::-1].index(True) if any(moves) else len(moves)
    moving, num_constants = x[..., :size], len(moves) - size
    circle = size in (2, 3) and bool(
        ((moving[..., :2].square().sum(-1) - 1).abs() < ROUNDNESS).all())
    position, rate = moving, moving[..., :0]
    if circle:
        position = torch.atan2(moving[..., 1:2], moving[..., :1])
        rate = moving[..., 2:]
    elif size % 2 == 0:
        position, rate = moving.chunk(2, dim=-1)
    measured = rate.size(-1) > 0
    if measured:
        change = position[:, 1:] - position[:, :-1]
        axes = (change != 0).flatten(0, 1).any(0)  # Others say nothing.
        change, rate = change[..., axes], rate[..., axes]
        slope, left = _slope(
            wrapped(change) if circle else change,
            interval * (rate[:, 1:] + rate[:, :-1]) / 2)
        measured = left < MAX_LEFT
        if measured and not abs(slope - 1) <= MAX_SLIP:
            raise ValueError(f"Positions move at {slope:.2f} times the "
                             f"velocities given, so the interval between two "
                             f"frames is another one.")
    own = 'drive' if num_constants else 'own-rate' if circle else 'field'
    first = dict(order=1, circle=circle, measured=measured,
                 num_constants=num_constants, terms=[own])
    if not measured or circle or num_constants:
        return [first]
    return [{}, first] if velocities_follow(data, num_windows) else [{}]


def velocities_follow(data: Data, num_windows: int = 1) -> bool:
    """Whether velocities are functions of positions, of each pair its own: of
    some particles, such are fitted to :obj:`x` and tried on :obj:`y`, or on the
    second half of :obj:`x`; of systems that are windows of the same particles,
    all together."""
    halves = data.x.split((data.x.size(1) + 1) // 2, dim=1)
    if data.get('y') is not None:
        halves = data.x, data.y
    halves = [torch.cat(x.chunk(num_windows), dim=1) for x in halves]
    shares = []
    for i in range(min(NUM_ASKED, len(halves[0]))):
        sender = data.edge_index[0, data.edge_index[1] == i]
        parts = []
        for x in halves:
            place, velocity = x.double().chunk(2, -1)
            offset = place[i] - place[sender]
            square = offset.square().sum(-1, keepdim=True).clamp(min=1e-300)
            columns = torch.cat(
                [offset, offset / square.sqrt(), offset / square])  # [3K, T, D]
            parts.append((columns.flatten(1).t(), velocity[i].reshape(-1, 1)))
        (seen, target), (later, rate) = parts
        normal = seen.t() @ seen
        normal += RIDGE * torch.diag(normal.diagonal() + 1e-300)
        constants = torch.linalg.solve(normal, seen.t() @ target)
        left = rate - later @ constants
        # Those of particles that fly straight on are no function of positions.
        mean = target.view(-1, place.size(-1)).mean(0)
        varies = (rate.view(-1, place.size(-1)) - mean).square().mean()
        unknown = torch.minimum(rate.square().mean(), varies)
        shares.append(left.square().mean() / unknown)
    return bool(torch.stack(shares).nanmedian() < MAX_FOLLOWING)
