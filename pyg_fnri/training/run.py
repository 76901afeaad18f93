"""A training run and its directory."""
import os
import shlex
import shutil
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Optional

import pandas as pd
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint, RichProgressBar
from torch_geometric.data import InMemoryDataset

from pyg_fnri.datasets.stored import check_writable
from pyg_fnri.loader import SystemLoader
from pyg_fnri.plot import plot_curves
from pyg_fnri.training.checkpoints import load_checkpoint
from pyg_fnri.training.config import Config
from pyg_fnri.training.logs import ValidationLines, make_loggers
from pyg_fnri.training.module import RelationalInference
from pyg_fnri.training.progress import StepsProgressBar


def check_run(
        out: str,
        resume: bool = False,
        overwrite: bool = False,
        stage: str = '',
        needed: Sequence[str] = (),
) -> None:
    """Makes sure that a run can go to a directory, and that none gets lost.

    Args:
        out: The directory.
        resume: Whether the run in it is to go on.
        overwrite: Whether the run in it is to be replaced.
        stage: Where in it the first stage is, of a run of several.
        needed: Files that must not be lost with the run in it.

    Raises:
        FileExistsError: If it holds what would be lost.
        FileNotFoundError: If there is no run to resume.
        OSError: If it cannot be written to.
    """
    files = os.listdir(out) if os.path.isdir(out) else []
    if resume:
        last = os.path.join(stage, 'last.ckpt')
        if not os.path.exists(os.path.join(out, last)):
            raise FileNotFoundError(
                f"There is no run to resume in '{out}': it holds no {last}. "
                f"Leave out --resume to start one.")
        return
    if files and not overwrite:
        raise FileExistsError(
            f"'{out}' holds a run already; go on with it by --resume, replace "
            f"it by --overwrite, or name another directory with --out.")
    place = os.path.join(os.path.realpath(out), '')
    for path in needed:
        if os.path.realpath(path).startswith(place):
            raise FileExistsError(
                f"'{path}' is in '{out}', all of which --overwrite replaces; "
                f"move it, or name another directory with --out.")
    if files and 'command.txt' not in files:
        raise FileExistsError(
            f"'{out}' holds files, but no run that --overwrite could replace "
            f"(it has no command.txt); name another directory with --out.")
    check_writable(out)


def start_run(out: str, command: Sequence[str]) -> None:
    """Empties the directory of a run, and notes the command."""
    if os.path.isdir(out):
        shutil.rmtree(out)
    os.makedirs(out)
    with open(os.path.join(out, 'command.txt'), 'w') as file:
        file.write(f'{shlex.join(command)}\n')


def checkpoint_to_resume(out: str, config: Config, stage: str = '') -> str:
    """The last checkpoint of a run, if its settings are those given. A run
    may be made longer; the first of several stages may not, as the others
    begin at its end.

    Args:
        out: The directory of the run.
        config: What it is to be.
        stage: Where in it the first stage is, of a run of several.

    Raises:
        ValueError: If they are not, or it is no checkpoint.
    """
    last = os.path.join(out, stage, 'last.ckpt')
    old, new = (asdict(c) for c in (load_checkpoint(last).config, config))
    for limit in () if stage else ('max_epochs', 'max_steps'):
        for settings in (old, new):
            settings['options'].pop(limit, None)
    for key in new:
        if old[key] != new[key]:
            raise ValueError(
                f"The run in '{out}' has {key} = {old[key]}, but this command "
                f"has {new[key]}; resume it with the settings in "
                f"{out}/command.txt, or start another with --out.")
    return last


