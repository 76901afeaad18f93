"""Lightning's trainer as runs use it: checkpoints, limits, logs, progress."""
import copy
import csv
import importlib.util
import logging
import math
import os
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Optional, cast

import pandas as pd
import pytorch_lightning as pl
import rich.progress
import torch
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger
from pytorch_lightning.loggers.csv_logs import ExperimentWriter
from pytorch_lightning.plugins import TorchCheckpointIO
from torch import Tensor
from torch_geometric.data import InMemoryDataset

from pyg_fnri.datasets.stored import (loaded, write_picture, write_tensors,
                                      written_whole)
from pyg_fnri.loader import SystemLoader
from pyg_fnri.plot import plot_curves
from pyg_fnri.training.config import Config
from pyg_fnri.training.module import RelationalInference, build_module

log = logging.getLogger(__name__)

#: Steps of each start, with batches of half the size, and how far apart their
#: seeds are.
START_STEPS, SEEDS_APART = 1_000, 1_000


def save_checkpoint(module: RelationalInference, path: str) -> None:
    """Writes a module as training does; whole or not at all."""
    checkpoint: dict[str, Any] = {'state_dict': module.state_dict()}
    module.on_save_checkpoint(checkpoint)
    write_tensors(path, checkpoint)


def load_checkpoint(path: str) -> RelationalInference:
    """Reads a trained module, in evaluation mode, on the CPU. Nothing in the
    file is executed; ValueError where it is no checkpoint."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f"There is no checkpoint at '{path}'; train a "
                                f"model first, which leaves a best.ckpt.")
    with loaded(path, 'name another one, or train again') as checkpoint:
        module = build_module(Config(**checkpoint['config']))
        module.load_state_dict(checkpoint['state_dict'])
        module.remember_check(checkpoint)
    return module.eval()


def make_trainer(module: RelationalInference, num_systems: int, out: str,
                 val_every: int = 1_000, accelerator: str = 'auto',
                 last: Optional[str] = None, **kwargs: Any) -> pl.Trainer:
    """Lightning's trainer, to a directory or on from its last checkpoint."""
    recipe = module.recipe
    monitor, mode = module.monitor
    trainer: Any = pl.Trainer(
        accelerator=accelerator,
        max_epochs=recipe.max_epochs,
        max_steps=recipe.max_steps,
        val_check_interval=val_every,
        check_val_every_n_epoch=None,
        callbacks=[
            MovableCheckpoint(out, 'best', monitor=monitor, mode=mode,
                              enable_version_counter=False),
            # Of its own, as `save_last` saves only when the best one is.
            MovableCheckpoint(out, 'last', enable_version_counter=False),
            ProgressLines()
        ],
        logger=_make_loggers(out, last),
        num_sanity_val_steps=0,
        enable_model_summary=False,
        enable_progress_bar=False,
        **kwargs)
    asked = str(kwargs.get('precision', ''))
    if asked[:2] == '16' and trainer.precision[:2] != '16':
        raise ValueError("precision 16 takes a GPU; take bf16, 32 or 64.")
    batch_size = recipe.batch_size * trainer.num_devices * trainer.num_nodes
    num_steps = num_systems // batch_size
    if num_steps == 0:
        raise ValueError(f"batch_size is {recipe.batch_size}, {batch_size} on "
                         f"all devices, but there are {num_systems} training "
                         f"systems; lower it.")
    limits = (recipe.max_epochs * num_steps, recipe.max_steps)
    if total := min((n for n in limits if n > 0), default=0):
        # What follows the last validation is in no checkpoint.
        val_every = total // math.ceil(total / val_every)
    trainer.val_check_interval = val_every
    trainer.log_every_n_steps = min(50, trainer.val_check_interval)
    return cast(pl.Trainer, trainer)


