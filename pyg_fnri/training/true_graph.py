"""Training the decoder alone, on the true graphs."""
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.nn import RelationalAutoEncoder, per_mass
from pyg_fnri.recipes import Recipe
from pyg_fnri.training.config import Config
from pyg_fnri.training.module import RelationalInference


class TrueGraphPrediction(RelationalInference):
    """Trains the decoder alone, given the true interaction graphs (section
    "Experimental Details" of the paper, *true graph*). The best checkpoint is
    that of the lowest error of validation rollouts of 10 steps.

    Args:
        model (RelationalAutoEncoder): The model.
        recipe (Recipe): What to minimise, and how.
        config (Config): How to build both again.
        target (str, optional): The graphs: :obj:`'edge_label'`, the truth,
            or another attribute such as the graphs that inference has found,
            in the latent graph's own layers and types.
            (default: :obj:`'edge_label'`)

    Raises:
        ValueError: In training, if the systems lack these graphs.
    """
    monitor = ('val_rollout_mse', 'min')
    trained = ('decoder', )

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
        batch = self.recipe.augment(batch, self.generator)
        edge_attr = self.model.latent.encode_types(self._graph(batch))
        edge_attr = per_mass(edge_attr, batch)
        nll = self.recipe.reconstruction(self.model, batch, edge_attr,
                                         self.generator)
        self.log('train_loss', nll, batch_size=batch.num_graphs)
        return nll

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        self._log_prediction(batch, self._graph(batch))

    def _graph(self, batch: Data) -> Tensor:
        if self.target == 'edge_label':
            return self.true_types(batch)
        if self.target not in batch:
            raise ValueError(f"The systems have no '{self.target}', the graphs "
                             f"that the decoder is to be trained on.")
        return batch[self.target]
