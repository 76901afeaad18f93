"""Layer-graphs that factor over particles, such as charges."""
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor
from torch_geometric.utils import degree

from pyg_fnri.nn.latent.latent import Latent
from pyg_fnri.nn.latent.per_node import mean_per_node
from pyg_fnri.nn.latent.prior import check_prior
from pyg_fnri.nn.latent.products import check_values, product_table


class NodeLatent(Latent):
    r"""Layer-graphs that are an outer product: what interacts lives on the
    particles, and the type of an edge is that of the product of its ends,

    .. math::
        z^a_{ij} = c^a_i c^a_j, \quad
        q(\mathbf{z}^a | \mathbf{x}) = \prod_i q(c^a_i | \mathbf{x}), \quad
        q(z^a_{ij} = z | \mathbf{x}) =
        \sum_{c c' = z} q(c^a_i = c | \mathbf{x})\, q(c^a_j = c' | \mathbf{x}).

    Not in the paper, whose charges (section 3.1) are such a layer: two
    particles interact if both are charged. The value :math:`c_i` of a particle
    is a concrete variable, as a type is in :class:`CategoricalLatent`, so that
    every hard sample and every prediction (:meth:`predict`) factors; graphs
    that are refined pair by pair (:func:`~pyg_fnri.inference.refine`) need
    not. A layer-graph is undirected by its form.

    Encoders stay as they are. An edge has logits for the values of its
    receiver, of all layer-graphs, then as many for those of its sender. A
    particle's are the mean of what all its edges, in and out, say of it
    (:meth:`node_logits`), however many they are; :meth:`tie` hands each edge
    those of its ends. A particle without any edge keeps its prior.

    Edge types are counted by the product's size, the positive one first: 0 is
    null, 1 the product +1, 2 the product -1. Values :obj:`[0, 1]`, charged or
    not, make two types; :obj:`[0, 1, -1]` make three: like signs are 1, unlike
    ones 2, as in :class:`~pyg_fnri.simulation.SignedCharges`. No trajectory
    tells all signs from all of them turned: an encoder of signs must choose
    one way by itself for each system, which is hard to learn.

    Args:
        values (sequence of sequences of int): The values of a particle in each
            layer-graph, 0 first, such as :obj:`[[0, 1]]`.
        drop_null (bool, optional): If set, type 0 of each layer-graph has no
            channel. (default: :obj:`False`)
        prior (sequence of sequences, optional): Probability of each value of a
            particle, for each layer-graph; uniform by default.
            (default: :obj:`None`)

    Raises:
        TypeError: If the values are no sequences of integers.
        ValueError: If there are fewer than two, they repeat or do not begin
            with 0; if the prior does not fit them or is no distribution.
    """
    def __init__(
        self,
        values: Sequence[Sequence[int]],
        drop_null: bool = False,
        prior: Optional[Sequence[Sequence[float]]] = None,
    ) -> None:
        checked = check_values(values)
        tables = [product_table(layer) for layer in checked]
        super().__init__([int(table.max()) + 1 for table in tables],
                         undirected=True)
        self.values = checked
        self.drop_null = drop_null
        self.prior = check_prior(prior, self.num_node_types)
        for layer, table in enumerate(tables):  # They move with the model.
            self.register_buffer(f'_table{layer}', table, persistent=False)

    @property
    def num_node_types(self) -> list[int]:
        """Number of values of a particle in each layer-graph."""
        return [len(layer) for layer in self.values]

    @property
    def num_logits(self) -> int:
        return 2 * sum(self.num_node_types)

    @property
    def num_channels(self) -> int:
        return sum(self.num_edge_types) - self.num_layers * self.drop_null

    def node_logits(
        self,
        logits: Tensor,
        edge_index: Tensor,
        num_nodes: Optional[int] = None,
    ) -> Tensor:
        """What all edges of a particle say of it, on average: the logits of
        its values, layer-graph after layer-graph.

        Args:
            logits: :obj:`[num_edges, num_logits]`, tied or as the encoder
                gives them.
            edge_index: Candidate edges, :obj:`[2, num_edges]`.
            num_nodes: Number of particles; the last one with an edge is the
                last by default.

        Returns:
            :obj:`[num_nodes, sum(num_node_types)]`, the log-prior where there
            is no edge.

        Raises:
            ValueError: If a shape does not fit.
        """
        if logits.dim() != 2 or logits.size(1) != self.num_logits:
            raise ValueError(
                f"Expected logits of shape [num_edges, {self.num_logits}], "
                f"those of receivers, then of senders, but got "
                f"{list(logits.size())}.")
        mean, num_edges = mean_per_node(logits, edge_index, num_nodes)
        log_p = mean.new_tensor(sum(self.prior, [])).log()
        return torch.where(num_edges > 0, mean, log_p)

    def node_posterior(
        self,
        logits: Tensor,
        edge_index: Tensor,
        num_nodes: Optional[int] = None,
    ) -> list[Tensor]:
        """Probabilities :obj:`[num_nodes, num_node_types]` of the values of
        each particle, for each layer-graph: who is charged.

        Arguments and errors as for :meth:`node_logits`.
        """
        node = self.node_logits(logits, edge_index, num_nodes)
        return [part.softmax(-1) for part in self._split(node)]

    def tie(self, logits: Tensor, edge_index: Tensor) -> Tensor:
        """Hands each edge the logits of its ends, :obj:`[num_edges,
        num_logits]`: the receiver's, then the sender's."""
        node = self.node_logits(logits, edge_index)
        sender, receiver = edge_index
        return torch.cat([node[receiver], node[sender]], dim=-1)

    def sample(
        self,
        logits: Tensor,
        tau: float = 0.5,
        hard: bool = False,
        generator: Optional[torch.Generator] = None,
        edge_index: Optional[Tensor] = None,
    ) -> Tensor:
        """Products of one concrete variable per particle, :obj:`[num_edges,
        num_channels]`.

        Args:
            logits: :obj:`[num_edges, num_logits]`.
            tau: Temperature: the lower, the closer to one-hot.
            hard: If set, products of one-hot variables, with the gradient of
                those of soft ones.
            generator: Source of the noise, on the device of the logits.
            edge_index: Candidate edges, :obj:`[2, num_edges]`; needed.

        Raises:
            ValueError: If :obj:`tau` is not positive or there is no
                :obj:`edge_index`.
        """
        if not tau > 0:
            raise ValueError(f"Expected a temperature tau > 0, but got {tau}.")
        edge_index = _needed(edge_index)
        node = self.node_logits(logits, edge_index)
        sender, receiver = edge_index
        noise = torch.empty_like(node).exponential_(generator=generator)
        edge = []
        for layer, part in enumerate(self._split((node - noise.log()) / tau)):
            c = part.softmax(-1)
            pairs = c[receiver].unsqueeze(-1) * c[sender].unsqueeze(-2)
            z = pairs.flatten(1) @ self._one_hot(layer).to(c)
            if hard:
                value = c.argmax(-1)
                types = self._product(layer, value[receiver], value[sender])
                one_hot = torch.nn.functional.one_hot(types, z.size(-1))
                z = one_hot + (z - z.detach())
            edge.append(z)
        return self.channels(edge)

    def log_posterior(self, logits: Tensor) -> list[Tensor]:
        out = []
        for layer, (a, b) in enumerate(self._ends(logits)):
            log_q = (a.log_softmax(-1).unsqueeze(-1) +
                     b.log_softmax(-1).unsqueeze(-2)).flatten(1)
            # Of each type, the pairs of values with that product.
            log_one_hot = self._one_hot(layer).to(log_q).log()
            out.append((log_q.unsqueeze(-1) + log_one_hot).logsumexp(1))
        return out

    def predict(self, logits: Tensor) -> Tensor:
        """The products of the particles' most probable values,
        :obj:`[num_edges, num_layers]` int64. They always factor, which the
        most probable type of each edge by itself need not."""
        return torch.stack([
            self._product(layer, a.argmax(-1), b.argmax(-1))
            for layer, (a, b) in enumerate(self._ends(logits))
        ], dim=-1)

    def channels(self, probabilities: Sequence[Tensor]) -> Tensor:
        first = 1 if self.drop_null else 0
        return torch.cat([part[:, first:] for part in probabilities], dim=-1)

    @property
    def edge_prior(self) -> list[list[float]]:
        """Prior probability of each product: uniform values have none."""
        out = []
        for layer, p in enumerate(self.prior):
            prior = [0.0] * self.num_edge_types[layer]
            for types, p_i in zip(self._table(layer).tolist(), p):
                for k, p_j in zip(types, p):
                    prior[k] += p_i * p_j
            out.append(prior)
        return out

    def kl(self, logits: Tensor, edge_index: Optional[Tensor] = None) -> Tensor:
        r"""Divergence of the particles' values from their prior in nats,
        :obj:`[num_edges, num_layers]`.

        That of a particle is handed out to its edges in equal shares, so that
        the sum over edges is :math:`\sum_i \mathrm{KL}(q(c_i) \| p(c))`, the
        divergence of the whole layer-graph. Per particle, as
        :func:`~pyg_fnri.losses.kl_divergence` has it, that is at most
        :math:`\log K` under a uniform prior, whatever the size of the system;
        layer-graphs of independent edges have up to :math:`(N - 1) \log K`.

        Args:
            logits: :obj:`[num_edges, num_logits]`.
            edge_index: Candidate edges, :obj:`[2, num_edges]`; needed.

        Raises:
            ValueError: If there is no :obj:`edge_index`.
        """
        edge_index = _needed(edge_index)
        node = self.node_logits(logits, edge_index)
        sender, receiver = edge_index
        kl = []
        for part, prior in zip(self._split(node), self.prior):
            log_q = part.log_softmax(-1)
            log_p = log_q.new_tensor(prior).log()
            kl.append((log_q.exp() * (log_q - log_p)).sum(-1))
        share = torch.stack(kl, dim=-1)  # [num_nodes, num_layers]
        num_edges = degree(edge_index.flatten(), node.size(0), share.dtype)
        share = share / num_edges.clamp(min=1).unsqueeze(-1)
        return share[receiver] + share[sender]

    def _split(self, values: Tensor) -> Sequence[Tensor]:
        return values.split(self.num_node_types, dim=-1)

    def _ends(self, logits: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Logits of each edge's receiver and sender, for each layer-graph."""
        receiving, sending = logits.chunk(2, dim=-1)
        return list(zip(self._split(receiving), self._split(sending)))

    def _table(self, layer: int) -> Tensor:
        """The edge type of each pair of node types, :obj:`[K, K]`."""
        return getattr(self, f'_table{layer}')

    def _product(self, layer: int, a: Tensor, b: Tensor) -> Tensor:
        return self._table(layer)[a, b]

    def _one_hot(self, layer: int) -> Tensor:
        """The edge type of each pair of node types, :obj:`[K * K, K_a]`."""
        return torch.nn.functional.one_hot(
            self._table(layer).flatten(), self.num_edge_types[layer])

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.values}, "
                f"drop_null={self.drop_null}, prior={self.prior})")


def _needed(edge_index: Optional[Tensor]) -> Tensor:
    if edge_index is None:
        raise ValueError("A layer-graph that factors over particles needs "
                         "the candidate edges, which say whose logits are "
                         "whose; pass edge_index=edge_index.")
    return edge_index
