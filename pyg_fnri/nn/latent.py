"""Latent graphs: what the logits of the encoder mean."""
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

#: Of :meth:`Latent.mean_field`: how often each edge looks at what others leave
#: over, and how much of what it believed before stays, or it would swing.
NUM_ROUNDS, DAMPING = 10, 0.5
#: Of errors, in units of typical changes, and from where on they count
#: linearly. So, I+C+F's validation systems are about as often right as sure.
VARIANCE, DELTA = 1.0, 1.0
#: Of types: other systems may have some that these hardly have.
LEAST_FREQUENCY = 1e-3


class Latent(torch.nn.Module, ABC):
    r"""A family of distributions over multiplex graphs.

    Args:
        num_edge_types: Types :math:`K_a \geq 2` of each layer-graph, with null.
        undirected: Whether :meth:`tie` averages both directions' logits.
        shared: Whether all systems of a batch have one graph, as windows of one
            recording do, and :meth:`tie` averages their logits.
    """
    frequency: Tensor

    def __init__(self, num_edge_types: Sequence[int], undirected: bool = False,
                 shared: bool = False,
                 prior: Optional[Sequence[Sequence[float]]] = None) -> None:
        super().__init__()
        self.num_edge_types = check_edge_types(num_edge_types)
        self.undirected, self.shared = undirected, shared
        #: Probability of each type, for each layer-graph.
        self.prior = check_prior(prior, self.num_edge_types)
        # Of each layer-graph's types, one after the other: see `count`.
        self.register_buffer('frequency', torch.tensor(sum(self.prior, [])))

    @property
    def num_layers(self) -> int:
        return len(self.num_edge_types)

    @property
    @abstractmethod
    def num_logits(self) -> int:
        """Number of logits per edge, the encoder's :obj:`out_channels`."""

    @property
    @abstractmethod
    def num_channels(self) -> int:
        """Number of channels per edge, the decoder's :obj:`edge_dim`."""

    @abstractmethod
    def sample(self, logits: Tensor, tau: float = 0.5, hard: bool = False,
               generator: Optional[torch.Generator] = None) -> Tensor:
        """A differentiable sample :obj:`[num_edges, num_channels]`; if
        :obj:`hard`, one-hot with the gradient of a soft one."""

    @abstractmethod
    def log_posterior(self, logits: Tensor) -> list[Tensor]:
        """Logarithms of :meth:`posterior`."""

    @abstractmethod
    def channels(self, probabilities: Sequence[Tensor]) -> Tensor:
        """The decoder's view, :obj:`[num_edges, num_channels]`."""

    @abstractmethod
    def kl(self, logits: Tensor) -> Tensor:
        """Divergence from the prior in nats, :obj:`[num_edges, num_layers]`."""

    def posterior(self, logits: Tensor) -> list[Tensor]:
        """Probabilities :obj:`[num_edges, K_a]` of each layer-graph's types."""
        return [log_q.exp() for log_q in self.log_posterior(logits)]

    def predict(self, logits: Tensor) -> Tensor:
        """The most probable types, :obj:`[num_edges, num_layers]` int64."""
        return most_probable(self.posterior(logits))

    def cross_entropy(self, logits: Tensor, edge_type: Tensor) -> Tensor:
        r""":math:`-\log q` of given types in nats, :obj:`[num_edges,
        num_layers]`."""
        return -torch.stack([
            log_q.gather(-1, types.unsqueeze(-1)).squeeze(-1)
            for log_q, types in zip(self.log_posterior(logits),
                                    edge_type.unbind(-1))
        ], dim=-1)

    def encode_types(self, edge_type: Tensor) -> Tensor:
        """The decoder's view of given types, in the model's dtype."""
        return self.channels([
            F.one_hot(types, k).to(self.frequency.dtype) for types, k in zip(
                edge_type.unbind(-1), self.num_edge_types, strict=True)
        ])

    @torch.no_grad()
    def mean_field(self, posterior: Sequence[Tensor], effects: Tensor,
                   change: Tensor, data: Data,
                   frequency: Optional[Tensor] = None) -> list[Tensor]:
        """The posterior by which effects that add up explain changes: in
        rounds, each edge's is that of its own effects beside the expected ones
        of others (mean-field inference; not in the paper).

        Args:
            posterior: What to start from.
            effects: What each channel of an edge adds to its receiver's
                changes, :obj:`[num_edges, num_channels, T, num_features]`, in
                units of typical changes.
            change: The changes, :obj:`[num_nodes, T, num_features]`.
            data: Its :obj:`edge_index` and, where graphs are shared,
                :obj:`batch` say whose evidence is one.
            frequency: How frequent each layer-graph's types are, one after the
                other, :obj:`[sum(K_a)]`; by default as the prior has it.
        """
        types = all_joint_types(self.num_edge_types)
        options = self.encode_types(types)  # [M, num_channels]
        # Of two channels, or one twice, that types have together.
        a, b = (options.t() @ options).triu().nonzero().unbind(1)
        squares = options[:, a] * options[:, b] / (1 + (a == b).to(options))
        types, options, a, b, squares = (k.to(change.device)
                                         for k in (types, options, a, b,
                                                   squares))
        # Also where an encoder of half precision gives the posterior.
        q, log_prior = change.new_ones(len(posterior[0]), 1), torch.zeros(())
        if frequency is None:
            frequency = change.new_tensor(sum(self.prior, []))
        log_p = frequency.clamp(min=LEAST_FREQUENCY).log()
        for part, layer, own in zip(posterior, log_p.split(self.num_edge_types),
                                    types.unbind(-1)):
            q = q * part[:, own]
            log_prior = log_prior + layer[own]
        effects, change = effects.flatten(2), change.flatten(1)
        products = effects[:, a] * effects[:, b]
        receiver = data.edge_index[1]
        # A pair has the evidence of both ends, an edge without reverse its own.
        number = torch.arange(len(receiver), device=change.device)
        mutual = reverse_edges(data.edge_index) != number
        both = (1 + self.undirected * mutual).unsqueeze(-1)
        for _ in range(NUM_ROUNDS):
            sent = torch.bmm((q @ options).unsqueeze(1), effects).squeeze(1)
            error = change.index_add(0, receiver, sent, alpha=-1)
            weight = (DELTA / error.abs()).clamp(max=1)[receiver].unsqueeze(-1)
            # What is left for an edge where others stay, and its own parabola.
            left = weight * (error[receiver] + sent).unsqueeze(-1)
            pull = torch.bmm(effects, left).squeeze(-1) @ options.t()
            bend = torch.bmm(products, weight).squeeze(-1) @ squares.t()
            score = (pull - bend) / VARIANCE
            score = both * self.tie(score, data.edge_index, data.get('batch'))
            q = torch.lerp((log_prior + score).softmax(-1), q, DAMPING)
        return [
            q @ F.one_hot(own, k).to(q.dtype)
            for own, k in zip(types.unbind(-1), self.num_edge_types)
        ]

    @torch.no_grad()
    def count(self, number: Tensor) -> None:
        """Has :attr:`frequency` follow how many edges have each type of each
        layer-graph, one after the other, :obj:`[sum(K_a)]`."""
        layers = number.split(self.num_edge_types)
        self.frequency.copy_(
            torch.cat([k / k.sum().clamp(min=1) for k in layers]))

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Meanwhile, each system has a graph of its own."""
        shared, self.shared = self.shared, False
        try:
            yield
        finally:
            self.shared = shared

    def tie(self, logits: Tensor, edge_index: Tensor,
            batch: Optional[Tensor] = None) -> Tensor:
        """Averages both directions' logits if :obj:`undirected`, and those of
        each particle's system :obj:`batch` if :obj:`shared`; all other methods
        want logits that are tied.

        The mean, not the sum that Bayes' rule has for independent systems:
        windows of one recording are not independent, sums over many saturate
        before an encoder has learned, and one that learns by the mean learns
        how sure it may be."""
        if self.undirected:
            logits = (logits + logits[reverse_edges(edge_index)]) / 2
        if self.shared and batch is not None:
            number = count_alike(edge_index, batch)
            mean = logits.unflatten(0, (number, -1)).mean(0)
            logits = mean.repeat(number, 1)
        return logits


class CategoricalLatent(Latent):
    r"""A categorical distribution per edge and layer-graph (section 2.1),
    sampled with Gumbel noise :math:`\mathbf{g}`:

    .. math::
        q(\mathbf{z}^a_{ij} | \mathbf{x}) = \mathrm{softmax}
        (\mathbf{h}^{2,a}_{(i,j)}), \quad
        \mathbf{z}^a_{ij} = \mathrm{softmax}
        ((\mathbf{h}^{2,a}_{(i,j)} + \mathbf{g}) / \tau)

    Args:
        drop_null: Whether type 0 of each layer-graph has no channel.
        prior: Probabilities of each layer-graph's types, uniform by default.
    """
    def __init__(self, num_edge_types: Sequence[int], drop_null: bool = False,
                 prior: Optional[Sequence[Sequence[float]]] = None,
                 undirected: bool = False, shared: bool = False) -> None:
        super().__init__(num_edge_types, undirected, shared, prior)
        self.drop_null = drop_null

    @property
    def num_logits(self) -> int:
        return sum(self.num_edge_types)

    @property
    def num_channels(self) -> int:
        return self.num_logits - self.num_layers * self.drop_null

    def sample(self, logits: Tensor, tau: float = 0.5, hard: bool = False,
               generator: Optional[torch.Generator] = None) -> Tensor:
        if not tau > 0:
            raise ValueError(f"Expected a temperature tau > 0, but got {tau}.")
        noise = torch.empty_like(logits).exponential_(generator=generator)
        logits = (logits - noise.log()) / tau
        soft = [part.softmax(-1) for part in self._split(logits)]
        if hard:
            soft = [_straight_through(part) for part in soft]
        return self.channels(soft)

    def log_posterior(self, logits: Tensor) -> list[Tensor]:
        return [part.log_softmax(-1) for part in self._split(logits)]

    def channels(self, probabilities: Sequence[Tensor]) -> Tensor:
        first = int(self.drop_null)
        return torch.cat([part[:, first:] for part in probabilities], dim=-1)

    def kl(self, logits: Tensor) -> Tensor:
        kl = []
        for log_q, prior in zip(self.log_posterior(logits), self.prior):
            log_p = log_q.new_tensor(prior).log()
            kl.append((log_q.exp() * (log_q - log_p)).sum(-1))
        return torch.stack(kl, dim=-1)

    def _split(self, logits: Tensor) -> Sequence[Tensor]:
        return tuple(logits.split(self.num_edge_types, dim=-1))


class SigmoidLatent(Latent):
    r"""A sigmoid per edge and type but null, :math:`\mathbf{z}_{ij} =
    \sigma(\mathbf{h}^2_{(i,j)})`, without sampling or divergence (section 2.2).
    :meth:`posterior` takes the sigmoids for odds against null.

    Args:
        noise: Whether :meth:`sample` adds logistic noise to logits, and divides
            them by the temperature. Sigmoids between 0 and 1 say little under
            noise, so that training presses them to either (Salakhutdinov and
            Hinton, Semantic hashing, 2009); not in the paper.
    """
    def __init__(self, num_edge_types: Sequence[int], noise: bool = False,
                 undirected: bool = False, shared: bool = False) -> None:
        super().__init__(num_edge_types, undirected, shared)
        self.noise = noise

    @property
    def num_logits(self) -> int:
        return sum(self.num_edge_types) - self.num_layers

    @property
    def num_channels(self) -> int:
        return self.num_logits

    def sample(self, logits: Tensor, tau: float = 0.5, hard: bool = False,
               generator: Optional[torch.Generator] = None) -> Tensor:
        if self.noise:
            uniform = torch.empty_like(logits).uniform_(1e-6, 1 - 1e-6,
                                                        generator=generator)
            logits = (logits + uniform.logit()) / tau
        soft = logits.sigmoid()
        return soft + (soft.round() - soft).detach() if hard else soft

    def log_posterior(self, logits: Tensor) -> list[Tensor]:
        return [
            F.pad(part, (1, 0)).log_softmax(-1) for part in self._split(logits)
        ]

    def channels(self, probabilities: Sequence[Tensor]) -> Tensor:
        return torch.cat([part[:, 1:] for part in probabilities], dim=-1)

    def kl(self, logits: Tensor) -> Tensor:
        return logits.new_zeros(logits.size(0), self.num_layers)

    def cross_entropy(self, logits: Tensor, edge_type: Tensor) -> Tensor:
        """Binary, summed over each layer-graph, as in the paper's supervised
        sfNRI."""
        target = self.encode_types(edge_type).to(logits.dtype)
        loss = F.binary_cross_entropy_with_logits(logits, target,
                                                  reduction='none')
        return torch.stack([part.sum(-1) for part in self._split(loss)], -1)

    def _split(self, logits: Tensor) -> Sequence[Tensor]:
        return torch.split(logits, [k - 1 for k in self.num_edge_types], -1)


def all_joint_types(sizes: Sequence[int]) -> Tensor:
    """The layers' types in each joint type, :obj:`[prod(sizes), L]`."""
    types = torch.cartesian_prod(*map(torch.arange, sizes))
    return types.view(math.prod(sizes), len(sizes))


