"""Graphs by which messages that add up explain what particles do."""
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.nn.latent import Latent

#: How often each pair looks at what others leave over, and how much of what it
#: believed before stays, or beliefs would swing to and fro.
NUM_ROUNDS, DAMPING = 10, 0.5
#: Of errors, in their units, and from where on they count linearly. So sure,
#: I+C+F's validation systems are about as often right as probable.
VARIANCE, DELTA = 0.5, 1.0


@torch.no_grad()
def mean_field(latent: Latent, posterior: Sequence[Tensor], effects: Tensor,
               change: Tensor, data: Data) -> list[Tensor]:
    """Probabilities :obj:`[num_edges, K_a]` of each layer-graph's types by
    mean-field inference: in rounds, each edge's are those of its own messages
    beside the others' expected ones. Not in the paper.

    Args:
        latent: What types mean.
        posterior: What to start from, the encoder's.
        effects: What each channel of an edge adds to its receiver's changes,
            :obj:`[num_edges, num_channels, T, num_features]`.
        change: The changes, :obj:`[num_nodes, T, num_features]`.
        data: Whose :obj:`edge_index` and, where graphs are shared,
            :obj:`batch` tell which of them belong together.
    """
    types = torch.cartesian_prod(*(torch.arange(k, device=change.device)
                                   for k in latent.num_edge_types))
    types = types.view(-1, latent.num_layers)  # [M, num_layers]
    options = latent.encode_types(types)  # [M, num_channels]
    q = torch.ones_like(posterior[0][:, :1])
    for part, own in zip(posterior, types.unbind(-1)):
        q = q * part[:, own]
    effects, change = effects.flatten(2), change.flatten(1)
    receiver = data.edge_index[1]
    for _ in range(NUM_ROUNDS):
        sent = torch.bmm((q @ options).unsqueeze(1), effects).squeeze(1)
        error = change.index_add(0, receiver, sent, alpha=-1)
        weight = (DELTA / error.abs()).clamp(max=1)
        # What is left for an edge where others stay, and its own parabola.
        left = (error[receiver] + sent).unsqueeze(-1)
        weighted = effects * weight[receiver].unsqueeze(1)
        pull = (weighted @ left).squeeze(-1) @ options.t()
        bend = options @ (weighted @ effects.mT) @ options.t()
        score = (pull - bend.diagonal(dim1=1, dim2=2) / 2) / VARIANCE
        score = latent.tie(score, data.edge_index, data.get('batch'))
        q = torch.lerp(score.softmax(-1), q, DAMPING)
    return [
        q @ torch.nn.functional.one_hot(own, k).to(q.dtype)
        for own, k in zip(types.unbind(-1), latent.num_edge_types)
    ]
