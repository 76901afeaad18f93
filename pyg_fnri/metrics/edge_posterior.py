"""Inferred edges with their probabilities, of any number of systems."""
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_fnri.metrics.joint_type import check_probabilities, check_types
from pyg_fnri.metrics.relabelling import Relabelling
from pyg_fnri.nn.latent import reverse_edges


class EdgePosterior(NamedTuple):
    """What the figures beyond accuracy are computed from.

    Args:
        edge_type (torch.Tensor): The predicted types, :obj:`[E, L]` int64.
        layers (tuple[torch.Tensor, ...]): Probabilities :obj:`[E, K_l]` of
            each layer's types.
        confidence (torch.Tensor): Probability of an edge's predicted types of
            all layers at once, :obj:`[E]`.
        reverse (torch.Tensor): The position of each edge's reverse,
            :obj:`[E]`; its own where it has none.
    """
    edge_type: Tensor
    layers: tuple[Tensor, ...]
    confidence: Tensor
    reverse: Tensor

    @property
    def layer_confidence(self) -> Tensor:
        """Probability of the predicted type of each layer, :obj:`[E, L]`."""
        return torch.stack([
            q.gather(-1, types.unsqueeze(-1)).squeeze(-1)
            for q, types in zip(self.layers, self.edge_type.unbind(-1))
        ], dim=-1)

    def relabelled(self, relabelling: Relabelling) -> 'EdgePosterior':
        """The same in terms of the true edge types."""
        return EdgePosterior(
            relabelling(self.edge_type),
            tuple(relabelling.probabilities(self.layers)),
            self.confidence,  # Of the same event under another name.
            self.reverse)


def make_posterior(
    edge_type: Tensor,
    posterior: Sequence[Tensor],
    edge_index: Tensor,
) -> EdgePosterior:
    """The edges of a batch.

    Args:
        edge_type: The predicted types, :obj:`[E, L]`.
        posterior: Probabilities :obj:`[E, K_a]` of each layer's types;
            layers are independent of each other.
        edge_index: :obj:`[2, E]`.

    Raises:
        TypeError: If dtypes do not fit.
        ValueError: If shapes do not fit, a type is out of range or a value is
            no probability.
    """
    sizes = [q.size(-1) for q in posterior]
    check_probabilities(posterior, sizes)
    check_types('edge_type', edge_type, sizes)
    num_edges = {len(edge_type), edge_index.size(1), *map(len, posterior)}
    if len(num_edges) > 1:
        raise ValueError(f'edge_type, the posterior and edge_index are of '
                         f'{sorted(num_edges)} edges: expected equally many.')
    out = EdgePosterior(edge_type, tuple(q.clamp(max=1) for q in posterior),
                        confidence=edge_type[:, 0],
                        reverse=reverse_edges(edge_index))
    return out._replace(confidence=out.layer_confidence.prod(-1))


def join_posteriors(parts: Sequence[EdgePosterior]) -> EdgePosterior:
    """All edges of several batches.

    Raises:
        ValueError: If there are none.
    """
    if not parts:
        raise ValueError('There are no batches of edges to join.')
    start, reverse = 0, []
    for part in parts:
        reverse.append(part.reverse + start)
        start += len(part.reverse)
    return EdgePosterior(
        torch.cat([part.edge_type for part in parts]),
        tuple(map(torch.cat, zip(*[part.layers for part in parts]))),
        torch.cat([part.confidence for part in parts]), torch.cat(reverse))
