"""Training: one Lightning module for all models and recipes; checkpoints."""
import logging
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Optional

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.losses import kl_divergence
from pyg_fnri.metrics import EdgeAccuracy
from pyg_fnri.nn import (
    FNRI,
    NRI,
    SFNRI,
    ForceLaw,
    ForceLawDecoder,
    MinMaxScaling,
    RelationalAutoEncoder,
    RolloutDecoder,
)
from pyg_fnri.recipes import PaperRecipe, QuickRecipe, Recipe
from pyg_fnri.writing import written_whole

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
        data: Where the training data came from, so that
            :func:`~pyg_fnri.opening.open_dataset` can open them again.
        laws: Arguments of :class:`~pyg_fnri.nn.ForceLawDecoder` where force
            laws have taken the place of the recipe's decoder, None where not.

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
    laws: Optional[dict[str, Any]] = None

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
        if self.laws is not None:
            law = ForceLaw(model.latent.num_channels)
            model.decoder = RolloutDecoder(
                ForceLawDecoder(law, model.scaling, **self.laws))
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

    def accuracies(self, edge_type: Tensor, data: Data) -> dict[str, float]:
        """Strict edge accuracies of a graph of given systems, combined and
        by layer-graph; none where there is no truth."""
        if 'edge_label' not in data:
            return {}
        self.accuracy.reset()
        self.accuracy.update(edge_type, data.edge_label)
        result = self.accuracy.compute()
        self.accuracy.reset()
        out = {'accuracy': result.combined.item()}
        for layer, accuracy in enumerate(result.layers):
            out[f'accuracy_{self.layer_name(layer)}'] = accuracy.item()
        return out

    def with_laws(self, **laws: Any) -> 'RelationalInference':
        """A copy whose decoder is force laws, yet to be fitted.

        Args:
            **laws: Arguments of :class:`~pyg_fnri.nn.ForceLawDecoder`.
        """
        out = replace(self.config, laws=laws).build()
        out.model.encoder.load_state_dict(self.model.encoder.state_dict())
        out.model.scaling.load_state_dict(self.model.scaling.state_dict())
        out.units.load_state_dict(self.units.state_dict())
        return out

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


class SupervisedInference(RelationalInference):
    """Trains the encoder alone on given graphs, by cross-entropy (section
    "Experimental Details" of the paper, *supervised*).

    Args:
        model (RelationalAutoEncoder): The model.
        recipe (Recipe): Its learning rate, schedule and latent graph.
        config (Config): How to build both again.
        target (str, optional): What to learn: :obj:`'edge_label'`, the
            truth, or another attribute of that shape, such as the graphs that
            inference has found. (default: :obj:`'edge_label'`)

    Raises:
        ValueError: In training, if the systems lack the target.
    """
    def __init__(
        self,
        model: RelationalAutoEncoder,
        recipe: Recipe,
        config: Config,
        target: str = 'edge_label',
    ) -> None:
        super().__init__(model, recipe, config)
        self.target = target

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        if self.target not in batch:
            raise ValueError(f"The systems have no '{self.target}' that the "
                             f"encoder could learn.")
        logits = self.model.encode(batch.x, batch.edge_index)
        loss = self.model.latent.cross_entropy(logits,
                                               batch[self.target]).mean()
        self.log('train_loss', loss, batch_size=batch.num_graphs)
        return loss


class ValidationLines(pl.Callback):
    """Prints a line after each validation, above the progress bar; what one
    reads where there is no terminal to draw a bar on."""
    def on_validation_end(self, trainer: pl.Trainer,
                          pl_module: pl.LightningModule) -> None:
        figures = [
            f'{name.removeprefix("val_")} {value:.4g}'
            for name, value in sorted(trainer.callback_metrics.items())
            if name.startswith('val_')
        ]
        print(f'step {trainer.global_step}   ' + '   '.join(figures),
              flush=True)


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
        module = Config(**checkpoint['config']).build()
        module.load_state_dict(checkpoint['state_dict'])
    except Exception as error:  # Pickle raises whatever the bytes suggest.
        raise ValueError(
            f"'{path}' is not a checkpoint that this version of pyg_fnri can "
            f"use ({_one_line(error)}); expected a file written by "
            f"`scripts/train.py`.") from error
    return module.eval()


def quiet_lightning() -> None:
    """Keeps advertisements and warnings about what is meant out of sight."""
    logging.getLogger('pytorch_lightning.utilities.rank_zero').setLevel(
        logging.WARNING)
    for message in ('.*exists and is not empty.*', '.*LeafSpec.*',
                    '.*does not have many workers.*',
                    '.*your dataloader is not resumable.*'):
        warnings.filterwarnings('ignore', message)


def _check_name(kind: str, name: str, known: Any) -> None:
    if name not in known:
        raise ValueError(f"Unknown {kind} {name!r}; expected one of "
                         f"{', '.join(map(repr, known))}.")


def _one_line(error: Exception) -> str:
    text = ' '.join(f'{type(error).__name__}: {error}'.split())
    return text if len(text) <= 200 else f'{text[:200]} ...'
