"""The search for the best graph of each system, and for its posterior."""
import copy
from collections.abc import Iterator
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.data import check_edges
from pyg_fnri.inference.evidence import (
    Evidence,
    Pairs,
    Subset,
    all_types,
    find_choices,
)
from pyg_fnri.inference.likelihood import Objective
from pyg_fnri.nn import RelationalAutoEncoder


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


#: What is said of predictions that are NaN or infinite.
NOT_FINITE = ("The decoder's predictions are not finite; check its weights or "
              "force laws (did training, or the fit of laws, diverge?).")


class Refined(NamedTuple):
    """An inferred graph.

    Args:
        edge_type: The types, :obj:`[num_edges, num_layers]` int64.
        posterior: Probabilities :obj:`[num_edges, K_a]` of each layer-graph's
            types: of :func:`~pyg_fnri.inference.refine`, each edge given all
            the others; of :func:`~pyg_fnri.inference.sample_posterior`, given
            the observations alone.
    """
    edge_type: Tensor
    posterior: list[Tensor]


class GraphSearch:
    """The graphs of a batch of systems, from the encoder's guess onwards.

    Args:
        model: A trained model.
        data: Observed trajectories, a :obj:`Data` or :obj:`Batch`.

    Raises:
        As :meth:`RelationalAutoEncoder.posterior`, and
        ValueError: If there are fewer than two particles, or an edge is out
            of range, a self loop or given twice.
    """
    def __init__(self, model: RelationalAutoEncoder, data: Data) -> None:
        latent, posterior = model.latent, model.posterior(data)
        if data.x.size(0) < 2:
            raise ValueError(f"Expected at least two particles, whose "
                             f"interactions can be inferred, but got "
                             f"{data.x.size(0)}.")
        check_edges(data.edge_index, data.x.size(0))
        self.num_edges = data.num_edges
        batch = data.get('batch')
        #: System of each particle, :obj:`[num_nodes]`.
        self.system = (torch.zeros_like(data.x[:, 0, 0], dtype=torch.long)
                       if batch is None else batch)
        self.choices = find_choices(data.edge_index, latent.undirected)
        self.types = all_types(latent).to(data.x.device)  # [M, num_layers]
        self.options = latent.encode_types(self.types).to(data.x.dtype)
        #: The encoder's word on each layer's types, [V, K_a] each, and on
        #: options, [V, M].
        self.log_posterior = []
        self.log_prior = data.x.new_zeros(self.choices.edge.numel(),
                                          self.types.size(0))
        for layer, q in enumerate(posterior):
            log_q = q.clamp(min=1e-6).log()
            log_q = (log_q[self.choices.edge] + log_q[self.choices.reverse]) / 2
            self.log_posterior.append(log_q)
            self.log_prior += log_q[:, self.types[:, layer]]
        self.choice = self.log_prior.argmax(-1)
        self.conditional = self.log_prior.log_softmax(-1)

    @property
    def channels(self) -> Tensor:
        """The present graph as the decoder sees it, :obj:`[V, C]`."""
        return self.options[self.choice]

    def draw(self, generator: torch.Generator) -> Tensor:
        """Random graphs, as options of each choice, :obj:`[V]`."""
        drawn = torch.randint(self.options.size(0), self.choice.size(),
                              generator=generator, device=generator.device)
        return drawn.to(self.choice.device)

    def sweep(self, evidence: Evidence, objective: Objective,
              generator: Optional[torch.Generator] = None) -> int:
        """One sweep over all choices, see
        :func:`~pyg_fnri.inference.search.sweep`; how many of them changed.

        Raises:
            ValueError: If the decoder's errors are not finite.
        """
        before = self.choice
        choice, conditional = sweep(evidence, self.choices, self.log_prior,
                                    self.options, before, objective, generator)
        if not bool(conditional.isfinite().all()):
            # NaN, too, has an argmax: it must not become a graph.
            raise ValueError(NOT_FINITE)
        self.choice, self.conditional = choice, conditional
        return int((choice != before).sum())

    def part(self, part: Subset) -> 'GraphSearch':
        """A search of its own over some of the systems, which are counted
        anew, from their present graphs."""
        out = copy.copy(self)
        out.system = self.system[part.particle].unique(return_inverse=True)[1]
        out.choices = part.choices
        out.log_posterior = [q[part.choice] for q in self.log_posterior]
        for name in ('log_prior', 'choice', 'conditional'):
            setattr(out, name, getattr(self, name)[part.choice])
        return out

    @property
    def num_systems(self) -> int:
        return int(self.system.max()) + 1

    def cost(self, evidence: Evidence, stage: Objective) -> Tensor:
        """What a stage minimises, summed by system, :obj:`[num_systems]`.

        Args:
            evidence: The decoder's errors.
            stage: What to minimise.
        """
        explained = stage.cost(evidence.errors(self.channels))
        log_q = self.log_prior.gather(1, self.choice.unsqueeze(1)).squeeze(1)
        out = explained.new_zeros(self.num_systems)
        out.index_add_(0, self.system, explained)
        return out.index_add_(0, self.system[self.choices.receiver],
                              -stage.prior_weight * log_q)

    def result(self) -> Refined:
        """The present graph, and the conditional posterior around it."""
        edge_type = self._on_edges(self.types[self.choice])
        probability = self.conditional.exp()  # [V, M]
        posterior = []
        for layer in range(self.types.size(1)):
            types = self.types[:, layer]
            q = probability.new_zeros(probability.size(0), int(types.max()) + 1)
            q.index_add_(1, types, probability)
            posterior.append(self._on_edges(q))
        return Refined(edge_type, posterior)

    def _on_edges(self, value: Tensor) -> Tensor:
        """Values of choices [V, *] to their edges [num_edges, *]."""
        out = value.new_zeros((self.num_edges, ) + value.size()[1:])
        out[self.choices.edge] = value
        out[self.choices.reverse] = value
        return out
