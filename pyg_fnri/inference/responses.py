"""How much each particle responds to forces: one over its mass."""
import torch
from torch import Tensor

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import cauchy_width

#: How far from 1 a response is expected to be: a particle that felt hardly any
#: force tells little about itself.
SPREAD = 0.3
#: Of masses, at the most.
MAX_FACTOR = 20.0


def fit_responses(evidence: ImpulseEvidence, channels: Tensor) -> None:
    """Sets the masses of the evidence's transitions to those by which laws and
    graphs :obj:`[V, num_channels]` explain the motion best, robustly."""
    transitions = evidence.transitions
    missed = evidence.errors(channels)
    explained = evidence.change * transitions.valid.unsqueeze(-1) - missed
    # Of unit masses.
    force = explained * transitions.mass.view(-1, 1, 1)
    missed = missed + explained - force
    further = robust_fit(force.unsqueeze(-1), missed, transitions.valid, True)
    response = (1 + further.squeeze(-1)).clamp(1 / MAX_FACTOR, MAX_FACTOR)
    transitions.mass = 1 / response


def robust_fit(columns: Tensor, missed: Tensor, seen: Tensor,
               per_particle: bool = False) -> Tensor:
    """The constants :obj:`[num_nodes, P]` by which columns :obj:`[num_nodes, T,
    D, P]` explain changes :obj:`[num_nodes, T, D]` in the transitions
    :obj:`seen`; the same for all particles, or each its own."""
    # In double precision, squares of small numbers in any unit are above 0.
    scale = columns[seen].double().square().mean((0, 1)).sqrt().to(missed.dtype)
    scale = scale.clamp(min=torch.finfo(missed.dtype).tiny)  # [P]
    width = cauchy_width(missed[seen])
    ridge = (width / (SPREAD * scale.mean()))**2 if per_particle else 1e-9
    rows, num_constants = len(missed) if per_particle else 1, len(scale)
    design = (columns / scale).reshape(rows, -1, num_constants).double()
    target = missed.reshape(rows, -1).double()
    inside = seen.unsqueeze(-1).expand_as(missed).reshape(rows, -1)
    eye = torch.eye(num_constants, dtype=torch.double, device=missed.device)
    constants = torch.zeros_like(design[:, 0])
    for _ in range(5):
        error = target - torch.einsum('rop,rp->ro', design, constants)
        weight = inside / (1 + (error / width).square())
        weighted = design * weight.unsqueeze(-1)
        normal = torch.einsum('rop,roq->rpq', weighted, design)
        right = torch.einsum('rop,ro->rp', weighted, target)
        constants = torch.linalg.solve(normal + ridge * eye, right)
    return constants.to(missed.dtype).expand(len(missed), -1) / scale
