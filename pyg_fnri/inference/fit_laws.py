"""Fitting force laws to given graphs, by robust linear least squares."""
import torch
from torch import Tensor

from pyg_fnri.inference.impulses import Flights
from pyg_fnri.nn.force_law_decoder import ForceLawDecoder


def fit_scale(layer: ForceLawDecoder, flights: Flights) -> None:
    """Sets the typical change by forces: 1.48 times the median absolute one,
    of positions and of velocities."""
    change = flights.change[flights.valid].abs()
    if change.numel() == 0:
        raise ValueError("No transition says anything about forces: particles "
                         "may meet a wall in all of them; check the box.")
    for part in (slice(0, change.size(1) // 2),
                 slice(change.size(1) // 2, None)):
        layer.scale[part] = 1.4826 * change[:, part].median()


@torch.no_grad()
def fit_laws(
    layer: ForceLawDecoder,
    flights: Flights,
    channels: Tensor,
    tolerance: float,
    generator: torch.Generator,
    num_transitions: int = 16,
    num_iterations: int = 3,
) -> None:
    r"""Fits the tables of all laws at once, in place.

    Minimises :math:`\sum \log(1 + e^2 / d^2)` over the particles' errors by
    iteratively reweighted least squares. Laws are smooth: their second
    differences are penalised, barely where there are data.

    Args:
        layer: Holds the laws, and what they are at the start.
        flights: What happened.
        channels: The graph, :obj:`[V, num_channels]`.
        tolerance: :math:`d^2`.
        generator: Picks the transitions to look at.
        num_transitions: How many of them.
        num_iterations: Of reweighting.
    """
    law = layer.law
    total = flights.change.size(1)
    picked = torch.randperm(total, generator=generator)[:num_transitions]
    # One design matrix a transition: [num_nodes * 2D, num_channels * knots].
    designs = [_design(layer, flights, channels, t) for t in picked.tolist()]
    change = flights.change[:, picked] / layer.scale
    valid = flights.valid[:, picked].unsqueeze(-1)
    smooth = _second_differences(law.num_channels, law.num_knots)
    for _ in range(num_iterations):
        table = law.value.flatten()
        normal = torch.zeros(table.numel(), table.numel(), dtype=torch.double)
        right = torch.zeros(table.numel(), dtype=torch.double)
        for k, design in enumerate(designs):
            error = change[:, k] - (design @ table).view_as(change[:, k])
            weight = valid[:, k] / (1 + error.square() / tolerance)
            weighted = design * weight.reshape(-1, 1)
            normal += (design.t() @ weighted).double()
            right += (change[:, k].reshape(-1) @ weighted).double()
        unit = normal.diagonal().mean()
        normal += unit * (1e-6 * smooth +
                          1e-9 * torch.eye(table.numel()).double())
        solution = torch.linalg.solve(normal, right)
        law.value.copy_(solution.view_as(law.value))


def _design(layer: ForceLawDecoder, flights: Flights, channels: Tensor,
            transition: int) -> Tensor:
    law, num_choices = layer.law, channels.size(0)
    first, weight = law.interpolation(flights.distance[:, transition])
    # [V, points, 4, 2D]: an entry's part in shift and impulse.
    part = torch.einsum('vpw,vpd,sp->vpwsd', weight,
                        flights.direction[:, transition],
                        flights.weight).flatten(-2)
    entry = first.unsqueeze(-1) + torch.arange(4)
    entry = entry + law.num_knots * torch.arange(num_choices).view(-1, 1, 1)
    table = part.new_zeros(num_choices * law.num_knots, part.size(-1))
    table.index_add_(0, entry.flatten(), part.flatten(0, 2))
    table = table.view(num_choices, law.num_knots, -1) / layer.scale
    # [V, 2D, C, knots]
    effect = torch.einsum('vc,vkf->vfck', channels, table)
    return flights.sum_at_particles(effect).flatten(0, 1).flatten(1)


def _second_differences(num_channels: int, num_knots: int) -> Tensor:
    eye = torch.eye(num_knots, dtype=torch.double)
    second = eye[:-2] - 2 * eye[1:-1] + eye[2:]
    return torch.block_diag(*[second.t() @ second] * num_channels)
