"""What a trained model predicts of held-out systems, and how it uses types."""
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter

from pyg_fnri.evaluation.evaluate import fitting_horizons
from pyg_fnri.metrics import EdgeAccuracy, posterior_entropy
from pyg_fnri.metrics.errors import linear_rollout, static_rollout
from pyg_fnri.nn import per_mass
from pyg_fnri.nn.latent import reverse_edges
from pyg_fnri.training import RelationalInference

HORIZONS = (1, 10)
#: A prediction without any error, which has no logarithm.
TINY = 1e-30


@dataclass(frozen=True)
class HeldOut:
    """Measured of one run on held-out systems, without their truth.

    Errors are mean squares by system, in min-max units; infinite where a
    rollout diverges.

    Args:
        sizes: Number of types of each layer that the model has.
        errors: Horizon to errors, :obj:`[num_systems]`.
        static: Likewise, of the prediction that nothing moves.
        linear: Likewise, of the linear step, without interaction.
        shuffled: Errors at the longest horizon, if types are dealt out to
            other pairs.
        nll: The recipe's reconstruction loss per particle, with the most
            probable types.
        entropy: Of each layer's posterior, as a share of its maximum.
        shares: Of each layer, the share of edges of each type.
        worth: Of each layer and type, how much the error of single steps
            rises (as a logarithm) if the type is replaced by that one of the
            layer's others which is nearest to it; 0 where it has no edges.
        edge_type: The most probable types, :obj:`[num_edges, num_layers]`.
        accuracy: The share of edges that are right, where the truth is known
            and has such layers.
    """
    sizes: tuple[int, ...]
    errors: dict[int, np.ndarray]
    static: dict[int, np.ndarray]
    linear: dict[int, np.ndarray]
    shuffled: np.ndarray
    nll: float
    entropy: list[float]
    shares: list[list[float]]
    worth: list[list[float]]
    edge_type: Tensor
    accuracy: Optional[float] = None


@torch.no_grad()
def measure_held_out(
        module: RelationalInference,
        batches: Iterable[Data],
        num_edge_types: Sequence[int] = (),
        seed: int = 0,
) -> HeldOut:
    """Infers graphs from the observed frames :obj:`x` alone, and predicts the
    continuation :obj:`y` with the most probable types.

    Args:
        module: A trained model.
        batches: Held-out systems, split into :obj:`x` and :obj:`y`.
        num_edge_types: Number of types of each layer of the truth
            :obj:`edge_label`, where there is one.
        seed: Seed of the shuffled types.

    Raises:
        ValueError: If there are no systems or no candidate edges, or
            :obj:`y` is too short for a step.
    """
    module.eval()
    generator = torch.Generator().manual_seed(seed)
    sizes = tuple(module.model.latent.num_edge_types)
    truth = _accuracy(num_edge_types, sizes)
    parts: list[dict[str, Any]] = []
    for batch in batches:
        edge_type, posterior = module.model.infer(batch)
        if truth is not None:
            truth.update(edge_type, batch.edge_label)
        parts.append({
            'edge_type': edge_type,
            'posterior': posterior,
            **_predictions(module, batch, edge_type, generator)
        })
    edge_type = torch.cat([p['edge_type'] for p in parts] or [torch.empty(0)])
    if not edge_type.numel():
        raise ValueError('The held-out systems have no candidate edges, so '
                         'there is no graph to infer; allow for more pairs.')
    shares = [
        torch.bincount(types, minlength=k).double().div(types.numel()).tolist()
        for types, k in zip(edge_type.unbind(-1), sizes)
    ]
    weight = np.array([p['num_nodes'] for p in parts])
    return HeldOut(
        sizes=sizes,
        errors=_by_horizon(parts, 'errors'),
        static=_by_horizon(parts, 'static'),
        linear=_by_horizon(parts, 'linear'),
        shuffled=np.concatenate([p['shuffled'] for p in parts]),
        nll=float(np.average([p['nll'] for p in parts], weights=weight)),
        entropy=[
            posterior_entropy(torch.cat(q)).item() / math.log(k)
            for q, k in zip(zip(*(p['posterior'] for p in parts)), sizes)
        ],
        shares=shares,
        worth=_worth(parts, shares),
        edge_type=edge_type,
        accuracy=None if truth is None else truth.compute().combined.item(),
    )


