"""A training run, from settings and systems to a trained model."""
import logging
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Optional

from pytorch_lightning.utilities import rank_zero_only
from torch_geometric.data import InMemoryDataset

from pyg_fnri.datasets.spec import check_directions
from pyg_fnri.datasets.stored import check_writable, write_text
from pyg_fnri.inference import shared_graph
from pyg_fnri.loader import SystemLoader
from pyg_fnri.training.config import Config
from pyg_fnri.training.em import ExpectationMaximisation
from pyg_fnri.training.module import RelationalInference, build_module
from pyg_fnri.training.recipes import LawsRecipe
from pyg_fnri.training.trainer import (START_STEPS, find_start, frames_of,
                                       load_checkpoint, make_trainer,
                                       quiet_lightning, train_module)

log = logging.getLogger(__name__)


def fit(config: Config, train: InMemoryDataset, val: InMemoryDataset, out: str,
        *, val_every: int = 1_000, accelerator: str = 'auto',
        resume: bool = False, overwrite: bool = False,
        command: Optional[Sequence[str]] = None,
        **kwargs: Any) -> RelationalInference:
    """Trains a model by its recipe, to best.ckpt (lowest error of rollouts),
    last.ckpt, metrics.csv and curves.png; by the recipe `laws` as
    :class:`ExpectationMaximisation` says. Gives the module of best.ckpt.

    Args:
        config: What is trained, and how.
        train, val: Systems, split into :obj:`x` and :obj:`y`.
        out: The directory of the run.
        val_every: Steps between validations.
        accelerator: `auto`, `cpu`, `gpu`, ... as Lightning has it.
        resume, overwrite: Whether to go on with, or replace, the run in it.
        command: What command.txt says; by default, the program's own.
        **kwargs: Others of Lightning's trainer, such as `devices`.
    """
    check_run(out, resume, overwrite, config.data.get('files', {}).values())
    with alone_in(out), quiet_lightning():
        return _fit(config, train, val, out, resume,
                    sys.argv if command is None else command,
                    val_every=val_every, accelerator=accelerator, **kwargs)


def _fit(config: Config, train: InMemoryDataset, val: InMemoryDataset, out: str,
         resume: bool, command: Sequence[str],
         **kwargs: Any) -> RelationalInference:
    module = build_module(config)
    _check_systems(module, train, val)
    last = _last_checkpoint(out, config) if resume else None

    def begin() -> None:
        if not resume:
            _start_run(out, command)
        module.fit_units(frames_of(train))

    if isinstance(module.recipe, LawsRecipe):
        em = ExpectationMaximisation(config, train, val, out)
        begin()
        return em.run(module, resume)
    trainer = make_trainer(module, len(train), out, last=last, **kwargs)
    begin()
    if trainer.is_global_zero:
        size = sum(p.numel() for p in module.model.parameters())
        log.info(f'{config.model} by the recipe {config.recipe}, {size:,} '
                 f'parameters; {len(train):,} training systems; results in '
                 f'{out}')
    recipe = module.recipe
    if (last is None and recipe.num_starts > 1 and config.regime == 'learned'
            and not 0 < recipe.max_steps <= START_STEPS):
        kwargs.pop('val_every', None)
        find_start(module, train, val, **kwargs)
    best = train_module(trainer, module, train, val, out, last)
    if best.model.latent.shared:
        # Warns where systems are sure of other graphs.
        shared_graph(best.model, SystemLoader(val, 500))
    return best


@contextmanager
def alone_in(out: str) -> Iterator[None]:
    """Keeps other programs from training into a directory, where its file
    system can; a lock of the system, which ends with the process."""
    with ExitStack() as stack:
        try:
            import fcntl
            folder = os.open(out, os.O_RDONLY)
            stack.callback(os.close, folder)
            rank_zero_only(fcntl.flock)(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileExistsError(
                f"Another program trains into '{out}'; wait for it, or name "
                f"another directory.") from error
        except (ImportError, OSError):
            pass
        yield


@rank_zero_only
def check_run(out: str, resume: bool = False, overwrite: bool = False,
              needed: Iterable[str] = ()) -> None:
    """Makes sure that a run loses no files that are needed, or of no run."""
    if resume:
        return
    files = {*os.listdir(out)} if os.path.isdir(out) else set()
    files.discard('command.txt.part')  # Of a start that was killed.
    if files and not overwrite:
        raise FileExistsError(f"'{out}' holds a run already; resume or "
                              f"overwrite it, or name another directory.")
    if files and 'command.txt' not in files:
        raise FileExistsError(f"'{out}' holds files, but no command.txt of a "
                              f"run; name another directory.")
    place = os.path.join(os.path.realpath(out), '')
    for path in needed:
        if os.path.realpath(path).startswith(place):
            raise FileExistsError(f"'{path}' is in '{out}', which would be "
                                  f"overwritten; name another directory.")
    check_writable(out)


@rank_zero_only
def _start_run(out: str, command: Sequence[str]) -> None:
    """Empties the directory of a run, and notes the command."""
    os.makedirs(out, exist_ok=True)
    # The directory itself is locked. Where this is killed, what is left goes
    # on as it was or not at all, and command.txt tells that it is a run.
    for place in sorted(
            Path(out).iterdir(),
            key=lambda p: (p.name != 'last.ckpt', p.name != 'best.ckpt',
                           p.is_file(), p.name != 'laws.ckpt')):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        elif place.name != 'command.txt':
            place.unlink()
    write_text(os.path.join(out, 'command.txt'), f'{shlex.join(command)}\n')


def _last_checkpoint(out: str, config: Config) -> Optional[str]:
    """What to go on from in a run with these settings, limits and what laws
    have found aside; None if laws are still sought."""
    paths = [os.path.join(out, name) for name in ('last.ckpt', 'laws.ckpt')]
    path = next(filter(os.path.exists, paths), None)
    if path is None:
        started = os.path.exists(os.path.join(out, 'command.txt'))
        if started and config.recipe == 'laws':
            return None
        raise FileNotFoundError(f"There is no '{paths[0]}' to go on from; "
                                f"start without resume.")
    old, new = (asdict(c) for c in (load_checkpoint(path).config, config))
    free = ['max_epochs', 'max_steps']
    if old['laws'] is not None:
        free += ['undirected', 'shared']
        new['laws'] = old['laws']
    for settings in (old, new):
        settings['data'].pop('files', None)  # Digests tell if they were moved.
        for name in free:
            settings['options'].pop(name, None)
    for key in new:
        if old[key] != new[key]:
            raise ValueError(f"The run in '{out}' has {key} = {old[key]}, not "
                             f"{new[key]}; resume it by its command.txt.")
    return path


def _check_systems(module: RelationalInference, train: InMemoryDataset,
                   val: InMemoryDataset) -> None:
    """Makes sure that there is something to learn from the systems."""
    if not train._data.edge_index.numel():
        raise ValueError("No pair of particles is a candidate edge; raise "
                         "radius or neighbours, or mend edges.")
    burn_in = module.model.decoder.burn_in
    num_frames = min(train[0].y.size(1), val[0].y.size(1))
    if burn_in >= num_frames:
        raise ValueError(f"burn_in is {burn_in}, but there are {num_frames} "
                         f"frames to predict; lower it.")
    # The regime true_graph infers none.
    if module.config.regime != 'true_graph' and 'edge_label' in train._data:
        check_directions(train, module.model.latent.undirected)
