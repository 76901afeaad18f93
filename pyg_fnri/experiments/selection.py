"""Which number of layers and types to take, and why."""
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Optional

import numpy as np

from pyg_fnri.metrics import Agreement, agreement

from .candidate import Candidate
from .held_out import HeldOut
from .standard_error import Estimate, difference, smallest_within_one_error

#: A type counts as used if it has this share of the edges, and errors of
#: single steps would rise by this factor without it.
USED_SHARE, USED_WORTH = 0.01, 1.01
#: Layers that agree so far, adjusted for chance, are one and the same.
SAME_LAYER = 0.9
#: Below the first, seeds hardly agree; above the second, nearly everywhere.
#: Adjusted for chance.
POOR, GOOD = 0.5, 0.8
#: Above this share of the highest entropy there can be, graphs are in doubt,
#: and a layer too many pays by telling how much.
DOUBT = 0.1
#: Fewer held-out systems say little.
FEW_SYSTEMS = 20


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


@dataclass(frozen=True)
class Selection:
    """What a comparison came to.

    Args:
        rows: The candidates, the smallest first.
        choice: The one to take.
        best: The one with the lowest error.
        static: Horizon to the error of the prediction that nothing moves.
        linear: Likewise, of the linear step.
        num_systems: Number of held-out systems.
        warnings: What speaks against trusting the choice, a sentence each.
    """
    rows: list[Row]
    choice: Row
    best: Row
    static: dict[int, Estimate]
    linear: dict[int, Estimate]
    num_systems: int
    warnings: list[str]

    @property
    def horizon(self) -> int:
        """Steps of the rollouts that decide."""
        return max(self.static)


def select(runs: Mapping[Candidate, Sequence[HeldOut]]) -> Selection:
    """Compares candidates and takes one by the one-standard-error rule: the
    smallest whose error at the longest horizon is above that of the best one
    by at most one standard error of the difference.

    Args:
        runs: What was measured of the runs of each candidate, one for each
            seed, on the same held-out systems.

    Raises:
        ValueError: If there is nothing to compare, there are fewer than two
            systems, or no candidate's rollouts stay finite.
    """
    if not runs or not all(runs.values()):
        raise ValueError('There is nothing to compare: expected at least one '
                         'run of each candidate.')
    by_size = sorted(runs, key=lambda candidate: candidate.size)
    first = runs[by_size[0]][0]
    horizon = max(first.static)
    logs = {key: _logs(runs[key], horizon) for key in by_size}
    choice, best = smallest_within_one_error(logs, by_size)
    behind = {
        key:
        Estimate(0., 0.) if key == best else difference(logs[key], logs[best])
        for key in by_size
    }
    rows = [_row(key, runs[key], behind[key], horizon) for key in by_size]
    of = {row.candidate: row for row in rows}
    num_systems = len(first.shuffled)
    return Selection(rows, of[choice], of[best], {
        h: _geometric(e[None])
        for h, e in first.static.items()
    }, {
        h: _geometric(e[None])
        for h, e in first.linear.items()
    }, num_systems, _warnings(of[choice], rows, horizon, num_systems))


def _row(candidate: Candidate, runs: Sequence[HeldOut], behind: Estimate,
         horizon: int) -> Row:
    logs = _logs(runs, horizon)
    shuffled = np.log(np.stack([run.shuffled for run in runs]))
    accuracies = [run.accuracy for run in runs if run.accuracy is not None]
    return Row(
        candidate,
        len(runs),
        {
            h: _geometric(np.stack([run.errors[h] for run in runs]))
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


def _logs(runs: Sequence[HeldOut], horizon: int) -> np.ndarray:
    return np.log(np.stack([run.errors[horizon] for run in runs]))


def _geometric(errors: np.ndarray) -> Estimate:
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


def _warnings(row: Row, rows: Sequence[Row], horizon: int,
              num_systems: int) -> list[str]:
    """What speaks against trusting a choice."""
    name, out = row.candidate.name, []
    if not any(_is_clear(other.over_linear) for other in rows):
        out.append(f'No evidence of interactions: over {horizon} steps, no '
                   f'candidate predicts clearly better than the linear step, '
                   f'which knows of none. Their graphs mean nothing.')
    elif not _is_clear(row.over_linear):
        out.append(f'Over {horizon} steps, {name} itself predicts no better, '
                   f'clearly, than the linear step, which knows of no '
                   f'interactions.')
    elif not _is_clear(row.over_shuffled):
        out.append(f'The graph of {name} plays no part in its predictions: '
                   f'they are as good with its types dealt out to other '
                   f'pairs. What it predicts better than the linear step '
                   f'need not be due to interactions.')
    out += _warnings_of_seeds(row)
    if row.num_used < row.num_types:
        out.append(f'Of the {row.num_types} types in all runs of {name}, '
                   f'{row.num_used} are used; the others have hardly any '
                   f'edges, or another type would do as well. A smaller '
                   f'candidate may be enough.')
    if row.num_copies:
        out.append(f'In {row.num_copies} cases, two layers of {name} are the '
                   f'same graph: one of them is too many.')
    if row.entropy > DOUBT and row is not rows[0]:
        out.append(f'The graphs of {name} are in doubt (entropy '
                   f'{row.entropy:.0%} of the maximum). Further layers and '
                   f'types may then serve to grade that doubt, which helps '
                   f'prediction, without an interaction of their own; compare '
                   f'again with a higher --max-steps.')
    if row is rows[-1] and len(rows) > 1:
        out.append(f'{name} is the largest candidate; compare it with larger '
                   f'ones.')
    if num_systems < FEW_SYSTEMS:
        out.append(f'There are {num_systems} held-out systems only; standard '
                   f'errors of so few are rough.')
    return out


def _is_clear(behind: Estimate) -> bool:
    """Whether an error is lower by two standard errors."""
    return behind.mean + 2 * behind.error < 0


def _warnings_of_seeds(row: Row) -> list[str]:
    name, found = row.candidate.name, row.agreement
    if found is None:
        return [
            'One seed does not show whether others find the same graph; '
            'give several with --seeds.'
        ]
    if found.adjusted is None:
        return [
            f'All edges of {name} are of one type in every run: there is '
            f'no graph to agree about.'
        ]
    if found.adjusted < POOR:
        return [
            f'The graph of {name} is not to be trusted: seeds agree on '
            f'{found.share:.0%} of the edges, where chance alone gives '
            f'{found.chance:.0%}.'
        ]
    if found.adjusted < GOOD:
        return [
            f'Single edges of {name} are uncertain: seeds agree on '
            f'{found.share:.0%} of them, where chance alone gives '
            f'{found.chance:.0%}.'
        ]
    return []
