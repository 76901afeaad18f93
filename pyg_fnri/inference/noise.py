"""Noise in observed frames: what errors of successive steps have in common."""
import torch
from torch import Tensor

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import fit_errors

#: Noise alone has -1/2; there, what many steps add up to would be exact.
LEAST_CORRELATION = -0.495

#: Correlations nearer to zero change nothing that could be seen.
NEGLIGIBLE = 0.02


def decorrelated(evidence: ImpulseEvidence, errors: Tensor) -> ImpulseEvidence:
    r"""The same evidence, with errors by noise made independent.

    Noise in a frame is in two steps, with opposite signs: successive errors
    have a correlation :math:`\rho` between -1/2, where all is noise, and 0,
    and others none. With :math:`L L^T` for that covariance of the steps of a
    particle, errors :math:`L^{-1} \mathbf{e}` are independent. They add steps
    up: noise of the frames in between cancels out, and what an interaction
    does over time does not. Not in the paper.

    Args:
        evidence: The errors of force laws.
        errors: Under the graphs that are thought to be right, from which
            :math:`\rho` is estimated, :obj:`[num_nodes, num_transitions, F]`.

    Returns:
        The evidence itself where errors do not alternate.
    """
    correlation = alternation(errors, evidence.flights.valid)
    if not bool((correlation < -NEGLIGIBLE).any()):
        return evidence
    return DecorrelatedEvidence(evidence, correlation)


def alternation(errors: Tensor, valid: Tensor) -> Tensor:
    """The correlation of successive errors, as far as they alternate.

    Args:
        errors: :obj:`[num_nodes, T, F]`, zero where they say nothing.
        valid: Whether they say something, :obj:`[num_nodes, T]` bool.

    Returns:
        :obj:`[F]`, between :data:`LEAST_CORRELATION` and 0.
    """
    pairs = valid[:, 1:] & valid[:, :-1]
    if not bool(pairs.any()) or not bool(errors.any()):
        return errors.new_zeros(errors.size(-1))
    # Bounded: close encounters, which laws miss by far, hide nothing.
    series = errors * fit_errors(errors, 0.0).weight(errors)
    product = (series[:, 1:] * series[:, :-1])[pairs].mean(0)
    variance = series[valid].square().mean(0)
    correlation = torch.where(variance > 0, product / variance, 0.0)
    return correlation.clamp(LEAST_CORRELATION, 0.0)


class DecorrelatedEvidence(ImpulseEvidence):
    """Made by :func:`decorrelated`.

    Args:
        evidence: The errors of force laws.
        correlation: Of successive errors, one for each feature, :obj:`[F]`.
    """
    def __init__(self, evidence: ImpulseEvidence, correlation: Tensor) -> None:
        self.flights = flights = evidence.flights
        self.scale = evidence.scale
        self.change = _independent(
            evidence.change * flights.valid.unsqueeze(-1), flights.valid,
            correlation)
        choices = flights.choices
        on_receiver, on_sender = evidence.effects(
            torch.arange(choices.edge.numel(), device=choices.edge.device))
        self.on_receiver = _independent(on_receiver,
                                        flights.valid[choices.receiver],
                                        correlation)
        self.on_sender = _independent(on_sender, flights.valid[choices.sender],
                                      correlation)

    def effects(self, members: Tensor) -> tuple[Tensor, Tensor]:
        return self.on_receiver[members], self.on_sender[members]

    def errors(self, channels: Tensor) -> Tensor:
        choices, out = self.flights.choices, self.change.clone()
        for particle, effect in ((choices.receiver, self.on_receiver),
                                 (choices.sender, self.on_sender)):
            out.index_add_(0, particle,
                           -torch.einsum('vc,vc...->v...', channels, effect))
        return out


def _independent(value: Tensor, valid: Tensor, correlation: Tensor) -> Tensor:
    """Values :obj:`[n, ..., T, F]` times the inverse of the factor, which has
    two diagonals; steps before and after one that says nothing have nothing
    in common."""
    out, size = value.clone(), (len(value), value.size(-1))
    together = (valid[:, 1:] & valid[:, :-1]).to(value.dtype)
    shape = size[0], *[1] * (value.dim() - 3), size[1]
    main = value.new_ones(size)
    for step in range(1, value.size(-2)):
        below = correlation * together[:, step - 1, None] / main
        main = (1 - below.square()).sqrt()
        before = below.view(shape) * out[..., step - 1, :]
        out[..., step, :] = (out[..., step, :] - before) / main.view(shape)
    return out
