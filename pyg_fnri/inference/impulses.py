"""The evidence of force laws, by the impulse of each pair between frames."""
import copy
from collections.abc import Sequence
from typing import Optional

import numpy as np
import torch
from torch import Tensor

from pyg_fnri.inference.evidence import Evidence, Pairs
from pyg_fnri.inference.likelihood import cauchy_width
from pyg_fnri.nn import ForceLawDecoder

#: Frames from the start of one trajectory to the next.
GAP = 1_000_000

#: Points of the quadrature between two frames, and at how many distances laws
#: are looked up at once, to save memory.
NUM_POINTS, NUM_DISTANCES = 3, 500_000

#: How far the rate of change of positions may be from the velocities given.
MAX_SLIP = 0.1


class Transitions:
    r"""What happens to particles and pairs between successive frames.

    Along the cubic through both states, the impulse of a pair's force and its
    shift, both linear in the graph and the law's table, are (Gauss-Legendre)

    .. math::
        \Delta \mathbf{v} = \int_0^h \mathbf{f} \, dt, \qquad
        \Delta \mathbf{x} = \int_0^h (h - t) \, \mathbf{f} \, dt.

    Args:
        trajectories: Frames in m and m/s, each :obj:`[num_nodes, T, 2D]`.
        interval: Time :math:`h` between two frames, in s.
        half_width: Where walls reflect, in m; transitions that may meet one say
            nothing about forces.
        mass: Masses of the particles, :obj:`[num_nodes]`, if they differ.
    """
    def __init__(self, trajectories: Sequence[Tensor], choices: Pairs,
                 interval: float, half_width: Optional[float] = None,
                 mass: Optional[Tensor] = None) -> None:
        if not all(bool(x.isfinite().all()) for x in trajectories):
            raise ValueError('Some values of trajectories are not finite.')
        self.choices = choices
        start = torch.cat([x[:, :-1] for x in trajectories], dim=1)
        stop = torch.cat([x[:, 1:] for x in trajectories], dim=1)
        #: First frame of each transition, [num_transitions].
        self.frame = torch.cat([
            number * GAP + torch.arange(x.size(1) - 1, device=x.device)
            for number, x in enumerate(trajectories)
        ])
        (x0, v0), (x1, v1) = start.chunk(2, -1), stop.chunk(2, -1)
        m0, m1 = interval * v0, interval * v1
        self.mass = x0.new_ones(len(x0)) if mass is None else mass
        #: What forces have to explain, [num_nodes, num_transitions, 2D].
        self.change = torch.cat([x1 - x0 - m0, v1 - v0], dim=-1)
        #: Whether they can, [num_nodes, num_transitions].
        self.valid = torch.ones_like(x0[..., 0], dtype=torch.bool)
        if half_width is not None:
            reach = torch.maximum(x0.abs() + m0.abs(), x1.abs() + m1.abs())
            self.valid = (reach < half_width).all(-1)

        points = np.polynomial.legendre.leggauss(NUM_POINTS)
        node, weight = (torch.from_numpy(part).to(start) for part in points)
        time, weight = (node + 1) / 2, weight / 2 * interval
        offsets = []
        for t in time.tolist():  # On the cubic.
            at = ((1 + 2 * t) * (1 - t)**2 * x0 + t * (1 - t)**2 * m0 + t**2 *
                  (3 - 2 * t) * x1 + t**2 * (t - 1) * m1)
            offsets.append(at[choices.receiver] - at[choices.sender])
        offset = torch.stack(offsets, dim=2)
        #: [V, num_transitions, points], above zero.
        self.distance = offset.norm(dim=-1).clamp(
            min=shortest_distance(offset.dtype))
        direction = offset / self.distance.unsqueeze(-1)
        #: Shift and impulse of the receiver by a unit of force at a point,
        #: [V, num_transitions, points, 2D].
        self.unit_effect = torch.cat([
            direction * (weight * (1 - time) * interval).unsqueeze(-1),
            direction * weight.unsqueeze(-1)
        ], dim=-1)

    def integrate(self, force: Tensor, choices: slice = slice(None)) -> Tensor:
        """Shift and impulse :obj:`[*, v, num_transitions, 2D]` of receivers
        by forces :obj:`[*, v, num_transitions, points]`."""
        # Point by point: there are three, too few for a matrix product.
        unit_effect = self.unit_effect[choices]
        out = force[..., 0, None] * unit_effect[..., 0, :]
        for p in range(1, force.size(-1)):
            out += force[..., p, None] * unit_effect[..., p, :]
        return out

    def take(self, transitions: slice) -> 'Transitions':
        out = copy.copy(self)
        for name in ('change', 'valid', 'distance', 'unit_effect'):
            setattr(out, name, getattr(self, name)[:, transitions])
        out.frame = self.frame[transitions]
        return out

    def thinned(self, step: int) -> 'Transitions':
        first = int(self.valid.any(0).long().argmax())
        return self.take(slice(first, None, step))

    def sum_at_particles(self, effect: Tensor) -> Tensor:
        """Sums effects :obj:`[V, ...]`, and their opposites on senders, over
        masses."""
        choices, both = self.choices, self.choices.mutual
        out = effect.new_zeros((self.change.size(0), ) + effect.size()[1:])
        out.index_add_(0, choices.receiver, effect)
        out.index_add_(0, choices.sender[both], -effect[both])
        return out / self.mass.view(-1, *[1] * (out.dim() - 1))


