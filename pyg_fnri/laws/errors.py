"""How sure laws and coefficients are: how far some systems less move them."""
from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_fnri.inference.likelihood import Objective
from pyg_fnri.nn import ForceLaw, ForceLawDecoder

#: Groups of systems, or of frames of few, one of which is left out.
NUM_GROUPS = 100
#: Transitions in a window, if there are enough for so many windows.
WINDOW, LEAST_WINDOWS = 4, 10
#: The least curvature of a robust cost, as a share of a square's.
LEAST_CURVATURE = 0.1
#: Of a table between its knots, as a share of its third differences.
INTERPOLATION_ERROR = 0.006
#: Standard errors of an interval of 90 %.
HALF_WIDTH = 1.645


def groups_of(system: Tensor, frame: Tensor) -> Tensor:
    """Groups whose errors are independent, :obj:`[num_transitions,
    num_nodes]`: systems, or windows of them where they are few."""
    windows = min(-(-NUM_GROUPS // (int(system.max()) + 1)),
                  max(LEAST_WINDOWS,
                      len(frame) // WINDOW))
    place = frame.argsort().argsort() * windows // len(frame)
    return (system * windows + place.unsqueeze(-1)) % NUM_GROUPS


def jackknife(rows: Sequence[Tensor], valid: Tensor, unknowns: Tensor,
              cost: Objective, penalty: Tensor, group: Tensor) -> Tensor:
    """How far the unknowns of robust least squares move if a group is left
    out, by a step of Newton's method, :obj:`[num_groups, num_unknowns]`: their
    covariance is the sum of products over groups, whatever the errors.

    Args:
        rows: Columns and what they explain, of each transition,
            :obj:`[num_nodes * F, num_unknowns + 1]`.
        valid: Whether they count, :obj:`[num_transitions, num_nodes, 1]`.
        unknowns: As fitted, :obj:`[num_unknowns]`.
        penalty: Of the unknowns, :obj:`[num_unknowns, num_unknowns]`.
        group: Of each particle, :obj:`[num_transitions, num_nodes]`.
    """
    normal = penalty.new_zeros(NUM_GROUPS, *penalty.size())
    slope, sums = torch.zeros_like(normal[..., 0]), torch.zeros(2, 1)
    parts = []
    for row, usual in zip(rows, valid):
        error = (row[:, -1] - row[:, :-1] @ unknowns).view(len(usual), -1)
        weight = usual * cost.weight(error)
        # The derivative of k e / (k + e^2), over k / (k + e^2).
        curvature = 2 * weight / cost.weight(torch.zeros_like(error)) - 1
        parts.append((weight, error))
        sums = sums + torch.stack([weight * curvature, weight]).sum(1)
    ratio = (sums[0] / sums[1]).clamp(min=LEAST_CURVATURE)
    for row, (weight, error), member in zip(rows, parts, group):
        columns = row[:, :-1].view(*error.size(), -1)
        for number in member.unique().tolist():
            inside = member == number
            own = columns[inside].flatten(0, 1)
            by = own * (weight[inside] * ratio).view(-1, 1)
            normal[number] += (own.t() @ by).double()
            pull = (weight * error)[inside].flatten()
            slope[number] += (pull @ own).double()
    whole = normal.sum(0) + penalty
    found = group.unique().numel()
    if found < 2:
        return unknowns.new_zeros(0, 0)
    moved: Tensor = torch.linalg.solve(normal - whole, slope)
    moved = moved - moved.sum(0) / found
    moved[slope.eq(0).all(-1)] = 0
    return (moved * float(((found - 1) / found)**0.5)).to(unknowns.dtype)


def law_covariance(layer: ForceLawDecoder, law: ForceLaw,
                   distance: Tensor) -> Tensor:
    """The covariance of a layer's laws at distances :obj:`[K]`,
    :obj:`[num_laws, K, K]` in double precision: of the fit, and of the table
    between its knots."""
    first, weight = law.interpolation(distance.to(law.value))
    reading = weight.new_zeros(len(first), law.num_knots).double()
    entry = first.unsqueeze(-1) + torch.arange(4, device=first.device)
    reading.scatter_(1, entry, weight.double())
    moved = layer.law_spread(law).double() @ reading.t()  # [G, num_laws, K]
    third = law.value.detach().double().diff(n=3).abs()
    # The largest that an entry is part of.
    third = torch.nn.functional.pad(third, (3, 3)).unfold(-1, 4, 1).amax(-1)
    between = (INTERPOLATION_ERROR * third @ reading.abs().t()).square()
    return torch.einsum('gck,gcl->ckl', moved, moved) + between.diag_embed()
