"""The evidence of force laws, by the impulse of each pair between frames."""
import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor

from pyg_fnri.inference.evidence import Evidence, Pairs
from pyg_fnri.inference.likelihood import Objective, cauchy_width, robust_fit
from pyg_fnri.nn import (Central, ForceLawDecoder, NodeTerm, PairTerm,
                         RateLawDecoder, Walls)
from pyg_fnri.nn.force_law import wrapped

#: Frames from the start of one trajectory to the next.
GAP = 1_000_000

#: Points of the quadrature between two frames, and at how many distances laws
#: are looked up at once, to save memory.
NUM_POINTS, NUM_DISTANCES = 3, 500_000

#: How far from 1 a response is expected to be (a particle that felt hardly any
#: force tells little about itself), and is at the most; and how often it is
#: fitted to errors of a graph that is tried.
SPREAD, MAX_FACTOR, NUM_PROFILED = 0.5, 20.0, 3

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
    factor = (place.unsqueeze(-1).unsqueeze(-1) -
              node) / (node.unsqueeze(-1) - node).masked_fill(
                  torch.eye(size, dtype=torch.bool, device=node.device), 1)
    same = torch.eye(size, dtype=torch.bool, device=node.device)
    weight = factor.masked_fill(same, 1).prod(-1)  # [T - 1, P, size]
    nearest = position.unfold(1, size, 1)[:, first]  # [num_nodes, T - 1, D, _]
    return torch.einsum('ntds,tps->ntpd', nearest, weight.to(position))


def _quadrature(like: Tensor) -> tuple[Tensor, Tensor]:
    """Times from 0 to 1 and weights, of Gauss and Legendre."""
    points = np.polynomial.legendre.leggauss(NUM_POINTS)
    node, weight = (torch.from_numpy(part).to(like) for part in points)
    return (node + 1) / 2, weight / 2


