"""Training the encoder alone, on given graphs."""
from torch import Tensor
from torch_geometric.data import Data

from pyg_fnri.training.given_graphs import GivenGraphs


class SupervisedInference(GivenGraphs):
    """Trains the encoder alone on given graphs, by cross-entropy, binary for
    sfNRI (section "Experimental Details" of the paper, *supervised*). The best
    checkpoint is that of the highest validation edge accuracy.

    Args:
        model (RelationalAutoEncoder): The model.
        recipe (Recipe): Its learning rate, schedule and latent graph.
        config (Config): How to build both again.
        target (str, optional): What to learn: :obj:`'edge_label'`, the
            truth, or another attribute such as the graphs that inference has
            found, in the latent graph's own layers and types.
            (default: :obj:`'edge_label'`)

    Raises:
        ValueError: In training, if the systems lack the target.
    """
    monitor = ('val_accuracy', 'max')
    trained = ('encoder', )

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        batch = self.recipe.augment(batch, self.generator)
        logits = self.model.encode(batch.x, batch.edge_index)
        loss = self._cross_entropy(logits, batch)
        self.log('train_loss', loss, batch_size=batch.num_graphs)
        return loss + self._penalty()

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        logits = self.model.encode(batch.x, batch.edge_index)
        if self.target in batch:
            self.log('val_loss', self._cross_entropy(logits, batch),
                     batch_size=batch.num_graphs, sync_dist=True)
        edge_type = self.model.latent.predict(logits)
        self._log_posterior(batch, edge_type,
                            self.model.latent.posterior(logits))
        if 'edge_label' in batch:
            self.accuracy.update(edge_type, batch.edge_label)

    def _cross_entropy(self, logits: Tensor, batch: Data) -> Tensor:
        edge_type = self.given_types(batch)
        return self.model.latent.cross_entropy(logits, edge_type).mean()
