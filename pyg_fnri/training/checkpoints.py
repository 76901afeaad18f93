"""Trained modules, to files and back."""
import os
from typing import Any

import torch

from pyg_fnri.datasets.stored import written_whole
from pyg_fnri.training.build import build_module
from pyg_fnri.training.config import Config
from pyg_fnri.training.module import RelationalInference


def save_checkpoint(module: RelationalInference, path: str) -> None:
    """Writes a module as training does; whole or not at all."""
    checkpoint: dict[str, Any] = {'state_dict': module.state_dict()}
    module.on_save_checkpoint(checkpoint)
    with written_whole(path) as part:
        torch.save(checkpoint, part)


def load_checkpoint(path: str) -> RelationalInference:
    """Reads a trained module, in evaluation mode, on the CPU.

    Nothing in the file is executed: it holds numbers and plain settings.

    Args:
        path: A file that training has written.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is no checkpoint of this library, or its
            weights do not fit its own settings.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"There is no checkpoint at '{path}'; train one first with "
            f"`python scripts/train.py --out DIR`, which writes "
            f"DIR/best.ckpt.")
    try:
        checkpoint = torch.load(path, map_location='cpu', weights_only=True)
        module = build_module(Config(**checkpoint['config']))
        module.load_state_dict(checkpoint['state_dict'])
    except Exception as error:  # Pickle raises whatever the bytes suggest.
        raise ValueError(
            f"'{path}' is not a checkpoint that this version of pyg_fnri can "
            f"use ({_one_line(error)}); expected a file written by "
            f"`scripts/train.py`.") from error
    return module.eval()


def _one_line(error: Exception) -> str:
    text = ' '.join(f'{type(error).__name__}: {error}'.split())
    return text if len(text) <= 200 else f'{text[:200]} ...'
