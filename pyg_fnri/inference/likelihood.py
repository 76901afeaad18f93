"""What one-step errors cost, and likelihoods fitted to them without labels."""
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

#: :math:`w_e`: successive errors are not independent.
EVIDENCE_WEIGHT = 0.1
#: From a Cauchy's tails, of close encounters, to nearly a Gaussian's, of noise.
DEGREES = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 40.0, 100.0)

#: Errors that a likelihood is fitted to, and the least scale, such as of the
#: third coordinate of motion in a plane.
NUM_ROWS, MIN_SCALE = 4_000, 1e-6


@dataclass(frozen=True)
class AnnealingStep:
    r"""One sweep, minimising :math:`w_e \sum \log(1 + e^2 / d^2) - w_p \log q`
    per choice, with errors :math:`e` and the encoder's posterior :math:`q`.

    Args:
        tolerance: :math:`d^2`, above 0; errors far above it weigh little.
        prior_weight: :math:`w_p`, at least 0.
    """
    tolerance: float
    prior_weight: float

    def __post_init__(self) -> None:
        if not self.tolerance > 0 or not self.prior_weight >= 0:
            raise ValueError(f"Expected a tolerance above 0 and a prior_weight "
                             f"of at least 0, but got {self}.")

    def cost(self, errors: Tensor) -> Tensor:
        cost = (errors.square() / self.tolerance).log1p().flatten(-2).sum(-1)
        return EVIDENCE_WEIGHT * cost

    def weight(self, errors: Tensor) -> Tensor:
        return EVIDENCE_WEIGHT / (self.tolerance + errors.square())


