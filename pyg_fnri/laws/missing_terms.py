"""Terms that force laws lack, found in what they leave unexplained."""
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import (
    Estimate,
    cauchy_nll,
    cauchy_width,
    mean_of_systems,
)
from pyg_fnri.laws.fit import laws_of
from pyg_fnri.nn import RelationalAutoEncoder, known_masses

#: Where pairs are close, in units of a law's first distance. Close encounters
#: would outweigh all else.
CLOSE = 10 / 3
#: A term matters from this size on, in typical changes of velocity by forces;
#: laws that hold are off by less.
MIN_SIZE = 0.02
#: Something is found if a gain is so many standard errors, as several terms
#: are tried; the greatest gain of those that are more than chance decides
#: which one it is.
MIN_SIGNIFICANCE, MORE_THAN_CHANCE = 3.0, 2.0


class Finding(NamedTuple):
    """A term that the laws lack.

    Args:
        name: A key of :data:`TERMS`.
        size: Its mean size, in units of the typical change of velocity by
            forces in an interval.
        gain: What it adds to the log-likelihood of a velocity component in
            the frames :obj:`y`, once fitted to the frames :obj:`x`, in nat.
    """
    name: str
    size: float
    gain: Estimate

    def __str__(self) -> str:
        return f'{TERMS[self.name].meaning} ({self.size:.0%} of typical forces)'


@dataclass(frozen=True)
class Frames:
    """Successive frames and their laws.

    Args:
        transitions: The changes between frames.
        channels: The graph, :obj:`[V, num_channels]`.
        position: Mean positions in an interval, :obj:`[num_nodes,
            num_transitions, D]`.
        velocity: Mean velocities, likewise. Means of both ends: the noise of
            one end alone would look like friction.
        explained: The changes of velocity that the laws predict, likewise, in
            units of the typical one by forces.
        missed: Those that they do not.
        close: The distance below which pairs count as being at it.
    """
    transitions: Transitions
    channels: Tensor
    position: Tensor
    velocity: Tensor
    explained: Tensor
    missed: Tensor
    close: float


def see_frames(model: RelationalAutoEncoder, data: Data, x: Tensor,
               edge_type: Tensor) -> Frames:
    """Frames :obj:`x` of given systems, and their laws on a given graph."""
    layer = laws_of(model)
    choices = find_choices(data.edge_index, model.latent.undirected)
    transitions = Transitions([x], choices, layer.interval, layer.half_width,
                              known_masses(data))
    channels = model.latent.encode_types(edge_type)[choices.edge].to(x.dtype)
    evidence = ImpulseEvidence(transitions, layer)
    missed = evidence.errors(channels).chunk(2, dim=-1)[1]
    explained = evidence.change.chunk(2, dim=-1)[1] - missed
    position, velocity = ((x[:, :-1] + x[:, 1:]) / 2).chunk(2, dim=-1)
    return Frames(transitions, channels, position, velocity, explained, missed,
                  close=CLOSE * layer.law.min_distance)


@torch.no_grad()
def find_missing_terms(
    model: RelationalAutoEncoder,
    data: Data,
    edge_type: Tensor,
) -> list[Finding]:
    """Regresses what the laws miss on terms that they lack.

    Each of the :data:`TERMS` is fitted to the observed frames :obj:`x` by
    robust least squares, and judged by the frames :obj:`y` that follow. The
    best of those that matter is taken out, and the others are tried on what
    is left. Frames in which a known wall may have been met are left out.

    Args:
        model: Its decoder's layer is a fitted
            :class:`~pyg_fnri.nn.ForceLawDecoder`.
        data: A batch of at least two systems, with :obj:`x` and :obj:`y`.
        edge_type: The graph that was inferred from :obj:`x`,
            :obj:`[num_edges, num_layers]`.

    Returns:
        The terms, the greatest gain first; none where laws hold.
    """
    seen, later = (see_frames(model, data, x, edge_type)
                   for x in (data.x, data.y))
    # Laws that are all too strong or too weak by one factor break no rule.
    fitted = _fit(seen, later, _response, seen.missed)
    missed = seen.missed - fitted[0], later.missed - fitted[1]
    left, found = list(TERMS), []
    while left:
        tried = [_try(name, seen, later, missed, data.batch) for name in left]
        tried = [(finding, rest) for finding, rest in tried
                 if finding.size >= MIN_SIZE
                 and finding.gain.mean > MORE_THAN_CHANCE * finding.gain.error]
        if not any(finding.gain.mean > MIN_SIGNIFICANCE * finding.gain.error
                   for finding, _ in tried):
            break
        finding, missed = max(tried, key=lambda pair: pair[0].gain.mean)
        found.append(finding)
        left.remove(finding.name)
    return found


def _try(name: str, seen: Frames, later: Frames, missed: tuple[Tensor, Tensor],
         system: Tensor) -> tuple[Finding, tuple[Tensor, Tensor]]:
    """What a term is worth, and what is missed once it is taken out, in the
    frames seen and in later ones."""
    fitted = _fit(seen, later, TERMS[name].columns, missed[0],
                  per_particle=name == 'response')
    rest = missed[0] - fitted[0], missed[1] - fitted[1]
    valid = later.transitions.valid
    nll = []
    for known, judged in (missed, rest):
        width = cauchy_width(known[seen.transitions.valid])
        nll.append(cauchy_nll(judged, width).mean(-1))
    gain = scatter(((nll[0] - nll[1]) * valid).sum(-1), system)
    count = scatter(valid.sum(-1).to(gain), system)
    size = fitted[1][valid].abs().mean().item()
    return Finding(name, size, mean_of_systems((gain / count)[count > 0])), rest


