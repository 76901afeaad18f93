"""Lightning's trainer as runs use it: limits, logs, progress, curves."""
import csv
import importlib.util
import logging
import os
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

import pandas as pd
import pytorch_lightning as pl
import rich.progress
import torch
from fsspec.implementations.local import LocalFileSystem
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger
from torch_geometric.data import InMemoryDataset

from pyg_fnri.datasets.stored import write_picture
from pyg_fnri.loader import SystemLoader
from pyg_fnri.plot import plot_curves
from pyg_fnri.training.checkpoints import MovableCheckpoint, load_checkpoint
from pyg_fnri.training.module import RelationalInference

log = logging.getLogger(__name__)


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
    # A run shorter than the interval is still looked at when it ends.
    trainer.val_check_interval = min(n for n in (val_every,
                                                 recipe.max_epochs * num_steps,
                                                 recipe.max_steps) if n > 0)
    trainer.log_every_n_steps = min(50, trainer.val_check_interval)
    return trainer


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


class _UTF8(LocalFileSystem):
    """Opens texts whatever the system's own encoding is."""
    def open(self, path: str, mode: str = 'rb', **kwargs: Any) -> Any:
        text = {} if 'b' in mode else {'encoding': 'utf-8'}
        return super().open(path, mode, **text, **kwargs)


class _Table(CSVLogger):
    """Names columns by layers, which may be called anything."""
    @property
    def experiment(self) -> Any:
        writer = super().experiment
        writer._fs = _UTF8()
        return writer


def _make_loggers(out: str, last: Optional[str]) -> list[Any]:
    """CSV always, TensorBoard where it is installed."""
    path = os.path.join(out, 'metrics.csv')
    logger: Any = _Table(out, name='', version='')
    if last is not None and os.path.exists(path):
        with open(path, newline='', encoding='utf-8') as file:
            rows = [*csv.DictReader(file)]
        done = torch.load(last, weights_only=True)['global_step']
        # Lightning's logger clears the file when it starts.
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
