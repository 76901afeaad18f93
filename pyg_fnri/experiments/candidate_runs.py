"""The runs of all candidates, each trained once and measured on held-out
systems."""
import json
import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Optional

from filelock import FileLock, Timeout
from rich.console import Console

from pyg_fnri.datasets.reading import content_digest
from pyg_fnri.datasets.spec import open_dataset
from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.experiments.candidate import Candidate
from pyg_fnri.experiments.held_out import HeldOut, measure_held_out
from pyg_fnri.loader import SystemLoader
from pyg_fnri.training import load_checkpoint
from pyg_fnri.transforms import SplitTrajectory


@dataclass(frozen=True)
class CandidateRuns:
    """A run for each candidate and seed.

    Args:
        candidates: What is compared.
        seeds: Of weights, shuffling and samples.
        out: Where runs are kept, each in `out/runs/2-2-seed-0`.
        train: The script `train` as a module.
        arguments: Those of all runs alike.
    """
    candidates: Sequence[Candidate]
    seeds: Sequence[int]
    out: str
    train: ModuleType
    arguments: Sequence[str]

    def directory(self, of: Candidate, seed: int) -> str:
        """Where a run is."""
        return os.path.join(self.out, 'runs',
                            f"{of.name.replace(',', '-')}-seed-{seed}")

    def train_all(self) -> list[tuple[Candidate, int]]:
        """Trains what has not been trained; tells what failed.

        Raises:
            OSError: If another process trains one of them.
            ValueError: If one has been trained on other data or with other
                settings.
        """
        console = Console()
        # All candidates of a seed before those of the next.
        runs = [(c, seed) for seed in self.seeds for c in self.candidates]
        failed, spent, done = [], 0., 0
        for number, (of, seed) in enumerate(runs, 1):
            left = len(runs) - number + 1
            to_go = f', about {spent / done * left:.0f} minutes to go' \
                if done else ''
            console.rule(f'types {of.name}, seed {seed} ({number} of '
                         f'{len(runs)}{to_go})')
            start = time.monotonic()
            try:
                if not self.train_one(of, seed):
                    print('trained already')
                    continue
            except Timeout:
                raise OSError(f"Another process is training in "
                              f"'{self.directory(of, seed)}'; start again "
                              f"when it is done.") from None
            except RuntimeError:  # Another candidate may still fit or converge.
                traceback.print_exc()
                failed.append((of, seed))
            done += 1
            spent += (time.monotonic() - start) / 60
        return failed

    def train_one(self, of: Candidate, seed: int) -> bool:
        """Trains a run or goes on with it; tells whether there was anything to
        do.

        Raises:
            RuntimeError: If training fails.
            Timeout: If another process is at it.
            ValueError: If it has been trained on other data or with other
                settings.
        """
        out = self.directory(of, seed)
        arguments = [
            *self.arguments, '--num-edge-types', *map(str, of.num_edge_types),
            '--seed',
            str(seed), '--out', out
        ]
        settings = {
            'arguments': list(self.arguments),
            'data': self.train.describe_data(self.train.parse_args(arguments)),
        }
        settings = json.loads(json.dumps(settings))
        os.makedirs(os.path.dirname(out), exist_ok=True)
        with FileLock(f'{out}.lock', timeout=0):
            files = os.listdir(out) if os.path.isdir(out) else []
            finished = os.path.join(out, 'finished.json')
            if 'finished.json' in files:
                check_settings(finished, settings)
                return False
            if 'last.ckpt' in files:
                arguments.append('--resume')
            elif files:  # Stopped before there was anything to go on with.
                arguments.append('--overwrite')
            try:
                self.train.main(arguments)
            except ValueError as error:  # Of weights that are finite no more.
                raise RuntimeError(str(error)) from error
            with written_whole(finished) as part:
                Path(part).write_text(json.dumps(settings, indent=2) + '\n')
        return True

    def measure_all(
        self,
        failed: Sequence[tuple[Candidate, int]],
        root: str,
        split: str,
        interactions: Optional[str] = None,
    ) -> dict[Candidate, list[HeldOut]]:
        """Measures all runs on the held-out systems.

        Args:
            failed: Those to leave out.
            root: Where data sets are kept.
            split: The systems to measure on.
            interactions: The truth, where it is known.
        """
        out: dict[Candidate, list[HeldOut]] = {}
        console = Console()
        for of in self.candidates:
            for seed in self.seeds:
                if (of, seed) in failed:
                    continue
                path = os.path.join(self.directory(of, seed), 'best.ckpt')
                with console.status(f'measuring types {of.name}, seed {seed}'):
                    out.setdefault(of, []).append(
                        measure_checkpoint(path, root, split, interactions))
        return out


def measure_checkpoint(
    checkpoint: str,
    root: str,
    split: str,
    interactions: Optional[str] = None,
) -> HeldOut:
    """Measures one run; arguments as for :meth:`CandidateRuns.measure_all`."""
    module = load_checkpoint(checkpoint)
    data = module.config.data
    if interactions is not None:
        path = os.path.abspath(interactions)
        data = {
            **data,
            'files': {
                **data['files'], 'interactions': path
            },
            'digests': {
                **data['digests'], 'interactions': content_digest(path)
            },
        }
    dataset = open_dataset(data, root, split,
                           SplitTrajectory(module.config.num_observed))
    return measure_held_out(module, SystemLoader(dataset, batch_size=250),
                            dataset.num_edge_types)


def check_settings(path: str, settings: dict[str, Any]) -> None:
    """Makes sure that a finished run belongs to this comparison.

    Args:
        path: What the run has left, `finished.json`.
        settings: Those of this comparison.

    Raises:
        ValueError: If it does not.
    """
    try:
        old = json.loads(Path(path).read_text())
        changed = [key for key in settings if old[key] != settings[key]]
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"'{path}' does not tell how the run beside it was "
                         f"made; delete its folder to train it again.") \
            from None
    if 'data' in changed:
        raise ValueError(f"The run in '{os.path.dirname(path)}' was trained on "
                         f"other data than these, or others now that the file "
                         f"has changed; name another directory with --out.")
    if changed:
        raise ValueError(
            f"The run in '{os.path.dirname(path)}' was trained "
            f"with {' '.join(old['arguments'])}, but this command "
            f"has {' '.join(settings['arguments'])}; repeat those, "
            f"or name another directory with --out.")
