"""One look at each choice of a graph, given all others."""
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Optional, TypeVar

import torch
from torch import Tensor

from pyg_fnri.inference.evidence import Evidence
from pyg_fnri.inference.pairs import Pairs

#: :math:`w_e`: errors of successive frames are not independent.
EVIDENCE_WEIGHT = 0.1


class Objective(ABC):
    """What a graph costs: its errors, and the encoder's doubts.

    Args:
        prior_weight: Weight of minus the encoder's log-probability.
    """
    prior_weight: float

    @abstractmethod
    def cost(self, errors: Tensor) -> Tensor:
        """What errors :obj:`[*, num_transitions, F]` cost, :obj:`[*]`."""

    @abstractmethod
    def weight(self, errors: Tensor) -> Tensor:
        """The derivative of the cost by the square of each error, of the same
        shape: the weights of the least squares that touch it."""


AnyObjective = TypeVar('AnyObjective', bound=Objective)


@dataclass(frozen=True)
class AnnealingStep(Objective):
    r"""One sweep over all choices, minimising per choice

    .. math::
        w_e \sum \log(1 + e^2 / d^2) - w_p \log q

    with errors :math:`e` and the encoder's posterior :math:`q`.

    Args:
        tolerance: :math:`d^2`; errors far above it weigh little.
        prior_weight: :math:`w_p`.

    Raises:
        ValueError: If the tolerance is not positive, or the weight negative.
    """
    tolerance: float
    prior_weight: float

    def __post_init__(self) -> None:
        if not self.tolerance > 0 or not self.prior_weight >= 0:
            raise ValueError(f"Expected a tolerance above 0 and a prior_weight "
                             f"of at least 0, but got {self.tolerance} and "
                             f"{self.prior_weight}.")

    def cost(self, errors: Tensor) -> Tensor:
        cost = (errors.square() / self.tolerance).log1p().flatten(-2).sum(-1)
        return EVIDENCE_WEIGHT * cost

    def weight(self, errors: Tensor) -> Tensor:
        return EVIDENCE_WEIGHT / (self.tolerance + errors.square())


def without_prior(stages: Sequence[AnyObjective]) -> list[AnyObjective]:
    """The same stages without the encoder's word."""
    return [
        replace(stage, prior_weight=0.0)  # type: ignore[type-var]
        for stage in stages
    ]


def sweep(
    evidence: Evidence,
    choices: Pairs,
    log_prior: Tensor,
    options: Tensor,
    choice: Tensor,
    objective: Objective,
    generator: Optional[torch.Generator] = None,
) -> tuple[Tensor, Tensor]:
    """Looks at each choice once, given all others.

    Iterated conditional modes (the best option is taken), or, with a
    generator, Gibbs sampling (an option is drawn).

    Args:
        evidence: The decoder's errors.
        choices: The choices.
        log_prior: The encoder's log-probability of each option, :obj:`[V,
            M]`.
        options: Channels of each option, :obj:`[M, num_channels]`.
        choice: The present options, :obj:`[V]`.
        objective: What to minimise, such as a :class:`AnnealingStep`.
        generator: Source of randomness, for Gibbs sampling.

    Returns:
        The new options, :obj:`[V]`, and the conditional log-probability of
        each option when its choice was looked at, :obj:`[V, M]`.
    """
    choice = choice.clone()
    channels = options[choice]
    errors = evidence.errors(channels)
    conditional = torch.zeros_like(log_prior)
    for members in _side_by_side(evidence, choices,
                                 options.size(0) * errors[:1].numel()):
        at_receiver, at_sender = evidence.changed_errors(
            errors, channels, members, options)
        cost = objective.cost(at_receiver)
        mutual = choices.mutual[members].unsqueeze(1)
        cost = cost + objective.cost(at_sender) * mutual
        score = objective.prior_weight * log_prior[members] - cost
        conditional[members] = score.log_softmax(-1)
        if generator is None:
            best = score.argmax(-1)
        else:
            # Where the generator is, which may be on another device.
            probability = score.softmax(-1).to(generator.device)
            best = torch.multinomial(probability, 1, generator=generator)
            best = best.squeeze(-1).to(score.device)
        choice[members] = best
        channels[members] = options[best]
        place = torch.arange(best.numel(), device=best.device)
        errors[choices.receiver[members]] = at_receiver[place, best]
        both = choices.mutual[members]
        errors[choices.sender[members][both]] = at_sender[place, best][both]
    return choice, conditional


def _side_by_side(evidence: Evidence, choices: Pairs,
                  num_errors: int) -> Iterator[Tensor]:
    """Pairs of a round, as many at once as the evidence takes, each with so
    many errors."""
    size = max(1, evidence.max_tried // max(1, num_errors))
    for members in choices.rounds:
        yield from members.split(size)
