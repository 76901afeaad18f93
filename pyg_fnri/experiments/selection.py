"""Which number of layers and types to take, and why."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.held_out import HeldOut
from pyg_fnri.experiments.selection_row import (
    Row,
    geometric_mean,
    log_errors,
    make_row,
)
from pyg_fnri.experiments.selection_warnings import selection_warnings
from pyg_fnri.experiments.standard_error import (
    difference,
    smallest_within_one_error,
)
from pyg_fnri.inference.likelihood import Estimate


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
    logs = {key: log_errors(runs[key], horizon) for key in by_size}
    choice, best = smallest_within_one_error(logs, by_size)
    behind = {
        key:
        Estimate(0., 0.) if key == best else difference(logs[key], logs[best])
        for key in by_size
    }
    rows = [make_row(key, runs[key], behind[key], horizon) for key in by_size]
    of = {row.candidate: row for row in rows}
    num_systems = len(first.shuffled)
    return Selection(rows, of[choice], of[best], {
        h: geometric_mean(e[None])
        for h, e in first.static.items()
    }, {
        h: geometric_mean(e[None])
        for h, e in first.linear.items()
    }, num_systems, selection_warnings(of[choice], rows, horizon, num_systems))
