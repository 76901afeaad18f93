"""Laws in words: formulas of the distance, fitted to tables with errors."""
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

#: A formula fits if its errors are as large as told, up to this factor of
#: their squares, or below this share of the law.
MOST_CHI2, SMALL_RESIDUAL = 3.0, 0.01
#: Entries of a table count if their error is below this share of the largest.
MOST_ERROR = 0.3
#: Eigenvalues of correlations are rounding below this one.
LEAST_EIGENVALUE = 1e-8
NUM_ITERATIONS = 30

#: As good as 0 in any unit, and a square of it no less.
TINY = 1e-150


@dataclass(frozen=True)
class _Shape:
    """A formula's text, in which other letters are parameters: the first one
    is a factor, the others are found from starts at :obj:`places`, shares of
    the range of distances in logarithms, or numbers."""
    text: str
    parameters: str
    value: Callable[..., Tensor]
    #: Whether a start is a distance, of each parameter but the first.
    is_distance: tuple[bool, ...] = ()


def _truncated(r: Tensor, k: Tensor, c: Tensor) -> Tensor:
    # A table resolves no step that is sharper than its spacing.
    spacing = (r.max() / r.min()).log() / (r.numel() - 1)
    return k * r * torch.sigmoid(4 * (c.clamp(min=TINY) / r).log() / spacing)


#: At r = c, energies of Lennard-Jones and Morse are lowest.
SHAPES = (
    _Shape('k', 'k', lambda r, k: k + 0 * r),
    _Shape('k r', 'k', lambda r, k: k * r),
    _Shape('a / r', 'a', lambda r, a: a / r),
    _Shape('k (r - c)', 'kc', lambda r, k, c: k * (r - c), (True, )),
    _Shape('a / r^p', 'ap', lambda r, a, p: a * r**-p, (False, )),
    _Shape('a exp(-r / d) / r', 'ad', lambda r, a, d: a * (-r / d).exp() / r,
           (True, )),
    _Shape('a exp(-r / d) (1 / r^2 + 1 / (d r))', 'ad', lambda r, a, d: a *
           (-r / d).exp() * (1 / r**2 + 1 / (d * r)), (True, )),
    _Shape('a / (r^2 + e^2)', 'ae', lambda r, a, e: a / (r**2 + e**2),
           (True, )),
    _Shape('a r / (r^2 + e^2)^1.5', 'ae', lambda r, a, e: a * r /
           (r**2 + e**2)**1.5, (True, )),
    _Shape('a exp(-r^2 / (2 d^2))', 'ad', lambda r, a, d: a *
           (-(r / d)**2 / 2).exp(), (True, )),
    _Shape('a r exp(-r^2 / (2 d^2))', 'ad', lambda r, a, d: a * r *
           (-(r / d)**2 / 2).exp(), (True, )),
    _Shape('k r up to r = c', 'kc', _truncated, (True, )),
    _Shape('a ((c / r)^13 - (c / r)^7)', 'ac', lambda r, a, c: a *
           ((c / r)**13 - (c / r)**7), (True, )),
    _Shape(
        'a (exp(-2 (r - c) / d) - exp(-(r - c) / d))', 'acd',
        lambda r, a, c, d: a * ((-2 * (r - c) / d).exp() -
                                (-(r - c) / d).exp()), (True, True)),
    _Shape('a sin(w r)', 'aw', lambda r, a, w: a * (w * r).sin(), (False, )),
)


@dataclass(frozen=True)
class Formula:
    """A formula that fits a table, with standard errors of its parameters.
    Of two formulas, the one with the lower :obj:`bic` is better."""
    text: str
    parameters: dict[str, float]
    errors: dict[str, float]
    bic: float
    #: Mean square of residuals in units of the table's errors.
    chi2: float

    def __str__(self) -> str:
        said = {
            name: with_error(value, self.errors[name])
            for name, value in self.parameters.items()
        }
        text = re.sub(r'[a-z]+', lambda word: said.get(word[0], word[0]),
                      self.text)
        for sign in (('- -', '+ '), ('+ -', '- '), (' / r^-', ' r^')):
            text = text.replace(*sign)
        return f'f(r) = {text}'


def with_error(value: float, error: float) -> str:
    """A number and the error of its last digits, as in 0.998(2)."""
    if not 0 < error < math.inf:
        return f'{value:.4g}'
    power = math.floor(math.log10(abs(value))) if value else 0
    if not -4 <= power < 6:
        return (with_error(value / 10.**power, error / 10.**power) +
                f'e{power}')
    # Two digits of an error that starts with a 1, else one.
    digits = -math.floor(math.log10(error))
    digits += round(error * 10**digits, 1) < 2
    if digits <= 0:
        return f'{round(value, digits):.0f}({round(error, digits):.0f})'
    return f'{value:.{digits}f}({round(error * 10**digits)})'


