"""A categorical distribution per edge: NRI and fNRI."""
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor

from pyg_fnri.nn.latent.latent import Latent
from pyg_fnri.nn.latent.prior import check_prior


class CategoricalLatent(Latent):
    r"""A categorical distribution per edge and layer-graph (section 2.1):

    .. math::
        q(\mathbf{z}^a_{ij} | \mathbf{x}) = \mathrm{softmax}
        (\mathbf{h}^{2,a}_{(i,j)}), \quad
        \mathbf{z}^a_{ij} = \mathrm{softmax}
        ((\mathbf{h}^{2,a}_{(i,j)} + \mathbf{g}) / \tau)

    with Gumbel noise :math:`\mathbf{g}`. With one layer-graph of
    :math:`\prod_a K_a` types this is NRI, with one layer-graph per interaction
    fNRI.

    Args:
        num_edge_types (sequence of int): Number of edge types
            :math:`K_a \geq 2` of each layer-graph.
        drop_null (bool, optional): If set, type 0 of each layer-graph is the
            hard-coded non-edge: the decoder does not see its channel.
            (default: :obj:`False`)
        prior (sequence of sequences, optional): Probability of each type, for
            each layer-graph; uniform by default. (default: :obj:`None`)
        undirected (bool, optional): See :class:`Latent`.
            (default: :obj:`False`)

    Raises:
        ValueError: If the prior does not fit the types or is no distribution.
    """
    def __init__(
        self,
        num_edge_types: Sequence[int],
        drop_null: bool = False,
        prior: Optional[Sequence[Sequence[float]]] = None,
        undirected: bool = False,
    ) -> None:
        super().__init__(num_edge_types, undirected)
        self.drop_null = drop_null
        self.prior = check_prior(prior, self.num_edge_types)

    @property
    def num_logits(self) -> int:
        return sum(self.num_edge_types)

    @property
    def num_channels(self) -> int:
        return self.num_logits - self.num_layers * self.drop_null

    def sample(
        self,
        logits: Tensor,
        tau: float = 0.5,
        hard: bool = False,
        generator: Optional[torch.Generator] = None,
        edge_index: Optional[Tensor] = None,
    ) -> Tensor:
        """A sample of the concrete distribution, :obj:`[num_edges,
        num_channels]`.

        Args:
            logits: :obj:`[num_edges, num_logits]`.
            tau: Temperature: the lower, the closer to one-hot.
            hard: If set, one-hot samples with the gradient of soft ones.
            generator: Source of the noise, on the device of the logits.
            edge_index: Not used: edges are independent.

        Raises:
            ValueError: If :obj:`tau` is not positive.
        """
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
        first = 1 if self.drop_null else 0
        return torch.cat([part[:, first:] for part in probabilities], dim=-1)

    @property
    def edge_prior(self) -> list[list[float]]:
        return self.prior

    def kl(self, logits: Tensor, edge_index: Optional[Tensor] = None) -> Tensor:
        kl = []
        for part, prior in zip(self._split(logits), self.prior):
            log_q = part.log_softmax(-1)
            log_p = log_q.new_tensor(prior).log()
            kl.append((log_q.exp() * (log_q - log_p)).sum(-1))
        return torch.stack(kl, dim=-1)

    def _split(self, logits: Tensor) -> Sequence[Tensor]:
        return logits.split(self.num_edge_types, dim=-1)

    def __repr__(self) -> str:
        return (f"{self.__class__.__name__}({self.num_edge_types}, "
                f"drop_null={self.drop_null}, prior={self.prior}, "
                f"undirected={self.undirected})")


def _straight_through(soft: Tensor) -> Tensor:
    hard = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, True), 1.0)
    return hard + (soft - soft.detach())