@dataclass(frozen=True)
class StudentErrors:
    r"""Errors that follow Student's t-distribution, each feature its own:

    .. math::
        \sum_f m_f \frac{\nu_f + 1}{2} \sum_t
        \log\left(1 + \frac{e_{tf}^2}{\nu_f s_f^2}\right) - w_p \log q

    with degrees of freedom :math:`\nu_f`, scale :math:`s_f`, share :math:`m_f`
    of independent errors, and prior weight :math:`w_p`. Not in the paper."""
    degrees: tuple[float, ...]
    scale: tuple[float, ...]
    share: tuple[float, ...]
    prior_weight: float

    def cost(self, errors: Tensor) -> Tensor:
        degrees, scale, share = self._tensors(errors)
        cost = (errors.square() / (degrees * scale.square())).log1p()
        # Time first: what a feature weighs is the same at all times.
        return (cost.sum(-2) * share * (degrees + 1) / 2).sum(-1)

    def weight(self, errors: Tensor) -> Tensor:
        degrees, scale, share = self._tensors(errors)
        slope = 1 / (degrees * scale.square() + errors.square())
        return share * (degrees + 1) / 2 * slope

    def at_least(self, tolerance: float) -> 'StudentErrors':
        r"""With no tolerance :math:`\nu s^2` below one."""
        least = (math.sqrt(tolerance / d) for d in self.degrees)
        return replace(self, scale=tuple(map(max, self.scale, least)))

    def widened(self, factor: float) -> 'StudentErrors':
        return replace(self, scale=tuple(factor * s for s in self.scale))

    def _tensors(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return (like.new_tensor(self.degrees), like.new_tensor(self.scale),
                like.new_tensor(self.share))


#: What a graph costs: :obj:`cost` of its errors, :obj:`[*, num_transitions, F]`
#: to :obj:`[*]`, and :obj:`prior_weight` times minus the encoder's
#: log-probability. :obj:`weight` is the derivative by the square of an error.
Objective = AnnealingStep | StudentErrors
AnyObjective = TypeVar('AnyObjective', bound=Objective)


def without_prior(stages: Sequence[AnyObjective]) -> list[AnyObjective]:
    return [replace(stage, prior_weight=0.0) for stage in stages]


def fit_errors(errors: Tensor, prior_weight: float) -> StudentErrors:
    """The likelihood that fits errors :obj:`[num_nodes, num_transitions, F]` of
    graphs thought to be right; zeros say nothing."""
    valid = (errors != 0).any(-1)
    if not bool(valid.any()):
        raise ValueError("Particles may meet a wall in all transitions, so "
                         "none shows interactions; check half_width.")
    slope, degrees, scale = bounded(errors, valid)
    share = independent_share(slope, valid)
    return StudentErrors(tuple(degrees.tolist()), tuple(scale.tolist()),
                         tuple(share.tolist()), prior_weight)


def bounded(errors: Tensor, valid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The slope of the best-fitting log-likelihood, in which close encounters
    do not hide all others, and its degrees and scale."""
    degrees, scale = fit_student(some(errors[valid], NUM_ROWS))
    slope = errors / (degrees * scale.square() + errors.square())
    return slope, degrees, scale


def some(rows: Tensor, number: int) -> Tensor:
    """All rows, or of more a number drawn at random, the same in every call: a
    fixed stride may meet the same frames of all trajectories."""
    if len(rows) <= number:
        return rows
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(len(rows), (number, ), generator=generator)
    return rows[drawn.to(rows.device)]


def fit_student(errors: Tensor,
                num_iterations: int = 30) -> tuple[Tensor, Tensor]:
    r"""Degrees of freedom and scale of Student's t-distribution around zero,
    twice :obj:`[F]`, by maximum likelihood, from errors :obj:`[num_errors, F]`:
    the best fixed point of :math:`s^2 \leftarrow \sum_i w_i e_i^2 / \sum_i
    w_i`, :math:`w_i = (\nu + 1) / (\nu + e_i^2 / s^2)`, over :data:`DEGREES`.
    """
    square = errors.square().double()
    degrees = square.new_tensor(DEGREES).view(-1, 1, 1)
    least = (1e-6 * square.mean(0)).clamp(min=MIN_SCALE**2)
    variance = torch.maximum(square.median(0).values, least)  # [F]
    variance = variance.expand(degrees.size(0), 1, -1)
    for _ in range(num_iterations):
        weight = (degrees + 1) / (degrees + square / variance)
        variance = (weight * square).sum(1, True) / weight.sum(1, True)
        variance = torch.maximum(variance, least)
    surprise = (square / (degrees * variance)).log1p().mean(1, True)
    half = (degrees + 1) / 2
    log_likelihood = (half.lgamma() - (degrees / 2).lgamma() -
                      (degrees * variance).log() / 2 - half * surprise)
    best = log_likelihood.squeeze(1).argmax(0, True)  # [1, F]
    scale = variance.squeeze(1).gather(0, best).squeeze(0).sqrt()
    return degrees.flatten()[best[0]].to(errors), scale.to(errors)


def independent_share(series: Tensor, valid: Tensor) -> Tensor:
    r"""The share of independent values in stationary series :obj:`[num_series,
    T, F]` around zero, :obj:`[F]`: :math:`(1 + 2 \sum_{k=1} (1 - k / T)
    \rho_k)^{-1}` up to the first autocorrelation :math:`\rho_k` that is not
    positive."""
    num_steps, series = series.size(1), series * valid.unsqueeze(-1)
    variance = series.square().sum((0, 1)) / valid.sum()
    total, positive = torch.ones_like(variance), variance > 0
    for lag in range(1, num_steps):
        pairs = (valid[:, lag:] & valid[:, :-lag]).sum()
        product = (series[:, lag:] * series[:, :-lag]).sum((0, 1))
        correlation = product / pairs.clamp(min=1) / variance
        positive = positive & (correlation > 0)
        if not bool(positive.any()):
            break
        part = 2 * (1 - lag / num_steps) * correlation.clamp(max=1)
        total = total + torch.where(positive, part, 0)
    return 1 / total


def cauchy_nll(errors: Tensor, width: Tensor) -> Tensor:
    r""":math:`\log (\pi s) + \log (1 + e^2 / s^2)` in nat, of width :math:`s`.
    """
    return (math.pi * width).log() + (errors / width).square().log1p()


def cauchy_width(errors: Tensor, floor: float = 1e-7) -> Tensor:
    """The width under which errors are most likely, at least :obj:`floor`."""
    square = errors.double().square()
    # The mean of e^2 / (e^2 + s^2) is 1/2 at the maximum; a fixed point.
    width = square.median().clamp(min=floor**2)
    for _ in range(50):
        width = width * 2 * (square / (square + width)).mean()
        width = width.clamp(min=floor**2)
    return width.sqrt().to(errors.dtype)


def robust_fit(columns: Tensor, missed: Tensor, seen: Tensor,
               spread: float | None = None) -> Tensor:
    """The constants :obj:`[num_nodes, P]` by which columns :obj:`[num_nodes, T,
    D, P]` explain changes :obj:`[num_nodes, T, D]` in the transitions
    :obj:`seen`; the same for all particles, or each its own, of about that
    :obj:`spread`."""
    # In double precision, squares of small numbers in any unit are above 0.
    scale = columns[seen].double().square().mean((0, 1)).sqrt().to(missed.dtype)
    scale = scale.clamp(min=torch.finfo(missed.dtype).tiny)  # [P]
    width = cauchy_width(missed[seen])
    ridge = (width / (spread * scale.mean()))**2 if spread else 1e-9
    rows, num_constants = len(missed) if spread else 1, len(scale)
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