def _fit(seen: Frames, later: Frames, columns: Callable[[Frames], Tensor],
         missed: Tensor, per_particle: bool = False) -> tuple[Tensor, Tensor]:
    """A term fitted to what was missed, in the frames seen and in later
    ones."""
    known, new, valid = columns(seen), columns(later), seen.transitions.valid
    # In double precision, squares of small numbers in any unit are above 0.
    scale = known[valid].double().square().mean((0, 1)).sqrt().to(known.dtype)
    scale = scale.clamp(min=torch.finfo(known.dtype).tiny)  # [P]
    known, new = known / scale, new / scale
    width = cauchy_width(missed[valid])
    # A particle that felt hardly any force tells little about itself: its
    # response is expected to be within some 30 % of the others'.
    ridge = (width / (0.3 * scale.mean()))**2 if per_particle else 1e-9
    num_nodes, num_constants = known.size(0), known.size(-1)
    rows = num_nodes if per_particle else 1
    # [rows, observations, P]
    design = known.reshape(rows, -1, num_constants).double()
    target = missed.reshape(rows, -1).double()
    inside = valid.unsqueeze(-1).expand_as(missed).reshape(rows, -1)
    eye = torch.eye(num_constants, dtype=torch.double, device=missed.device)
    constants = torch.zeros_like(design[:, 0])
    for _ in range(5):
        error = target - torch.einsum('rop,rp->ro', design, constants)
        weight = inside / (1 + (error / width).square())
        weighted = design * weight.unsqueeze(-1)
        normal = torch.einsum('rop,roq->rpq', weighted, design)
        right = torch.einsum('rop,ro->rp', weighted, target)
        constants = torch.linalg.solve(normal + ridge * eye, right)
    constants = constants.to(missed.dtype).expand(num_nodes, -1)
    return (torch.einsum('ntdp,np->ntd', known,
                         constants), torch.einsum('ntdp,np->ntd', new,
                                                  constants))


def _velocity(frames: Frames) -> Tensor:
    v = frames.velocity
    return torch.stack([v, v.norm(dim=-1, keepdim=True) * v], dim=-1)


def _turning(frames: Frames) -> Tensor:
    return _turned(frames.velocity)


def _relative_velocity(frames: Frames) -> Tensor:
    relative = _between_pairs(frames, frames.velocity)
    _, distance = _direction(frames)
    return _of_pairs(frames, [relative, relative / distance])


def _transverse(frames: Frames) -> Tensor:
    direction, distance = _direction(frames)
    return _of_pairs(frames, [
        turned * shape for turned in _turned(direction).unbind(-1)
        for shape in (1, distance, 1 / distance)
    ])


def _field(frames: Frames) -> Tensor:
    position = frames.position
    axes = torch.eye(position.size(-1), device=position.device)
    ones = torch.ones_like(position[..., :1])
    of = torch.cat([ones, position], dim=-1)  # [N, T, 1 + D]
    return torch.einsum('nta,de->ntdae', of, axes).flatten(-2)


def _response(frames: Frames) -> Tensor:
    """What the laws predict, stronger or weaker."""
    return frames.explained.unsqueeze(-1)


class Term(NamedTuple):
    """A term that may be missing.

    Args:
        columns: Changes of velocity :obj:`[num_nodes, num_transitions, D, P]`
            that P unknown constants multiply.
        meaning: What it says of the forces.
    """
    columns: Callable[[Frames], Tensor]
    meaning: str


#: What is tried; of 'response', each particle has constants of its own.
TERMS: dict[str, Term] = {
    'velocity':
    Term(_velocity, 'forces depend on velocity, like friction or a drive'),
    'turning':
    Term(_turning, 'forces act across the velocity, like a magnetic field'),
    'relative velocity':
    Term(_relative_velocity,
         'forces depend on velocities, like friction within pairs'),
    'transverse':
    Term(_transverse, 'forces point across the line of a pair'),
    'field':
    Term(_field, 'a force acts from outside, depending on position alone'),
    'response':
    Term(_response, 'particles respond differently to the same force'),
}


def _turned(vector: Tensor) -> Tensor:
    """A vector [*, D] under each generator of rotations, [*, D, P]; zero on a
    line."""
    turned = [torch.zeros_like(vector)] if vector.size(-1) == 1 else []
    for a, b in combinations(range(vector.size(-1)), 2):
        out = torch.zeros_like(vector)
        out[..., a], out[..., b] = -vector[..., b], vector[..., a]
        turned.append(out)
    return torch.stack(turned, dim=-1)


def _of_pairs(frames: Frames, effects: list[Tensor]) -> Tensor:
    """Effects [V, num_transitions, D] on receivers, of the pairs in each
    channel, summed by particle, [N, T, D, P]."""
    effect = torch.stack(effects, dim=-1)  # [V, T, D, E]
    effect = torch.einsum('vc,vtde->vtdce', frames.channels, effect).flatten(-2)
    return frames.transitions.sum_at_particles(effect)


def _between_pairs(frames: Frames, value: Tensor) -> Tensor:
    """Receiver's value minus sender's, [V, num_transitions, D]."""
    choices = frames.transitions.choices
    return value[choices.receiver] - value[choices.sender]


def _direction(frames: Frames) -> tuple[Tensor, Tensor]:
    """From senders to receivers, [V, num_transitions, D], and how far."""
    offset = _between_pairs(frames, frames.position)
    distance = offset.norm(dim=-1, keepdim=True).clamp(min=frames.close)
    return offset / distance, distance
