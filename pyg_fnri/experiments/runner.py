"""Running cells: train or go on, measure, write the result."""
import json
import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from filelock import FileLock

from pyg_fnri.datasets.spec import open_dataset
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.experiments.cell import TABLES, Cell
from pyg_fnri.experiments.compression import measure_halves
from pyg_fnri.experiments.results import provenance, save_result
from pyg_fnri.experiments.scale import Scale
from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import load_checkpoint
from pyg_fnri.transforms import SplitTrajectory

#: Runs one of the scripts `train` and `evaluate`: its name, its arguments.
Script = Callable[[str, list[str]], None]


@dataclass(frozen=True)
class Runner:
    """Runs cells at a scale.

    Args:
        scale: How far each run goes.
        script: Runs a script.
        root: Where data sets are kept, or made.
        runs: Where runs are kept, each in `runs/SCALE/CELL`.
        results: Where results go, each to `results/SCALE/CELL.json`.
    """
    scale: Scale
    script: Script
    root: str = 'datasets'
    runs: str = os.path.join('runs', 'reproduce')
    results: str = 'results'

    def directory(self, cell: Cell) -> str:
        """Where the run of a cell is."""
        return os.path.join(self.runs, self.scale.name, cell.name)

    def checkpoint(self, cell: Cell) -> str:
        """The best one of a cell's run."""
        return os.path.join(self.directory(cell), 'best.ckpt')

    def result(self, cell: Cell) -> str:
        """The file of a cell's result."""
        return os.path.join(self.results, self.scale.name, f'{cell.name}.json')

    def training(self, cell: Cell) -> list[str]:
        """Arguments of `scripts/train.py`."""
        return [
            *self.scale.training(cell), '--root', self.root, '--out',
            self.directory(cell)
        ]

    def evaluation(self, cell: Cell) -> list[str]:
        """Arguments of `scripts/evaluate.py`."""
        laws = cell.regime in TABLES['laws']
        return [
            '--checkpoint',
            self.checkpoint(cell), *self.scale.evaluation,
            *(self.scale.refined if laws else ()), '--root', self.root, '--out',
            os.path.join(self.directory(cell), 'test')
        ]

    def evaluation_before(self, cell: Cell) -> list[str]:
        """The same for the model that force laws are found from, which has
        none to refine graphs by."""
        quick = os.path.join(self.directory(cell), 'quick')
        return [
            '--checkpoint',
            os.path.join(quick, 'best.ckpt'), *self.scale.evaluation,
            *(word for word in self.scale.refined if word != '--refine'),
            '--root', self.root, '--out',
            os.path.join(quick, 'test')
        ]

    def has_current_settings(self, cell: Cell) -> bool:
        """Whether a result was made with the arguments that the scale has
        now, wherever its files were."""
        with open(self.result(cell)) as file:
            words = shlex.split(json.load(file)['commands'][0])
        return words[2:words.index('--root')] == self.scale.training(cell)

    def run(self, cell: Cell, again: bool = False) -> bool:
        """Runs a cell, or goes on with it, unless its result is there.

        Args:
            cell: What to run.
            again: Whether to forget its result, and to start anew.

        Returns:
            Whether there was anything to do.

        Raises:
            filelock.Timeout: If another process runs it.
        """
        os.makedirs(os.path.dirname(self.directory(cell)), exist_ok=True)
        # Two processes in one run would spoil it.
        with FileLock(f'{self.directory(cell)}.lock', timeout=0):
            if again and os.path.exists(self.result(cell)):
                os.remove(self.result(cell))
            if os.path.exists(self.result(cell)):
                return False
            minutes = self._train(cell, again)
            self.script('evaluate', self.evaluation(cell))
            if cell.regime == 'em':
                self.script('evaluate', self.evaluation_before(cell))
            self._save(cell, minutes)
            return True

    def _train(self, cell: Cell, again: bool) -> float:
        """Minutes of training, those before an interruption included."""
        run, arguments = self.directory(cell), self.training(cell)
        files = os.listdir(run) if os.path.isdir(run) else []
        # Runs with force laws begin with one of the quick recipe.
        begun = any(
            os.path.exists(os.path.join(run, first, 'last.ckpt'))
            for first in ('', 'quick'))
        resumed = begun and not again
        if resumed:
            arguments.append('--resume')
        elif files:  # Stopped before there was anything to go on with.
            arguments.append('--overwrite')
        path = os.path.join(run, 'minutes.json')
        minutes = 0.
        if resumed and os.path.exists(path):
            with open(path) as file:
                minutes = json.load(file)
        start = time.monotonic()
        try:
            self.script('train', arguments)
        finally:
            minutes += (time.monotonic() - start) / 60
            if os.path.exists(os.path.join(run, 'command.txt')):
                with written_whole(path) as part:
                    with open(part, 'w') as file:
                        json.dump(minutes, file)
        return minutes

    def _save(self, cell: Cell, minutes: float) -> None:
        figures = _metrics(self.evaluation(cell))
        runs = [('train', self.training(cell)),
                ('evaluate', self.evaluation(cell))]
        if cell.regime == 'em':
            before = self.evaluation_before(cell)
            runs.append(('evaluate', before))
            figures['before'] = {
                key: _metrics(before)[key]
                for key in ('edge_accuracy', 'rollout_mse', 'calibration_error')
            }
        config = figures.pop('config')
        del figures['checkpoint']
        if cell.regime in self.scale.compression:
            figures['halves'] = self.measure_halves(cell)
        commands = [
            f'python scripts/{name}.py {shlex.join(arguments)}'
            for name, arguments in runs
        ]
        os.makedirs(os.path.dirname(self.result(cell)), exist_ok=True)
        save_result(
            os.path.dirname(self.result(cell)), cell, {
                'cell': cell.name,
                'scale': self.scale.name,
                'commands': commands,
                'num_systems': config['data']['num_systems'],
                'figures': figures,
                'minutes': minutes,
                'provenance': provenance(),
            })

    def measure_halves(self, cell: Cell) -> dict[str, Any]:
        """Errors of a trained cell on frames that it saw and on those that
        follow, in test systems."""
        module = load_checkpoint(self.checkpoint(cell))
        dataset = open_dataset(module.config.data, self.root, 'test',
                               SplitTrajectory(module.config.num_observed))
        dataset = dataset[:self.scale.num_halved]
        return measure_halves(module, SystemLoader(dataset, batch_size=500))


def _metrics(evaluation: list[str]) -> dict[str, Any]:
    """What an evaluation with these arguments has written."""
    out = evaluation[evaluation.index('--out') + 1]
    with open(os.path.join(out, 'metrics.json')) as file:
        return json.load(file)
