"""Reports: tables in Markdown, with what has to be known to read them."""
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from pyg_fnri.experiments.cell import Cell
from pyg_fnri.experiments.results import Result

#: For what has not run.
MISSING = '–'


@dataclass(frozen=True)
class Summary:
    """A figure over runs that differ in their seed alone.

    Args:
        mean: Its mean.
        error: The mean's standard error, None of a single run.
    """
    mean: float
    error: Optional[float]

    @classmethod
    def of(cls, values: Iterable[float]) -> Optional['Summary']:
        """Of the values of all runs, None where there are none."""
        values = list(values)
        if not values:
            return None
        mean = math.fsum(values) / len(values)
        if len(values) == 1:
            return cls(mean, None)
        if not math.isfinite(mean):  # A run that diverged counts.
            return cls(mean, math.nan)
        return cls(mean, statistics.stdev(values) / math.sqrt(len(values)))

    def text(self, decimals: int) -> str:
        """Such as `94.0 ± 1.4`."""
        text = f'{self.mean:.{decimals}f}'
        if self.error is not None:
            text += f' ± {self.error:.{decimals}f}'
        return text


def decimals_of(value: float) -> int:
    """Decimals that leave three digits, as in the paper's table 2, and two of
    what is less than 1."""
    if not math.isfinite(value) or value == 0:
        return 2
    exponent = math.floor(math.log10(abs(value)))
    return max(0, 2 - exponent) if exponent >= 0 else 1 - exponent


@dataclass(frozen=True)
class Table:
    """Columns and rows, as text.

    Args:
        title: What it is of.
        columns: Their heads.
        rows: As many cells as there are columns, each.
    """
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """A section with its title."""
        lines = [self.columns, ['---', *['---:'] * (len(self.columns) - 1)]]
        body = [f"| {' | '.join(row)} |" for row in [*lines, *self.rows]]
        return '\n'.join([f'## {self.title}', '', *body])


@dataclass(frozen=True)
class Report:
    """Tables, and notes below them.

    Args:
        title: What they are of.
        tables: The tables.
        notes: A paragraph each, in Markdown.
    """
    title: str
    tables: Sequence[Table]
    notes: Sequence[str]

    def markdown(self) -> str:
        """A whole document."""
        parts = [
            f'# {self.title}', *(table.markdown() for table in self.tables),
            *self.notes
        ]
        return '\n\n'.join(parts) + '\n'


def notes_of_runs(results: Mapping[Cell, Result], scale: str,
                  command: str) -> list[str]:
    """Split, systems, machine and commands behind the figures.

    Args:
        results: The results that a report shows.
        scale: The name of their scale.
        command: What makes the report.
    """
    notes = [f'Scale: {scale}. Made by `{command}`.']
    if not results:
        return [*notes, 'Nothing has run yet.']
    runs = list(results.values())
    split = _distinct(r['figures']['split'] for r in runs)
    tested = _distinct(r['figures']['num_systems'] for r in runs)
    trained = _distinct(r['num_systems'][0] for r in runs)
    minutes = math.fsum(r['minutes'] for r in runs)
    notes.append(
        f'Measured on {tested} systems of the {split} split, trained on '
        f'{trained}. {len(runs)} runs, {minutes:.1f} minutes of training in '
        f'all; ± is the standard error of the mean over the seeds given.')
    machines = _distinct((_machine(r['provenance']) for r in runs), '; ')
    notes.append(f'Run with {machines}.')
    commands = dict.fromkeys(
        re.sub(rf'--seed {cell.seed}\b', '--seed $SEED',
               line.replace(cell.name, f'{cell.row}-$SEED'))
        for cell, result in results.items() for line in result['commands'])
    notes.append('\n'.join(
        ['Commands, once for each seed:', '', '```bash', *commands, '```']))
    return notes


def seeds_text(runs: Mapping[int, Result]) -> str:
    """Seeds and their number, such as `0 1 2 (n = 3)`."""
    if not runs:
        return MISSING
    return f"{' '.join(map(str, sorted(runs)))} (n = {len(runs)})"


def minutes_text(runs: Mapping[int, Result]) -> str:
    """Mean minutes of training."""
    summary = Summary.of(run['minutes'] for run in runs.values())
    return MISSING if summary is None else f'{summary.mean:.1f}'


def _machine(made: Mapping[str, Any]) -> str:
    number = made['num_threads']
    text = (f"pyg_fnri {made['pyg_fnri']}, torch {made['torch']}, {number} "
            f"thread{'s' * (number != 1)} of {made['processor']}")
    return f"{text}, {made['gpu']}" if 'gpu' in made else text


def _distinct(values: Iterable[object], joint: str = ' or ') -> str:
    return joint.join(map(str, dict.fromkeys(values)))
