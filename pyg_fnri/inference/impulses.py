"""The evidence of force laws, by the impulse of each pair between frames."""
import copy
from collections.abc import Callable, Sequence
from typing import Optional, cast

import torch
from torch import Tensor

from pyg_fnri.inference.evidence import Evidence, Pairs
from pyg_fnri.inference.likelihood import Objective, robust_fit
from pyg_fnri.inference.paths import GAP, Path
from pyg_fnri.nn import Central, ForceLawDecoder, NodeTerm, PairTerm
from pyg_fnri.nn.force_law import wrapped

#: At how many distances laws are looked up at once, to save memory.
NUM_DISTANCES = 500_000

#: How far from 1 a response is expected to be (a particle that felt hardly any
#: force tells little about itself), and is at the most; and how often it is
#: fitted to errors of a graph that is tried.
SPREAD, MAX_FACTOR, NUM_PROFILED = 0.5, 20.0, 3


class Transitions:
    r"""What happens to particles and pairs between successive frames: linear
    in the graph, and in the laws and coefficients of all terms.

    Args:
        path: How particles move.
        mass: Masses of the particles, :obj:`[num_nodes]`, if they differ.
    """
    #: Windows of the same particles, one after the other.
    num_windows = 1

    def __init__(self, path: Path, choices: Pairs,
                 mass: Optional[Tensor] = None) -> None:
        self.choices = choices
        if mass is None:
            mass = torch.ones_like(path.change[:, 0, 0])
        self.mass = mass
        #: What each particle's part in effects on others and on itself is.
        self.source = torch.ones_like(mass)
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
        self.distance: Tensor = offset.norm(dim=-1).clamp(
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
        return cast(Tensor, self._apart(part, term, at_sender).norm(dim=-1))

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

    def integrate(self, term: PairTerm, law: Callable[[Tensor], Tensor],
                  part: slice = slice(None), at_sender: bool = False) -> Tensor:
        """What a term's laws, :obj:`C * P` of the distance, do to the
        receivers of some choices, or to their senders, :obj:`[C, v,
        num_transitions, Q * D]`."""
        unit_effects = self.unit_effects(term, part, at_sender)
        value = law(self.distances(term, part, at_sender))
        value = value.unflatten(0, (-1, unit_effects.size(-1)))
        # Point by point: there are too few for a matrix product.
        parts = [(value[:, k, ..., p, None], unit_effects[..., p, :, k])
                 for k in range(value.size(1)) for p in range(value.size(-1))]
        out: Tensor = parts[0][0] * parts[0][1]
        for force, effect in parts[1:]:
            out += force * effect
        return out

    def node_columns(self, term: NodeTerm) -> Tensor:
        """What a unit of each coefficient adds to changes, :obj:`[num_nodes,
        num_transitions, Q * D, P]`."""
        vectors = term.vectors(self.path.position, self.path.velocity)
        columns = torch.einsum('pq,ntpdk->ntqdk', self.path.kernel, vectors)
        return columns.flatten(2, 3)

    @property
    def observed(self) -> Tensor:
        """Which are of the first trajectory, not its continuation,
        :obj:`[num_transitions]`."""
        return self.frame < self.num_windows * GAP

    def by_window(self, value: Tensor) -> Tensor:
        """Values :obj:`[num_nodes, num_transitions, ...]` with windows, which
        count as independent, one below the other, :obj:`[num_windows *
        num_nodes, num_transitions / num_windows, ...]`."""
        if self.num_windows == 1:
            return value
        order = (self.frame // GAP % self.num_windows).argsort(stable=True)
        value = value[:, order].unflatten(1, (self.num_windows, -1))
        return value.transpose(0, 1).flatten(0, 1)

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
        multiplied by, :obj:`[v]` each: sources over the mass."""
        receiver = self.choices.receiver[members]
        sender = self.choices.sender[members]
        both = self.source[receiver] * self.source[sender]
        return both / self.mass[receiver], both / self.mass[sender]

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
                effect = transitions.integrate(of, law, part) / self.scale
                self.effect[part] += effect.transpose(0, 1)
                if self.even is not None and not of.odd:
                    other = transitions.integrate(of, law, part, True)
                    effect += other / self.scale
                    self.even[part] += effect.transpose(0, 1)
        if 'own-rate' in layer.terms:  # At its best, whatever the graph.
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
    return float(torch.finfo(dtype).tiny**0.5)
