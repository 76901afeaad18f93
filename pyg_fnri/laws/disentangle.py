"""The way out of entangled laws: another basis for the same forces."""
import copy
import itertools

import torch
from torch import Tensor

from pyg_fnri.inference.impulses import ImpulseEvidence
from pyg_fnri.inference.likelihood import AnnealingStep
from pyg_fnri.laws.fit import LEAST_GAIN, LawFit

#: What a basis is tried at, and what graphs and laws then go through.
SCREENING = AnnealingStep(0.02, 0.0)
REANNEALING = tuple(
    AnnealingStep(tolerance, 0.0)
    for tolerance in (0.1, 0.05, 0.02, 0.01, 0.005, 0.002))

#: Rounds, and bases that are annealed in a round, at the most.
MAX_ROUNDS, NUM_TRIED = 6, 3
#: The quantile of errors that has to be a trifle, as a share of changes, where
#: laws explain all.
LARGE, TRIFLE = 0.9, 0.05


@torch.no_grad()
def disentangle(fit: LawFit, generator: torch.Generator,
                max_rounds: int = MAX_ROUNDS) -> None:
    """Replaces laws by combinations of them that explain the motion better, in
    place.

    From a poor start, fits end in an entangled optimum: of two forces :math:`s`
    and :math:`c`, for example, :math:`s + c` and :math:`-c`, which no change of
    single pairs leaves. Two laws at a time are replaced by sums and differences
    (with determinant ±1), and types by the closest ones; the best few bases are
    annealed anew, and the best is kept if it explains more."""
    options = fit.search.options
    candidates = bases(options)
    best = fit.state
    for _ in range(max_rounds):
        fit.state = best
        # The errors now are an upper bound of the noise.
        last = fit.bounded(REANNEALING[-1])
        seen, evidence = fit.transitions, fit.evidence()
        if explains_all(evidence, fit.search.channels):
            break
        best_cost = fit.cost(last, evidence).mean().item()
        no_graph = torch.zeros_like(fit.search.channels)
        idle = fit.cost(last, evidence, no_graph).mean().item()
        # Every third transition will do to choose what to try.
        evidence, screened = fit.evidence(fit.transitions.thinned(3)), []
        screening = fit.bounded(SCREENING, evidence)
        present = fit.cost(screening, evidence).mean().item()
        for number, basis in enumerate(candidates):
            combined = in_basis(evidence, basis)
            fit.search.choice = nearest(options, basis)[best.choice]
            fit.search.sweep(combined, screening)
            cost = fit.cost(screening, combined).mean().item()
            # The present basis, annealed anew, is always worth a try.
            if number == 0 or cost < 2 * present:
                state = best._replace(laws=basis @ best.laws,
                                      choice=fit.search.choice)
                screened.append((cost, number, state))
        found, found_cost = best, best_cost
        for _, _, state in sorted(screened)[:NUM_TRIED]:
            fit.state = state
            fit.expect(REANNEALING[0])
            fit.anneal(REANNEALING, generator)
            seen.mass = fit.transitions.mass
            cost = fit.cost(last, fit.evidence(seen)).mean().item()
            if cost < found_cost:
                found, found_cost = fit.state, cost
            if cost < 0.5 * best_cost:
                break  # A way out, if not the only one.
        best = found
        gain = best_cost - found_cost
        if gain <= LEAST_GAIN * max(0, min(best_cost, idle - best_cost)):
            break
    fit.state = best


def explains_all(evidence: ImpulseEvidence, channels: Tensor) -> bool:
    """Whether even large errors are trifles, in typical changes."""
    valid = evidence.transitions.valid
    left = evidence.errors(channels)[valid].abs()
    change = evidence.change[valid].abs().median(0).values
    return bool((left.quantile(LARGE, 0) < TRIFLE * change).all())


def bases(options: Tensor) -> list[Tensor]:
    """Bases to replace two laws of different layers by, the present one first:
    matrices :obj:`[C, C]` of -1, 0 and 1 with determinant ±1, a row per new
    law; options are :obj:`[M, C]`."""
    num_channels = options.size(1)
    eye = torch.eye(num_channels, dtype=options.dtype, device=options.device)
    found = [eye]
    for a, b in itertools.combinations(range(num_channels), 2):
        if not bool((options[:, a] * options[:, b]).any()):
            continue  # They never add up.
        for p, q, r, s in itertools.product((-1, 0, 1), repeat=4):
            basis = eye.clone()
            basis[[a, a, b, b], [a, b, a, b]] = eye.new_tensor([p, q, r, s])
            if abs(p * s - q * r) == 1:
                found.append(basis)
    out: dict[frozenset[tuple[float, ...]], Tensor] = {}
    for basis in found:  # In any order of rows but once.
        out.setdefault(frozenset(map(tuple, basis.tolist())), basis)
    return list(out.values())


def in_basis(evidence: ImpulseEvidence, basis: Tensor) -> ImpulseEvidence:
    out = copy.copy(evidence)
    for name in ('effect', 'even', 'on_receiver', 'on_sender'):
        if getattr(out, name, None) is not None:
            effect = torch.einsum('kc,vc...->vk...', basis, getattr(out, name))
            setattr(out, name, effect)
    return out


def nearest(options: Tensor, basis: Tensor) -> Tensor:
    """For each option, the closest one in another basis, :obj:`[M]`."""
    return torch.cdist(options, options @ basis).argmin(-1)
