"""Fitting force laws to given graphs, by robust linear least squares."""
import torch
from torch import Tensor

from pyg_fnri.inference.impulses import Transitions
from pyg_fnri.inference.likelihood import Objective
from pyg_fnri.nn import ForceLawDecoder

#: Changes of a particle between two frames to fit laws to, at the most: others
#: say nothing new, and take memory.
MOST_CHANGES = 400_000


def fit_scale(layer: ForceLawDecoder, transitions: Transitions) -> None:
    """Sets the typical change by forces: 1.48 times the median absolute one,
    of positions and of velocities.

    Raises:
        ValueError: If no transition says anything about forces, or most
            particles feel none.
    """
    change = transitions.change[transitions.valid].abs()
    if change.numel() == 0:
        raise ValueError("No transition says anything about forces: particles "
                         "may meet a wall in all of them; check half_width.")
    position, velocity = change.chunk(2, dim=-1)
    scale = 1.4826 * torch.stack([position.median(), velocity.median()])
    if not bool((scale > 0).all()):
        raise ValueError("Most particles move as if no force acted on them, so "
                         "there are hardly laws to fit; leave out systems in "
                         "which nothing interacts, and check the interval "
                         "between two frames.")
    layer.scale.copy_(scale.repeat_interleave(position.size(1)))


@torch.no_grad()
def fit_laws(
    layer: ForceLawDecoder,
    transitions: Transitions,
    channels: Tensor,
    cost: Objective,
    generator: torch.Generator,
    num_transitions: int = 16,
    num_iterations: int = 3,
) -> None:
    r"""Fits the tables of all laws at once, in place.

    Minimises a robust cost of the particles' errors, such as :math:`\sum
    \log(1 + e^2 / d^2)`, by iteratively reweighted least squares, linear in
    the tables. Laws are
    smooth: their second differences are penalised, barely where there are
    data.

    Args:
        layer: Holds the laws, and what they are at the start.
        transitions: What happened.
        channels: The graph, :obj:`[V, num_channels]`.
        cost: What to minimise, of errors in units of :obj:`layer.scale`.
        generator: Picks the transitions to look at.
        num_transitions: How many of them, of those that say anything; all if
            there are fewer, and fewer where particles are many
            (:data:`MOST_CHANGES`).
        num_iterations: Of reweighting.

    Raises:
        ValueError: If no interaction of the graph can be seen in them, or
            there are no candidate edges.
    """
    if channels.size(0) == 0:
        raise ValueError("There is nothing to fit laws to: no two particles of "
                         "these systems are joined by a candidate edge. Join "
                         "those that may interact, such as with "
                         "pyg_fnri.data.fully_connected.")
    law = layer.law
    # In some, all particles may meet a wall.
    usable = transitions.valid.any(0).nonzero().squeeze(-1)
    most = max(1, MOST_CHANGES // transitions.change.size(0))
    picked = torch.randperm(usable.numel(), generator=generator,
                            device=generator.device)
    picked = picked[:min(num_transitions, most)]
    picked = usable[picked.to(usable.device)]
    # One design matrix a transition: [num_nodes * 2D, num_channels * knots].
    designs = [
        _design(layer, transitions, channels, t) for t in picked.tolist()
    ]
    change = transitions.change[:, picked] / layer.scale
    valid = transitions.valid[:, picked].unsqueeze(-1)
    penalty = _penalty(law.num_channels, law.num_knots).to(change.device)
    for _ in range(num_iterations):
        table = law.value.flatten()
        normal = torch.zeros_like(penalty)
        right = torch.zeros_like(penalty[0])
        for k, design in enumerate(designs):
            error = change[:, k] - (design @ table).view_as(change[:, k])
            weight = valid[:, k] * cost.weight(error)
            weighted = design * weight.reshape(-1, 1)
            normal += (design.t() @ weighted).double()
            right += (change[:, k].reshape(-1) @ weighted).double()
        unit = normal.diagonal().mean()
        if not bool(unit > 0):
            raise ValueError("There is nothing to fit laws to: nothing "
                             "interacts in these graphs, or particles may meet "
                             "a wall in all transitions. Start from an encoder "
                             "that has learned more, or check half_width.")
        solution = torch.linalg.solve(normal + unit * penalty, right)
        law.value.copy_(solution.view_as(law.value))


def _design(layer: ForceLawDecoder, transitions: Transitions, channels: Tensor,
            transition: int) -> Tensor:
    law, num_choices = layer.law, channels.size(0)
    first, weight = law.interpolation(transitions.distance[:, transition])
    # [V, points, 4, 2D]: an entry's part in shift and impulse.
    unit_effect = transitions.unit_effect[:, transition]
    part = weight.unsqueeze(-1) * unit_effect.unsqueeze(-2)
    entry = first.unsqueeze(-1) + torch.arange(4, device=first.device)
    row = torch.arange(num_choices, device=first.device).view(-1, 1, 1)
    entry = entry + law.num_knots * row
    table = part.new_zeros(num_choices * law.num_knots, part.size(-1))
    table.index_add_(0, entry.flatten(), part.flatten(0, 2))
    table = table.view(num_choices, law.num_knots, -1) / layer.scale
    table = table.transpose(1, 2).unsqueeze(2)  # [V, 2D, 1, knots]
    effect = channels.unsqueeze(-1).unsqueeze(1) * table
    return transitions.sum_at_particles(effect).flatten(0, 1).flatten(1)


def _penalty(num_channels: int, num_knots: int) -> Tensor:
    """Of second differences, and, far less, of what the data leave open."""
    eye = torch.eye(num_knots, dtype=torch.double)
    second = eye[:-2] - 2 * eye[1:-1] + eye[2:]
    penalty = 1e-6 * second.t() @ second + 1e-9 * eye
    return torch.block_diag(*[penalty] * num_channels)
