"""What speaks against trusting a choice of layers and types."""
from collections.abc import Sequence

from pyg_fnri.experiments.selection_row import Row
from pyg_fnri.inference.likelihood import Estimate

#: Below the first, seeds hardly agree; above the second, nearly everywhere.
#: Adjusted for chance.
POOR, GOOD = 0.5, 0.8
#: Above this share of the highest entropy there can be, graphs are in doubt,
#: and a layer too many pays by telling how much.
DOUBT = 0.1
#: Fewer held-out systems say little.
FEW_SYSTEMS = 20


def selection_warnings(row: Row, rows: Sequence[Row], horizon: int,
                       num_systems: int) -> list[str]:
    """What speaks against trusting a choice, a sentence each.

    Args:
        row: The candidate that is chosen.
        rows: All candidates, the smallest first.
        horizon: The steps that decide.
        num_systems: Number of held-out systems.
    """
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
