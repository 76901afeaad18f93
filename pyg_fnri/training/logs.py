"""What a run says while it lasts, and what it keeps of it."""
import importlib.util
import logging
import os
import warnings
from typing import Any, Optional

import pandas as pd
import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger


class ValidationLines(pl.Callback):
    """Prints a line after each validation, above the progress bar; what one
    reads where there is no terminal to draw a bar on. In brackets are the
    accuracies of single layers, and, to compare the error of rollouts with,
    those of the linear step and of standing still."""
    def on_validation_end(self, trainer: pl.Trainer,
                          pl_module: pl.LightningModule) -> None:
        figures: dict[str, str] = {}
        asides: dict[str, list[str]] = {}
        for name, value in sorted(trainer.callback_metrics.items()):
            if not name.startswith('val_'):
                continue
            name = name.removeprefix('val_').removesuffix('_share')
            if name.startswith('accuracy_'):
                aside = name.removeprefix('accuracy_')
                asides.setdefault('accuracy', []).append(f'{aside} {value:.4g}')
            elif name in ('linear_mse', 'static_mse'):
                aside = name.removesuffix('_mse')
                asides.setdefault('rollout_mse',
                                  []).append(f'{aside} {value:.4g}')
            else:
                figures[name] = f'{name} {value:.4g}'
        for name, of in asides.items():
            figures[name] += f' ({", ".join(of)})'
        print(f'step {trainer.global_step}   ' + '   '.join(figures.values()),
              flush=True)


def make_loggers(out: str, last: Optional[str] = None) -> list[Any]:
    """CSV always, TensorBoard where it is installed.

    Args:
        out: The directory of the run.
        last: The checkpoint that a run is resumed from: what was logged up to
            it is kept.
    """
    path = os.path.join(out, 'metrics.csv')
    csv = CSVLogger(out, name='', version='')
    if last is not None and os.path.exists(path):
        rows = pd.read_csv(path).set_index('step')
        done = torch.load(last, weights_only=True)['global_step']
        # Lightning's logger clears the file when it starts.
        for step, row in rows[rows.index < done].iterrows():
            csv.log_metrics(row.dropna().to_dict(), step)
        csv.save()
    loggers: list[Any] = [csv]
    if importlib.util.find_spec('tensorboard') is not None:
        loggers.append(TensorBoardLogger(out, name='', version=''))
    return loggers


def quiet_lightning() -> None:
    """Keeps advertisements and warnings about what is meant out of sight."""
    logging.getLogger('pytorch_lightning.utilities.rank_zero').setLevel(
        logging.WARNING)
    for message in ('.*exists and is not empty.*', '.*LeafSpec.*',
                    '.*does not have many workers.*',
                    '.*your dataloader is not resumable.*'):
        warnings.filterwarnings('ignore', message)
