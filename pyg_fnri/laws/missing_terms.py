"""Terms that force laws lack, found in what they leave unexplained."""
import math
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.inference.impulses import GAP
from pyg_fnri.inference.likelihood import cauchy_nll, cauchy_width
from pyg_fnri.laws.fit import LawFit, mean_by_system
from pyg_fnri.nn import RelationalAutoEncoder

#: Least distance, in units of a law's first one: closer encounters would
#: outweigh all else.
CLOSE = 10 / 3
#: The least size of a term, in typical changes of velocity by forces; laws
#: that hold are off by less.
MIN_SIZE = 0.02
#: Standard errors that one gain has to exceed, as several terms are tried, and
#: all those among which the greatest decides.
MIN_SIGNIFICANCE, MORE_THAN_CHANCE = 3.0, 2.0
#: What each of the terms means.
TERMS = {
    'velocity': 'forces depend on velocity, like friction or a drive',
    'turning': 'forces act across the velocity, like a magnetic field',
    'relative velocity':
    'forces depend on velocities, like friction within pairs',
    'transverse': 'forces point across the line of a pair',
    'field': 'a force acts from outside, depending on position alone',
    'response': 'particles respond differently to the same force'
}


class Estimate(NamedTuple):
    """A mean and its standard error."""
    mean: float
    error: float

    def __str__(self) -> str:
        return f'{self.mean:.2f} ± {self.error:.2f}'


def mean_of_systems(values: Tensor) -> Estimate:
    """The mean of a value per system, :obj:`[num_systems]`."""
    if values.numel() < 2:
        raise ValueError(f"A standard error takes at least two systems, but "
                         f"there is {values.numel()}.")
    values = values.double()
    error = values.std() / math.sqrt(values.numel())
    return Estimate(values.mean().item(), error.item())


class Finding(NamedTuple):
    """One of the :data:`TERMS`, its mean size in typical changes of velocity by
    forces, and its gain of log-likelihood in nat per velocity component."""
    name: str
    size: float
    gain: Estimate

    def __str__(self) -> str:
        return f'{TERMS[self.name]} ({self.size:.0%} of typical forces)'


@torch.no_grad()
def find_missing_terms(model: RelationalAutoEncoder, data: Data,
                       edge_type: Tensor) -> list[Finding]:
    """The terms that laws lack in at least two systems with a graph by
    :obj:`x`, the greatest gain first. Each of the :data:`TERMS` is fitted to
    what the laws miss in :obj:`x`, and judged by the frames :obj:`y` that
    follow; the best is taken out, and the others are tried on what is left."""
    fit = LawFit(model, data)
    channels = model.latent.encode_types(edge_type)[fit.search.choices.edge]
    channels = channels.to(data.x.dtype)
    evidence, valid = fit.evidence(), fit.transitions.valid
    # Changes of velocity, in typical ones by forces.
    missed = evidence.errors(channels).chunk(2, dim=-1)[1]
    explained = evidence.change.chunk(2, dim=-1)[1] - missed
    left = term_columns(fit, data, channels, explained)
    observed = fit.transitions.frame < GAP
    seen, later = valid & observed, valid & ~observed
    # Laws that are all too strong or too weak by one factor break no rule.
    missed = missed - _fit(left['response'], missed, seen)
    found = []
    while left:
        tried = []
        for name, columns in left.items():
            part = _fit(columns, missed, seen, per_particle=name == 'response')
            gain = torch.zeros_like(missed[..., 0])
            for errors, sign in ((missed, 1), (missed - part, -1)):
                nll = cauchy_nll(errors, cauchy_width(errors[seen]))
                gain += sign * nll.mean(-1)
            gained = mean_of_systems(
                mean_by_system((gain * later).sum(-1), later.sum(-1),
                               data.batch))
            size = part[later].abs().mean().item()
            if size >= MIN_SIZE and (gained.mean
                                     > MORE_THAN_CHANCE * gained.error):
                tried.append((Finding(name, size, gained), part))
        if not any(finding.gain.mean > MIN_SIGNIFICANCE * finding.gain.error
                   for finding, _ in tried):
            break
        finding, part = max(tried, key=lambda pair: pair[0].gain.mean)
        missed = missed - part
        found.append(finding)
        del left[finding.name]
    return found


def _fit(columns: Tensor, missed: Tensor, seen: Tensor,
         per_particle: bool = False) -> Tensor:
    """The part of changes [N, T, D] that columns [N, T, D, P] explain, with
    constants fitted to those seen."""
    # In double precision, squares of small numbers in any unit are above 0.
    scale = columns[seen].double().square().mean((0, 1)).sqrt().to(missed.dtype)
    scale = scale.clamp(min=torch.finfo(missed.dtype).tiny)  # [P]
    columns = columns / scale
    width = cauchy_width(missed[seen])
    # A particle that felt hardly any force tells little about itself: its
    # response is expected to be within some 30 % of the others'.
    ridge = (width / (0.3 * scale.mean()))**2 if per_particle else 1e-9
    rows, num_constants = len(missed) if per_particle else 1, len(scale)
    design = columns.reshape(rows, -1, num_constants).double()
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
    constants = constants.to(missed.dtype).expand(len(missed), -1)
    return torch.einsum('ntdp,np->ntd', columns, constants)


def term_columns(fit: LawFit, data: Data, channels: Tensor,
                 explained: Tensor) -> dict[str, Tensor]:
    """Changes of velocity :obj:`[N, T, D, P]` by each term, for P constants."""
    # Of both ends: the noise of one alone would look like friction.
    mean = [(x[:, :-1] + x[:, 1:]) / 2 for x in (data.x, data.y)]
    position, velocity = torch.cat(mean, dim=1).chunk(2, dim=-1)
    choices = fit.search.choices

    def between(value: Tensor) -> Tensor:
        return value[choices.receiver] - value[choices.sender]

    def of_pairs(*effects: Tensor) -> Tensor:
        """Effects [V, T, D] on receivers, by channel, summed by particle."""
        effect = torch.stack(effects, dim=-1)
        effect = torch.einsum('vc,vtde->vtdce', channels, effect)
        return fit.transitions.sum_at_particles(effect.flatten(-2))

    offset, relative = between(position), between(velocity)
    distance = offset.norm(dim=-1, keepdim=True)
    distance = distance.clamp(min=CLOSE * fit.layer.law.min_distance)
    across = _turned(offset / distance).unbind(-1)
    shapes = (torch.ones_like(distance), distance, 1 / distance)
    axes = torch.eye(position.size(-1), device=position.device)
    affine = torch.cat([torch.ones_like(position[..., :1]), position], dim=-1)
    return {
        'velocity':
        torch.stack(
            [velocity, velocity.norm(dim=-1, keepdim=True) * velocity], dim=-1),
        'turning':
        _turned(velocity),
        'relative velocity':
        of_pairs(relative, relative / distance),
        'transverse':
        of_pairs(*[part * shape for part in across for shape in shapes]),
        'field':
        torch.einsum('nta,de->ntdae', affine, axes).flatten(-2),
        'response':
        explained.unsqueeze(-1)
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