def hermite_path(trajectories: Sequence[Tensor], interval: float,
                 walls: Optional[Walls] = None) -> Path:
    r"""Along the cubic through the states of both frames, shifts and impulses
    are (Gauss-Legendre)

    .. math::
        \Delta \mathbf{x} = \int_0^h (h - t) \, \mathbf{f} \, dt, \qquad
        \Delta \mathbf{v} = \int_0^h \mathbf{f} \, dt.

    Args:
        trajectories: Frames in m and m/s, each :obj:`[num_nodes, T, 2D]`.
        interval: Time :math:`h` between two frames, in s.
        walls: Transitions that may meet one say nothing about forces.
    """
    if not all(bool(x.isfinite().all()) for x in trajectories):
        raise ValueError('Some values of trajectories are not finite.')
    parts: list[tuple[Tensor, ...]] = []
    for number, x in enumerate(trajectories):
        (x0, v0), (x1, v1) = x[:, :-1].chunk(2, -1), x[:, 1:].chunk(2, -1)
        m0, m1 = interval * v0, interval * v1
        valid = torch.ones_like(x0[..., 0], dtype=torch.bool)
        if walls is not None:
            high = torch.maximum(x0 + m0.abs(), x1 + m1.abs())
            low = torch.minimum(x0 - m0.abs(), x1 - m1.abs())
            valid = ((high < walls.upper) & (low > walls.lower)).all(-1)
        change = torch.cat([x1 - x0 - m0, v1 - v0], dim=-1)
        frame = torch.arange(x0.size(1), device=x.device)
        noise = noise_of_positions(x1 - x0 - (m0 + m1) / 2, valid)
        parts.append((change, valid, (number * GAP + frame).unsqueeze(0),
                      x0 - noise[:, :-1], x1 - noise[:, 1:], v0, v1))
    change, valid, frame, x0, x1, v0, v1 = (torch.cat(all_of, dim=1)
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
    return Path(change, valid, frame[0], torch.stack(position, dim=2),
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


class Transitions:
    r"""What happens to particles and pairs between successive frames: linear
    in the graph, and in the laws and coefficients of all terms.

    Args:
        path: How particles move.
        mass: Masses of the particles, :obj:`[num_nodes]`, if they differ.
    """
    def __init__(self, path: Path, choices: Pairs,
                 mass: Optional[Tensor] = None) -> None:
        self.choices = choices
        if mass is None:
            mass = torch.ones_like(path.change[:, 0, 0])
        self.mass = mass
        self._put(path)

    def _put(self, path: Path) -> None:
        self.path = path
        #: What forces have to explain, [num_nodes, num_transitions, Q * D].
        self.change = path.change
        #: Whether they can, [num_nodes, num_transitions].
        self.valid = path.valid
        self.frame = path.frame
        offset = self._apart(slice(None))
        #: Of pairs, [V, num_transitions, points].
        self.distance = offset.norm(dim=-1).clamp(
            min=shortest_distance(offset.dtype))
        direction = offset / self.distance.unsqueeze(-1)
        self._central = self._times_kernel(direction.unsqueeze(-1))

    def _between(self, value: Tensor, part: slice) -> Tensor:
        choices = self.choices
        return value[choices.receiver[part]] - value[choices.sender[part]]

    def _apart(self, part: slice, term: Optional[PairTerm] = None,
               at_sender: bool = False) -> Tensor:
        """What a term's law depends on, :obj:`[v, num_transitions, points, D]`,
        at the receivers of some choices, or at their senders."""
        position, choices = self.path.position, self.choices
        if term is not None and term.of_sender:
            other = choices.receiver if at_sender else choices.sender
            return position[other[part]]
        offset = self._between(position, part)
        offset = wrapped(offset) if self.path.circle else offset
        return -offset if at_sender else offset

    def distances(self, term: PairTerm, part: slice = slice(None),
                  at_sender: bool = False) -> Tensor:
        """Where a term's law is looked up, :obj:`[v, num_transitions,
        points]`."""
        if not term.of_sender:
            return self.distance[part]
        return self._apart(part, term, at_sender).norm(dim=-1)

    def _times_kernel(self, vectors: Tensor) -> Tensor:
        """Of vectors :obj:`[*, points, D, P]`, :obj:`[*, points, Q * D, P]`."""
        weights = self.path.kernel.unsqueeze(-1).unsqueeze(-1).unbind(1)
        return torch.cat([weight * vectors for weight in weights], dim=-2)

    def unit_effects(self, term: PairTerm, part: slice = slice(None),
                     at_sender: bool = False) -> Tensor:
        """What a unit of a term's laws at a point does to the receivers of some
        choices, or to their senders, :obj:`[v, num_transitions, points, Q * D,
        P]`."""
        if isinstance(term, Central) and not at_sender:
            return self._central[part]
        offset = self._apart(part, term, at_sender)
        velocity = offset
        if term.uses_velocity:
            velocity = self._between(self.path.velocity, part)
            velocity = -velocity if at_sender else velocity
        return self._times_kernel(term.vectors(offset, velocity))

    def integrate(self, term: PairTerm, law: Tensor, part: slice = slice(None),
                  at_sender: bool = False) -> Tensor:
        """What laws :obj:`[C * P, v, num_transitions, points]` do to the
        receivers of some choices, or to their senders, :obj:`[C, v,
        num_transitions, Q * D]`."""
        unit_effects = self.unit_effects(term, part, at_sender)
        law = law.unflatten(0, (-1, unit_effects.size(-1)))
        # Point by point: there are too few for a matrix product.
        parts = [(law[:, k, ..., p, None], unit_effects[..., p, :, k])
                 for k in range(law.size(1)) for p in range(law.size(-1))]
        out = parts[0][0] * parts[0][1]
        for force, effect in parts[1:]:
            out += force * effect
        return out

    def node_columns(self, term: NodeTerm) -> Tensor:
        """What a unit of each coefficient adds to changes, :obj:`[num_nodes,
        num_transitions, Q * D, P]`."""
        vectors = term.vectors(self.path.position, self.path.velocity)
        columns = torch.einsum('pq,ntpdk->ntqdk', self.path.kernel, vectors)
        return columns.flatten(2, 3)

    def take(self, transitions: slice | Tensor) -> 'Transitions':
        out = copy.copy(self)
        path = self.path
        out.path = Path(path.change[:, transitions], path.valid[:, transitions],
                        path.frame[transitions], path.position[:, transitions],
                        path.velocity[:, transitions], path.kernel, path.circle)
        out.change, out.valid, out.frame = out.path[:3]
        for name in ('distance', '_central'):
            setattr(out, name, getattr(self, name)[:, transitions])
        return out

    def thinned(self, step: int) -> 'Transitions':
        first = int(self.valid.any(0).long().argmax())
        return self.take(slice(first, None, step))

    def drawn(self, number: int, generator: torch.Generator) -> 'Transitions':
        """So many at random, in which not all particles may meet a wall."""
        usable = self.valid.any(0).nonzero().squeeze(-1)
        picked = torch.randperm(usable.numel(), generator=generator,
                                device=generator.device)
        return self.take(usable[picked[:number].to(usable.device)])

    def whitened(self, rows: Sequence[Tensor], scale: Tensor) -> list[Tensor]:
        """Numbers of each transition, :obj:`[num_nodes * Q * D, *]`, combined
        so that errors in units of the scale are independent."""
        return list(rows)

    def evidence(self, layer: ForceLawDecoder) -> 'ImpulseEvidence':
        return ImpulseEvidence(self, layer)

    def followed(self, layer: ForceLawDecoder,
                 channels: Tensor) -> 'Transitions':
        """Along the paths on which the forces of a graph act, if paths are to
        be estimated."""
        return self

    def factors(self, members: Tensor | slice) -> tuple[Tensor, Tensor]:
        """What a choice's effects on the receiver and on the sender are to be
        multiplied by, :obj:`[v]` each: one over the mass."""
        return (1 / self.mass[self.choices.receiver[members]],
                1 / self.mass[self.choices.sender[members]])

    def sum_at_particles(self, effect: Tensor,
                         on_sender: Optional[Tensor] = None) -> Tensor:
        """Sums effects :obj:`[V, ...]` on receivers, and those on senders, by
        default the opposite, over masses."""
        choices, both = self.choices, self.choices.mutual
        shape = -1, *[1] * (effect.dim() - 1)
        at_receiver, at_sender = (part.view(shape)
                                  for part in self.factors(slice(None)))
        out = effect.new_zeros((self.change.size(0), ) + effect.size()[1:])
        out.index_add_(0, choices.receiver, effect * at_receiver)
        on_sender = -effect if on_sender is None else on_sender
        return out.index_add_(0, choices.sender[both],
                              (on_sender * at_sender)[both])


class ImpulseEvidence(Evidence):
    """The evidence of a layer's laws and terms, in units of its scale."""
    max_tried = 4_000_000
    #: Of each number, what makes its error one, in nat: a part of its
    #: log-likelihood that depends on what is thought to be noise.
    log_scale: Tensor | float = 0.0

    @torch.no_grad()
    def __init__(self, transitions: Transitions,
                 layer: ForceLawDecoder) -> None:
        self.transitions = transitions
        #: Whether masses are to be found along with graphs.
        self.responds = 'response' in layer.terms
        change = transitions.change
        self.scale = layer.scale[-change.size(-1):]
        for term, value in layer.node_terms():
            change = change - transitions.node_columns(term) @ value
        self.change = change / self.scale
        distance = transitions.distance
        #: On receivers, [V, num_channels, num_transitions, F]; on senders, the
        #: opposite.
        self.effect = self.change.new_zeros(distance.size(0),
                                            layer.law.num_channels,
                                            *self.change.size()[1:])
        terms = layer.pair_terms()
        #: What effects on senders are more than that, if anything.
        self.even: Optional[Tensor] = None
        if bool(transitions.choices.mutual.any()) and not all(
                term.odd for term, _ in terms):
            self.even = torch.zeros_like(self.effect)
        size = max(1, NUM_DISTANCES // max(1, distance[:1].numel()))
        for start in range(0, distance.size(0), size):
            part = slice(start, start + size)
            for of, law in terms:
                effect = transitions.integrate(
                    of, law(transitions.distances(of, part)), part)
                effect = (effect / self.scale).transpose(0, 1)
                self.effect[part] += effect
                if self.even is not None and not of.odd:
                    other = law(transitions.distances(of, part, True))
                    other = transitions.integrate(of, other, part, True)
                    other = (other / self.scale).transpose(0, 1)
                    self.even[part] += effect + other
        if 'own rate' in layer.terms:  # At its best, whatever the graph.
            self.change = _centred(self.change)
            self.effect = _centred(self.effect)
            self.even = None if self.even is None else _centred(self.even)

    def errors(self, channels: Tensor) -> Tensor:
        effect = torch.einsum('vc,vc...->v...', channels, self.effect)
        on_sender = None
        if self.even is not None:
            on_sender = torch.einsum('vc,vc...->v...', channels,
                                     self.even) - effect
        errors = self.change - self.transitions.sum_at_particles(
            effect, on_sender)
        return errors * self.transitions.valid.unsqueeze(-1)

    def effects(self, members: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Effects of a unit of each channel on receivers and on senders, twice
        :obj:`[v, C, num_transitions, F]`."""
        choices, effect = self.transitions.choices, self.effect[members]
        receiver, sender = choices.receiver[members], choices.sender[members]
        valid = self.transitions.valid[:, None, :, None]
        at_receiver, at_sender = (part.view(-1, 1, 1, 1)
                                  for part in self.transitions.factors(members))
        opposite = -effect
        if self.even is not None:
            opposite = opposite + self.even[members]
        opposite = opposite * choices.mutual[members].view(-1, 1, 1, 1)
        return (effect * at_receiver * valid[receiver],
                opposite * at_sender * valid[sender])

    def independent(self, columns: Tensor) -> Tensor:
        """Changes :obj:`[num_nodes, num_transitions, F, P]` in units of the
        scale, as errors show them."""
        return columns

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

    def profiled(self, errors: Tensor, particles: Tensor,
                 objective: Objective) -> Tensor:
        if not self.responds:
            return errors
        change = (self.change * self.transitions.valid.unsqueeze(-1))[particles]
        change = change.unsqueeze(1)
        explained = change - errors
        force = explained * self.transitions.mass[particles].view(-1, 1, 1, 1)
        for _ in range(NUM_PROFILED):
            weight = objective.weight(errors)
            weighted = weight * force
            normal = (weighted * force).sum((-2, -1), True)
            right = (weighted * (change - force)).sum((-2, -1), True)
            further = right / (normal + 1 / (2 * SPREAD**2))
            response = (1 + further).clamp(1 / MAX_FACTOR, MAX_FACTOR)
            errors = change - response * force
        return errors

    def settle(self, channels: Tensor) -> None:
        """Sets masses, if they are sought, to those by which laws and a graph
        explain the motion best, robustly."""
        if not self.responds:
            return
        transitions = self.transitions
        missed = self.errors(channels)
        explained = self.change * transitions.valid.unsqueeze(-1) - missed
        force = explained * transitions.mass.view(-1, 1, 1)  # Of 1 kg.
        further = robust_fit(force.unsqueeze(-1), missed + explained - force,
                             transitions.valid, SPREAD)
        response = 1 + further.squeeze(-1)
        transitions.mass = 1 / response.clamp(1 / MAX_FACTOR, MAX_FACTOR)


def _centred(value: Tensor) -> Tensor:
    """Less its mean over transitions, the last dimension but one."""
    return value - value.mean(-2, keepdim=True)


def shortest_distance(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).tiny**0.5


@torch.no_grad()
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


def find_motion(x: Tensor, interval: float) -> dict[str, Any]:
    """How features :obj:`[num_nodes, T, F]` every :obj:`interval` s move, as
    arguments of a decoder of laws: none for positions and their velocities,
    which are of second order. Others are of first order, see
    :class:`~pyg_fnri.nn.RateLawDecoder`; two with a sum of squares of 1 are an
    angle. Raises a :class:`ValueError` if the interval must be another one."""
    if not bool(x.isfinite().all()):
        raise ValueError('Some values of trajectories are not finite.')
    moves = (x != x[:, :1]).flatten(0, 1).any(0).tolist()
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
        slope, left = _slope(
            wrapped(change) if circle else change,
            interval * (rate[:, 1:] + rate[:, :-1]) / 2)
        measured = left < MAX_LEFT
        if measured and not abs(slope - 1) <= MAX_SLIP:
            raise ValueError(f"Positions move at {slope:.2f} times the "
                             f"velocities given, so the interval between two "
                             f"frames is another one.")
        if measured and not circle and not num_constants:
            return {}
    own = 'drive' if num_constants else 'own rate' if circle else 'field'
    return {
        'order': 1,
        'circle': circle,
        'measured': measured,
        'num_constants': num_constants,
        'terms': [own]
    }
