"""Results: one JSON file a cell, and where its figures come from."""
import json
import os
import platform
from collections.abc import Mapping
from glob import escape, glob
from typing import Any

import torch

from pyg_fnri import __version__
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.experiments.cell import Cell

#: What `scripts/reproduce.py` writes of a cell.
Result = dict[str, Any]
KEYS = ('cell', 'scale', 'commands', 'num_systems', 'figures', 'minutes',
        'provenance')


def save_result(directory: str, cell: Cell, result: Result) -> None:
    """Writes the result of a cell; whole or not at all."""
    with written_whole(os.path.join(directory, f'{cell.name}.json')) as part:
        with open(part, 'w') as file:
            json.dump(result, file, indent=2)
            file.write('\n')


def load_results(directory: str) -> dict[Cell, Result]:
    """All results in a directory, by seed; other files there are left alone.

    Raises:
        ValueError: If a file has a cell's name but not its result.
    """
    results = {}
    for path in sorted(glob(os.path.join(escape(directory), '*.json'))):
        name = os.path.basename(path).removesuffix('.json')
        try:
            cell = Cell.from_name(name)
        except ValueError:
            continue
        results[cell] = _load(path, cell)
    return dict(sorted(results.items(), key=lambda item: item[0].seed))


def of_row(results: Mapping[Cell, Result], dataset: str, model: str,
           regime: str) -> dict[int, Result]:
    """The results of one row of a table, by seed."""
    return {
        cell.seed: result
        for cell, result in results.items()
        if (cell.dataset, cell.model, cell.regime) == (dataset, model, regime)
    }


def provenance() -> dict[str, Any]:
    """What a run's figures and minutes depend on besides its arguments."""
    out = {
        'pyg_fnri': __version__,
        'torch': str(torch.__version__),
        'python': platform.python_version(),
        'num_threads': torch.get_num_threads(),
        'processor': _processor(),
    }
    if torch.cuda.is_available():
        out['gpu'] = torch.cuda.get_device_name()
    return out


def _load(path: str, cell: Cell) -> Result:
    try:
        with open(path) as file:
            result = json.load(file)
        missing = [key for key in KEYS if key not in result]
        if missing or result['cell'] != cell.name:
            raise ValueError(f'it lacks {missing}'
                             if missing else f"it is of {result['cell']}")
    except (TypeError, ValueError) as error:
        raise ValueError(f"'{path}' is not the result of the cell that it is "
                         f"named after ({error}); delete it, and run the cell "
                         f"again.") from error
    return result


def _processor() -> str:
    try:
        with open('/proc/cpuinfo') as file:
            for line in file:
                if line.startswith('model name'):
                    return line.partition(':')[2].strip()
    except OSError:
        pass  # Not Linux.
    return platform.processor() or platform.machine()
