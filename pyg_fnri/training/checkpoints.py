"""Trained modules, to files and back."""
import os
from typing import Any

from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.plugins import TorchCheckpointIO

from pyg_fnri.datasets.stored import loaded, write_tensors
from pyg_fnri.training.config import Config
from pyg_fnri.training.module import RelationalInference, build_module


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
