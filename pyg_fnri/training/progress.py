"""A progress bar of the steps of a run."""
from typing import Any, Union

import pytorch_lightning as pl
from pytorch_lightning.callbacks import RichProgressBar


class StepsProgressBar(RichProgressBar):
    """One bar for the whole of a run that ends after a number of steps, the
    trainer's `max_steps`, and not one for each epoch, of which it is not said
    how many there are.

    Args:
        refresh_rate (int): Steps from one refreshment to the next.
    """
    @property
    def total_train_batches(self) -> Union[int, float]:
        return self.trainer.max_steps

    def on_train_epoch_start(self, trainer: pl.Trainer,
                             pl_module: pl.LightningModule) -> None:
        if self.train_progress_bar_id is None:  # Epochs do not start it anew.
            super().on_train_epoch_start(trainer, pl_module)

    def on_train_batch_end(self, trainer: pl.Trainer,
                           pl_module: pl.LightningModule, outputs: Any,
                           batch: Any, batch_idx: int) -> None:
        super().on_train_batch_end(trainer, pl_module, outputs, batch,
                                   trainer.global_step - 1)

    def _get_train_description(self, current_epoch: int) -> str:
        # As wide as the one of validation, so that nothing flickers.
        return 'Steps'.ljust(len(self.validation_description))