class ImpulseEvidence(Evidence):
    """The evidence of a layer's force laws, in units of its scale."""
    max_tried = 4_000_000

    @torch.no_grad()
    def __init__(self, transitions: Transitions,
                 layer: ForceLawDecoder) -> None:
        self.transitions = transitions
        self.scale = layer.scale
        self.change = transitions.change / self.scale
        distance = transitions.distance
        #: [V, num_channels, num_transitions, 2D]
        self.effect = self.change.new_empty(distance.size(0),
                                            layer.law.num_channels,
                                            *self.change.size()[1:])
        size = max(1, NUM_DISTANCES // max(1, distance[:1].numel()))
        for start in range(0, distance.size(0), size):
            part = slice(start, start + size)
            force = layer.law(distance[part])
            effect = transitions.integrate(force, part) / self.scale
            self.effect[part] = effect.transpose(0, 1)

    def errors(self, channels: Tensor) -> Tensor:
        effect = torch.einsum('vc,vc...->v...', channels, self.effect)
        errors = self.change - self.transitions.sum_at_particles(effect)
        return errors * self.transitions.valid.unsqueeze(-1)

    def effects(self, members: Tensor) -> tuple[Tensor, Tensor]:
        """Effects of a unit of each channel on receivers and on senders, twice
        :obj:`[v, C, num_transitions, F]`."""
        choices, effect = self.transitions.choices, self.effect[members]
        receiver, sender = choices.receiver[members], choices.sender[members]
        opposite = -effect * choices.mutual[members].view(-1, 1, 1, 1)
        valid = self.transitions.valid[:, None, :, None]
        mass = self.transitions.mass.view(-1, 1, 1, 1)
        return (effect / mass[receiver] * valid[receiver],
                opposite / mass[sender] * valid[sender])

    def changed_errors(self, errors: Tensor, channels: Tensor, members: Tensor,
                       options: Tensor) -> tuple[Tensor, Tensor]:
        choices, out = self.transitions.choices, []
        change = options - channels[members].unsqueeze(1)  # [v, M, C]
        for particle, effect in zip((choices.receiver, choices.sender),
                                    self.effects(members)):
            before = errors[particle[members]].flatten(1).unsqueeze(1)
            after = torch.baddbmm(before, change, effect.flatten(2), alpha=-1)
            out.append(after.view(*change.size()[:2], *errors.size()[1:]))
        return out[0], out[1]


def shortest_distance(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).tiny**0.5


@torch.no_grad()
def velocity_slope(x: Tensor, interval: float) -> float:
    """The rate of change of positions over the velocities given, robustly."""
    position, velocity = x.double().chunk(2, dim=-1)
    change = position[:, 1:] - position[:, :-1]
    expected = interval * (velocity[:, 1:] + velocity[:, :-1]) / 2
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
    return slope.item()


def check_motion(x: Tensor, interval: float) -> None:
    """Raises a :class:`ValueError` if positions :obj:`x[..., :D]` in m do not
    move at the velocities :obj:`x[..., D:]` in m/s, every :obj:`interval` s."""
    slope = velocity_slope(x, interval)
    if not abs(slope - 1) <= MAX_SLIP:
        raise ValueError(f"Positions move at {slope:.2f} times the velocities "
                         f"given, so features are no positions and velocities, "
                         f"or the interval between two frames is another one. "
                         f"Force laws are not for such data.")
