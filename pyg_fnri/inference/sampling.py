"""The posterior of graphs, by Gibbs sampling."""
from typing import Optional

import torch
from torch_geometric.data import Data

from pyg_fnri.inference.evidence import Evidence
from pyg_fnri.inference.likelihood import fit_errors
from pyg_fnri.inference.refine import ANNEALING, refined_search
from pyg_fnri.inference.search import GraphSearch, Refined
from pyg_fnri.inference.sweep import Objective
from pyg_fnri.nn import RelationalAutoEncoder
from pyg_fnri.nn.latent import most_probable


@torch.no_grad()
def sample_posterior(
    model: RelationalAutoEncoder,
    data: Data,
    num_samples: int = 32,
    burn_in: int = 16,
    num_restarts: int = 24,
    generator: Optional[torch.Generator] = None,
) -> Refined:
    """The probabilities of all types, given the observed frames :obj:`x` and
    not, as those of :func:`~pyg_fnri.inference.refine`, also all other edges;
    labels and the continuation :obj:`y` are not looked at.

    Gibbs sampling from the refined graphs on. In the first sweeps, the
    likelihood of the decoder's errors is fitted to those of the present graphs
    (:func:`~pyg_fnri.inference.likelihood.fit_errors`), which are of all
    systems of the batch: errors and noise are taken to be of one kind. Then it
    stays, and what is averaged is the probability
    of each type given the other edges' present ones, less noisy than counting
    what was drawn. The encoder's word weighs as little as at the end of
    refinement, as it has seen the same frames.

    A chain hardly leaves one good explanation for another that differs in many
    pairs at once, so where several are good, the posterior is too sure. More
    restarts help: they choose where it starts.

    Args:
        model: A trained model with any decoder; force laws are far faster.
        data: Observed trajectories, a :obj:`Data` or :obj:`Batch`.
        num_samples: How many graphs of each system are averaged over.
        burn_in: How many before that are not.
        num_restarts: As for :func:`~pyg_fnri.inference.refine`.
        generator: Source of randomness; one of its own, and the same draws in
            every call, by default.

    Returns:
        The most probable types of each layer-graph by itself, and the
        posterior :obj:`[num_edges, K_a]` of each.

    Raises:
        As :func:`~pyg_fnri.inference.refine`, and
        ValueError: If there are no samples or no sweeps before them, or no
            transition says anything about interactions.
    """
    if num_samples < 1 or burn_in < 1:
        raise ValueError(f"Expected num_samples and burn_in of at least 1, but "
                         f"got {num_samples} and {burn_in}.")
    generator = generator or torch.Generator().manual_seed(0)
    search, evidence = refined_search(model, data, ANNEALING, num_restarts,
                                      generator)
    prior_weight = ANNEALING[-1].prior_weight
    for _ in range(burn_in):
        objective = fit_errors(evidence.errors(search.channels), prior_weight)
        search.sweep(evidence, objective, generator)
    return average(search, evidence, objective, num_samples, generator)


def average(
    search: GraphSearch,
    evidence: Evidence,
    objective: Objective,
    num_samples: int,
    generator: torch.Generator,
) -> Refined:
    """Goes on from a sample of the posterior, and averages over those that
    follow.

    Args:
        search: At a sample of it; in the end, at the last one.
        evidence: The decoder's errors.
        objective: Minus the logarithm of the posterior.
        num_samples: How many sweeps.
        generator: Source of randomness.
    """
    total = torch.zeros_like(search.conditional)
    for _ in range(num_samples):
        search.sweep(evidence, objective, generator)
        total += search.conditional.exp()
    search.conditional = (total / num_samples).log()
    posterior = search.result().posterior
    return Refined(most_probable(posterior), posterior)
