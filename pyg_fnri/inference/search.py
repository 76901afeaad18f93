"""The search for the best graph of each system, and for its posterior."""
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.data import check_edges
from pyg_fnri.inference.evidence import Evidence, find_choices
from pyg_fnri.inference.likelihood import Objective
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.nn.latent import all_joint_types

NOT_FINITE = ("The decoder's predictions are not finite; check its weights or "
              "force laws (did training, or the fit of laws, diverge?).")


class Refined(NamedTuple):
    """An inferred graph.

    Args:
        edge_type: The types, :obj:`[num_edges, num_layers]` int64.
        posterior: Probabilities :obj:`[num_edges, K_a]` of each layer-graph's
            types, by :func:`~pyg_fnri.inference.refine` given all other edges.
        mass: Masses :obj:`[num_nodes]` that were inferred along with it, in
            units of a typical one, if any.
    """
    edge_type: Tensor
    posterior: list[Tensor]
    mass: Optional[Tensor] = None


class GraphSearch:
    """The graphs of a batch of systems, from the encoder's guess onwards.
    Where the latent graph is shared, its systems are windows of one."""
    def __init__(self, model: RelationalAutoEncoder, data: Data) -> None:
        latent, posterior = model.latent, model.posterior(data)
        check_edges(data.edge_index, data.x.size(0))
        #: What is independent, [num_windows * num_nodes].
        self.window = data.get(
            'batch', torch.zeros_like(data.x[:, 0, 0], dtype=torch.long))
        number = int(self.window.max()) + 1
        self.num_windows = number if latent.shared else 1
        num_edges = data.num_edges // self.num_windows
        #: System of each particle, [num_nodes].
        self.system: Tensor = self.window[:len(self.window) // self.num_windows]
        self.num_systems = number // self.num_windows
        self.choices = find_choices(data.edge_index[:, :num_edges],
                                    latent.undirected)
        self.types = all_joint_types(latent.num_edge_types).to(
            data.x.device)  # [M, num_layers], nulls first
        self.options = latent.encode_types(self.types).to(data.x.dtype)
        #: The encoder's log-probability of each layer's types, [V, K_a] each,
        #: and of options, [V, M].
        self.log_posterior = []
        self.log_prior = data.x.new_zeros(self.choices.edge.numel(),
                                          self.types.size(0))
        for q, types in zip(posterior, self.types.t()):
            log_q = q.clamp(min=1e-6).log()
            log_q = (log_q[self.choices.edge] + log_q[self.choices.reverse]) / 2
            self.log_posterior.append(log_q)
            self.log_prior += log_q[:, types]
        #: Which choices sweeps and relaxations change, [V] bool.
        self.active = torch.ones_like(self.choices.mutual)
        #: The present graphs, as options of each choice, [V].
        self.choice = self.log_prior.argmax(-1)
        #: Log-probability of each option given all other choices, [V, M].
        self.conditional = self.log_prior.log_softmax(-1)

    @property
    def channels(self) -> Tensor:
        """The present graph as the decoder sees it, :obj:`[V, C]`."""
        return self.options[self.choice]

    def activate(self, choices: Optional[Tensor] = None) -> None:
        """Has sweeps and relaxations change all choices, or all of the systems
        that some :obj:`[V]` bool are of."""
        if choices is None:
            self.active = torch.ones_like(self.active)
            return
        owner = self.system[self.choices.receiver]
        some = owner.new_zeros(self.num_systems, dtype=torch.bool)
        some[owner[choices]] = True
        self.active = some[owner]

    def draw(self, generator: torch.Generator) -> Tensor:
        """Random graphs, as options of each choice, :obj:`[V]`."""
        drawn = torch.randint(self.options.size(0), self.choice.size(),
                              generator=generator, device=generator.device)
        return drawn.to(self.choice.device)

    def sweep(self, evidence: Evidence, objective: Objective,
              generator: Optional[torch.Generator] = None) -> int:
        """Looks at each active choice once, by iterated conditional modes or,
        with a generator, Gibbs sampling. Returns how many changed."""
        choices, options = self.choices, self.options
        choice, channels = self.choice.clone(), self.channels
        errors = evidence.errors(channels)
        conditional = self.conditional.clone()
        tried = options.size(0) * errors[:1].numel()
        size = max(1, evidence.max_tried // max(1, tried))
        for members in (m for r in choices.rounds
                        for m in r[self.active[r]].split(size)):
            at_receiver, at_sender = evidence.changed_errors(
                errors, channels, members, options)
            both = choices.mutual[members]
            cost = objective.cost(
                evidence.profiled(at_receiver, choices.receiver[members],
                                  objective))
            cost = cost + both.unsqueeze(1) * objective.cost(
                evidence.profiled(at_sender, choices.sender[members],
                                  objective))
            score = objective.prior_weight * self.log_prior[members] - cost
            conditional[members] = score.log_softmax(-1)
            best = score.argmax(-1)
            if generator is not None:  # Which may be on another device.
                probability = score.softmax(-1).to(generator.device)
                best = torch.multinomial(probability, 1, generator=generator)
                best = best.squeeze(-1).to(score.device)
            choice[members] = best
            channels[members] = options[best]
            place = torch.arange(best.numel(), device=best.device)
            errors[choices.receiver[members]] = at_receiver[place, best]
            errors[choices.sender[members][both]] = at_sender[place, best][both]
        if not bool(conditional.isfinite().all()):  # NaN has an argmax, too.
            raise ValueError(NOT_FINITE)
        num_changed = int((choice != self.choice).sum())
        self.choice, self.conditional = choice, conditional
        return num_changed

    @property
    def unit(self) -> Tensor:
        """What the search of each particle's edges does not depend on others
        of, :obj:`[num_nodes]`: systems or, in directed graphs, particles."""
        if bool(self.choices.mutual.any()):
            return self.system
        return torch.arange(len(self.system), device=self.system.device)

    def cost(self, evidence: Evidence, objective: Objective) -> Tensor:
        """What an objective minimises, by unit, :obj:`[num_units]`."""
        explained = objective.cost(evidence.errors(self.channels))
        log_q = self.log_prior.gather(1, self.choice.unsqueeze(1)).squeeze(1)
        unit = self.unit
        out = explained.new_zeros(int(unit.max()) + 1)
        out.index_add_(0, unit, explained)
        return out.index_add_(0, unit[self.choices.receiver],
                              -objective.prior_weight * log_q)

    def result(self) -> Refined:
        """The present graph, and the conditional posterior around it."""
        posterior = []
        for log_q, types in zip(self.log_posterior, self.types.t()):
            q = torch.zeros_like(log_q)
            q.index_add_(1, types, self.conditional.exp())
            posterior.append(self._on_edges(q))
        return Refined(self._on_edges(self.types[self.choice]), posterior)

    def _on_edges(self, value: Tensor) -> Tensor:
        return torch.cat([value[self.choices.of_edge]] * self.num_windows)
