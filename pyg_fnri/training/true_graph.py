"""Training the decoder alone, on the true graphs."""
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.nn import per_mass
from pyg_fnri.training.given_graphs import GivenGraphs


class TrueGraphPrediction(GivenGraphs):
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

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        batch = self.recipe.augment(batch, self.generator)
        edge_attr = self.model.latent.encode_types(self.given_types(batch))
        edge_attr = per_mass(edge_attr, batch)
        nll = self.recipe.reconstruction(self.model, batch, edge_attr,
                                         self.generator)
        self.log('train_loss', nll, batch_size=batch.num_graphs)
        return nll

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        self._log_prediction(batch, self.given_types(batch))