def _accuracy(true: Sequence[int],
              sizes: Sequence[int]) -> Optional[EdgeAccuracy]:
    """None where the truth is not known, or has other layers."""
    try:
        return EdgeAccuracy(true, sizes) if true else None
    except ValueError:
        return None


def _predictions(module: RelationalInference, batch: Data, edge_type: Tensor,
                 generator: torch.Generator) -> dict[str, Any]:
    """Errors by system of one batch, with its graph and with others."""
    model, units = module.model, module.units
    burn_in = model.decoder.burn_in
    horizons = fitting_horizons(batch, HORIZONS, burn_in)
    first = burn_in - 1
    y = units(batch.y)[:, first:]

    def error(prediction: Tensor) -> np.ndarray:
        square = (prediction - y[:, 1:]).square().mean(dim=(1, 2)).double()
        mean = scatter(square, batch.batch, dim_size=batch.num_graphs,
                       reduce='mean')
        return mean.nan_to_num(math.inf, math.inf).clamp(min=TINY).numpy()

    def rollout(types: Tensor, horizon: int) -> np.ndarray:
        edge_attr = per_mass(model.latent.encode_types(types), batch)
        out = model.decode(batch.y, batch.edge_index, edge_attr, horizon)
        return error(units(out)[:, first:])

    edge_attr = per_mass(model.latent.encode_types(edge_type), batch)
    return {
        'num_nodes': batch.num_nodes,
        'errors': {
            h: rollout(edge_type, h)
            for h in horizons
        },
        'static': {
            h: error(static_rollout(y, h))
            for h in horizons
        },
        'linear': {
            h: error(linear_rollout(module.linear_step, y, h))
            for h in horizons
        },
        'shuffled': rollout(_shuffled(edge_type, batch, generator),
                            horizons[-1]),
        'nll': module.recipe.reconstruction(model, batch, edge_attr).item(),
        'replaced': {
            key: rollout(types, 1)
            for key, types in _replaced(edge_type, model.latent.num_edge_types)
        },
    }


def _shuffled(edge_type: Tensor, batch: Data,
              generator: torch.Generator) -> Tensor:
    """The same types for other pairs, of any system in the batch; where both
    directions of a pair had one type, they still have."""
    out = edge_type[torch.randperm(len(edge_type), generator=generator)]
    reverse = reverse_edges(batch.edge_index)
    edge = torch.arange(reverse.numel())
    if bool((edge_type == edge_type[reverse]).all()):
        out = out[torch.minimum(edge, reverse)]
    return out


def _replaced(
        edge_type: Tensor,
        sizes: Sequence[int]) -> Iterator[tuple[tuple[int, int, int], Tensor]]:
    """Each type of each layer replaced by each other one."""
    for layer, size in enumerate(sizes):
        for old, new in permutations(range(size), 2):
            out = edge_type.clone()
            out[out[:, layer] == old, layer] = new
            yield (layer, old, new), out


def _worth(parts: Sequence[dict[str, Any]],
           shares: Sequence[Sequence[float]]) -> list[list[float]]:
    """Of each layer and type, the mean logarithm of the rise of errors."""
    error = _by_horizon(parts, 'errors')[1]
    replaced = _by_horizon(parts, 'replaced')

    def rise(key: tuple[int, int, int]) -> float:
        # Where both diverge, there is nothing to tell.
        known = np.isfinite(error)
        ratio = replaced[key][known] / error[known]
        return float(np.log(ratio).mean()) if known.any() else 0.

    return [[
        min(rise((layer, old, new)) for new in range(len(share))
            if new != old) if share[old] else 0. for old in range(len(share))
    ] for layer, share in enumerate(shares)]


def _by_horizon(parts: Sequence[dict[str, Any]],
                name: str) -> dict[Any, np.ndarray]:
    return {
        key: np.concatenate([part[name][key] for part in parts])
        for key in parts[0][name]
    }