def frames_of(systems: InMemoryDataset) -> Tensor:
    """The whole trajectories of a data set, or of a part of one,
    :obj:`[num_nodes, T, num_features]`."""
    if systems._indices is None:
        return cast(Tensor, systems._data.x)
    whole = copy.copy(systems)
    whole.transform = None
    return cast(Tensor, next(iter(SystemLoader(whole, len(whole)))).x)


def find_start(module: RelationalInference, train: InMemoryDataset,
               val: InMemoryDataset, **kwargs: Any) -> None:
    """Has a module of fitted units begin with the weights of a short run, of
    several the one of the lowest validation loss: one run in three mixes two
    layers up ("A and B", "not B"), and does not find its way out."""
    config, recipe, least = module.config, module.recipe, math.inf
    held_out, weights = SystemLoader(val[:500], 500), module.state_dict()
    num_steps = int(min(START_STEPS, recipe.num_joint))
    frames = frames_of(train)
    for number in range(recipe.num_starts):
        seed = config.seed + SEEDS_APART * number
        start = build_module(replace(config, seed=seed))
        start.fit_units(frames)
        trainer = pl.Trainer(max_steps=num_steps, max_epochs=-1, logger=False,
                             enable_checkpointing=False,
                             enable_model_summary=False,
                             enable_progress_bar=False, limit_val_batches=0,
                             num_sanity_val_steps=0,
                             callbacks=[ProgressLines()], **kwargs)
        generator = torch.Generator().manual_seed(seed)
        trainer.fit(
            start,
            SystemLoader(train, max(1, recipe.batch_size // 2), shuffle=True,
                         drop_last=True, generator=generator), held_out)
        trainer.limit_val_batches = 1.0
        loss = trainer.validate(start, held_out, verbose=False)[0]['val_loss']
        log.info(f'start {number}   validation loss {loss:.4g}')
        if loss < least:
            least, weights = loss, start.state_dict()
    module.load_state_dict(weights)


def train_module(trainer: pl.Trainer, module: RelationalInference,
                 train: InMemoryDataset, val: InMemoryDataset, out: str,
                 last: Optional[str] = None) -> RelationalInference:
    """Trains a module of fitted units; gives the best checkpoint's."""
    start = time.monotonic()
    generator = torch.Generator().manual_seed(module.config.seed)
    trainer.fit(
        module,
        SystemLoader(train, module.recipe.batch_size, shuffle=True,
                     drop_last=True, generator=generator),
        SystemLoader(val, batch_size=500), ckpt_path=last)
    best = os.path.join(out, 'best.ckpt')
    if trainer.is_global_zero:
        seconds = time.monotonic() - start
        lasted = (f'{seconds:.0f} seconds'
                  if seconds < 60 else f'{seconds / 60:.1f} minutes')
        log.info(f'{trainer.global_step} steps in {lasted}; best checkpoint: '
                 f'{best}')
        history = pd.read_csv(os.path.join(out, 'metrics.csv'))
        write_picture(os.path.join(out, 'curves.png'), plot_curves(history))
    return load_checkpoint(best)


class WholeFiles(TorchCheckpointIO):
    """Lightning's checkpoints, written and read as all other files here."""
    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any,
                        storage_options: Any = None) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_tensors(os.fspath(path), checkpoint)

    def load_checkpoint(self, path: Any, *args: Any, **kwargs: Any) -> Any:
        with loaded(os.fspath(path), 'train again') as checkpoint:
            return checkpoint


