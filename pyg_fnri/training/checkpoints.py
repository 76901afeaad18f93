"""Trained modules, to files and back."""
import os
from typing import Any

import torch
from pytorch_lightning.callbacks import ModelCheckpoint

from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.training.config import Config
from pyg_fnri.training.module import RelationalInference, build_module


def save_checkpoint(module: RelationalInference, path: str) -> None:
    """Writes a module as training does; whole or not at all."""
    checkpoint: dict[str, Any] = {'state_dict': module.state_dict()}
    module.on_save_checkpoint(checkpoint)
    with written_whole(path) as part:
        torch.save(checkpoint, part)


def load_checkpoint(path: str) -> RelationalInference:
    """Reads a trained module, in evaluation mode, on the CPU. Nothing in the
    file is executed; ValueError where it is no checkpoint."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f"There is no checkpoint at '{path}'; train a "
                                f"model first, which leaves a best.ckpt.")
    try:
        checkpoint = torch.load(path, map_location='cpu', weights_only=True)
        module = build_module(Config(**checkpoint['config']))
        module.load_state_dict(checkpoint['state_dict'])
        module.remember_check(checkpoint)
    except Exception as error:  # Pickle raises whatever the bytes suggest.
        reason = ' '.join(f'{type(error).__name__}: {error}'.split())
        raise ValueError(f"'{path}' is not a checkpoint of this pyg_fnri; name "
                         f"one of its training ({reason:.200}).") from error
    return module.eval()


class MovableCheckpoint(ModelCheckpoint):
    """Knows its best score also where the run's directory was moved."""
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