@torch.no_grad()
def best_formula(distance: Tensor, value: Tensor,
                 covariance: Tensor) -> Formula | None:
    """The formula of the library that fits a law best, by Bayes's information
    criterion, or None if none fits.

    Args:
        distance: Where the law is known, increasing, in m, :obj:`[K]`.
        value: The law at these distances, in m/s^2, :obj:`[K]`.
        covariance: Of its errors, :obj:`[K, K]`. Distances count where errors
            are small.
    """
    r, f = distance.double(), value.double()
    error = covariance.double().diagonal().clamp(min=0).sqrt()
    known = (error > 0) & (error < MOST_ERROR * f.abs().max())
    if int(known.sum()) < 5:
        return None
    r, f, error = r[known], f[known], error[known]
    correlation = covariance.double()[known][:, known] / error / error[:, None]
    values, vectors = torch.linalg.eigh(correlation)
    values = values.clamp(min=LEAST_EIGENVALUE * values.max())
    whiten = (vectors / values.sqrt()).T / error  # [K', K']
    size, found = len(r), []

    def share(residual: Tensor) -> Tensor:
        return (residual.square().sum() / f.square().sum()).sqrt()

    for shape in SHAPES:
        parameters, chi2, curvature = _fit(shape, r, f, whiten)
        degrees = size - len(parameters)
        if degrees > 0 and math.isfinite(chi2):
            # Parameters have units of their own.
            unit = curvature.diagonal().sqrt().clamp(min=TINY)
            inverse = torch.linalg.pinv(curvature / unit / unit[:, None])
            variance = inverse.diagonal().clamp(min=0) / unit / unit
            found.append((shape, parameters, variance, chi2, chi2 / degrees))
    # Errors may be larger than told, of the best formula as well.
    excess = max(1., min(fit[-1] for fit in found))
    fits = [
        Formula(
            shape.text, dict(zip(shape.parameters, p.tolist())),
            dict(zip(shape.parameters, (variance * excess).sqrt().tolist())),
            chi2 / excess + len(p) * math.log(size), mean)
        for shape, p, variance, chi2, mean in found
        # A formula with a parameter within four errors of 0 is a simpler one.
        # That of a power law is the force at r = 1, in any unit.
        if bool((p.square() > 16 * excess *
                 variance)[shape.text == 'a / r^p':].all()) and
        (mean <= MOST_CHI2 or share(shape.value(r, *p) - f) < SMALL_RESIDUAL)
    ]
    return min(fits, key=lambda fit: fit.bic, default=None)


def _fit(shape: _Shape, r: Tensor, f: Tensor,
         whiten: Tensor) -> tuple[Tensor, float, Tensor]:
    """Levenberg's and Marquardt's least squares from several starts at once:
    the best parameters, their sum of squares and its curvature."""
    target = whiten @ f

    def predict(p: Tensor) -> Tensor:  # [S, K]
        return shape.value(r, *p.unsqueeze(-1).unbind(1)) @ whiten.T

    at = r.log().quantile(r.new_tensor([0.05, 0.3, 0.6, 0.9])).exp()
    numbers = r.new_tensor([-1., 0.5, 2., 6.])
    axes = [at if place else numbers for place in shape.is_distance]
    if shape.text.startswith('a sin'):
        axes[0] = math.pi * torch.arange(1, 13).to(r) / (r.max() - r.min())

    def with_factor(p: Tensor) -> Tensor:
        unit = predict(torch.cat([torch.ones_like(p[:, :1]), p[:, 1:]], dim=1))
        factor = (unit @ target) / unit.square().sum(-1).clamp(min=1e-300)
        return torch.cat([factor.unsqueeze(1), p[:, 1:]], dim=1)

    p = torch.cartesian_prod(r.new_ones(1), *axes).view(-1, 1 + len(axes))
    p = with_factor(p)
    damping = p.new_full((len(p), ), 1e-2)

    def look(p: Tensor) -> tuple[Tensor, Tensor]:
        residual = target - predict(p)
        chi2 = residual.square().sum(-1)
        return residual, chi2.nan_to_num(torch.inf, torch.inf)

    def slopes(p: Tensor) -> Tensor:  # [S, K, parameters]
        step = 1e-6 * p.abs().clamp(min=TINY)
        moved = torch.diag_embed(step)
        return torch.stack(
            [(predict(p + moved[:, n]) - predict(p - moved[:, n])) /
             (2 * step[:, n, None]) for n in range(p.size(1))], dim=-1)

    residual, chi2 = look(p)
    for _ in range(NUM_ITERATIONS if axes else 2):
        slope = slopes(p).nan_to_num(0., 0., 0.)
        size = slope.norm(dim=1).clamp(min=TINY)
        slope = slope / size[:, None]
        normal = slope.mT @ slope
        diagonal = normal.diagonal(dim1=1, dim2=2)
        damped = normal + torch.diag_embed(damping[:, None] * diagonal + 1e-12 *
                                           diagonal.amax(-1, True) + 1e-300)
        right = (slope.mT @ residual.nan_to_num(0., 0., 0.)[..., None])
        step, _ = torch.linalg.solve_ex(damped, right)
        tried = p + (step.squeeze(-1) / size).nan_to_num(0., 0., 0.)
        for n, place in enumerate(shape.is_distance, start=1):
            if place:  # Distances are positive.
                tried[:, n] = torch.where(tried[:, n] > 0, tried[:, n],
                                          p[:, n] / 2)
        tried = with_factor(tried)
        new, new_chi2 = look(tried)
        better = new_chi2 < chi2
        p = torch.where(better[:, None], tried, p)
        residual = torch.where(better[:, None], new, residual)
        chi2 = torch.where(better, new_chi2, chi2)
        damping = torch.where(better, damping / 5, damping * 4)
        damping = damping.clamp(1e-9, 1e9)
    best = int(chi2.argmin())
    slope = slopes(p[best:best + 1])[0]
    return p[best], chi2[best].item(), slope.T @ slope
