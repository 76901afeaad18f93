"""The evidence about one candidate, from all of its runs."""
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Optional

import numpy as np

from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.held_out import HeldOut
from pyg_fnri.experiments.standard_error import difference
from pyg_fnri.inference.likelihood import Estimate
from pyg_fnri.metrics import Agreement, agreement

#: A type counts as used if it has this share of the edges, and errors of
#: single steps would rise by this factor without it.
USED_SHARE, USED_WORTH = 0.01, 1.01
#: Layers that agree so far, adjusted for chance, are one and the same.
SAME_LAYER = 0.9


@dataclass(frozen=True)
class Row:
    """The evidence about one candidate.

    Args:
        candidate: The number of layers and types.
        num_seeds: Number of runs.
        errors: Horizon to error and its standard error, in min-max units:
            geometric means over systems and seeds, in which one wild system
            does not drown all others.
        behind: How far the logarithm of the error at the longest horizon is
            above that of the best candidate, on the same systems.
        over_linear: Likewise above that of the linear step.
        over_shuffled: Likewise above that of shuffled types.
        nll: Mean loss.
        entropy: Mean share of the highest entropy there can be.
        num_used: Types that are used, over all layers and runs.
        num_types: Types that there are, over all layers and runs.
        num_copies: Pairs of layers that are the same, over all runs.
        agreements: One for each pair of runs.
        accuracy: Mean share of edges that are right, where it is known.
    """
    candidate: Candidate
    num_seeds: int
    errors: dict[int, Estimate]
    behind: Estimate
    over_linear: Estimate
    over_shuffled: Estimate
    nll: float
    entropy: float
    num_used: int
    num_types: int
    num_copies: int
    agreements: list[Agreement]
    accuracy: Optional[float]

    @property
    def agreement(self) -> Optional[Agreement]:
        """Its mean over all pairs of runs, None of a single run."""
        if not self.agreements:
            return None
        adjusted = [a.adjusted for a in self.agreements]
        known = [a for a in adjusted if a is not None]
        return Agreement(float(np.mean([a.share for a in self.agreements])),
                         float(np.mean([a.chance for a in self.agreements])),
                         float(np.mean(known)) if known else None)


def make_row(candidate: Candidate, runs: Sequence[HeldOut], behind: Estimate,
             horizon: int) -> Row:
    """The evidence about a candidate.

    Args:
        candidate: The number of layers and types.
        runs: What was measured of each of its runs.
        behind: How far it is behind the best candidate.
        horizon: The longest one.
    """
    logs = log_errors(runs, horizon)
    shuffled = np.log(np.stack([run.shuffled for run in runs]))
    accuracies = [run.accuracy for run in runs if run.accuracy is not None]
    return Row(
        candidate,
        len(runs),
        {
            h: geometric_mean(np.stack([run.errors[h] for run in runs]))
            for h in runs[0].errors
        },
        behind,
        difference(logs, np.log(runs[0].linear[horizon][None])),
        # The same models: seeds do not differ on their own.
        difference(logs.mean(0, keepdims=True), shuffled.mean(0,
                                                              keepdims=True)),
        float(np.mean([run.nll for run in runs])),
        float(np.mean([share for run in runs for share in run.entropy])),
        sum(_num_used(run) for run in runs),
        sum(sum(run.sizes) for run in runs),
        sum(_num_copies(run) for run in runs),
        [
            agreement(a.edge_type, b.edge_type, a.sizes)
            for a, b in combinations(runs, 2)
        ],
        float(np.mean(accuracies)) if accuracies else None,
    )


def log_errors(runs: Sequence[HeldOut], horizon: int) -> np.ndarray:
    """Logarithms of the errors of all runs and systems, :obj:`[R, S]`."""
    return np.log(np.stack([run.errors[horizon] for run in runs]))


def geometric_mean(errors: np.ndarray) -> Estimate:
    """The geometric mean of errors :obj:`[R, S]` and its standard error."""
    mean, error = difference(np.log(errors))
    return Estimate(math.exp(mean), math.exp(mean) * error)


def _num_used(run: HeldOut) -> int:
    return sum(share >= USED_SHARE and worth >= math.log(USED_WORTH)
               for layer in zip(run.shares, run.worth)
               for share, worth in zip(*layer))


def _num_copies(run: HeldOut) -> int:
    """Pairs of layers that are the same up to the names of their types."""
    out = 0
    layers = list(zip(run.edge_type.split(1, dim=1), run.sizes))
    for (a, size), (b, other) in combinations(layers, 2):
        if size == other:
            adjusted = agreement(a, b, [size]).adjusted
            out += adjusted is not None and adjusted > SAME_LAYER
    return out
