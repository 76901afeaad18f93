"""One graph that many systems share."""
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import unbatch_edge_index

from pyg_fnri.inference.refine import ANNEALING, refine
from pyg_fnri.inference.search import Refined
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.nn.latent import most_probable

#: So that no posterior that is sure and wrong outvotes all others.
LEAST_PROBABILITY = 1e-6
#: From which probability on a system is sure, and the share of such edges that
#: may differ from the graph that all share.
SURE, MAX_DIFFER = 0.95, 0.1


def pool_posteriors(
        log_posterior: Sequence[Tensor], num_systems: int,
        prior: Optional[Sequence[Sequence[float]]] = None) -> list[Tensor]:
    r"""The posterior of one graph that all systems share, up to a constant

    .. math::
        \log q(\mathbf{z} | \mathbf{x}_1, \ldots, \mathbf{x}_S) =
        \sum_s \log q(\mathbf{z} | \mathbf{x}_s) - (S - 1) \log p(\mathbf{z}),

    in double precision, :obj:`[num_edges, K_a]` each. Overconfident where
    systems are not independent, such as windows of one recording. Not in the
    paper.

    Args:
        log_posterior: Log-probabilities :obj:`[num_systems * num_edges, K_a]`
            of each layer-graph's types, with the same edges in each system.
        prior: Probabilities of each layer-graph's types. (default: uniform)
    """
    if prior is None:
        prior = [[1.0] * log_q.size(1) for log_q in log_posterior]
    out = []
    for log_q, p in zip(log_posterior, prior, strict=True):
        each = log_q.double().view(num_systems, -1, len(p))
        pooled = each.sum(0) - (num_systems - 1) * each.new_tensor(p).log()
        out.append(pooled.log_softmax(-1))
    return out


def shared_graph(model: RelationalAutoEncoder, batches: Iterable[Data],
                 refined: bool = False,
                 systems: Optional[Sequence[Any]] = None) -> Refined:
    """One graph for all systems and its posterior, of the edges of one system:
    see :func:`pool_posteriors`.

    Args:
        batches: Observed trajectories of all systems, which have the same
            particles and candidate edges.
        refined: Whether :func:`~pyg_fnri.inference.refine` comes first: pools
            probabilities of an edge's types given the system's other edges.
        systems: What messages call each system. (default: 0, 1, ...)
    """
    logs: list[list[Tensor]] = []
    first, num_systems = None, 0
    for batch in batches:
        for size, edges in _candidates(batch):
            first = first or (size, edges)
            if size != first[0] or not edges.equal(first[1]):
                name, other = (k if systems is None else systems[k]
                               for k in (num_systems, 0))
                raise ValueError(
                    f"System {name!r} differs from system {other!r} in its "
                    f"particles or candidate edges, so they share no graph; "
                    f"leave it out, or infer a graph for each.")
            num_systems += 1
        with model.latent.apart():
            posterior = (refine(model, batch).posterior
                         if refined else model.posterior(batch))
        logs.append([q.clamp(min=LEAST_PROBABILITY).log() for q in posterior])
    if not logs:
        raise ValueError("There are no systems to infer a graph of.")
    # Refining lets the encoder, and the prior with it, have less of a say.
    weight = ANNEALING[-1].prior_weight if refined else 1.0
    prior = [[p**weight for p in layer] for layer in model.latent.prior]
    each = [torch.cat(layer) for layer in zip(*logs)]
    pooled = pool_posteriors(each, num_systems, prior)
    for layer, (own, shared) in enumerate(zip(each, pooled)):
        own = own.view(num_systems, *shared.size())
        sure = own.amax(-1).exp() > SURE
        differ = (own.argmax(-1) != shared.argmax(-1))[sure].double().mean()
        if differ > MAX_DIFFER:
            warnings.warn(
                f"Of the edges in layer {layer} that single systems are sure "
                f"of, {differ:.0%} differ from the graph that all share; it "
                f"may be none: look at the graph of each.", stacklevel=2)
    return Refined(most_probable(pooled),
                   [q.exp().to(logs[0][0].dtype) for q in pooled])


def _candidates(data: Data) -> Iterable[tuple[int, Tensor]]:
    """Each system's number of particles and its candidate edges, numbered
    within it."""
    if data.get('batch') is None:
        return [(data.x.size(0), data.edge_index)]
    sizes = data.batch.bincount().tolist()
    return zip(sizes, unbatch_edge_index(data.edge_index, data.batch,
                                         len(sizes)))