def make_trainer(
    module: RelationalInference,
    num_systems: int,
    out: str,
    val_every: int = 1_000,
    accelerator: str = 'auto',
    last: Optional[str] = None,
) -> pl.Trainer:
    """Lightning's trainer for a new run, or one that goes on.

    Args:
        module: What is trained.
        num_systems: Size of the training split.
        out: The directory of the run.
        val_every: Steps between validations.
        accelerator: As Lightning has it.
        last: The checkpoint that the run is resumed from.

    Raises:
        MisconfigurationException: If there is no such accelerator.
        ValueError: If there are fewer systems than a batch takes, or the run
            is longer already.
    """
    recipe = module.recipe
    num_steps = num_systems // recipe.batch_size
    if num_steps == 0:
        raise ValueError(f"A batch takes {recipe.batch_size} systems, but the "
                         f"training split has {num_systems}; ask for smaller "
                         f"batches with --batch-size.")
    limits = (recipe.max_epochs * num_steps, recipe.max_steps)
    # A run shorter than the interval is still looked at when it ends.
    ends = [n for n in limits if n > 0]
    if last is not None:
        _check_not_shorter(last, min(ends))
    val_every = min([val_every, *ends])
    bar = RichProgressBar
    if recipe.max_steps > 0 and recipe.max_steps == min(ends):
        bar = StepsProgressBar
    monitor, mode = module.monitor
    return pl.Trainer(
        accelerator=accelerator,
        max_epochs=recipe.max_epochs,
        max_steps=recipe.max_steps,
        val_check_interval=val_every,
        check_val_every_n_epoch=None,
        callbacks=[
            ModelCheckpoint(out, 'best', monitor=monitor, mode=mode,
                            enable_version_counter=False),
            # Of its own, as `save_last` saves only when the best one is.
            ModelCheckpoint(out, 'last', enable_version_counter=False),
            bar(refresh_rate=20),
            ValidationLines(),
        ],
        logger=make_loggers(out, last),
        log_every_n_steps=min(50, val_every),
        num_sanity_val_steps=0,
        enable_model_summary=False,
    )


def _check_not_shorter(last: str, num_steps: int) -> None:
    done = torch.load(last, map_location='cpu',
                      weights_only=True)['global_step']
    if num_steps < done:
        raise ValueError(f"The run has {done} steps already, but this command "
                         f"asks for {num_steps}; ask for more with "
                         f"--max-steps or --max-epochs.")


def check_burn_in(module: RelationalInference,
                  dataset: InMemoryDataset) -> None:
    """Makes sure that a decoder with a memory has frames left to predict.

    Raises:
        ValueError: If its burn-in takes all of the continuations :obj:`y`.
    """
    burn_in, num_frames = module.model.decoder.burn_in, dataset[0].y.size(1)
    if burn_in >= num_frames:
        raise ValueError(f"The decoder sees {burn_in} true frames before it "
                         f"predicts, but there are {num_frames} in all to "
                         f"predict; lower --burn-in, or give it longer "
                         f"trajectories.")


def fit(
    trainer: pl.Trainer,
    module: RelationalInference,
    train: InMemoryDataset,
    val: InMemoryDataset,
    out: str,
    last: Optional[str] = None,
) -> float:
    """Trains until the recipe's end, and draws the curves.

    Args:
        trainer: From :func:`make_trainer`.
        module: What is trained, its units fitted.
        train: The training systems.
        val: The validation systems.
        out: The directory of the run.
        last: The checkpoint that the run is resumed from.

    Returns:
        The minutes that it took.
    """
    start = time.monotonic()
    generator = torch.Generator().manual_seed(module.config.seed)
    with warnings.catch_warnings():
        # Not so: steps are counted on from epoch to epoch.
        warnings.filterwarnings('ignore', '.*than the logging interval.*')
        trainer.fit(
            module,
            SystemLoader(train, module.recipe.batch_size, shuffle=True,
                         drop_last=True, generator=generator),
            SystemLoader(val, batch_size=500),
            ckpt_path=last,
        )
    minutes = (time.monotonic() - start) / 60
    history = pd.read_csv(os.path.join(out, 'metrics.csv'))
    plot_curves(history).savefig(os.path.join(out, 'curves.png'))
    return minutes
