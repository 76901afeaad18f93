"""Training: one Lightning module for all models and recipes; checkpoints."""
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.losses import kl_divergence
from pyg_fnri.metrics import EdgeAccuracy
from pyg_fnri.nn import FNRI, NRI, SFNRI, MinMaxScaling, RelationalAutoEncoder
from pyg_fnri.recipes import PaperRecipe, QuickRecipe, Recipe

#: The models and recipes that a command line can name.
MODELS: dict[str, type[NRI]] = {'nri': NRI, 'fnri': FNRI, 'sfnri': SFNRI}
RECIPES: dict[str, type[Recipe]] = {'quick': QuickRecipe, 'paper': PaperRecipe}


@dataclass(frozen=True)
class Config:
    """All that a checkpoint needs, besides its weights, to be used again.

    Args:
        in_channels: Number of features of a particle in a frame.
        num_observed: Number of frames that the encoder sees.
        num_edge_types: Number of types of each layer-graph, null included.
        names: What each layer-graph stands for, where known.
        model: A key of :obj:`MODELS`.
        recipe: A key of :obj:`RECIPES`.
        options: The fields of the recipe that differ from its defaults.
        seed: Seed of weights, shuffling and samples.
        data: Where the training data came from, for the record.

    Raises:
        ValueError: On an unknown model, recipe or option.
    """
    in_channels: int
    num_observed: int
    num_edge_types: Sequence[int]
    names: Sequence[str] = ()
    model: str = 'fnri'
    recipe: str = 'quick'
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    data: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_name('model', self.model, MODELS)
        _check_name('recipe', self.recipe, RECIPES)
        known = RECIPES[self.recipe].__dataclass_fields__
        for option in self.options:
            _check_name(f"option of the recipe '{self.recipe}'", option, known)

    def build(self) -> 'RelationalInference':
        """A new module with new weights, drawn from the seed."""
        recipe = RECIPES[self.recipe](**self.options)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            model = recipe.build(MODELS[self.model], self.in_channels,
                                 self.num_observed, self.num_edge_types)
        return RelationalInference(model, recipe, self)


class RelationalInference(pl.LightningModule):
    """Trains any :class:`~pyg_fnri.nn.RelationalAutoEncoder` without labels.

    Batches hold :obj:`x` (observed), :obj:`y` (to predict) and
    :obj:`edge_index`; where they also hold :obj:`edge_label`, validation
    reports edge accuracies. Labels are never trained on.

    Args:
        model (RelationalAutoEncoder): The model.
        recipe (Recipe): What to minimise, and how.
        config (Config): How to build both again, saved with the weights.
    """
    def __init__(
        self,
        model: RelationalAutoEncoder,
        recipe: Recipe,
        config: Config,
    ) -> None:
        super().__init__()
        self.model = model
        self.recipe = recipe
        self.config = config
        #: The units of reports: the paper's, whatever the model works in.
        self.units = MinMaxScaling(config.in_channels)
        self.accuracy = EdgeAccuracy(config.num_edge_types,
                                     model.latent.num_edge_types)
        self.generator = torch.Generator().manual_seed(config.seed)

    def fit_units(self, x: Tensor) -> None:
        """Fits all units to the training split's trajectories, whole,
        :obj:`[num_nodes, T, num_features]`; before training."""
        self.units.fit(x)
        self.recipe.fit_units(self.model, x)

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        latent = self.model.latent
        logits = self.model.encode(batch.x, batch.edge_index)
        edge_attr = latent.sample(logits, self.recipe.tau,
                                  generator=self.generator)
        nll = self.recipe.reconstruction(self.model, batch, edge_attr,
                                         self.generator)
        kl = kl_divergence(latent.kl(logits), batch.num_nodes)
        self.log_dict({
            'train_loss': nll + kl,
            'train_kl': kl
        }, batch_size=batch.num_graphs)
        return nll + kl

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        edge_type = self.model.predict(batch)
        edge_attr = self.model.latent.encode_types(edge_type)
        nll = self.recipe.reconstruction(self.model, batch, edge_attr)
        self.log('val_loss', nll, batch_size=batch.num_graphs, sync_dist=True)
        if 'edge_label' in batch:
            self.accuracy.update(edge_type, batch.edge_label)

    def on_validation_epoch_end(self) -> None:
        if not self.accuracy.update_called:
            return  # No truth: no accuracy, rather than one of zero.
        result = self.accuracy.compute()
        self.log('val_accuracy', result.combined, prog_bar=True)
        for layer, accuracy in enumerate(result.layers):
            self.log(f'val_accuracy_{self.layer_name(layer)}', accuracy)
        self.accuracy.reset()

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.model.parameters(),
                                     lr=self.recipe.learning_rate, fused=True)
        return {
            'optimizer': optimizer,
            'lr_scheduler': self.recipe.schedule(optimizer)
        }

    def layer_name(self, layer: int) -> str:
        """What layer-graph :obj:`layer` stands for, or its number."""
        names = self.config.names
        return names[layer] if layer < len(names) else str(layer)

    def on_fit_start(self) -> None:
        state = self.generator.get_state()
        self.generator = torch.Generator(self.device)
        if self.device.type == 'cpu':
            self.generator.set_state(state)
        else:
            self.generator.manual_seed(self.config.seed)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint['config'] = asdict(self.config)
        checkpoint['generator'] = self.generator.get_state().cpu()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if self.generator.device.type == 'cpu':
            self.generator.set_state(checkpoint['generator'])


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
        module = Config(**checkpoint['config']).build()
        module.load_state_dict(checkpoint['state_dict'])
    except Exception as error:  # Pickle raises whatever the bytes suggest.
        raise ValueError(
            f"'{path}' is not a checkpoint that this version of pyg_fnri can "
            f"use ({_first_line(error)}); expected a file written by "
            f"`scripts/train.py`.") from error
    return module.eval()


def _check_name(kind: str, name: str, known: Any) -> None:
    if name not in known:
        raise ValueError(f"Unknown {kind} {name!r}; expected one of "
                         f"{', '.join(map(repr, known))}.")


def _first_line(error: Exception) -> str:
    return f'{type(error).__name__}: {str(error).splitlines()[0][:200]}' if str(
        error) else type(error).__name__
