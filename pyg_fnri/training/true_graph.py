"""Training the decoder alone, on the true graphs."""
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.training.module import RelationalInference


class TrueGraphPrediction(RelationalInference):
    """Trains the decoder alone, given the true interaction graphs (section
    "Experimental Details" of the paper, *true graph*). The best checkpoint is
    that of the lowest error of validation rollouts of 10 steps.

    Raises:
        ValueError: In training, if the systems have no :obj:`edge_label`.
    """
    monitor = ('val_rollout_mse', 'min')
    trained = ('decoder', )

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        batch = self.recipe.augment(batch, self.generator)
        edge_attr = self.model.latent.encode_types(self.true_types(batch))
        nll = self.recipe.reconstruction(self.model, batch, edge_attr,
                                         self.generator)
        self.log('train_loss', nll, batch_size=batch.num_graphs)
        return nll

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        self._log_prediction(batch, self.true_types(batch))