def most_probable(posterior: Sequence[Tensor]) -> Tensor:
    """The most probable types, :obj:`[num_edges, num_layers]` int64."""
    return torch.stack([q.argmax(-1) for q in posterior], dim=-1)


def reverse_edges(edge_index: Tensor) -> Tensor:
    """The place of each edge's reverse, or its own where there is none."""
    sender, receiver = edge_index
    if edge_index.numel() == 0:
        return edge_index[0]
    num_nodes = edge_index.max() + 1
    key, order = (sender * num_nodes + receiver).sort()
    reverse = receiver * num_nodes + sender
    place = torch.searchsorted(key, reverse).clamp_(max=key.numel() - 1)
    found = key[place] == reverse
    own = torch.arange(key.numel(), device=key.device)
    return torch.where(found, order[place], own)


def pairs_of(edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """One edge of each pair of particles, and each edge's place among them."""
    edge = torch.arange(edge_index.size(1), device=edge_index.device)
    if edge_index.is_meta or torch.compiler.is_compiling():
        return edge, edge  # Sizes must not depend on values.
    first = torch.minimum(edge, reverse_edges(edge_index))
    seen, place = first.unique(return_inverse=True)
    return seen, place


def count_alike(edge_index: Tensor, batch: Tensor) -> int:
    """The number of systems, which have to share their candidate edges."""
    number = int(batch.max()) + 1
    system = torch.arange(number, device=batch.device).unsqueeze(1)
    num_nodes, first = len(batch) // number, edge_index.chunk(number, 1)[0]
    edges = (first.unsqueeze(1) + num_nodes * system).flatten(1)
    particles = system.expand(-1, num_nodes).flatten()
    if not (particles.equal(batch) and edges.equal(edge_index)):
        raise ValueError("Systems that share a graph have the same particles "
                         "and candidate edges, but these differ; leave out "
                         "shared, or systems of other particles.")
    return number


def check_edge_types(num_edge_types: Sequence[int]) -> list[int]:
    out = [operator.index(k) for k in num_edge_types]
    if not out or min(out) < 2:
        raise ValueError(
            f"Expected at least two edge types for each layer-graph, such as "
            f"[2, 2], but got {num_edge_types}.")
    return out


def check_prior(prior: Optional[Sequence[Sequence[float]]],
                sizes: Sequence[int]) -> list[list[float]]:
    if prior is None:
        return [[1 / k] * k for k in sizes]
    out = [[float(p) for p in layer] for layer in prior]
    if [len(layer) for layer in out] != list(sizes) or not all(
            min(layer) > 0 and abs(sum(layer) - 1) <= 1e-6 for layer in out):
        raise ValueError(
            f"Expected priors of lengths {list(sizes)} that are positive and "
            f"sum to 1, but got {prior}.")
    return out


def _straight_through(soft: Tensor) -> Tensor:
    hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, True), 1.0)
    return hard + (soft - soft.detach())
