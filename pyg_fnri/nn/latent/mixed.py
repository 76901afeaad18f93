"""Layer-graphs of different families in one latent graph."""
import operator
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor

from pyg_fnri.nn.latent.categorical import CategoricalLatent
from pyg_fnri.nn.latent.latent import Latent, check_edge_types
from pyg_fnri.nn.latent.node import NodeLatent
from pyg_fnri.nn.latent.prior import check_prior

#: Values of a particle by the number of edge types that their products make:
#: charged or not; a sign or none.
VALUES = {2: [0, 1], 3: [0, 1, -1]}


class MixedLatent(Latent):
    """A latent graph whose layer-graphs are of different families, such as
    springs per pair beside charges per particle; one part after the other in
    logits, channels and types.

    Args:
        parts (sequence of Latent): A latent graph of one or more layer-graphs
            each. It is undirected if all of them are.

    Raises:
        ValueError: If there are no parts.
    """
    def __init__(self, parts: Sequence[Latent]) -> None:
        if not parts:
            raise ValueError("Expected at least one latent graph, such as "
                             "[CategoricalLatent([2]), NodeLatent([[0, 1]])], "
                             "but got none.")
        super().__init__([k for part in parts for k in part.num_edge_types],
                         undirected=all(part.undirected for part in parts))
        self.parts = torch.nn.ModuleList(parts)

    @classmethod
    def per_layer(
        cls,
        num_edge_types: Sequence[int],
        node_layers: Sequence[int],
        drop_null: bool = False,
        prior: Optional[Sequence[Sequence[float]]] = None,
        undirected: bool = False,
    ) -> 'MixedLatent':
        r"""Chosen layer-graphs as :class:`NodeLatent`, all others as
        :class:`CategoricalLatent`.

        Args:
            num_edge_types: Number of types :math:`K_a` of each layer-graph.
            node_layers: Which of them, from 0, factor over particles: those
                of two types have the values 0 and 1, those of three 0, 1, -1.
            drop_null: Whether type 0 has no channel.
            prior: Probability of each type, for each layer-graph; of those
                that factor, of each value, of which there are as many.
            undirected: Whether the others are undirected, too.

        Raises:
            TypeError: If :obj:`node_layers` is no sequence of integers.
            ValueError: If it names no or an unknown layer-graph, one twice,
                or one of more than three types; if the prior does not fit.
        """
        sizes = check_edge_types(num_edge_types)
        try:
            chosen = [operator.index(layer) for layer in node_layers]
        except TypeError:
            raise TypeError(
                f"Expected the layer-graphs that factor over particles, such "
                f"as node_layers=[1], but got {node_layers!r}.") from None
        if len({*chosen} & {*range(len(sizes))}) < max(1, len(chosen)):
            raise ValueError(
                f"Expected different layer-graphs in node_layers, from 0 to "
                f"{len(sizes) - 1}, but got {node_layers}.")
        for layer in chosen:
            if sizes[layer] not in VALUES:
                raise ValueError(
                    f"Layer-graph {layer} of node_layers has {sizes[layer]} "
                    f"types, but only those of 2 (charged or not) and 3 (a "
                    f"sign or none) have known values; make a MixedLatent of "
                    f"a NodeLatent with your own.")
        parts: list[Latent] = []
        for layer, (k, p) in enumerate(zip(sizes, check_prior(prior, sizes))):
            if layer in chosen:
                parts.append(NodeLatent([VALUES[k]], drop_null, [p]))
            else:
                parts.append(CategoricalLatent([k], drop_null, [p], undirected))
        return cls(parts)

    @property
    def num_logits(self) -> int:
        return sum(part.num_logits for part in self._parts())

    @property
    def num_channels(self) -> int:
        return sum(part.num_channels for part in self._parts())

    def sample(
        self,
        logits: Tensor,
        tau: float = 0.5,
        hard: bool = False,
        generator: Optional[torch.Generator] = None,
        edge_index: Optional[Tensor] = None,
    ) -> Tensor:
        """A sample of each part, :obj:`[num_edges, num_channels]`; arguments
        and errors as for their own."""
        return torch.cat([
            part.sample(own, tau, hard, generator, edge_index)
            for part, own in self._split(logits)
        ], dim=-1)

    def log_posterior(self, logits: Tensor) -> list[Tensor]:
        return [
            log_q for part, own in self._split(logits)
            for log_q in part.log_posterior(own)
        ]

    def predict(self, logits: Tensor) -> Tensor:
        """The parts' own predictions, :obj:`[num_edges, num_layers]`."""
        return torch.cat(
            [part.predict(own) for part, own in self._split(logits)], dim=-1)

    def channels(self, probabilities: Sequence[Tensor]) -> Tensor:
        left, out = list(probabilities), []
        for part in self._parts():
            own, left = left[:part.num_layers], left[part.num_layers:]
            out.append(part.channels(own))
        return torch.cat(out, dim=-1)

    @property
    def edge_prior(self) -> list[list[float]]:
        return [p for part in self._parts() for p in part.edge_prior]

    def kl(self, logits: Tensor, edge_index: Optional[Tensor] = None) -> Tensor:
        return torch.cat(
            [part.kl(own, edge_index) for part, own in self._split(logits)],
            dim=-1)

    def cross_entropy(self, logits: Tensor, edge_type: Tensor) -> Tensor:
        """The parts' own, :obj:`[num_edges, num_layers]`."""
        types = edge_type.split([part.num_layers for part in self._parts()], -1)
        return torch.cat([
            part.cross_entropy(own, t)
            for (part, own), t in zip(self._split(logits), types)
        ], dim=-1)

    def tie(self, logits: Tensor, edge_index: Tensor) -> Tensor:
        """Each part's logits, tied in its own way."""
        return torch.cat(
            [part.tie(own, edge_index) for part, own in self._split(logits)],
            dim=-1)

    def _parts(self) -> list[Latent]:
        return list(self.parts)  # type: ignore[arg-type]

    def _split(self, logits: Tensor) -> list[tuple[Latent, Tensor]]:
        parts = self._parts()
        sizes = [part.num_logits for part in parts]
        return list(zip(parts, logits.split(sizes, dim=-1)))

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self._parts()})"
