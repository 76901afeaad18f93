"""A comparison of layers and types in words and tables."""
import math
from typing import Any, Optional

import pandas as pd
from rich.table import Table

from pyg_fnri.experiments.report import MISSING, decimals_of
from pyg_fnri.experiments.selection import Selection
from pyg_fnri.experiments.selection_row import Row
from pyg_fnri.inference.likelihood import Estimate

#: Of errors, that of the paper's tables.
UNIT = 1e5


def selection_frame(selection: Selection) -> pd.DataFrame:
    """A row for each candidate, the smallest first. Errors are in units of
    1e-5, NaN is what is not known."""
    return pd.DataFrame([_values(row, selection) for row in selection.rows])


def _values(row: Row, selection: Selection) -> dict[str, Any]:
    found = row.agreement
    out: dict[str, Any] = {
        'candidate': row.candidate.name,
        'num_seeds': row.num_seeds,
    }
    for horizon, error in row.errors.items():
        out[f'error_{horizon}'] = UNIT * error.mean
        out[f'error_{horizon}_se'] = UNIT * error.error
    for name, ratio in (('best', row.behind), ('linear', row.over_linear),
                        ('shuffled', row.over_shuffled)):
        # Small as it is, the error of a logarithm is one of the ratio.
        out[f'ratio_to_{name}'] = math.exp(ratio.mean)
        out[f'ratio_to_{name}_se'] = math.exp(ratio.mean) * ratio.error
    out.update({
        'nll': row.nll,
        'entropy_share': row.entropy,
        'types_used': row.num_used,
        'types': row.num_types,
        'same_layers': row.num_copies,
        'agreement': None if found is None else found.share,
        'agreement_by_chance': None if found is None else found.chance,
        'agreement_adjusted': None if found is None else found.adjusted,
        'edge_accuracy': row.accuracy,
    })
    for name in ('agreement', 'agreement_by_chance', 'agreement_adjusted',
                 'edge_accuracy'):
        out[name] = math.nan if out[name] is None else out[name]
    return {**out, 'recommended': row is selection.choice}


def selection_table(selection: Selection, title: str) -> Table:
    """The evidence for the terminal; what is recommended in bold."""
    horizons = list(selection.static)
    table = Table(title=title, title_justify='left')
    known = any(row.accuracy is not None for row in selection.rows)
    table.add_column('types')
    for head in (*(f'{h} step{"s" * (h > 1)}' for h in horizons), 'to best',
                 'shuffled', 'NLL', 'entropy', 'used', 'agreement', 'chance',
                 'adjusted', *(['right'] if known else [])):
        table.add_column(head, justify='right')
    for name, errors in (('static', selection.static), ('linear step',
                                                        selection.linear)):
        table.add_row(name, *(_error(errors[h]) for h in horizons))
    for row in selection.rows:
        found = row.agreement
        cells = [
            *(_error(row.errors[h]) for h in horizons),
            _ratio(row.behind),
            _ratio(Estimate(-row.over_shuffled.mean, row.over_shuffled.error)),
            f'{row.nll:.4g}',
            _percent(row.entropy),
            f'{row.num_used}/{row.num_types}',
            _percent(found and found.share),
            _percent(found and found.chance),
            MISSING if found is None or found.adjusted is None else
            f'{found.adjusted:.2f}',
            *([_percent(row.accuracy)] if known else []),
        ]
        chosen = row is selection.choice
        table.add_row(row.candidate.name, *cells,
                      style='bold' if chosen else None)
    return table


def selection_paragraph(selection: Selection) -> str:
    """What to take, by which rule, on what evidence; without warnings."""
    choice, best = selection.choice, selection.best
    types = ' '.join(map(str, choice.candidate.num_edge_types))
    horizon = selection.horizon
    if choice is best and choice is selection.rows[0]:
        why = (f'it is the smallest candidate, and has the lowest error over '
               f'{horizon} steps')
    elif choice is best:
        why = (f'it has the lowest error over {horizon} steps, and no smaller '
               f'candidate comes within one standard error of it')
    else:
        why = (f'it is the smallest candidate whose error over {horizon} steps '
               f'is within one standard error of the best one, '
               f'{best.candidate.name}')
    ratio = math.exp(choice.over_linear.mean)
    words = [
        f'Recommended: --num-edge-types {types}; {why} (the '
        f'one-standard-error rule, on {selection.num_systems} held-out '
        f'systems). Its error is {ratio:.2g} times that of the linear step.'
    ]
    found = choice.agreement
    if found is not None:
        words.append(f'Its seeds agree on {found.share:.0%} of the edges; '
                     f'chance gives {found.chance:.0%}.')
    return ' '.join(words)


def _error(error: Estimate) -> str:
    mean = UNIT * error.mean
    if not math.isfinite(mean):
        return 'diverges'
    decimals = decimals_of(mean)
    return f'{mean:.{decimals}f} ± {UNIT * error.error:.{decimals}f}'


def _ratio(log: Estimate) -> str:
    """Such as `1.20 ± 0.05`."""
    if not math.isfinite(log.mean):
        return MISSING
    ratio = math.exp(log.mean)
    return f'{ratio:.2f} ± {ratio * log.error:.2f}'


def _percent(share: Optional[float]) -> str:
    return MISSING if share is None else f'{100 * share:.0f} %'
