"""Reports on the terminal and in a file."""
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.experiments.report import Report


def publish(report: Report, path: str) -> None:
    """Prints a report's tables, and writes it as Markdown; whole or not at
    all.

    Args:
        report: The report.
        path: The file to write.
    """
    # Logs have no edge to wrap at.
    console = Console(width=None if sys.stdout.isatty() else 160)
    for part in report.tables:
        table = Table(title=f'{report.title}, {part.title}',
                      title_justify='left')
        for index, column in enumerate(part.columns):
            table.add_column(column, justify='right' if index else 'left',
                             overflow='fold')
        for row in part.rows:
            table.add_row(*row)
        console.print(table)
    with written_whole(path) as name:
        Path(name).write_text(report.markdown(), encoding='utf-8')
    print(f'written into {path}')
