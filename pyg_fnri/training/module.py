"""Lightning modules: training without labels, or a part on given graphs."""
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Optional, Union, cast

import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.inference import Refined, refine
from pyg_fnri.laws import LawCheck
from pyg_fnri.loader import processes
from pyg_fnri.losses import kl_divergence
from pyg_fnri.metrics import (EdgeAccuracy, asymmetric_share, joint_type,
                              linear_rollout, posterior_entropy, static_rollout)
from pyg_fnri.nn import (ForceLawDecoder, LinearStep, MinMaxScaling,
                         RelationalAutoEncoder, per_mass)
from pyg_fnri.nn.latent import most_probable, reverse_edges
from pyg_fnri.nn.linear_step import NUM_FITTED
from pyg_fnri.training.config import Config
from pyg_fnri.training.recipes import NetworkRecipe, Recipe

#: Types :obj:`[E, L]` of a batch, and each layer's probabilities
#: :obj:`[E, K_a]`; None where the types are given.
Graph = Union[tuple[Tensor, Optional[Sequence[Tensor]]], Refined]

#: Where another type explains as much, pairs are on average less sure of
#: theirs: of I+C+F, 0.55 to 0.72 in the end, of other types above 0.93.
LEAST_SURE = 0.8


class RelationalInference(pl.LightningModule):
    """Trains any :class:`~pyg_fnri.nn.RelationalAutoEncoder` without labels.

    Batches hold :obj:`x` (observed), :obj:`y` (to predict), :obj:`edge_index`
    and, where known, :obj:`mass` and :obj:`edge_label`, to measure accuracy.

    Args:
        model: The model.
        recipe: What to minimise, and how.
        config: How to build both again, saved with the weights.
    """
    #: What the best checkpoint has the lowest or highest of.
    monitor = ('val_rollout_mse', 'min')
    #: The parts of the model that this regime trains.
    trained: tuple[str, ...] = ('encoder', 'decoder')

    def __init__(self, model: RelationalAutoEncoder, recipe: Recipe,
                 config: Config) -> None:
        super().__init__()
        self.model = model
        #: Of networks, unless laws are fitted, which no step trains.
        self.recipe: Any = recipe
        self.config = config
        #: The units of reports: the paper's, whatever the model works in.
        self.units = MinMaxScaling(config.in_channels)
        #: In these units, the best prediction without any interaction.
        self.linear_step = LinearStep(config.in_channels)
        self.accuracy = EdgeAccuracy(config.num_edge_types,
                                     model.latent.num_edge_types)
        #: Of its force laws, if there was one.
        self.check: Optional[LawCheck] = None
        self.generator = torch.Generator().manual_seed(config.seed)
        self._generator_states: Optional[Tensor] = None  # Of a checkpoint.
        self._frozen: list[torch.nn.Parameter] = []
        self._found: list[Tensor] = []  # How many edges of each type.

    def fit_units(self, x: Tensor) -> None:
        """Fits all units to whole trajectories of the training split,
        :obj:`[num_nodes, T, num_features]`; before training."""
        self.units.fit(x)
        self.linear_step.fit(self.units(x[:NUM_FITTED]))
        self.recipe.fit_units(self.model, x)

    def remember_check(self, checkpoint: dict[str, Any]) -> None:
        check = checkpoint.get('check')
        self.check = check and LawCheck(**check)

    @property
    def verdict(self) -> str:
        """What the check of its force laws says, if there was one."""
        return str(self.check or '')

    def given_types(self, batch: Data) -> Tensor:
        """The true graphs in the model's own layers and types (NRI's: one layer
        of joint types), :obj:`[num_edges, num_layers]`."""
        if 'edge_label' not in batch:
            raise ValueError("These systems have no true graph edge_label; "
                             "train without it, by the regime 'learned'.")
        types: Tensor = batch.edge_label
        if self.model.latent.num_layers == len(self.config.num_edge_types):
            return types
        return joint_type(types, self.config.num_edge_types).unsqueeze(-1)

    def infer(self, batch: Data) -> Graph:
        """The graph to predict with, and its posterior; None if given. Force
        laws infer it by one relaxation, other models in their own way."""
        if self.config.laws is not None:
            return refine(self.model, batch, num_restarts=0, num_fits=0)
        return Refined(*self.model.infer(batch))

    def _logits(self, batch: Data) -> Tensor:
        return self.model.encode(batch.x, batch.edge_index, batch.get('batch'))

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        recipe, latent = self.recipe, self.model.latent
        if (last := recipe.last_stage(self.global_step)) is not None:
            if last.teaches:
                learned, types = self._lesson(batch)
            else:
                # Several devices wait for gradients of all parameters.
                idle = [0 * p.sum() for p in self.model.encoder.parameters()]
                learned = sum(idle, torch.zeros((), device=self.device))
                types = self.model.predict(batch)
            return self._decoder_loss(batch, last, types) + learned
        logits = self._logits(batch)
        # Of the one graph that all systems share, or one of each.
        number = batch.num_graphs if latent.shared else 1
        logits = logits[:len(logits) // number]
        tau = recipe.temperature(self.global_step)
        edge_attr = latent.sample(logits, tau, recipe.hard,
                                  self.generator).repeat(number, 1)
        nll: Tensor = recipe.reconstruction(self.model, batch,
                                            per_mass(edge_attr, batch),
                                            self.generator)
        kl = kl_divergence(latent.kl(logits), batch.num_nodes)
        self.log_dict(dict(train_loss=nll + kl, train_kl=kl),
                      batch_size=batch.num_graphs)
        return nll + kl + self._penalty()

    def _lesson(self, batch: Data) -> tuple[Tensor, Tensor]:
        """What the encoder loses, and the graphs that messages teach it."""
        recipe = self.recipe  # One that has a last stage.
        if recipe.last_stage(self.global_step - 1) is None:
            # Adam remembers gradients of another size.
            optimizer: Any = self.optimizers(use_pl_optimizer=False)
            for p in self.model.encoder.parameters():
                optimizer.state.pop(p, None)
        if recipe.splits(self.global_step):
            self._split_types(batch)
        logits, latent = self._logits(batch), self.model.latent
        posterior = latent.posterior(logits.detach())
        state, target, _ = recipe.draw(self.model, batch, self.generator)
        posterior = self.model.relax(posterior, batch, (state, target))
        types = most_probable(posterior)
        loss = latent.cross_entropy(logits, types).mean()
        return loss + self._penalty(), types

    def _split_types(self, batch: Data) -> None:
        """Where two types of a layer-graph stand for one, makes one of them a
        copy of the most frequent type, which may stand for two (split and merge
        EM, Ueda et al., 2000)."""
        latent, decoder = self.model.latent, cast(Any, self.model.decoder)
        types, posterior = self.model.infer(batch)
        # Each process makes the same copies.
        generator = torch.Generator().manual_seed(self.config.seed)
        num_null = int(latent.num_channels < sum(latent.num_edge_types))
        first = 0
        for q, own in zip(posterior, types.unbind(-1)):
            chosen = F.one_hot(own, q.size(1)).to(q)
            sums = torch.stack([(chosen * q).sum(0), chosen.sum(0)])
            # Of types with networks.
            total, number = self._sum(sums)[:, num_null:]
            sure = total / number.clamp(min=1)
            unsure, frequent = int(sure.argmin()), int(number.argmax())
            if sure[unsure] < LEAST_SURE and unsure != frequent:
                decoder.layer.layer.copy_channel(first + frequent,
                                                 first + unsure, generator)
            first += len(sure)

    def _decoder_loss(self, batch: Data, recipe: NetworkRecipe,
                      edge_type: Tensor) -> Tensor:
        """Of the decoder alone, over a graph :obj:`[num_edges, num_layers]`."""
        edge_attr = per_mass(self.model.latent.encode_types(edge_type), batch)
        nll = recipe.reconstruction(self.model, batch, edge_attr,
                                    self.generator)
        self.log('train_loss', nll, batch_size=batch.num_graphs)
        return nll

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        edge_type, posterior = self.model.infer(batch)
        if self.trainer.state.fn == 'fit':  # Validation alone changes nothing.
            self._found.append(torch.cat([q.sum(0) for q in posterior]))
        self._log_prediction(batch, edge_type)
        self._log_posterior(batch, edge_type, posterior)

    def predict_step(self, batch: Data, batch_idx: int) -> Any:
        return self.infer(batch)

    def on_validation_epoch_end(self) -> None:
        if self._found:
            self.model.latent.count(self._sum(torch.stack(self._found).sum(0)))
            self._found.clear()
        # Without truth there is no accuracy, rather than one of zero.
        if self.accuracy.update_called:
            for name, value in self._accuracies().items():
                self.log(f'val_{name}', value)

    def accuracies(self, edge_type: Tensor, data: Data) -> dict[str, float]:
        """Edge accuracies, combined and by layer; none without truth."""
        if 'edge_label' not in data:
            return {}
        self.accuracy.update(edge_type, data.edge_label)
        return {name: v.item() for name, v in self._accuracies().items()}

    def layer_name(self, layer: int) -> str:
        """What layer-graph :obj:`layer` stands for, or its number."""
        names = self.config.names
        return names[layer] if layer < len(names) else str(layer)

    def with_laws(self, **laws: Any) -> 'RelationalInference':
        """A copy whose decoder is a :class:`~pyg_fnri.nn.ForceLawDecoder` of
        these arguments, yet to be fitted."""
        config = replace(self.config, laws=laws)
        out = RelationalInference(config.build_model(), self.recipe, config)
        for part in ('model.encoder', 'model.scaling', 'units', 'linear_step'):
            state = self.get_submodule(part).state_dict()
            out.get_submodule(part).load_state_dict(state)
        return out

    def record_terms(self) -> None:
        """Has the config, and with it checkpoints, know which terms laws have
        come to have, and whether graphs are directed."""
        latent, layer = self.model.latent, self.model.decoder.layer
        if not isinstance(layer, ForceLawDecoder) or self.config.laws is None:
            raise TypeError('Only force laws have terms; see with_laws.')
        options = dict(self.config.options, undirected=latent.undirected,
                       shared=latent.shared)
        laws = dict(self.config.laws, terms=list(layer.terms),
                    num_knots=layer.law.num_knots)
        self.config = replace(self.config, options=options, laws=laws)

    def require(self, *parts: str) -> None:
        """Makes sure that this regime has trained parts of the model."""
        for part in parts:
            if not self.is_trained(part):
                raise ValueError(
                    f"This needs a trained {part}, which the recipe "
                    f"{self.config.recipe} in the regime "
                    f"{self.config.regime} has not.")

    def is_trained(self, part: str) -> bool:
        """Whether a part is trained, or force laws have taken its place."""
        return part in self.trained or self.config.laws is not None

    def configure_optimizers(self) -> Any:
        parts = self.model.encoder, self.model.decoder
        groups = [dict(params=part.parameters()) for part in parts]
        optimizer = torch.optim.Adam(groups, lr=self.recipe.learning_rate,
                                     fused=True)
        return dict(optimizer=optimizer,
                    lr_scheduler=self.recipe.schedule(optimizer))

    def setup(self, stage: str) -> None:
        # Several devices wait for gradients of all that could have some.
        self._frozen = [
            p for part in ('encoder', 'decoder') if part not in self.trained
            for p in getattr(self.model, part).parameters() if p.requires_grad
        ]
        for p in self._frozen:
            p.requires_grad_(False)

    def teardown(self, stage: str) -> None:
        for p in self._frozen:
            p.requires_grad_(True)

    def on_fit_start(self) -> None:
        states, self._generator_states = self._generator_states, None
        if states is None:
            states = self.generator.get_state()
        states = torch.atleast_2d(states)
        self.generator = torch.Generator(self.device)
        # Each process draws noise of its own.
        self.generator.manual_seed(self.config.seed +
                                   1_000_003 * self.global_rank)
        # The state of another kind of device says nothing to this one.
        if (self.global_rank < len(states)
                and states.size(1) == len(self.generator.get_state())):
            self.generator.set_state(states[self.global_rank].clone())

    def on_train_batch_start(self, batch: Data, batch_idx: int) -> None:
        if self.recipe.dropout:
            # PyTorch draws it from a global generator, in no checkpoint.
            seed = torch.randint(2**31, (), generator=self.generator,
                                 device=self.device)
            torch.manual_seed(int(seed))

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint['config'] = asdict(self.config)
        state = self.generator.get_state()
        if self._trainer is not None:  # Of all processes.
            state = self.trainer.strategy.all_gather(state.to(self.device))
            state = state.cpu()
        checkpoint['generator'] = state
        checkpoint['check'] = self.check and asdict(self.check)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.remember_check(checkpoint)
        # Only when training starts is it known on which device.
        self._generator_states = checkpoint['generator']

    def _log_prediction(self, batch: Data, edge_type: Tensor) -> None:
        """Loss given a graph, and errors of rollouts beside those without
        interactions, in the paper's 1e-5 min-max units squared."""
        model, recipe = self.model, self.recipe
        edge_attr = model.weights(edge_type, batch)
        report = {'val_loss': recipe.reconstruction(model, batch, edge_attr)}
        steps = max(1, min(10, batch.y.size(1) - model.decoder.burn_in))
        rollout = model.decode(batch.y, batch.edge_index, edge_attr, steps)
        first = model.decoder.burn_in - 1
        rollout, y = (self.units(x)[:, first:] for x in (rollout, batch.y))
        static = static_rollout(y, steps)
        linear = linear_rollout(self.linear_step, y, steps)
        for name, out in (('rollout', rollout), ('static', static), ('linear',
                                                                     linear)):
            report[f'val_{name}_mse'] = 1e5 * F.mse_loss(out, y[:, 1:])
        self._log_means(report, batch.num_graphs)

    def _log_posterior(self, batch: Data, edge_type: Tensor,
                       posterior: Sequence[Tensor]) -> None:
        """Means over layers: relative entropy of the posterior, the share of
        pairs whose directions differ; with the truth, accuracies."""
        def log(name: str, shares: list[Tensor], number: int) -> None:
            mean = torch.stack(shares).mean().float()
            self._log_means({f'val_{name}_share': mean}, number)

        if len(edge_type):
            entropy = [
                posterior_entropy(q) / math.log(q.size(-1)) for q in posterior
            ]
            log('entropy', entropy, len(edge_type))
        reverse = reverse_edges(batch.edge_index)
        edge = torch.arange(len(reverse), device=reverse.device)
        num_pairs = int((edge < reverse).sum())
        if num_pairs and not self.model.latent.undirected:
            log('asymmetric',
                [asymmetric_share(k, reverse) for k in edge_type.unbind(-1)],
                num_pairs)
        if 'edge_label' in batch:
            self.accuracy.update(edge_type, batch.edge_label)

    def _log_means(self, values: dict[str, Tensor], number: int) -> None:
        # Lightning rounds the mean number of all processes down.
        self.log_dict(values, batch_size=number * processes()[1],
                      sync_dist=True)

    def _sum(self, values: Tensor) -> Tensor:
        """Over all processes."""
        found = cast(Tensor, self.all_gather(values))
        return found.view(-1, *values.size()).sum(0)

    def _accuracies(self) -> dict[str, Tensor]:
        """Of what the metric has seen, which is then forgotten."""
        combined, layers, _ = self.accuracy.compute()
        self.accuracy.reset()
        out = {'accuracy': combined}
        for k, layer in enumerate(layers):
            out[f'accuracy_{self.layer_name(k)}'] = layer
        return out

    def _penalty(self) -> Tensor:
        """The recipe's L2 term on the encoder's weights."""
        if not self.recipe.l2:
            return torch.zeros((), device=self.device)
        squares = [w.square().sum() for w in self.model.encoder.parameters()]
        return torch.mul(torch.stack(squares).sum(), self.recipe.l2)


class SupervisedInference(RelationalInference):
    """Trains the encoder alone on given graphs, by cross-entropy, binary for
    sfNRI ("Experimental Details" of the paper, *supervised*)."""
    monitor = ('val_accuracy', 'max')
    trained = ('encoder', )

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        logits = self._logits(batch)
        loss = self._cross_entropy(logits, batch)
        self.log('train_loss', loss, batch_size=batch.num_graphs)
        return loss + self._penalty()

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        logits = self._logits(batch)
        if 'edge_label' in batch:
            self._log_means({'val_loss': self._cross_entropy(logits, batch)},
                            batch.num_graphs)
        latent = self.model.latent
        self._log_posterior(batch, latent.predict(logits),
                            latent.posterior(logits))

    def _cross_entropy(self, logits: Tensor, batch: Data) -> Tensor:
        edge_type = self.given_types(batch)
        return self.model.latent.cross_entropy(logits, edge_type).mean()


class TrueGraphPrediction(RelationalInference):
    """Trains the decoder alone, given the true interaction graphs (section
    "Experimental Details" of the paper, *true graph*)."""
    trained = ('decoder', )

    def infer(self, batch: Data) -> Graph:
        return self.given_types(batch), None

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        return self._decoder_loss(batch, self.recipe, self.given_types(batch))

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        self._log_prediction(batch, self.given_types(batch))


MODULES: dict[str, type[RelationalInference]] = {
    'learned': RelationalInference,
    'supervised': SupervisedInference,
    'true_graph': TrueGraphPrediction
}


def build_module(config: Config) -> RelationalInference:
    """A new module of the regime that the settings name, with new weights."""
    return MODULES[config.regime](config.build_model(), config.build_recipe(),
                                  config)
