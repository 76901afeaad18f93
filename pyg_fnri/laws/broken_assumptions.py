"""What force laws take for granted, and motion contradicts."""
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from pyg_fnri.inference.likelihood import (
    Estimate,
    cauchy_nll,
    cauchy_width,
    mean_of_systems,
)
from pyg_fnri.laws.missing_terms import TERMS, Frames, response, seen_from_laws
from pyg_fnri.nn import ForceLawDecoder, RelationalAutoEncoder

#: A term matters from this size on, in typical changes of velocity by forces;
#: laws that hold are off by less.
MIN_SIZE = 0.02
#: Something is found if a gain is so many standard errors, as several terms
#: are tried; which one it is, the greatest gain decides, of those that are
#: more than chance.
MIN_SIGNIFICANCE, MORE_THAN_CHANCE = 3.0, 2.0

#: Changes of velocity in the frames :obj:`x` and in the frames :obj:`y`, in
#: units of the typical one by forces.
Missed = tuple[Tensor, Tensor]


class Finding(NamedTuple):
    """A term that the laws lack.

    Args:
        name: A key of :obj:`TERMS`.
        size: Its mean size, in units of the typical change of velocity by
            forces in an interval.
        gain: What it adds to the log-likelihood of a velocity component in
            the frames :obj:`y`, once fitted to the frames :obj:`x`, in nat.
    """
    name: str
    size: float
    gain: Estimate

    def __str__(self) -> str:
        return (f"{MESSAGES[self.name]} ({self.size:.0%} of the typical force)")


#: What each finding says.
MESSAGES = {
    'velocity': 'forces depend on velocity, like friction or a drive',
    'turning': 'forces act across the velocity, like a magnetic field',
    'relative velocity':
    'forces depend on velocities, like friction within pairs',
    'transverse': 'forces point across the line of a pair',
    'field': 'a force acts from outside, depending on position alone',
    'response': 'particles respond differently to the same force',
}


@torch.no_grad()
def find_broken_assumptions(
    model: RelationalAutoEncoder,
    data: Data,
    edge_type: Tensor,
) -> list[Finding]:
    """Regresses what the laws miss on what they do not know of.

    Each of the :obj:`TERMS` is fitted to the observed frames :obj:`x` by
    robust least squares, and judged by the frames :obj:`y` that follow. The
    best of those that matter is taken out, and the others are tried on what
    is left. Frames in which a wall that the laws know may have been met are
    left out.

    Args:
        model: Its decoder's layer is a fitted
            :class:`~pyg_fnri.nn.ForceLawDecoder`.
        data: A batch of at least two systems, with :obj:`x` and :obj:`y`.
        edge_type: The graph that was inferred from :obj:`x`,
            :obj:`[num_edges, num_layers]`.

    Returns:
        What was found, the greatest gain first; nothing where laws hold.

    Raises:
        TypeError: If the decoder is of another kind.
        ValueError: If there are fewer than two systems.
    """
    layer = model.decoder.layer
    if not isinstance(layer, ForceLawDecoder):
        raise TypeError(f"Only a ForceLawDecoder has laws whose assumptions "
                        f"could be broken, but the decoder's layer is a "
                        f"{type(layer).__name__}.")
    if data.get('batch') is None:
        raise ValueError("Expected a batch of at least two systems, but got a "
                         "system alone.")
    seen, later = (seen_from_laws(model, layer, data, x, edge_type)
                   for x in (data.x, data.y))
    # Laws that are all too strong or too weak by one factor break no rule.
    missed = _without(_fit(seen, later, response, seen.missed), seen.missed,
                      later.missed)
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


def _try(name: str, seen: Frames, later: Frames, missed: Missed,
         system: Tensor) -> tuple[Finding, Missed]:
    """What a term is worth, and what is missed once it is taken out."""
    fitted = _fit(seen, later, TERMS[name], missed[0],
                  per_particle=name == 'response')
    rest = _without(fitted, *missed)
    valid = later.transitions.valid
    gain = torch.zeros_like(missed[1][..., 0])
    for (fit_to, judged_by), sign in ((missed, 1), (rest, -1)):
        width = cauchy_width(fit_to[seen.transitions.valid])
        gain += sign * cauchy_nll(judged_by, width).mean(-1)
    by_system = scatter((gain * valid).sum(-1), system)
    count = scatter(valid.sum(-1).to(gain), system)
    size = fitted[1][valid].abs().mean()
    return Finding(name, size.item(),
                   mean_of_systems((by_system / count)[count > 0])), rest


def _root_mean_square(known: Tensor) -> Tensor:
    """Of each term [*, D, P], whatever its unit; above zero, [P]."""
    # Squares of squares of small numbers are none in single precision.
    scale = known.double().square().mean((0, 1)).sqrt().to(known.dtype)
    return scale.clamp(min=torch.finfo(known.dtype).tiny)


def _without(fitted: Missed, *missed: Tensor) -> Missed:
    return missed[0] - fitted[0], missed[1] - fitted[1]


def _fit(seen: Frames, later: Frames, term: Callable[[Frames], Tensor],
         missed: Tensor, per_particle: bool = False) -> Missed:
    """A term fitted to what was missed, in these frames and in later ones."""
    known, new, valid = term(seen), term(later), seen.transitions.valid
    scale = _root_mean_square(known[valid])
    known, new = known / scale, new / scale
    width = cauchy_width(missed[valid])
    # A particle that hardly felt anything tells nothing about itself: its
    # response is expected to be within some 30 % of the others'.
    ridge = (width / (0.3 * scale.mean()))**2 if per_particle else 1e-9
    num_nodes, _, _, num_constants = known.size()
    rows = num_nodes if per_particle else 1
    # [rows, observations, P]
    design = known.reshape(rows, -1, num_constants).double()
    target = missed.reshape(rows, -1).double()
    inside = valid.unsqueeze(-1).expand_as(missed).reshape(rows, -1)
    eye = torch.eye(num_constants, dtype=torch.double, device=missed.device)
    constants = torch.zeros_like(design[:, 0])
    for _ in range(5):
        error = target - torch.einsum('rop,rp->ro', design, constants)
        weighted = design * (inside / (1 +
                                       (error / width).square())).unsqueeze(-1)
        normal = torch.einsum('rop,roq->rpq', weighted, design)
        right = torch.einsum('rop,ro->rp', weighted, target)
        constants = torch.linalg.solve(normal + ridge * eye, right)
    constants = constants.to(missed.dtype).expand(num_nodes, -1)
    return (torch.einsum('ntdp,np->ntd', known,
                         constants), torch.einsum('ntdp,np->ntd', new,
                                                  constants))
