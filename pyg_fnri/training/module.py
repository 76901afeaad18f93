"""Training without labels, the Lightning module that others derive from."""
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Optional

import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.losses import kl_divergence
from pyg_fnri.metrics import EdgeAccuracy
from pyg_fnri.metrics.joint_type import joint_type
from pyg_fnri.nn import (
    ForceLawDecoder,
    LinearStep,
    MinMaxScaling,
    RelationalAutoEncoder,
    ResidualForceLaws,
    per_mass,
)
from pyg_fnri.recipes import Recipe
from pyg_fnri.training.config import Config
from pyg_fnri.training.validation import graph_shares, rollout_errors


class RelationalInference(pl.LightningModule):
    """Trains any :class:`~pyg_fnri.nn.RelationalAutoEncoder` without labels.

    Batches hold :obj:`x` (observed), :obj:`y` (to predict), :obj:`edge_index`
    and, where known, :obj:`mass`. Validation reports what can be known without
    truth: the loss, the error of rollouts beside those of predictions without
    interactions, the entropy of the posterior and, of directed graphs, how
    often the two directions of a pair differ. Where batches also hold
    :obj:`edge_label`, it reports edge accuracies. Labels are never trained on.

    Args:
        model (RelationalAutoEncoder): The model.
        recipe (Recipe): What to minimise, and how.
        config (Config): How to build both again, saved with the weights.
    """
    #: What the best checkpoint has the lowest or highest of.
    monitor = ('val_loss', 'min')
    #: The parts of the model that this regime trains; see also
    #: :meth:`is_trained`.
    trained: tuple[str, ...] = ('encoder', 'decoder')

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
        #: In these units, the best prediction without any interaction.
        self.linear_step = LinearStep(config.in_channels)
        self.accuracy = EdgeAccuracy(config.num_edge_types,
                                     model.latent.num_edge_types)
        self.generator = torch.Generator().manual_seed(config.seed)
        self._generator_state: Optional[Tensor] = None  # Of a checkpoint.

    def fit_units(self, x: Tensor) -> None:
        """Fits all units to the training split's trajectories, whole,
        :obj:`[num_nodes, T, num_features]`; before training."""
        self.units.fit(x)
        self.linear_step.fit(self.units(x))
        self.recipe.fit_units(self.model, x)

    def true_types(self, batch: Data) -> Tensor:
        """The true graph in the latent graph's own layers and types, which
        for NRI are one layer of joint types, :obj:`[num_edges, num_layers]`.

        Raises:
            ValueError: If the truth is not known.
        """
        if 'edge_label' not in batch:
            raise ValueError("These systems have no true interaction graph "
                             "edge_label, which this way of training is "
                             "given; train without it, by the regime "
                             "'learned'.")
        if self.model.latent.num_layers == len(self.config.num_edge_types):
            return batch.edge_label
        return joint_type(batch.edge_label,
                          self.config.num_edge_types).unsqueeze(-1)

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        recipe, latent = self.recipe, self.model.latent
        batch = recipe.augment(batch, self.generator)
        logits = self.model.encode(batch.x, batch.edge_index)
        edge_attr = latent.sample(logits, recipe.tau, recipe.hard,
                                  self.generator)
        nll = recipe.reconstruction(self.model, batch,
                                    per_mass(edge_attr, batch), self.generator)
        kl = kl_divergence(latent.kl(logits), batch.num_nodes)
        self.log_dict({
            'train_loss': nll + kl,
            'train_kl': kl
        }, batch_size=batch.num_graphs)
        return nll + kl + self._penalty()

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        edge_type, posterior = self.model.infer(batch)
        self._log_prediction(batch, edge_type)
        self._log_posterior(batch, edge_type, posterior)
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
        return self._rebuilt(replace(self.config, laws=laws, residual=None))

    def with_residual(self, hidden_channels: int = 64) -> 'RelationalInference':
        """A copy of a module of fitted laws, with a network for what they
        miss, :class:`~pyg_fnri.nn.ResidualForceLaws`, yet to be trained.

        Only the network will be, by any regime that trains a decoder; by
        :class:`TrueGraphPrediction` on given graphs, which inferred ones are
        as well. Encoder and laws stay as they are: laws that are trained
        beside a network leave their part to it.

        Args:
            hidden_channels: Size of the network's hidden layers.

        Raises:
            TypeError: If the decoder is no force laws.
        """
        layer = self.model.decoder.layer
        if not isinstance(layer, ForceLawDecoder):
            raise TypeError(f"Only force laws miss what a network could add, "
                            f"but the decoder's layer is a "
                            f"{type(layer).__name__}; see with_laws.")
        out = self._rebuilt(replace(self.config, residual=hidden_channels))
        corrected = out.model.decoder.layer
        assert isinstance(corrected, ResidualForceLaws)
        corrected.law.load_state_dict(layer.law.state_dict())
        corrected.scale.copy_(layer.scale)
        return out

    def train(self, mode: bool = True) -> 'RelationalInference':
        super().train(mode)
        if self.config.residual is not None:
            # Batch norms take in what they see, gradients or not.
            self.model.encoder.eval()
        return self

    def _rebuilt(self, config: Config) -> 'RelationalInference':
        """A copy by other settings, whose decoder is new."""
        out = RelationalInference(config.build_model(), self.recipe, config)
        out.model.encoder.load_state_dict(self.model.encoder.state_dict())
        out.model.scaling.load_state_dict(self.model.scaling.state_dict())
        out.units.load_state_dict(self.units.state_dict())
        out.linear_step.load_state_dict(self.linear_step.state_dict())
        return out

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.model.parameters(),
                                     lr=self.recipe.learning_rate, fused=True)
        return {
            'optimizer': optimizer,
            'lr_scheduler': self.recipe.schedule(optimizer)
        }

    def _log_prediction(self, batch: Data, edge_type: Tensor) -> None:
        """Loss of what a graph predicts, and errors of its rollouts."""
        model, recipe = self.model, self.recipe
        edge_attr = per_mass(model.latent.encode_types(edge_type), batch)
        report = {'val_loss': recipe.reconstruction(model, batch, edge_attr)}
        steps = max(1, min(10, batch.y.size(1) - model.decoder.burn_in))
        rollout = model.decode(batch.y, batch.edge_index, edge_attr, steps)
        first = model.decoder.burn_in - 1
        rollout, y = (self.units(x)[:, first:] for x in (rollout, batch.y))
        report |= rollout_errors(rollout, y, self.linear_step, steps)
        self.log_dict(report, batch_size=batch.num_graphs, sync_dist=True)

    def _log_posterior(self, batch: Data, edge_type: Tensor,
                       posterior: Sequence[Tensor]) -> None:
        """What can be known of inferred graphs without truth."""
        shares = graph_shares(edge_type, posterior, batch.edge_index,
                              self.model.latent.undirected)
        for name, (share, number) in shares.items():
            self.log(name, share, batch_size=number, sync_dist=True)

    def _penalty(self) -> Tensor:
        """The recipe's L2 term on the encoder's weights."""
        if not self.recipe.l2:
            return torch.zeros((), device=self.device)
        squares = [w.square().sum() for w in self.model.encoder.parameters()]
        return self.recipe.l2 * torch.stack(squares).sum()

    def require(self, *parts: str) -> None:
        """Makes sure that parts of the model have been trained.

        Raises:
            ValueError: If this regime leaves one as it was drawn at random.
        """
        for part in parts:
            if not self.is_trained(part):
                raise ValueError(
                    f"This needs a trained {part}, but the checkpoint is of "
                    f"the regime '{self.config.regime}', which trains the "
                    f"{' and the '.join(self.trained)} alone; take one of the "
                    f"regime 'learned'.")

    def is_trained(self, part: str) -> bool:
        """Whether a part of the model is not as it was drawn: this regime
        trains it, or force laws have taken its place."""
        fitted = part == 'decoder' and self.config.laws is not None
        return fitted or part in self.trained

    def layer_name(self, layer: int) -> str:
        """What layer-graph :obj:`layer` stands for, or its number."""
        names = self.config.names
        return names[layer] if layer < len(names) else str(layer)

    def on_fit_start(self) -> None:
        state = self._generator_state
        if state is None:
            state = self.generator.get_state()
        self.generator = torch.Generator(self.device)
        # The state of another kind of device says nothing to this one.
        if state.size() == self.generator.get_state().size():
            self.generator.set_state(state.cpu())
        else:
            self.generator.manual_seed(self.config.seed)
        self._generator_state = None

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint['config'] = asdict(self.config)
        checkpoint['generator'] = self.generator.get_state().cpu()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        # Only when training starts is it known on which device.
        self._generator_state = checkpoint['generator']
