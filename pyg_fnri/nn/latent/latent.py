"""What a family of latent graphs is."""
import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor


class Latent(torch.nn.Module, ABC):
    r"""A family of distributions over multiplex graphs.

    Args:
        num_edge_types (sequence of int): Number of edge types
            :math:`K_a \geq 2` of each layer-graph, the null type included.
        undirected (bool, optional): If set, both directions of an interaction
            are one: :meth:`tie` averages their logits.
            (default: :obj:`False`)

    Raises:
        TypeError: If :obj:`num_edge_types` is no sequence of integers.
        ValueError: If there is no layer-graph or one of fewer than two types.
    """
    def __init__(
        self,
        num_edge_types: Sequence[int],
        undirected: bool = False,
    ) -> None:
        super().__init__()
        self.num_edge_types = check_edge_types(num_edge_types)
        self.undirected = undirected

    @property
    def num_layers(self) -> int:
        """Number of layer-graphs."""
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
    def sample(
        self,
        logits: Tensor,
        tau: float = 0.5,
        hard: bool = False,
        generator: Optional[torch.Generator] = None,
        edge_index: Optional[Tensor] = None,
    ) -> Tensor:
        """A differentiable sample :obj:`[num_edges, num_channels]`. Families
        whose edges are not independent need the candidate edges
        :obj:`edge_index`."""

    @abstractmethod
    def log_posterior(self, logits: Tensor) -> list[Tensor]:
        """Log-probabilities :obj:`[num_edges, K_a]` of each layer-graph's
        types."""

    @abstractmethod
    def channels(self, probabilities: Sequence[Tensor]) -> Tensor:
        """The graph as the decoder sees it, :obj:`[num_edges, num_channels]`,
        from :obj:`[num_edges, K_a]` per layer-graph."""

    @abstractmethod
    def kl(self, logits: Tensor, edge_index: Optional[Tensor] = None) -> Tensor:
        """Divergence from the prior in nats, :obj:`[num_edges, num_layers]`;
        :obj:`edge_index` as for :meth:`sample`."""

    @property
    def edge_prior(self) -> list[list[float]]:
        """Prior probability of each edge type of each layer-graph, uniform
        where a family knows no other."""
        return [[1 / k] * k for k in self.num_edge_types]

    def posterior(self, logits: Tensor) -> list[Tensor]:
        """Probabilities :obj:`[num_edges, K_a]` of each layer-graph's types."""
        return [log_q.exp() for log_q in self.log_posterior(logits)]

    def predict(self, logits: Tensor) -> Tensor:
        """The most probable types, :obj:`[num_edges, num_layers]` int64."""
        return most_probable(self.posterior(logits))

    def cross_entropy(self, logits: Tensor, edge_type: Tensor) -> Tensor:
        r"""What supervision minimises: :math:`-\log q` of given types
        :obj:`[num_edges, num_layers]`, in nats, of the same shape."""
        return -torch.stack([
            log_q.gather(-1, types.unsqueeze(-1)).squeeze(-1)
            for log_q, types in zip(self.log_posterior(logits),
                                    edge_type.unbind(-1))
        ], dim=-1)

    def encode_types(self, edge_type: Tensor) -> Tensor:
        """The decoder's view :obj:`[num_edges, num_channels]` of known types
        :obj:`[num_edges, num_layers]`, such as the true graph.

        Raises:
            TypeError: If the types are not integers.
            ValueError: On another number of layers or a type out of range.
        """
        if edge_type.is_floating_point() or edge_type.is_complex():
            raise TypeError(f"Expected integer edge types, but got the dtype "
                            f"{edge_type.dtype}; encode probabilities with "
                            f"`channels`.")
        if edge_type.dim() != 2 or edge_type.size(1) != self.num_layers:
            raise ValueError(
                f"Expected edge types of shape [num_edges, {self.num_layers}] "
                f"(one per layer-graph), but got {list(edge_type.size())}.")
        one_hot = []
        for layer, (types, k) in enumerate(
                zip(edge_type.unbind(-1), self.num_edge_types)):
            if types.numel() and not 0 <= int(types.min()) <= int(
                    types.max()) < k:
                raise ValueError(
                    f"Layer-graph {layer} has types 0 to {k - 1}, but got "
                    f"types {int(types.min())} to {int(types.max())}; "
                    f"`num_edge_types` sets their number.")
            one_hot.append(torch.nn.functional.one_hot(types.long(), k))
        dtype = torch.get_default_dtype()
        return self.channels([types.to(dtype) for types in one_hot])

    def tie(self, logits: Tensor, edge_index: Tensor) -> Tensor:
        """What the encoder says of each edge by itself, made to fit the whole
        graph; all other methods want logits that are tied. Here, averages
        those of both directions of each pair where the latent graph is
        undirected; an edge without its reverse is kept."""
        if not self.undirected:
            return logits
        return (logits + logits[reverse_edges(edge_index)]) / 2

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.num_edge_types}, "
                f"undirected={self.undirected})")


def most_probable(posterior: Sequence[Tensor]) -> Tensor:
    """The most probable type of each edge, :obj:`[num_edges, num_layers]`
    int64, from :obj:`[num_edges, K_a]` per layer-graph."""
    return torch.stack([q.argmax(-1) for q in posterior], dim=-1)


def reverse_edges(edge_index: Tensor) -> Tensor:
    """Position of edge (i, j) for each edge (j, i), :obj:`[num_edges]`; an
    edge without its reverse has its own position."""
    sender, receiver = edge_index
    if edge_index.numel() == 0:
        return sender
    num_nodes = edge_index.max() + 1
    key, order = (sender * num_nodes + receiver).sort()
    reverse = receiver * num_nodes + sender
    place = torch.searchsorted(key, reverse).clamp_(max=key.numel() - 1)
    found = key[place] == reverse
    own = torch.arange(key.numel(), device=key.device)
    return torch.where(found, order[place], own)


def check_edge_types(num_edge_types: Sequence[int]) -> list[int]:
    """Numbers of edge types as plain integers.

    Raises:
        TypeError: If they are no sequence of integers.
        ValueError: If there is none or one of fewer than two types.
    """
    try:
        out = [operator.index(k) for k in num_edge_types]
    except TypeError:
        raise TypeError(
            f"Expected the number of edge types of each layer-graph, such as "
            f"[2, 2], but got {num_edge_types!r}.") from None
    if not out or min(out) < 2:
        raise ValueError(
            f"Expected at least two edge types (one of them null) for each "
            f"layer-graph, such as [2, 2], but got {num_edge_types}.")
    return out
