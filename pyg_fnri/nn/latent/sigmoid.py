"""Sigmoids per edge: sfNRI."""
from collections.abc import Sequence
from typing import Optional

import torch
from torch import Tensor

from pyg_fnri.nn.latent.latent import Latent


class SigmoidLatent(Latent):
    r"""A sigmoid per edge and type, without sampling or divergence (section
    2.2): :math:`\mathbf{z}_{ij} = \sigma(\mathbf{h}^2_{(i,j)})`.

    The null type is explicit: it has no channel, all others near 0 mean it.
    :meth:`posterior` reads the sigmoids as unnormalised odds against null,
    which for two types is the sigmoid itself. For more, probabilities of
    types that exclude each other, unlike the sigmoids, sum to 1 with null's;
    the most probable type is the highest sigmoid above 1/2, or null.

    Args:
        num_edge_types (sequence of int): Number of edge types
            :math:`K_a \geq 2` of each layer-graph, null included.
        undirected (bool, optional): See :class:`Latent`.
            (default: :obj:`False`)
    """
    @property
    def num_logits(self) -> int:
        return sum(self.num_edge_types) - self.num_layers

    @property
    def num_channels(self) -> int:
        return self.num_logits

    def sample(
        self,
        logits: Tensor,
        tau: float = 0.5,
        hard: bool = False,
        generator: Optional[torch.Generator] = None,
        edge_index: Optional[Tensor] = None,
    ) -> Tensor:
        """The sigmoids, :obj:`[num_edges, num_channels]`; nothing is drawn,
        :obj:`tau` and :obj:`generator` play no part.

        Args:
            logits: :obj:`[num_edges, num_logits]`.
            tau: Not used.
            hard: If set, rounded, with the gradient of the sigmoids.
            generator: Not used.
            edge_index: Not used.
        """
        soft = logits.sigmoid()
        return soft + (soft.round() - soft).detach() if hard else soft

    def log_posterior(self, logits: Tensor) -> list[Tensor]:
        sizes = [k - 1 for k in self.num_edge_types]
        return [
            torch.cat([part.new_zeros(part.size(0), 1), part],
                      -1).log_softmax(-1)
            for part in logits.split(sizes, dim=-1)
        ]

    def channels(self, probabilities: Sequence[Tensor]) -> Tensor:
        return torch.cat([part[:, 1:] for part in probabilities], dim=-1)

    def kl(self, logits: Tensor, edge_index: Optional[Tensor] = None) -> Tensor:
        return logits.new_zeros(logits.size(0), self.num_layers)

    def cross_entropy(self, logits: Tensor, edge_type: Tensor) -> Tensor:
        """Binary, as in the paper's supervised sfNRI: each sigmoid by itself
        is to be 1 for its type and 0 otherwise, summed over a layer-graph's.
        """
        target = self.encode_types(edge_type).to(logits.dtype)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, target, reduction='none')
        sizes = [k - 1 for k in self.num_edge_types]
        return torch.stack([part.sum(-1) for part in loss.split(sizes, -1)],
                           dim=-1)