class MovableCheckpoint(ModelCheckpoint):
    """Is a whole file, or the one before, and knows its best score also where
    the run's directory was moved."""
    def setup(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
        trainer.strategy.checkpoint_io = WholeFiles()
        super().setup(trainer, *args, **kwargs)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        def moved(path: str) -> str:
            return path and os.path.join(str(self.dirpath),
                                         os.path.basename(path))

        state = {**state_dict, 'dirpath': self.dirpath}
        for name in ('best_model_path', 'kth_best_model_path',
                     'last_model_path'):
            state[name] = moved(state[name])
        scores = state['best_k_models'].items()
        state['best_k_models'] = {moved(path): score for path, score in scores}
        super().load_state_dict(state)


class WholeMetrics(ExperimentWriter):
    """Keeps Lightning's rows of metrics, and writes all of them each time: the
    file is whole, or the one before."""
    def _check_log_dir_exists(self) -> None:
        pass  # Lightning would clear the file.

    def save(self) -> None:
        if self.metrics:
            self._record_new_keys()
            with written_whole(self.metrics_file_path) as part, open(
                    part, 'w', newline='', encoding='utf-8') as file:
                writer = csv.DictWriter(file, self.metrics_keys)
                writer.writeheader()
                writer.writerows(self.metrics)


class ProgressLines(pl.Callback):
    """A bar, on a terminal, and a line after each validation; in brackets,
    accuracies of layers, errors of the linear step and of standing still."""
    bars: Optional[rich.progress.Progress] = None

    def on_train_start(self, trainer: pl.Trainer,
                       pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero and rich.get_console().is_terminal:
            self.bars = rich.progress.Progress(transient=True)
            self.bars.add_task('training', completed=trainer.global_step,
                               total=trainer.estimated_stepping_batches)
            self.bars.start()

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        if trainer.received_sigterm:
            raise SystemExit
        if self.bars is not None:
            self.bars.update(self.bars.task_ids[0],
                             completed=trainer.global_step)

    def teardown(self, *args: Any, **kwargs: Any) -> None:
        if self.bars is not None:
            self.bars.stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule,
                     exception: BaseException) -> None:
        self.teardown()
        if trainer.received_sigterm and isinstance(exception, SystemExit):
            exception.code = 128 + signal.SIGTERM

    def on_validation_end(self, trainer: pl.Trainer,
                          pl_module: pl.LightningModule) -> None:
        if not trainer.is_global_zero:
            return
        figures: dict[str, str] = {}
        asides: dict[str, list[str]] = {'accuracy': [], 'rollout_mse': []}
        for name, value in sorted(trainer.callback_metrics.items()):
            if not name.startswith('val_'):
                continue
            name = name.removeprefix('val_').removesuffix('_share')
            unit = 'e-5' * name.endswith('_mse')  # As in reports.
            word = f"{name.removeprefix('accuracy_')} {value:.4g}{unit}"
            if name.startswith('accuracy_'):
                asides['accuracy'].append(word)
            elif name in ('linear_mse', 'static_mse'):
                asides['rollout_mse'].append(word.replace('_mse', ''))
            else:
                figures[name] = word
        for name, of in asides.items():
            if of:
                figures[name] += f' ({", ".join(of)})'
        log.info(f'step {trainer.global_step}   ' +
                 '   '.join(figures.values()))


def _make_loggers(out: str, last: Optional[str]) -> list[Any]:
    """CSV always, TensorBoard where it is installed."""
    path = os.path.join(out, 'metrics.csv')
    logger: Any = CSVLogger(out, name='', version='')
    logger._experiment = WholeMetrics(out)
    if last is not None and os.path.exists(path):
        with open(path, newline='', encoding='utf-8') as file:
            rows = [*csv.DictReader(file)]
        done = torch.load(last, weights_only=True)['global_step']
        for row in rows:
            row = {key: text for key, text in row.items() if text}
            if (step := int(row.pop('step', done))) < done:
                logger.log_metrics(row, step)
        logger.save()
    loggers: list[Any] = [logger]
    if importlib.util.find_spec('tensorboard') is not None:
        loggers.append(TensorBoardLogger(out, name='', version=''))
    return loggers


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Keeps advertisements and warnings about what is meant out of sight."""
    logger = logging.getLogger('pytorch_lightning')
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            # Of the logging interval: steps are counted on over epochs.
            for text in ('exists and is not empty', 'LeafSpec', 'many workers',
                         'dataloader is not resumable', 'logging interval'):
                warnings.filterwarnings('ignore', f'.*{text}')
            yield
    finally:
        logger.setLevel(level)
