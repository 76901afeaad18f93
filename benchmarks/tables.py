"""What all studies share: options, a loop over cells, tables in Markdown.

A cell is a measurement with a name, and its result RESULTS/NAME.json. What is
there is not measured again, what was stopped goes on, and several processes
share the cells.
"""
import argparse
import json
import math
import platform
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Optional

import pandas as pd
import torch
from filelock import FileLock, Timeout
from matplotlib.figure import Figure

from pyg_fnri import __version__
from pyg_fnri.datasets.stored import write_text, written_whole

MISSING = '–'
HOW_TO_READ = ('How to read it: '
               '[README](../README.md#how-to-read-the-tables).')


def make_parser(doc: Optional[str], study: str,
                scales: Iterable[str]) -> argparse.ArgumentParser:
    """The options of all studies."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--cell', nargs='+', default=[], metavar='PATTERN',
        help="only cells of these names, such as '*-0' [all]")
    add('--scale', choices=scales, default='laptop')
    add('--list', action='store_true', help='print a command for each cell')
    add('--report-only', action='store_true', help='measure nothing')
    add('--threads', type=int, default=1, help="PyTorch's [%(default)s]")
    add('--root', default='datasets', metavar='DIR')
    add('--runs', default=f'runs/{study}', metavar='DIR')
    add('--results', default='results', metavar='DIR')
    return parser


def run_study(names: Iterable[str], measure: Callable[[str], dict[str, Any]],
              report: Callable[[], None], out: Path,
              args: argparse.Namespace) -> None:
    """Measures what has no result yet, and reports all that is there."""
    names, failed = list(names), []
    if args.cell:
        names = [n for n in names if any(fnmatchcase(n, p) for p in args.cell)]
        if not names:
            sys.exit(f"There is no cell {' or '.join(args.cell)}; --list "
                     f"prints those that there are.")
    torch.set_num_threads(args.threads)
    for number, name in enumerate([] if args.report_only else names, 1):
        if args.list:
            print(f"python {sys.argv[0]} --cell '{name}' --scale {args.scale}")
            continue
        print(f'{name} ({number} of {len(names)})', flush=True)
        try:
            run_cell(out / f'{name}.json', lambda: measure(name))
        except Timeout:
            print('another process is at it')
        except Exception:  # Whatever it is, other cells do not share it.
            traceback.print_exc()
            failed.append(name)
    if not args.list:
        report()
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}; see above for why.")


def run_cell(path: Path, measure: Callable[[], dict[str, Any]]) -> None:
    """Saves a measurement and its minutes, those of attempts that were
    stopped included."""
    lock, spent = path.with_suffix('.lock'), path.with_suffix('.minutes')
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock, timeout=0):
        if not path.exists():
            minutes = float(spent.read_text()) if spent.exists() else 0.
            start = time.monotonic()
            try:
                record = measure()
            finally:
                minutes += (time.monotonic() - start) / 60
                spent.write_text(str(minutes))
            record |= dict(minutes=minutes, provenance=provenance())
            # What JSON lacks becomes text.
            write(path, json.dumps(record, indent=2, default=str))
            spent.unlink()
    lock.unlink(missing_ok=True)


def minutes_of(path: Path) -> float:
    """What a cell took, also of one that was stopped."""
    if path.exists():
        return float(json.loads(path.read_text())['minutes'])
    return float(path.with_suffix('.minutes').read_text())


def write(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(str(path), text + '\n')


def provenance() -> dict[str, Any]:
    """What figures and minutes depend on besides the arguments."""
    info = Path('/proc/cpuinfo')
    text = info.read_text() if info.exists() else ''
    names = re.findall('model name\\s*: (.*)', text)
    commit = subprocess.run(['git', 'describe', '--always', '--dirty'],
                            capture_output=True, text=True, check=False)
    out = dict(pyg_fnri=__version__, commit=commit.stdout.strip(),
               torch=str(torch.__version__), python=platform.python_version(),
               num_threads=torch.get_num_threads(),
               processor=[*names, platform.processor()][0])
    if torch.cuda.is_available():
        out['gpu'] = torch.cuda.get_device_name()
    return out


def load(out: Path, pattern: str = '*') -> dict[str, dict[str, Any]]:
    """All results that are there, by name."""
    paths = sorted(out.glob(f'{pattern}.json'))
    return {p.stem: json.loads(p.read_text()) for p in paths}


def publish(path: Path, title: str, tables: Mapping[str, pd.DataFrame],
            notes: Iterable[str]) -> None:
    """Prints tables, and writes them as Markdown with notes below."""
    parts = [f'# {title}']
    for name, frame in tables.items():
        print(f'\n{title}, {name}\n{frame.to_string()}')
        parts += [f'## {name}', markdown(frame)]
    write(path, '\n\n'.join([*parts, *notes]))
    print(f'written into {path}')


def save_figure(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(str(path)) as part:
        figure.savefig(part, format='png', dpi=150)
    print(f'written into {path}')


def markdown(frame: pd.DataFrame) -> str:
    """As `DataFrame.to_markdown`, which needs one more package."""
    head = [frame.index.name or '', *frame]
    rows = [head, ['---', *['---:'] * len(frame.columns)], *frame.itertuples()]
    return '\n'.join(f"| {' | '.join(map(str, row))} |" for row in rows)


def means(frame: pd.DataFrame, by: str, columns: Iterable[str],
          decimals: int = 1) -> pd.DataFrame:
    """A line for each label: means over seeds with their standard errors, of
    errors of rollouts with three digits, as in the paper's table 2."""
    groups = frame.groupby(by, sort=False)
    out = pd.DataFrame(
        {
            name: [
                mean_text(values, None if 'MSE' in name else decimals)
                for _, values in groups[name]
            ]
            for name in columns if name in frame and frame[name].notna().any()
        }, index=pd.Index(groups.groups, name=by))
    out['seeds'] = [' '.join(map(str, seeds)) for _, seeds in groups['seed']]
    return out


def mean_text(values: pd.Series, decimals: Optional[int]) -> str:
    """Such as `94.0 ± 1.4`, or `94.0` of a single run."""
    values = values.dropna()
    if values.empty:
        return MISSING
    mean = values.mean()
    if decimals is None:
        size = math.log10(abs(mean)) if 0 < abs(mean) < math.inf else 0
        decimals = max(0, 2 - int(size)) if size >= 0 else 1 - math.floor(size)
    error = f' ± {values.sem():.{decimals}f}' if len(values) > 1 else ''
    return f'{mean:.{decimals}f}{error}'
