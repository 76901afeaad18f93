"""Noise in observed frames: what errors of successive steps have in common."""
from typing import Optional

import torch
from torch import Tensor

from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import bounded

#: Noise in a frame is in two steps where velocities were observed, in four
#: where they are central differences of positions.
NUM_LAGS = 3

#: Correlations nearer to zero are left alone, and the least variance of any sum
#: of steps whose squared weights add up to 1.
NEGLIGIBLE, LEAST_VARIANCE = 0.05, 0.01


def decorrelated(evidence: ImpulseEvidence, errors: Tensor) -> ImpulseEvidence:
    r"""The evidence with errors by noise made independent; itself where errors
    do not alternate. Not in the paper.

    Noise in a frame is in the steps before and after it, with opposite signs.
    With :math:`L L^T` the covariance of a particle's steps (a band of
    :data:`NUM_LAGS`, none across walls and gaps), :math:`L^{-1} \mathbf{e}` is
    independent."""
    band = _band(errors, evidence.transitions)
    return evidence if band is None else DecorrelatedEvidence(evidence, band)


def _band(errors: Tensor, transitions: Transitions) -> Optional[Tensor]:
    """Correlations of steps 0, 1, ... apart, if errors alternate."""
    correlation = autocorrelation(errors, transitions)
    if not bool((correlation < -NEGLIGIBLE).any()):
        return None
    return torch.cat([torch.ones_like(correlation[:1]), correlation])


def independent_errors(
        errors: Tensor,
        transitions: Transitions) -> tuple[Tensor, Tensor | float]:
    """Errors :obj:`[num_nodes, T, F]` as :func:`decorrelated` makes them, and
    what that adds to their negative log-likelihood, in nat."""
    band = _band(errors, transitions)
    if band is None:
        return errors, 0.0
    factor = factorise(transitions, band).to(errors)
    return solve(factor, errors), factor[:, :, 0].log()


def autocorrelation(errors: Tensor, transitions: Transitions) -> Tensor:
    """The correlation of errors :obj:`[num_nodes, T, F]` of steps 1, 2, ...
    apart, :obj:`[NUM_LAGS, F]`, shrunk to that of some process."""
    out = errors.new_zeros(NUM_LAGS, errors.size(-1))
    if not bool(errors.any()):
        return out
    series, *_ = bounded(errors, (errors != 0).any(-1))
    variance = series[transitions.valid].square().mean(0)
    for lag in range(1, NUM_LAGS + 1):
        pairs = together(transitions, lag)
        if bool(pairs.any()):
            product = (series[:, lag:] * series[:, :-lag])[pairs].mean(0)
            out[lag - 1] = torch.where(variance > 0, product / variance, 0.0)
    # A spectrum above zero makes the covariance of any steps positive.
    frequency = torch.linspace(0, torch.pi, 200).to(out)
    lags = torch.arange(1, NUM_LAGS + 1).to(out)
    least = (1 + 2 * torch.cos(frequency.outer(lags)) @ out).amin(0)
    share = (1 - LEAST_VARIANCE) / (1 - least)
    return torch.where(least < LEAST_VARIANCE, share, 1.0) * out


class DecorrelatedEvidence(ImpulseEvidence):
    """Made by :func:`decorrelated`."""
    def __init__(self, evidence: ImpulseEvidence, band: Tensor) -> None:
        self.transitions = transitions = evidence.transitions
        self.scale, self.responds = evidence.scale, evidence.responds
        choices = transitions.choices
        factor = factorise(transitions, band).to(evidence.change)
        self.factor, self.log_scale = factor, factor[:, :, 0].log()
        self.change = solve(factor,
                            evidence.change * transitions.valid.unsqueeze(-1))
        on_receiver, on_sender = evidence.effects(slice(None))
        # Of 1 kg: masses may still change.
        at_receiver, at_sender = transitions.factors(slice(None))
        self.on_receiver = solve(factor[choices.receiver],
                                 on_receiver / at_receiver.view(-1, 1, 1, 1))
        self.on_sender = solve(factor[choices.sender],
                               on_sender / at_sender.view(-1, 1, 1, 1))

    def independent(self, columns: Tensor) -> Tensor:
        valid = self.transitions.valid[:, None, :, None]
        columns = columns.movedim(-1, 1) * valid  # [num_nodes, P, T, F]
        return solve(self.factor, columns).movedim(1, -1)

    def effects(self, members: Tensor | slice) -> tuple[Tensor, Tensor]:
        at_receiver, at_sender = self.transitions.factors(members)
        return (self.on_receiver[members] * at_receiver.view(-1, 1, 1, 1),
                self.on_sender[members] * at_sender.view(-1, 1, 1, 1))

    def errors(self, channels: Tensor) -> Tensor:
        choices, out = self.transitions.choices, self.change.clone()
        for particle, effect in zip((choices.receiver, choices.sender),
                                    self.effects(slice(None))):
            explained = torch.einsum('vc,vc...->v...', channels, effect)
            out.index_add_(0, particle, -explained)
        return out


def together(transitions: Transitions, lag: int) -> Tensor:
    """Whether transitions, and those so many later, say something,
    :obj:`[num_nodes, T - lag]`."""
    valid, frame = transitions.valid, transitions.frame
    return valid[:, lag:] & valid[:, :-lag] & (frame[lag:] - frame[:-lag]
                                               == lag)


def factorise(transitions: Transitions, band: Tensor) -> Tensor:
    """The Cholesky factor of each particle's covariance, of which a band of
    lags 0, 1, ... is given, :obj:`[num_lags + 1, F]`; from the diagonal to the
    left, :obj:`[num_nodes, T, num_lags + 1, F]`."""
    valid, num_lags = transitions.valid, len(band) - 1
    out = band.new_zeros(*valid.size(), *band.size())
    out[:, :, 0] = band[0]
    for lag in range(1, num_lags + 1):
        out[:, lag:,
            lag] = (band[lag] * together(transitions, lag).unsqueeze(-1))
    # In place: what is read of the covariance has not been replaced yet.
    for step in range(valid.size(1)):
        for lag in range(min(step, num_lags), -1, -1):
            other = step - lag
            now = out[:, step, lag]
            for before in range(lag + 1, min(step, num_lags) + 1):
                now -= out[:, step, before] * out[:, other, before - lag]
            if lag:
                now /= out[:, other, 0]
            else:
                now.sqrt_()
    return out


def solve(factor: Tensor, value: Tensor) -> Tensor:
    """Values :obj:`[num_nodes, *, T, F]`, made independent."""
    out, num_lags = value.clone(), factor.size(2) - 1
    shape = len(value), *[1] * (value.dim() - 3), value.size(-1)
    for step in range(value.size(-2)):
        for lag in range(1, min(step, num_lags) + 1):
            before = out[..., step - lag, :]
            out[..., step, :] -= factor[:, step, lag].view(shape) * before
        out[..., step, :] /= factor[:, step, 0].view(shape)
    return out


def solve_transposed(factor: Tensor, value: Tensor) -> Tensor:
    out, num_lags = value.clone(), factor.size(2) - 1
    num_steps = value.size(1)
    for step in range(num_steps - 1, -1, -1):
        for lag in range(1, min(num_steps - 1 - step, num_lags) + 1):
            out[:, step] -= factor[:, step + lag, lag] * out[:, step + lag]
        out[:, step] /= factor[:, step, 0]
    return out
