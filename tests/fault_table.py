"""The table of faults, results/faults.md where `make test-faults` names it."""
import os
from pathlib import Path

HEAD = ('fault', 'number', 'lost', 'half written', 'wrong', 'tracebacks',
        'noticed', 'equal')


def record(fault, **counts):
    """Prints a row, and puts it in its place in the table."""
    row = [fault, *(str(counts.get(name, '')) for name in HEAD[1:])]
    print('\n' + ' | '.join(row))
    if path := os.environ.get('FAULTS'):
        path = Path(path)
        lines = path.read_text().splitlines() if path.exists() else []
        start = f'| {fault} |'
        rows = {line for line in lines if line[:2] == '| '} - {_line(HEAD)}
        rows = {line for line in rows if not line.startswith(start)}
        text = [line for line in lines if line[:1] != '|']
        path.write_text('\n'.join([
            *text,
            _line(HEAD), '|---' * len(HEAD) +
            '|', *sorted({*rows, _line(row)})
        ]) + '\n')


def _line(cells):
    return f'| {" | ".join(cells)} |'
