"""What validation can tell of predictions and graphs without the truth."""
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_fnri.metrics import RolloutMSE, asymmetric_share, posterior_entropy
from pyg_fnri.metrics.errors import linear_rollout, static_rollout
from pyg_fnri.nn import LinearStep
from pyg_fnri.nn.latent import reverse_edges


def rollout_errors(rollout: Tensor, y: Tensor, linear_step: LinearStep,
                   pred_steps: int) -> dict[str, Tensor]:
    """Errors of a model's rollouts and, which training does not change, of
    predictions without interactions; in the paper's unit, 1e-5 of min-max
    units squared.

    Args:
        rollout: The model's predictions of frames 1, ..., T - 1,
            :obj:`[num_nodes, T - 1, num_features]`, in min-max units.
        y: The truth, :obj:`[num_nodes, T, num_features]`, in the same units.
        linear_step: The best prediction without any interaction, in the same
            units.
        pred_steps: Steps between two looks at the true state.
    """
    predictions = {
        'rollout': rollout,
        'static': static_rollout(y, pred_steps),
        'linear': linear_rollout(linear_step, y, pred_steps),
    }
    report = {}
    for name, prediction in predictions.items():
        mse = RolloutMSE([pred_steps])
        mse.update({pred_steps: prediction}, y[:, 1:])
        report[f'val_{name}_mse'] = 1e5 * mse.compute()[pred_steps]
    return report


def graph_shares(
    edge_type: Tensor,
    posterior: Sequence[Tensor],
    edge_index: Tensor,
    undirected: bool,
) -> dict[str, tuple[Tensor, int]]:
    """What can be known of inferred graphs, as means over their layers: the
    posterior's entropy as a share of the largest there can be; of directed
    graphs, the share of pairs whose two directions differ.

    Args:
        edge_type: Inferred types, :obj:`[num_edges, num_layers]`.
        posterior: Probabilities :obj:`[num_edges, K_a]` of each layer.
        edge_index: The candidate edges, :obj:`[2, num_edges]`.
        undirected: Whether the two directions are tied.

    Returns:
        Each share, and of how many edges or pairs it is the mean; those of
        none are left out.
    """
    if not len(edge_type):
        return {}
    entropy = [posterior_entropy(q) / math.log(q.size(-1)) for q in posterior]
    shares = {
        'val_entropy_share':
        (torch.stack(entropy).mean().float(), len(edge_type))
    }
    reverse = reverse_edges(edge_index)
    edge = torch.arange(len(reverse), device=reverse.device)
    num_pairs = int((edge < reverse).sum())
    if num_pairs and not undirected:
        differ = [
            asymmetric_share(types, reverse) for types in edge_type.unbind(-1)
        ]
        shares['val_asymmetric_share'] = (torch.stack(differ).mean().float(),
                                          num_pairs)
    return shares
