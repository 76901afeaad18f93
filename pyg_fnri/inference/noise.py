"""Noise in observed frames: what errors of successive steps have in common."""
import torch
from torch import Tensor

from pyg_fnri.inference.impulses import ImpulseEvidence, Transitions
from pyg_fnri.inference.likelihood import bounded

#: Steps that noise in a frame is in: two where velocities were observed, four
#: where they are central differences of positions.
NUM_LAGS = 3

#: Correlations nearer to zero change nothing that could be seen.
NEGLIGIBLE = 0.05

#: The least variance of what many steps add up to, with any weights whose
#: squares add up to 1: nothing is exact.
LEAST_VARIANCE = 0.01


def decorrelated(evidence: ImpulseEvidence, errors: Tensor) -> ImpulseEvidence:
    r"""The same evidence, with errors by noise made independent.

    Noise in a frame is in the steps before and after it, with opposite signs:
    errors of successive steps alternate. With :math:`L L^T` for the
    covariance of a particle's steps (a band of :data:`NUM_LAGS` beside its
    diagonal, none across walls and gaps), :math:`L^{-1} \mathbf{e}` is
    independent. It adds steps up: noise of the frames in between cancels out,
    and what an interaction does over time does not. A close encounter that
    laws miss is spread over the steps that follow, which is the price. Each
    feature is taken by itself. Not in the paper.

    Args:
        evidence: The errors of force laws.
        errors: Under the graphs that are thought to be right, from which
            correlations are estimated, :obj:`[num_nodes, num_transitions,
            F]`.

    Returns:
        The evidence itself where errors do not alternate.
    """
    correlation = autocorrelation(errors, evidence.transitions)
    if not bool((correlation < -NEGLIGIBLE).any()):
        return evidence
    return DecorrelatedEvidence(evidence, correlation)


def autocorrelation(errors: Tensor, transitions: Transitions) -> Tensor:
    """The correlation of the errors of steps, by how far they are apart.

    Args:
        errors: :obj:`[num_nodes, T, F]`.
        transitions: Which of them say something, and when they are.

    Returns:
        :obj:`[NUM_LAGS, F]`, of 1, 2, ... steps; nearer to zero where there
        is no process, or hardly one, of such correlations.
    """
    out = errors.new_zeros(NUM_LAGS, errors.size(-1))
    if not bool(errors.any()):
        return out
    # Bounded: close encounters, which laws miss by far, hide nothing.
    series = bounded(errors)
    variance = series[transitions.valid].square().mean(0)
    for lag in range(1, NUM_LAGS + 1):
        pairs = _together(transitions, lag, lag)
        if bool(pairs.any()):
            product = (series[:, lag:] * series[:, :-lag])[pairs].mean(0)
            out[lag - 1] = torch.where(variance > 0, product / variance, 0.0)
    return _of_a_process(out)


class DecorrelatedEvidence(ImpulseEvidence):
    """Made by :func:`decorrelated`.

    Args:
        evidence: The errors of force laws.
        correlation: Of errors 1, 2, ... steps apart, :obj:`[NUM_LAGS, F]`.
    """
    of_choices = ('on_receiver', 'on_sender')

    def __init__(self, evidence: ImpulseEvidence, correlation: Tensor) -> None:
        self.transitions = transitions = evidence.transitions
        self.scale = evidence.scale
        choices = transitions.choices
        factor = _factor(transitions, correlation)
        self.change = _solve(factor, torch.arange(len(transitions.valid)),
                             evidence.change * transitions.valid.unsqueeze(-1))
        on_receiver, on_sender = evidence.effects(
            torch.arange(choices.edge.numel(), device=choices.edge.device))
        self.on_receiver = _solve(factor, choices.receiver, on_receiver)
        self.on_sender = _solve(factor, choices.sender, on_sender)

    def effects(self, members: Tensor) -> tuple[Tensor, Tensor]:
        return self.on_receiver[members], self.on_sender[members]

    def errors(self, channels: Tensor) -> Tensor:
        choices, out = self.transitions.choices, self.change.clone()
        for particle, effect in ((choices.receiver, self.on_receiver),
                                 (choices.sender, self.on_sender)):
            out.index_add_(0, particle,
                           -torch.einsum('vc,vc...->v...', channels, effect))
        return out


def _of_a_process(correlation: Tensor) -> Tensor:
    """Correlations :obj:`[NUM_LAGS, F]` shrunk until their spectrum is above
    zero, and with it the covariance of any steps."""
    frequency = torch.linspace(0, torch.pi, 200).to(correlation)
    lag = torch.arange(1, NUM_LAGS + 1).to(correlation)
    spectrum = 1 + 2 * torch.cos(frequency.outer(lag)) @ correlation
    least = spectrum.amin(0)
    share = (1 - LEAST_VARIANCE) / (1 - least)
    return torch.where(least < LEAST_VARIANCE, share, 1.0) * correlation


def _together(transitions: Transitions, lag: int, distance: int) -> Tensor:
    """Which steps :obj:`lag` places apart are so many frames apart, and both
    say something, :obj:`[num_nodes, T - lag]` bool."""
    valid = transitions.valid
    near = transitions.frame[lag:] - transitions.frame[:-lag] == distance
    return valid[:, lag:] & valid[:, :-lag] & near


def _factor(transitions: Transitions, correlation: Tensor) -> Tensor:
    """The Cholesky factor of each particle's covariance, of unit variances,
    :obj:`[num_nodes, T, NUM_LAGS + 1, F]`: the diagonal, then what is to the
    left of it."""
    valid = transitions.valid
    covariance = correlation.new_zeros(*valid.size(), NUM_LAGS + 1,
                                       correlation.size(-1))
    covariance[:, :, 0] = 1
    for lag in range(1, NUM_LAGS + 1):
        for distance in range(lag, NUM_LAGS + 1):
            pairs = _together(transitions, lag, distance).unsqueeze(-1)
            covariance[:, lag:, lag] += correlation[distance - 1] * pairs
    out = torch.zeros_like(covariance)
    for step in range(valid.size(1)):
        for lag in range(min(step, NUM_LAGS), -1, -1):
            rest, other = covariance[:, step, lag].clone(), step - lag
            for before in range(lag + 1, min(step, NUM_LAGS) + 1):
                rest -= out[:, step, before] * out[:, other, before - lag]
            if lag:
                out[:, step, lag] = rest / out[:, other, 0]
            else:
                out[:, step, 0] = rest.sqrt()
    return out


def _solve(factor: Tensor, particle: Tensor, value: Tensor) -> Tensor:
    """The inverse factors of some particles :obj:`[n]` times values
    :obj:`[n, ..., T, F]`."""
    out = value.clone()
    shape = len(value), *[1] * (value.dim() - 3), value.size(-1)
    for step in range(value.size(-2)):
        now = factor[particle, step]  # [n, NUM_LAGS + 1, F]
        for lag in range(1, min(step, NUM_LAGS) + 1):
            out[...,
                step, :] -= (now[:, lag].view(shape) * out[..., step - lag, :])
        out[..., step, :] /= now[:, 0].view(shape)
    return out
