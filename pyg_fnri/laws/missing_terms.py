"""Terms that force laws may lack, as they would show between two frames."""
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.inference.evidence import find_choices
from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.nn import ForceLawDecoder, RelationalAutoEncoder, known_masses

#: Where pairs are close, in units of a law's first distance. Close encounters
#: would outweigh all else.
CLOSE = 10 / 3


@dataclass(frozen=True)
class Frames:
    """Successive frames seen from the laws.

    Args:
        transitions: What happened.
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


def seen_from_laws(model: RelationalAutoEncoder, layer: ForceLawDecoder,
                   data: Data, x: Tensor, edge_type: Tensor) -> Frames:
    """Successive frames of given systems under a graph.

    Args:
        model: The model whose latent graph this is.
        layer: Its fitted laws.
        data: The systems.
        x: Their frames, :obj:`[num_nodes, T, 2D]`.
        edge_type: The graph, :obj:`[num_edges, num_layers]`.
    """
    choices = find_choices(data.edge_index, model.latent.undirected)
    transitions = Transitions([x], choices, layer.interval, layer.half_width,
                              known_masses(data))
    channels = model.latent.encode_types(edge_type)[choices.edge].to(x.dtype)
    evidence = ImpulseEvidence(transitions, layer)
    missed = evidence.errors(channels)
    num_axes = x.size(-1) // 2
    position, velocity = ((x[:, :-1] + x[:, 1:]) / 2).chunk(2, dim=-1)
    missed = missed[..., num_axes:]
    explained = evidence.change[..., num_axes:] - missed
    return Frames(transitions, channels, position, velocity, explained, missed,
                  close=CLOSE * layer.law.min_distance)


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


def response(frames: Frames) -> Tensor:
    """What the laws predict, stronger or weaker."""
    return frames.explained.unsqueeze(-1)


#: What is tried: changes of velocity [num_nodes, num_transitions, D, P] that
#: P unknown constants multiply; of 'response', P for each particle.
TERMS: dict[str, Callable[[Frames], Tensor]] = {
    'velocity': _velocity,
    'turning': _turning,
    'relative velocity': _relative_velocity,
    'transverse': _transverse,
    'field': _field,
    'response': response,
}


def _turned(vector: Tensor) -> Tensor:
    """A vector [*, D] under each generator of rotations, [*, D, P]."""
    turned = []
    for a, b in combinations(range(vector.size(-1)), 2):
        out = torch.zeros_like(vector)
        out[..., a], out[..., b] = -vector[..., b], vector[..., a]
        turned.append(out)
    if not turned:  # On a line, nothing points across.
        return vector.new_zeros(vector.size() + (1, ))
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
